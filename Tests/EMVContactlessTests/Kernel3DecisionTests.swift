import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Contactless Book C-3, 5.4.3 to 5.7: what is decided when the card has been read.
@Suite struct Kernel3DecisionTests {
    // MARK: Card decision (5.4.3)

    @Test(
        arguments: [
            // The CID decide, whatever the issuer application data say.
            ("80", "06 01 12 03 00 00 00", .onlineRequest), ("00", "06 01 12 03 A0 00 00", .declined),
            ("BF", "06 01 12 03 00 00 00", .onlineRequest), ("3F", "06 01 12 03 A0 00 00", .declined),
            ("C0", "06 01 12 03 A0 00 00", .declined), ("FF", "06 01 12 03 A0 00 00", .declined),
            // A TC without anything to authenticate it by
            ("40", "06 01 12 03 A0 00 00", .declined),
            // 5.4.3.1: without, it is bits 6 and 5 of byte 5 of the issuer application data.
            (nil, "06 01 12 03 A0 00 00", .onlineRequest), (nil, "06 01 12 03 20 00 00", .onlineRequest),
            (nil, "06 01 12 03 80 00 00", .declined), (nil, "06 01 12 03 90 00 00", .declined),
            (nil, "06 01 12 03 B0 00 00", .declined), (nil, "06 01 12 03 EF 00 00", .onlineRequest),
            (nil, "1F 43 01 00 20" + String(repeating: " 00", count: 27), .onlineRequest),
            // It has to be there: five bytes are enough, four are not.
            (nil, "06 01 12 03 20", .onlineRequest), (nil, "06 01 12 03 00", .declined),
            (nil, "06 01 12 03", .endApplication),
        ] as [(String?, String, Outcome.Kind)])
    func cryptogramTypes(_ information: String?, _ issuerData: String, _ expected: Outcome.Kind) throws {
        let run = try Kernel3Bench().run(processingOptions(cryptogram: information, issuerData: issuerData))
        expectEqual(run.outcome.kind, expected, "\(run.outcome.reason)")
    }

    /// 5.4.3.2: the reader's word counts beside the card's.
    @Test(
        arguments: [
            ("40", "36 80 C0 00", .onlineRequest), ("00", "36 80 C0 00", .declined),
            ("80", "36 00 C0 00", .onlineRequest),
            // An offline-only reader asks nobody.
            ("80", "3E 00 C0 00", .declined), ("40", "3E 00 C0 00", .declined), ("00", "3E 00 C0 00", .declined),
        ] as [(String, String, Outcome.Kind)])
    func readersAndCards(_ cryptogram: String, _ qualifiers: String, _ expected: Outcome.Kind) throws {
        var bench = Kernel3Bench()
        bench.qualifiers = qualifiers
        // Above the floor limit where the TTQ shall say "online cryptogram required".
        bench.floorLimit = try wire(qualifiers)[1] & 0x80 != 0 ? 0 : nil
        let run = try bench.run(processingOptions(cryptogram: cryptogram, "5F 24 03 31 12 31"))
        expectEqual(run.outcome.kind, expected, "\(run.outcome.reason)")
    }

    /// Annex A: the PAN sequence number has one byte.
    @Test(
        arguments: [("", nil), ("5F 34 01 07", "07"), ("5F 34 02 00 07", nil), ("5F 34 00", nil)] as [(String, String?)]
    )
    func panSequenceNumbers(_ object: String, _ expected: String?) throws {
        let run = try Kernel3Bench().run(processingOptions(without: ["5F34"], object))
        expectEqual(run.outcome.kind, .onlineRequest)
        expectEqual(run.outcome.dataRecord?[0x5F34]?.hex, expected)
    }

