import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// What EMV Contactless Book C-2 asks of a card beside EMV Book 3.
///
/// Cryptograms and CVC3 were computed with PyEMV 1.5.0: `ac.generate_ac` under `kd.derive_common_sk`, `cvv.generate_cvc3`.
@Suite struct CardMastercardTests {
    private static let selectMaestro = "00 A4 04 00 07 A0 00 00 00 04 30 60 00"
    private static let advanceOptions = "80 A8 00 00 0D 83 0B 0000000000000000 0276 22 00"
    private static let phoneOptions = "80 A8 00 00 0B 83 09 0000000000000000 01 00"
    private static let plainOptions = "80 A8 00 00 02 83 00 00"
    private static let checksum = "80 2A 8E 80 04 00000899 00"

    private func advance(_ name: String) throws -> CardSession {
        let send = try CardSession(name)
        _ = try send(CardEMVTests.selectMastercard)
        _ = try send(Self.advanceOptions)
        return send
    }

    // MARK: Mag-stripe mode

    /// PyEMV, tests/test_cvv.py: both tracks, the last digits of 29488 and 33419.
    @Test(arguments: [
        ("5123456789012345D35121010000000000000F", 29_488 as UInt16),
        (
            """
            42353132333435363738393031323334355E4B454E4F42492F4F424957414E5E33353132313031
            303030303030303030303030303030303030303030303030
            """, 33_419 as UInt16
        ),
    ])
    func publishedCVC3(track: String, expected: UInt16) throws {
        let issuer = try #require(TripleDES([UInt8](hex: "01234567899876543210012345678998")))
        let key = try #require(issuer.cardKey(pan: "5123456789012345".utf8.map { $0 - 0x30 }, sequence: 0))
        let cvc3 = CryptographicChecksum(key: key)(
            track: try [UInt8](hex: track), unpredictableNumber: [0, 0, 0x08, 0x99], atc: [0, 0x5E])
        let number: UInt16? = cvc3?.reduce(0) { $0 << 8 | UInt16($1) }
        expectEqual(number, expected)
        expectEqual(CryptographicChecksum(key: key)(track: [], unpredictableNumber: [0], atc: [0, 0x5E]), nil)
    }

    /// seciot/CardApplet-PayPass, README.md: what the card is personalised with has the IVCVC3 99D3; the key that it is
    /// from and the CVC3 stand in another project's tests, dsc_test.py, with another track.
    @Test func publishedIVCVC3() throws {
        let key = try #require(TripleDES([UInt8](hex: "A3D0BC420A766611F7BC19E7F2E221AF")))
        let track = try [UInt8](hex: "5413123456784800D09061019000990000000F")
        expectEqual(key.mac(track, padding: .marker)?.suffix(2).hex, "99D3")
        let cvc3 = CryptographicChecksum(key: key)(
            track: try [UInt8](hex: "5413123456784800D20061019000990000000F"), unpredictableNumber: [0, 0, 0x08, 0x99],
            atc: [0, 0x5E])
        expectEqual(cvc3?.hex, "77DF")  // 30687
    }

