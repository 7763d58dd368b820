import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Contactless Book C-3, 5.6 and Annex C, with the keys and signatures of Vectors/kernel3.py.
@Suite struct Kernel3AuthenticationTests {
    // MARK: Offline approvals

    /// Five commands: one for each thing that has to be read.
    @Test func fastDDA() throws {
        let run = try Kernel3Bench.signing.run(SigningCard().responses)
        expectEqual(run.outcome.kind, .approved, "\(run.outcome.reason)")
        expectEqual(run.commands.dropFirst(), ["00B2010C00", "00B2011400", "00B2021400", "00B2051C00"])
    }

    /// CTQ byte 1 bits 6 and 5: go online, or switch to the contacts, where the reader can.
    @Test(
        arguments: [
            (nil, "36 00 C0 00", .declined), ("00 00", "36 00 C0 00", .declined),
            ("20 00", "36 00 C0 00", .onlineRequest), ("30 00", "36 00 C0 00", .onlineRequest),
            ("10 00", "36 00 C0 00", .tryAnotherInterface),
            // No contacts; nobody to ask; neither
            ("10 00", "26 00 C0 00", .declined), ("20 00", "3E 00 C0 00", .declined),
            ("30 00", "3E 00 C0 00", .tryAnotherInterface), ("30 00", "2E 00 C0 00", .declined),
        ] as [(String?, String, Outcome.Kind)])
    func whatFollowsFromFailure(_ card: String?, _ reader: String, _ expected: Outcome.Kind) throws {
        var bench = try Kernel3Bench.signing
        bench.qualifiers = reader
        let outcome = try bench.run(SigningCard(qualifiers: card, signature: nil).responses).outcome
        expectEqual(outcome.kind, expected)
        if expected == .tryAnotherInterface {
            expectEqual(
                outcome.userInterfaceRequest,
                UserInterfaceRequest(.insertCard, .processingError, languagePreference: ["de", "en"]))
            expectEqual(outcome.alternateInterfacePreference, .contactChip)
        }
    }

    @Test(
        arguments: [
            // Nothing signed, signed without 9F69, by an older version of fDDA, for a transaction that goes online
            (SigningCard(signature: nil), "9F4B is missing"), (SigningCard(related: nil), "9F69 is missing"),
            (
                SigningCard(signature: Kernel3Vectors.legacySignature, related: Kernel3Vectors.legacyRelated),
                "unknown version of fDDA"
            ),
            (SigningCard(signature: Kernel3Vectors.onlineSignature), "wrong format"),
            (SigningCard(related: Kernel3Vectors.confirmedRelated), "wrong hash"),
            // The remainder that the certificate needs
            (SigningCard(issuerRemainder: nil), "92 is missing"),
            // Another record, another AIP
            (SigningCard(record: "5F 24 03 31 12 30  9F 4A 01 82"), "wrong hash"),
            (SigningCard(aip: "20 01"), "wrong hash"), (SigningCard(aip: "40 00"), "wrong hash"),
        ])
    func whatFails(_ card: SigningCard, _ complaint: String) throws {
        let outcome = try Kernel3Bench.signing.run(card.responses).outcome
        #expect(outcome.kind == .declined && outcome.reason.contains(complaint), "\(outcome.reason)")
    }

    /// The signature covers what the terminal said: another amount than the one that was signed.
    @Test func anotherAmount() throws {
        var bench = try Kernel3Bench.signing
        bench.amount = 12_35
        let outcome = try bench.run(SigningCard().responses).outcome
        #expect(outcome.kind == .declined && outcome.reason.contains("wrong hash"))
    }

    @Test func withoutTheKey() throws {
        let outcome = try Kernel3Bench().run(SigningCard().responses).outcome
        #expect(outcome.kind == .declined && outcome.reason.contains("the terminal has no such key"))
    }

    /// One bit, in the signature or in 9F69.
    @Test func everyBitCounts() throws {
        let bench = try Kernel3Bench.signing
        for position in 0..<80 {
            let card = SigningCard(signature: try flipping(position, in: Kernel3Vectors.offlineSignature))
            try expectEqual(bench.run(card.responses).outcome.kind, .declined, "byte \(position) of 9F4B")
        }
        for position in 0..<7 {
            let card = SigningCard(related: try flipping(position, in: Kernel3Vectors.related))
            try expectEqual(bench.run(card.responses).outcome.kind, .declined, "byte \(position) of 9F69")
        }
    }

    private func flipping(_ position: Int, in text: String) throws -> String {
        var value = try wire(text)
        value[position] ^= 0x10
        return value.hex
    }