    /// 3.4.1.2: a card helps with a refund by telling its number; that it does not approve means nothing.
    /// An AAC is no cryptogram for the issuer: it does not go online where the reader requires an online cryptogram.
    @Test(arguments: [UInt64?.none, 0])
    func refunds(_ floorLimit: UInt64?) throws {
        var bench = Kernel3Bench()
        (bench.kind, bench.floorLimit, bench.cvmRequiredLimit) = (.refund, floorLimit, 0)
        let run = try bench.run(processingOptions(cryptogram: "00"))
        expectEqual(run.outcome.kind, .approved)
        expectEqual(run.outcome.cvm, Outcome.CVM.none)
        #expect(!run.outcome.reason.contains("approved offline"))
        expectEqual(run.outcome.dataRecord?[0x9C], [0x20])
        // What goes online goes online.
        #expect(try bench.run(processingOptions(cryptogram: "80")).outcome.kind != .approved)
    }

    // MARK: Processing restrictions (5.5)

    /// 5.5.1.1
    @Test(
        arguments: [
            // The last day, and the day after
            ("31 12 31", "00 00", "36 00 C0 00", nil, .approved), ("32 01 01", "00 00", "36 00 C0 00", nil, .declined),
            // No date, and none that is one
            ("26 11 21", "00 00", "36 00 C0 00", "", .declined),
            ("26 11 21", "00 00", "36 00 C0 00", "5F 24 03 31 02 30", .declined),
            ("26 11 21", "00 00", "36 00 C0 00", "5F 24 02 31 12", .declined),
            // CTQ byte 1 bit 4: go online, which an offline-only reader cannot
            ("32 01 01", "08 00", "36 00 C0 00", nil, .onlineRequest),
            ("26 11 21", "08 00", "36 00 C0 00", "", .onlineRequest),
            ("32 01 01", "08 00", "3E 00 C0 00", nil, .declined), ("32 01 01", nil, "36 00 C0 00", nil, .declined),
        ] as [(String, String?, String, String?, Outcome.Kind)])
    func expired(
        _ date: String, _ card: String?, _ reader: String, _ record: String?, _ expected: Outcome.Kind
    ) throws {
        var bench = try Kernel3Bench.signing
        (bench.date, bench.qualifiers) = (date, reader)
        let outcome = try bench.run(
            SigningCard(qualifiers: card, record: record ?? Kernel3Vectors.record).responses
        ).outcome
        expectEqual(outcome.kind, expected)
        expectEqual(outcome.reason, expected == .approved ? "approved offline" : "the application has expired")
    }

    /// A card that asks to go online is not looked at for its date.
    @Test func expiredAndOnline() throws {
        var bench = Kernel3Bench()
        bench.date = "26 11 22"
        try expectEqual(bench.run(processingOptions("5F 24 03 26 11 21")).outcome.kind, .onlineRequest)
    }

    private struct Listed: ExceptionFile {
        func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool {
            pan.digits == "4761739001010010" && sequenceNumber == 1
        }
    }

    /// 5.5.1.2
    @Test func exceptionFiles() throws {
        var bench = try Kernel3Bench.signing
        try expectEqual(bench.run(SigningCard().responses).outcome.kind, .approved)
        bench.exceptionFile = Listed()
        let found = try bench.run(SigningCard().responses).outcome
        #expect(found.kind == .declined && found.reason == "the account number stands in the exception file")
        bench.options.checksExceptionFile = false
        try expectEqual(bench.run(SigningCard().responses).outcome.kind, .approved)
        // Cards that ask to go online are the issuer's affair.
        var online = Kernel3Bench()
        online.exceptionFile = Listed()
        try expectEqual(online.run(processingOptions()).outcome.kind, .onlineRequest)
    }