    @Test func stripe() throws {
        let send = try CardSession("mastercard-stripe")
        _ = try send(CardEMVTests.selectMastercard)
        try expectEqual(send(Self.checksum), "6985")
        try expectEqual(send(Self.plainOptions), hex("77 0A 82 02 0000 94 04 08010100", "9000"))
        try expectEqual(
            send("00 B2 01 0C 00"),
            hex(
                "70 81 8B 9F6C 02 0001 9F62 06 00000000000E 9F63 06 000000000E70 9F64 01 03",
                "56 33 42 35343133333330303839303130343334 5E 5441505045522F5445535341 5E 33313132 313031",
                "30303030303030303030303030", "9F65 02 000E 9F66 02 0E70 9F67 01 03",
                "9F6B 13 5413330089010434D31121010000000000000F 9F69 03 9F6A04",
                "9F68 0E 0000000000000000 5E03 4203 1F03", "9000"))
        try expectEqual(send("80 2A 8E 00 04 00000899 00"), "6A86")
        try expectEqual(send("80 2A 8E 80 02 0899 00"), "6700")
        try expectEqual(send("00 2A 8E 80 04 00000899 00"), "6E00")
        // 32066 and 31021
        try expectEqual(send(Self.checksum), hex("77 0F 9F61 02 7D42 9F60 02 792D 9F36 02 005E", "9000"))
        try expectEqual(send(Self.checksum), "6985")
        // Another number, another code; another counter, another code: 65065 and 11132.
        _ = try send(CardEMVTests.selectMastercard)
        _ = try send(Self.plainOptions)
        try expectEqual(send(Self.checksum), hex("77 0F 9F61 02 FE29 9F60 02 2B7C 9F36 02 005F", "9000"))
        // No cryptogram in this mode.
        try expectEqual(send(CardEMVTests.generateAC("80", amount: "000000001234")), "6D00")
        try expectEqual(CardSession("emv-cda")(Self.checksum), "6985")
    }

    @Test func stripePhone() throws {
        let send = try CardSession("mastercard-stripe-phone")
        for counter in ["5E", "60"] {
            _ = try send(CardEMVTests.selectMastercard)
            #expect(try send(Self.plainOptions).hasPrefix("770A82020200"))
            try expectEqual(send(Self.checksum), hex("77 0B 9F36 02 00\(counter) DF4B 03 000100", "9000"))
            // Asked again without having left the field, it has not yet been confirmed.
            if counter == "60" {
                _ = try send(CardEMVTests.selectMastercard)
                _ = try send(Self.plainOptions)
                #expect(try send(Self.checksum).hasSuffix("DF4B030001009000"))
            }
            send.card.reset()
            send.card.reset()
            _ = try send(CardEMVTests.selectMastercard)
            _ = try send(Self.plainOptions)
            let answer = try send(Self.checksum)
            #expect(answer.hasPrefix("77159F6102"))
            #expect(answer.hasSuffix("DF4B030010009000"))
            send.card.reset()
        }
    }

    // MARK: Relay resistance

    @Test func relayResistance() throws {
        let send = try advance("mastercard-advance")
        let first = try send("80 EA 00 00 04 01020304 00")
        #expect(first.hasPrefix("800A") && first.hasSuffix("003200640018" + "9000") && first.count == 28)
        try expectEqual(send("80 EA 00 01 04 01020304 00"), "6A86")
        try expectEqual(send("80 EA 00 00 03 010203 00"), "6700")
        // The card's entropy is another each time, and three times are enough.
        #expect(try send("80 EA 00 00 04 01020304 00") != first)
        #expect(try send("80 EA 00 00 04 01020304 00").hasSuffix("9000"))
        try expectEqual(send("80 EA 00 00 04 01020304 00"), "6985")
        // Not before GET PROCESSING OPTIONS, nor after GENERATE AC, nor for cards without.
        _ = try send(CardEMVTests.selectMastercard)
        try expectEqual(send("80 EA 00 00 04 01020304 00"), "6985")
        _ = try send(Self.advanceOptions)
        _ = try send(CardEMVTests.generateAC("80", amount: "000000001234"))
        try expectEqual(send("80 EA 00 00 04 01020304 00"), "6985")
        let other = try CardSession("emv-cda")
        _ = try other(CardEMVTests.selectMastercard)
        try expectEqual(other("80 EA 00 00 04 01020304 00"), "6D00")
    }

    @Test(arguments: [
        ("mastercard-advance", "003200640018", 11), ("mastercard-rrp-slow", "003200640018", 60),
        ("mastercard-rrp-early", "01F403E80018", 11), ("mastercard-rrp-mismatch", "003200640003", 11),
        ("mastercard-rrp-wrong", "0032006418", 11),
    ])
    func relayTimes(name: String, times: String, milliseconds: Int) throws {
        let send = try advance(name)
        let command = try [UInt8](hex: "80 EA 00 00 04 01020304 00")
        try expectEqual(send(command.hex).dropFirst(12), times + "9000")
        expectEqual(send.card.processingTime(of: command), .milliseconds(milliseconds))
    }