    /// EMV Book 3, 10.3: authentication fails for a signed record that is no template 70; the transaction goes on.
    @Test func aSignedRecordThatIsNone() throws {
        var responses = try SigningCard(qualifiers: "20 00").responses
        responses[1] = try template(0x77, Kernel3Vectors.record)
        // 5F24 was in there, so that the card has expired as well.
        responses[2] = try template(
            0x70, "5F 24 03 31 12 31 8F 01 F1", TLVTag(0x90).encode(try wire(Kernel3Vectors.issuerCertificate)).hex,
            TLVTag(0x92).encode(try wire(Kernel3Vectors.issuerRemainder)).hex, "9F 32 01 03")
        let outcome = try Kernel3Bench.signing.run(responses).outcome
        expectEqual(outcome.kind, .onlineRequest)
        #expect(outcome.reason.contains("a record is no template 70"))
    }

    // MARK: Online

    /// TTQ byte 1 bit 1: what goes online is authenticated, by a signature that says so.
    @Test(
        arguments: [
            ("37 00 C0 00", Kernel3Vectors.onlineSignature, .onlineRequest, ""),
            ("37 00 C0 00", Kernel3Vectors.offlineSignature, .declined, "wrong format"),
            ("36 00 C0 00", Kernel3Vectors.offlineSignature, .onlineRequest, ""),
            ("37 00 C0 00", nil, .endApplication, "9F4B"), ("36 00 C0 00", nil, .onlineRequest, ""),
        ] as [(String, String?, Outcome.Kind, String)])
    func online(_ reader: String, _ signature: String?, _ expected: Outcome.Kind, _ complaint: String) throws {
        var bench = try Kernel3Bench.signing
        bench.qualifiers = reader
        let outcome = try bench.run(SigningCard(cryptogram: "80", signature: signature).responses).outcome
        expectEqual(outcome.kind, expected, "\(outcome.reason)")
        #expect(complaint.isEmpty || outcome.reason.contains(complaint), "\(outcome.reason)")
    }

    /// AIP byte 1 bit 7: SDA, of format 93, for transactions that go online only.
    @Test(
        arguments: [
            (Kernel3Vectors.onlineStaticSignature, .onlineRequest), (nil, .endApplication),
            (Kernel3Vectors.offlineStaticSignature, .declined), (Kernel3Vectors.issuerCertificate, .declined),
        ] as [(String?, Outcome.Kind)])
    func sdaOnline(_ signature: String?, _ expected: Outcome.Kind) throws {
        var bench = try Kernel3Bench.signing
        bench.qualifiers = "37 00 C0 00"
        let card = SigningCard(aip: "40 00", cryptogram: "80", signature: nil, staticSignature: signature)
        try expectEqual(bench.run(card.responses).outcome.kind, expected)
    }

    /// 5.4.2.1: the data are missing, whether the transaction goes online or not.  A card that declines need not give them.
    @Test(
        arguments: [
            ("37 00 C0 00", "40", nil, .endApplication), ("37 00 C0 00", "40", 0, .endApplication),
            ("37 00 C0 00", "80", nil, .endApplication), ("37 00 C0 00", "00", nil, .declined),
            ("36 00 C0 00", "40", nil, .declined), ("36 00 C0 00", "80", nil, .onlineRequest),
        ] as [(String, String, UInt64?, Outcome.Kind)])
    func missingData(_ reader: String, _ cryptogram: String, _ floorLimit: UInt64?, _ expected: Outcome.Kind) throws {
        var bench = try Kernel3Bench.signing
        (bench.qualifiers, bench.floorLimit) = (reader, floorLimit)
        let outcome = try bench.run(SigningCard(cryptogram: cryptogram, signature: nil).responses).outcome
        expectEqual(outcome.kind, expected, "\(outcome.reason)")
    }

    /// Cards that support neither, and transactions that the card or the reader has declined.
    @Test func onlineWithoutAuthentication() throws {
        var bench = try Kernel3Bench.signing
        bench.qualifiers = "37 00 C0 00"
        try expectEqual(bench.run(processingOptions()).outcome.kind, .onlineRequest)
        let declined = try bench.run(SigningCard(cryptogram: "00", signature: nil).responses).outcome
        #expect(declined.kind == .declined && declined.reason == "the card declines")
        // A TC that is sent online: its signature is for an offline approval, and proves nothing more.
        bench.floorLimit = 0
        try expectEqual(bench.run(SigningCard().responses).outcome.kind, .onlineRequest)
    }
}