    /// 5.5.1.3, 5.5.1.4: AUC byte 1 bits 8 and 7 for cash, byte 2 bits 8 and 7 for cashback; Germany is at home.
    @Test(
        arguments: [
            // Type, AUC, issuer country, CTQ, outcome
            (.cash, "80 00", "02 76", "00 00", .onlineRequest), (.cash, "40 00", "02 76", "00 00", .declined),
            (.cash, "40 00", "02 50", "00 00", .onlineRequest), (.cash, "80 00", "02 50", "00 00", .declined),
            (.cash, "3F FF", "02 76", "04 00", .tryAnotherInterface), (.cash, "3F FF", "02 76", "02 00", .declined),
            (.cash, "3F FF", "02 76", nil, .declined), (.cash, nil, "02 76", "00 00", .declined),
            (.cash, "80 00", nil, "00 00", .declined), (.cash, nil, nil, "04 00", .tryAnotherInterface),
            (.cash, "80", "02 76", "00 00", .declined),
            (.purchaseWithCashback, "00 80", "02 76", "00 00", .onlineRequest),
            (.purchaseWithCashback, "00 40", "02 76", "00 00", .declined),
            (.purchaseWithCashback, "00 40", "08 40", "00 00", .onlineRequest),
            (.purchaseWithCashback, "00 80", "08 40", "00 00", .declined),
            (.purchaseWithCashback, "FF 3F", "02 76", "02 00", .tryAnotherInterface),
            (.purchaseWithCashback, "FF 3F", "02 76", "04 00", .declined),
            (.purchaseWithCashback, "FF 3F", "02 76", nil, .declined),
            (.purchaseWithCashback, nil, "02 76", "00 00", .declined),
            // Neither
            (.purchase, "00 00", "02 76", "06 00", .onlineRequest), (.refund, nil, nil, "06 00", .onlineRequest),
        ] as [(Transaction.Kind, String?, String?, String?, Outcome.Kind)])
    func usage(
        _ kind: Transaction.Kind, _ usage: String?, _ country: String?, _ qualifiers: String?,
        _ expected: Outcome.Kind
    ) throws {
        var bench = Kernel3Bench()
        bench.kind = kind
        bench.amountOther = kind == .purchaseWithCashback ? 1_00 : 0
        let issuer = try country.map { TLVTag(0x5F28).encode(try wire($0)).hex } ?? ""
        let auc = try usage.map { TLVTag(0x9F07).encode(try wire($0)).hex } ?? ""
        let run = try bench.run(processingOptions(qualifiers: qualifiers, auc, issuer))
        expectEqual(run.outcome.kind, expected, "\(run.outcome.reason)")
        if expected == .tryAnotherInterface {
            expectEqual(
                run.outcome.userInterfaceRequest,
                UserInterfaceRequest(
                    .insertOrSwipeCard, .processingError, languagePreference: ["de", "en"]))
            #expect(run.outcome.alternateInterfacePreference == nil && run.outcome.start == nil)
        }
        // Whoever does not check it does not mind.
        bench.options.checksUsageForCash = false
        bench.options.checksUsageForCashback = false
        try expectEqual(
            bench.run(processingOptions(qualifiers: qualifiers, auc, issuer)).outcome.kind, .onlineRequest)
    }

    /// 5.5.1: when one check has the reader decline, none behind it has the card inserted.  So does contactless_k3.h of
    /// github.com/MohamedHassanNasr/emv.  CTQ byte 1 bits 3 and 1, and a card that is not for cash, but for ATMs.
    @Test(
        arguments: [
            // Type, date, whether the card is listed, reason; nil: another interface
            (.cash, "26 11 21", false, nil), (.cash, "32 01 01", false, "the application has expired"),
            (.cash, "26 11 21", true, "the account number stands in the exception file"),
            (.purchase, "26 11 21", false, nil), (.purchase, "32 01 01", false, "the application has expired"),
            (.purchase, "26 11 21", true, "the account number stands in the exception file"),
        ] as [(Transaction.Kind, String, Bool, String?)])
    func theFirstDeclineCounts(_ kind: Transaction.Kind, _ date: String, _ isListed: Bool, _ reason: String?) throws {
        var bench = try Kernel3Bench.signing
        (bench.kind, bench.date, bench.terminalType) = (kind, date, "14")
        bench.options.checksUsageAtATM = true
        if isListed { bench.exceptionFile = Listed() }
        let card = SigningCard(qualifiers: "05 00", record: "5F 24 03 31 12 31 9F 07 02 3F FF 5F 28 02 02 76")
        let outcome = try bench.run(card.responses).outcome
        expectEqual(outcome.kind, reason == nil ? .tryAnotherInterface : .declined, "\(outcome.reason)")
        if let reason { expectEqual(outcome.reason, reason) }
    }