    /// Book C-2, ICC Dynamic Data with relay resistance: behind the hash the terminal's entropy, the card's and its times,
    /// those of the last exchange.
    @Test(
        .enabled(if: Program.isInstalled("python3"), "python3 is not installed"),
        arguments: [
            ("50", "000000001234", "90", "40", "7C18C642FE6F03CD"),
            ("90", "000000001234", "A0", "80", "88AD81ADEB169D45"),
        ])
    func relayResistanceIsSigned(
        p1: String, amount: String, cvr: String, cid: String, cryptogram: String
    ) async throws {
        let send = try advance("mastercard-advance")
        _ = try send("80 EA 00 00 04 01020304 00")
        let relay = try send("80 EA 00 00 04 A1A2A3A4 00").dropFirst(4).dropLast(4)
        let answer = try send(CardEMVTests.generateAC(p1, amount: amount))
        let (before, after) = (
            try hex("9F27 01 \(cid) 9F36 02 0021"), try hex("9F10 12 0114 \(cvr)4003220000 0000 00000000000000FF")
        )
        #expect(answer.hasPrefix("7781A2" + before + "9F4B8180"))
        #expect(answer.hasSuffix(after + "9000"))
        let data = try [UInt8](hex: Self.advanceOptions).dropFirst(7).dropLast().hex
        let block = try await recovered(answer, "card-1024")
        let hash = try await sha1(data + cdol1(p1, amount) + before + after)
        #expect(block.hasPrefix("6A" + "05" + "01" + "34" + "08"))
        let signed = "\(cid)\(cryptogram)\(hash)A1A2A3A4\(relay)\(filling(128 - 25 - 0x34)) hash BC"
        expectEqual(String(block.dropFirst(10 + 16)), signed)
    }

    // MARK: Keys of odd lengths