    /// The same between cash and ATM: the card is not for cash, and wants to be inserted at ATMs only.
    @Test func theDeclineOfCashCounts() throws {
        var bench = try Kernel3Bench.signing
        (bench.kind, bench.terminalType, bench.options.checksUsageAtATM) = (.cash, "14", true)
        let card = SigningCard(qualifiers: "01 00", record: "5F 24 03 31 12 31 9F 07 02 3F FF 5F 28 02 02 76")
        let outcome = try bench.run(card.responses).outcome
        #expect(outcome.kind == .declined && outcome.reason == "the card is not for this type of transaction here")
    }

    /// A card that declines itself may want to be inserted for cash.
    @Test func theCardDeclinesAndWantsToBeInserted() throws {
        var bench = Kernel3Bench()
        bench.kind = .cash
        let run = try bench.run(processingOptions(cryptogram: "00", qualifiers: "04 00"))
        expectEqual(run.outcome.kind, .tryAnotherInterface)
    }

    /// A reader that does not know its country has no domestic cards.
    @Test func usageWithoutCountry() throws {
        var bench = Kernel3Bench()
        (bench.kind, bench.country) = (.cash, nil)
        let run = try bench.run(processingOptions("9F 07 02 FF FF  5F 28 02 02 76"))
        expectEqual(run.outcome.kind, .declined)
    }

    /// 5.5.1.5: terminal types 14 to 16, of a card that approves offline; CTQ byte 1 bit 1, AUC byte 1 bit 2.
    @Test(
        arguments: [
            ("14", "00 00", .onlineRequest), ("16", "00 00", .onlineRequest), ("15", nil, .declined),
            ("15", "01 00", .tryAnotherInterface), ("22", "00 00", .approved), ("17", "01 00", .approved),
            (nil, "01 00", .approved),
        ] as [(String?, String?, Outcome.Kind)])
    func atATMs(_ terminalType: String?, _ qualifiers: String?, _ expected: Outcome.Kind) throws {
        var bench = try Kernel3Bench.signing
        bench.terminalType = terminalType
        let responses = try SigningCard(qualifiers: qualifiers).responses
        // 14 is online only.
        try expectEqual(bench.run(responses).outcome.kind, terminalType == "14" ? .onlineRequest : .approved)
        bench.options.checksUsageAtATM = true
        try expectEqual(bench.run(responses).outcome.kind, expected)
        // A card that asks to go online has that decided there.
        try expectEqual(bench.run(processingOptions(qualifiers: qualifiers)).outcome.kind, .onlineRequest)
    }

    /// 5.5.1.5: not for contactless ATMs, and not for others, or not known to be.
    @Test(arguments: ["5F 24 03 31 12 31", "5F 24 03 31 12 31 9F 07 02 FD FF"])
    func notForATMs(_ record: String) throws {
        var bench = try Kernel3Bench.signing
        (bench.terminalType, bench.options.checksUsageAtATM) = ("14", true)
        let outcome = try bench.run(SigningCard(qualifiers: "01 00", record: record).responses).outcome
        #expect(outcome.kind == .declined && outcome.reason == "the card is not for contactless ATMs")
    }

    // MARK: Cardholder verification (5.7)

    /// A card that asks to go online and signs nothing.
    @Test(
        arguments: [
            // TTQ byte 1: 34 online PIN, 32 signature, 36 both, 30 neither; CTQ; whether the reader requires a CVM
            // 5.7.1.1: no CTQ
            ("36 00 C0 00", nil, true, .signature), ("34 00 C0 00", nil, true, .onlinePIN),
            ("32 00 C0 00", nil, true, .signature), ("30 00 C0 00", nil, true, nil),
            ("36 00 C0 00", nil, false, Outcome.CVM.none), ("30 00 C0 00", nil, false, Outcome.CVM.none),
            // and a reader that does not rely on devices, byte 3 bit 7
            ("34 00 80 00", nil, true, .onlinePIN), ("30 00 80 00", nil, true, nil),
            // 5.7.1.2: online PIN before all others, if the reader has it
            ("36 00 C0 00", "C0 80", false, .onlinePIN), ("36 00 C0 00", "80 00", true, .onlinePIN),
            ("32 00 C0 00", "C0 00", true, .signature), ("32 00 C0 00", "C0 80", true, .deviceCVM),
            // the device's before the signature
            ("36 00 C0 00", "00 80", true, .deviceCVM),
            ("30 00 C0 00", "00 80", true, .deviceCVM),
            ("36 00 C0 00", "40 80", false, .deviceCVM),
            ("36 00 C0 00", "40 00", true, .signature), ("32 00 C0 00", "40 00", false, .signature),
            ("34 00 C0 00", "40 00", false, Outcome.CVM.none), ("36 00 C0 00", "00 00", false, Outcome.CVM.none),
            // 5.7.1.3: it was required, and there was none
            ("36 00 C0 00", "00 00", true, nil), ("34 00 C0 00", "40 00", true, nil),
            ("32 00 C0 00", "80 00", true, nil),
            ("30 00 C0 00", "C0 00", true, nil),
        ] as [(String, String?, Bool, Outcome.CVM?)])
    func cardholderVerification(
        _ reader: String, _ card: String?, _ isRequired: Bool, _ expected: Outcome.CVM?
    ) throws {
        var bench = Kernel3Bench()
        (bench.qualifiers, bench.cvmRequiredLimit) = (reader, isRequired ? 1 : nil)
        let outcome = try bench.run(processingOptions(qualifiers: card)).outcome
        expectEqual(outcome.kind, expected == nil ? .declined : .onlineRequest, "\(outcome.reason)")
        expectEqual(outcome.cvm, expected ?? Outcome.CVM.none)
        // What is required of whom goes to the card.
        try expectEqual(bench.activation().indicators.terminalTransactionQualifiers?.contains(.cvmRequired), isRequired)
    }

    /// 5.7.1.2: 9F69 repeats the CTQ, or the issuer will see them.
    @Test(
        arguments: [
            ("9F 69 07 01 CA FE BA BE 00 80", .deviceCVM),
            ("9F 69 08 01 CA FE BA BE 00 80 FF", .deviceCVM),
            ("9F 69 07 01 CA FE BA BE 00 00", nil), ("9F 69 07 01 CA FE BA BE 40 80", nil),
            ("9F 69 06 01 CA FE BA BE 00", nil), ("9F 69 05 01 CA FE BA BE", nil),
        ] as [(String, Outcome.CVM?)])
    func confirmationCodes(_ related: String, _ expected: Outcome.CVM?) throws {
        let outcome = try Kernel3Bench().run(processingOptions(qualifiers: "00 80", related)).outcome
        expectEqual(outcome.kind, expected == nil ? .declined : .onlineRequest)
        expectEqual(outcome.cvm, expected ?? Outcome.CVM.none)
    }

    /// Of a card that approves offline the signature has to cover them.
    @Test func confirmationCodesOffline() throws {
        var card = SigningCard(qualifiers: "00 80")
        (card.related, card.signature) = (Kernel3Vectors.confirmedRelated, Kernel3Vectors.confirmedSignature)
        let approved = try Kernel3Bench.signing.run(card.responses).outcome
        #expect(approved.kind == .approved && approved.cvm == .deviceCVM)
        // CTQ that were changed on their way
        card = SigningCard(qualifiers: "00 80")
        try expectEqual(Kernel3Bench.signing.run(card.responses).outcome.kind, .declined)
        // A TC that was sent online for another reason, and nothing to rely on
        var bench = Kernel3Bench()
        bench.floorLimit = 0
        let run = try bench.run(processingOptions(cryptogram: "40", qualifiers: "00 80", "5F 24 03 31 12 31"))
        expectEqual(run.outcome.kind, .declined)
    }

    /// An offline approval that needs the PIN goes online; an offline-only reader declines.
    @Test func onlinePINSendsOnline() throws {
        let card = SigningCard(qualifiers: "80 00")
        let outcome = try Kernel3Bench.signing.run(card.responses).outcome
        #expect(outcome.kind == .onlineRequest && outcome.cvm == .onlinePIN)
        var bench = try Kernel3Bench.signing
        bench.qualifiers = "3E 00 C0 00"
        try expectEqual(bench.run(card.responses).outcome.kind, .declined)
    }
}