    /// Certificates with and without remainder, and the signature under the last key.
    @Test(
        .enabled(if: Program.isInstalled("python3"), "python3 is not installed"),
        arguments: [
            ("mastercard-odd-keys", 0xF6 as UInt8, "issuer-1008", "card-992", "7E 03", "7C 01"),
            ("mastercard-padded-keys", 0xF2, "issuer-1008", "card-640", "7E 03", "50 01"),
        ])
    func oddKeys(
        name: String, authority: UInt8, issuerName: String, cardName: String, issuerLengths: String,
        cardLengths: String
    ) async throws {
        let send = try CardSession(name)
        _ = try send(CardEMVTests.selectMastercard)
        var card = CardSignatureTests.Objects()
        for command in [Self.plainOptions, "00 B2 01 14 00", "00 B2 01 24 00", "00 B2 02 24 00"] {
            card.answers.append(try send(command))
        }
        card.answers.append(try send(CardEMVTests.generateAC("50", amount: "000000001234")))
        let root = try #require(
            VirtualCards.certificationAuthorityKeys.first {
                $0.rid == CardFileReader.mastercard && $0.index == authority
            })
        let (issuer, icc) = (
            try #require(TestKeys.builtIn.keys[issuerName]), try #require(TestKeys.builtIn.keys[cardName])
        )
        let record = try [UInt8](hex: card.answers[1]).dropFirst(3).dropLast(2)
        let blocks = try await Recovery.blocks([
            .init(
                modulus: root.modulus, exponent: root.exponent, bytes: card[0x90], rest: card[0x92] + issuer.exponent),
            .init(
                modulus: issuer.modulus, exponent: issuer.exponent, bytes: card[0x9F46],
                rest: card[0x9F48] + icc.exponent + record + [0x19, 0x80]),
            .init(modulus: icc.modulus, exponent: icc.exponent, bytes: card[0x9F4B], rest: [0x11, 0x22, 0x33, 0x44]),
        ])
        func held(_ key: RSAKey, _ room: Int) -> String {
            key.modulus.prefix(room).hex + filling(max(0, room - key.modulus.count)) + " hash BC"
        }
        expectEqual(
            blocks.prefix(2),
            [
                try hex("6A 02 541333FF 1249 000005 01 01 \(issuerLengths)") + held(issuer, root.modulus.count - 36),
                try hex("6A 04 5413330089010434FFFF 1249 000006 01 01 \(cardLengths)")
                    + held(icc, issuer.modulus.count - 42),
            ])
        #expect(blocks[2].hasPrefix("6A05012608") && blocks[2].contains("4058E111818FDDAC46"))
        #expect(blocks[2].hasSuffix(" hash BC"))
        expectEqual(card[0x92], Array(issuer.modulus.dropFirst(root.modulus.count - 36)))
        expectEqual(card[0x9F48], Array(icc.modulus.dropFirst(issuer.modulus.count - 42)))
        let isPadded = name.contains("padded")
        #expect(card.answers[2].contains("010001" + "9224") != isPadded)
        #expect(card.answers[3].contains("9F48") != isPadded)
    }

    // MARK: Torn transactions

    /// The answer to GENERATE AC is lost with the card; presented again, it gives the same one to a terminal that knows the
    /// unpredictable number.
    @Test func torn() throws {
        let send = try advance("mastercard-torn")
        let generate = try [UInt8](hex: CardEMVTests.generateAC("40", amount: "000000001234"))
        expectEqual(send.card.exchange(generate), nil)
        // Out of the field it is silent.
        expectEqual(send.card.exchange(try [UInt8](hex: CardEMVTests.selectMastercard)), nil)
        send.card.reset()
        _ = try send(CardEMVTests.selectMastercard)
        try expectEqual(send("80 D0 00 00 04 11223344 00"), "6985")
        _ = try send(Self.advanceOptions)
        try expectEqual(send("80 D0 01 00 04 11223344 00"), "6A86")
        try expectEqual(send("80 D0 00 00 03 112233 00"), "6700")
        try expectEqual(send("80 D0 00 00 04 11223345 00"), "6985")  // another transaction
        try expectEqual(
            send("80 D0 00 00 04 11223344 00"),
            hex(
                "77 29 9F27 01 40 9F36 02 0021 9F26 08 1B6FB90ABA822B21",
                "9F10 12 0114 904003220000 0000 00000000000000FF", "90 00"))
        // With that the transaction is over, but it may be torn again.
        expectEqual(send.card.exchange(generate), [0x69, 0x85])
        try expectEqual(send("80 D0 00 00 04 11223344 00"), "6985")
        _ = try send(CardEMVTests.selectMastercard)
        _ = try send(Self.advanceOptions)
        #expect(try send("80 D0 00 00 04 11223344 00").hasPrefix("77299F270140"))
        // The card approved once: 60.00 less 12.34.
        try expectEqual(send("80 CA 9F 50 00"), hex("9F50 06 000000004766", "9000"))
        // It is torn once only.
        _ = try send(CardEMVTests.selectMastercard)
        _ = try send(Self.advanceOptions)
        #expect(try send(generate.hex).hasPrefix("77299F2701409F36020024"))
    }

    @Test func tornAndLost() throws {
        let send = try advance("mastercard-torn-lost")
        expectEqual(send.card.exchange(try [UInt8](hex: CardEMVTests.generateAC("40", amount: "000000001234"))), nil)
        send.card.reset()
        _ = try send(CardEMVTests.selectMastercard)
        _ = try send(Self.advanceOptions)
        try expectEqual(send("00 B2 01 14 00").contains("9F51"), false)
        try expectEqual(send("80 D0 00 00 04 11223344 00"), "6D00")
    }

    /// At each command, heard or not: silence until the card is presented again.
    @Test(
        arguments: [
            ("select", CardEMVTests.selectMastercard), ("gpo", Self.advanceOptions), ("read-record", "00 B2 01 14 00"),
            ("exchange-relay-resistance-data", "80 EA 00 00 04 01020304 00"),
            ("generate-ac", CardEMVTests.generateAC("40", amount: "000000001234")), ("get-data", "80 CA 9F 36 00"),
        ] as [(String, String)], ["", " unheard"])
    func tornAtEach(command: (name: String, bytes: String), unheard: String) throws {
        let send = try CardSession(file: "variant mastercard-advance {\ntorn \(command.name)\(unheard)\n}\n")
        let script = [CardEMVTests.selectMastercard, Self.advanceOptions, command.bytes]
        let isTorn = try script.map { try send.card.exchange([UInt8](hex: $0)) == nil }
        expectEqual(isTorn.last, true)
        send.card.reset()
        _ = try send(CardEMVTests.selectMastercard)
        let isCounted = command.name != "select" && (command.name != "gpo" || unheard.isEmpty)
        try expectEqual(send("80 CA 9F 36 00"), "9F3602" + (isCounted ? "0021" : "0020") + "9000")
        let isApproved = command.name == "generate-ac" && unheard.isEmpty
        try expectEqual(send("80 CA 9F 50 00"), "9F5006" + (isApproved ? "000000004766" : "000000006000") + "9000")
    }

    // MARK: Balance and envelopes

    @Test func balance() throws {
        let send = try CardSession("mastercard-balance")
        for (amount, cid, left) in [
            ("000000002000", "40", "000000001000"), ("000000001001", "80", "000000001000"),
            ("000000001000", "40", "000000000000"), ("000000000001", "80", "000000000000"),
            ("000000000000", "40", "000000000000"),
        ] {
            _ = try send(CardEMVTests.selectMastercard)
            _ = try send(Self.advanceOptions)
            #expect(try send(CardEMVTests.generateAC("40", amount: amount)).hasPrefix("77299F2701" + cid))
            try expectEqual(send("80 CA 9F 50 00"), "9F5006" + left + "9000")
        }
        // Nobody else changes it.
        try expectEqual(send("80 DA 9F 50 06 000000009999"), "6A88")
    }

    /// Book C-2, PUT DATA without secure messaging: the unprotected envelopes that the card has.
    @Test func envelopes() throws {
        let send = try CardSession("mastercard-advance")
        _ = try send(CardEMVTests.selectMastercard)
        try expectEqual(send("80 DA 9F 75 02 ABCD"), "6985")
        _ = try send(Self.advanceOptions)
        try expectEqual(send("80 CA 9F 75 00"), "9F75046F70656E9000")
        try expectEqual(send("80 DA 9F 75 02 ABCD"), "9000")
        try expectEqual(send("80 DA 9F 70 02 ABCD"), "6A88")
        try expectEqual(send("80 DA 9F 76 02 ABCD"), "6A88")
        send.card.reset()
        _ = try send(CardEMVTests.selectMastercard)
        try expectEqual(send("80 CA 9F 75 00"), "9F7502ABCD9000")
        try expectEqual(send("80 CA 9F 70 00"), "9F700970726F7465637465649000")
    }

    // MARK: Telephone

    @Test func telephone() throws {
        let send = try CardSession("mastercard-phone")
        _ = try send(CardEMVTests.selectMastercard)
        try expectEqual(send(Self.phoneOptions), hex("77 0E 82 02 1B80 94 08 10010101 20010200", "9000"))
        // Asked for a signature it declines without.
        try expectEqual(
            send(CardEMVTests.generateAC("90", amount: "000000001234")),
            hex(
                "77 2F 9F27 01 00 9F36 02 0031 9F26 08 1132A973C1421DD7",
                "9F10 12 0114 804003220000 0000 00000000000000FF DF4B 03 000100", "90 00"))
        send.card.reset()
        _ = try send(CardEMVTests.selectMastercard)
        _ = try send(Self.phoneOptions)
        try expectEqual(
            send(CardEMVTests.generateAC("80", amount: "000000001234")),
            hex(
                "77 2F 9F27 01 80 9F36 02 0032 9F26 08 6687781E7FE79EDF",
                "9F10 12 0114 A04003220000 0000 00000000000000FF DF4B 03 001000", "90 00"))
        let ready = try CardSession("mastercard-phone-ready")
        _ = try ready(CardEMVTests.selectMastercard)
        _ = try ready(Self.phoneOptions)
        let answer = try ready(CardEMVTests.generateAC("90", amount: "000000001234"))
        #expect(answer.hasPrefix("7781A89F270180") && answer.hasSuffix("DF4B030010009000"))
    }

    // MARK: Maestro

    /// The key of the card is from the last 16 digits of account number and sequence number.
    @Test func maestro() throws {
        let send = try CardSession("maestro")
        #expect(try send(CardEMVTests.selectPPSE).contains("4F07A0000000043060" + "5007" + "4D41455354524F"))
        _ = try send(Self.selectMaestro)
        try expectEqual(send(Self.plainOptions), hex("77 0E 82 02 1980 94 08 10010101 20010200", "9000"))
        let record = try send("00 B2 01 14 00")
        #expect(record.contains("5A0A6799990100000000019F") && record.contains("8E0C000000000000000042031F03"))
        try expectEqual(
            send(CardEMVTests.generateAC("40", amount: "000000001234")),
            hex(
                "77 29 9F27 01 40 9F36 02 0011 9F26 08 6FE7094BC892FA6A",
                "9F10 12 0110 904003220000 0000 00000000000000FF", "90 00"))
    }

    // MARK: Card files

    @Test(arguments: [
        ("torn reboot", "COMMAND, one of"), ("torn gpo twice", "torn COMMAND [unheard]"),
        ("recovery 9F51 03 9F3705", "DRDOL (9F51) asks for 9F37"),
        ("recovery 9F51 03 5F2403", "DRDOL (9F51) asks for 5F24"), ("balance 0000", "12 digits in 6 bytes"),
        ("offline declines twice", "until-presented-again"),
        ("relay-transmission " + String(repeating: "00", count: 60), "too short for the"),
    ])
    func mistakes(line: String, reason: String) throws {
        let error = #expect(throws: CardFileError.self) {
            try CardFile(parsing: "variant mastercard-advance {\n\(line)\n}\n")
        }
        expectEqual(error?.reason.contains(reason), true, "\(error?.reason ?? "")")
    }

    @Test(arguments: [
        ("checksum-key 0123456789987654 3210012345678998", "", "lacks “checksum-key”"),
        ("9F69 9F6A 04 ", "9F69 9F6A 02 ", "9F6A of 4 bytes"),
        ("checksum-key 01", "checksum-key 0101", "16 bytes, not 17"),
    ])
    func stripeMistakes(old: String, new: String, reason: String) throws {
        let text = try #require(VirtualCards.all.first { $0.name == "mastercard-stripe" }).text
        #expect(text.contains(old))
        let error = #expect(throws: CardFileError.self) {
            try CardFile(parsing: text.replacing(old, with: new))
        }
        expectEqual(error?.reason.contains(reason), true, "\(error?.reason ?? "")")
    }

    // MARK: Help

    /// The block that the signature in a response carries.
    private func recovered(_ answer: String, _ keyName: String) async throws -> String {
        let key = try #require(TestKeys.builtIn.keys[keyName])
        return try await Recovery.blocks([
            .init(
                modulus: key.modulus, exponent: key.exponent,
                bytes: CardSignatureTests.Objects(answers: [answer])[0x9F4B],
                rest: [0x11, 0x22, 0x33, 0x44])
        ])[0]
    }

    private func cdol1(_ p1: String, _ amount: String) throws -> String {
        try [UInt8](hex: CardEMVTests.generateAC(p1, amount: amount)).dropFirst(5).dropLast().hex
    }

    private func sha1(_ message: String) async throws -> String {
        let outcome = try await Program.run([
            "python3", "-c",
            "import hashlib; print(hashlib.sha1(bytes.fromhex('\(message)')).hexdigest().upper())",
        ])
        return String(outcome.output.prefix(40))
    }

    private func filling(_ count: Int) -> String { String(repeating: "BB", count: count) }
}
