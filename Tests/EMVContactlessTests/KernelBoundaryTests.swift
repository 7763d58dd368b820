import SmartCard
import TestSupport
import Testing

@testable import EMVContactless

/// The last value that a kernel allows, and the first that it does not.
@Suite struct KernelBoundaryTests {
    // MARK: Kernel 2: limits (Book C-2, S456.14, S456.30, S456.38 and S78.10)

    /// 12.34 below, at and above each limit: "exceeds" means more than the limit.
    @Test("an amount one below, at and one above DF8123 to DF8126", arguments: [12_33, 12_34, 12_35] as [UInt64])
    func limitsOfTheTerminal(_ limit: UInt64) throws {
        let value = packed(limit, bytes: 6).hex
        let exceeds = 12_34 > limit
        func run(_ tag: String, aip: String = "18 80") throws -> Kernel2Bench.Run {
            var bench = Kernel2Bench()
            bench.data = [tag: value]
            return try bench.run(
                (0..<3).map { index in
                    switch index {
                    case 0: try template(0x77, "82 02", aip, "94 04 10 01 01 00")
                    case 1: try ShortCard().record
                    default: try MChipCard.cryptogram(aip == "18 80" ? "80" : "00")
                    }
                }.prefix(exceeds && ["DF8124", "DF8125"].contains(tag) ? 2 : 3).map(\.self))
        }
        // TVR byte 4 bit 8: transaction exceeds floor limit.
        try expectEqual(run("DF8123")[record: 0x95], exceeds ? "8000008001" : "8000000001")
        for (tag, aip) in [("DF8124", "18 80"), ("DF8125", "1A 80")] {
            let outcome = try run(tag, aip: aip)
            expectEqual(outcome.outcome.kind == .selectNext, exceeds, "\(tag): \(outcome.outcome.reason)")
            expectEqual(outcome.error == "0005000000FF", exceeds)
        }
        // 9F33 byte 2: DF8118, or below the limit DF8119.
        let verified = try run("DF8126")
        expectEqual(verified[record: 0x9F33], exceeds ? "E06008" : "E00808")
        expectEqual(verified.outcome.receipt, exceeds)
    }

    @Test("an amount one below, at and one above the combination's floor limit", arguments: [12_33, 12_34, 12_35])
    func floorLimitOfTheCombination(_ limit: UInt64) throws {
        var bench = Kernel2Bench()
        bench.floorLimit = limit
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])
        expectEqual(run[record: 0x95], limit < 12_34 ? "8000008001" : "8000000001")
    }

    @Test("mag-stripe mode: an amount one below, at and one above DF8124", arguments: [12_33, 12_34, 12_35])
    func limitOfMagStripeMode(_ limit: UInt64) throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8124": packed(limit, bytes: 6).hex]
        let card = try MagStripeCard().read
        let run = try bench.run(limit < 12_34 ? card : card + [MagStripeCard.checksum()])
        expectEqual(run.outcome.kind, limit < 12_34 ? .selectNext : .onlineRequest, "\(run.outcome.reason)")
    }

    // MARK: Kernel 2: torn transactions

    /// Each of the six objects by which a torn transaction is found: another value of one alone, or none.
    @Test(
        "a torn transaction is not found by five of its six objects",
        arguments: [0x5A, 0x5F34, 0x9F02, 0x9F03, 0x5F2A, 0x9C] as [TLVTag])
    func fiveOfSix(_ tag: TLVTag) throws {
        let lost = try Kernel2Bench().run(try ShortCard().read + ["-"])
        let log = try #require(lost.outcome.tornTransactions)
        var data = try answer(
            (0x5A, "54 13 33 00 89 01 04 34"), (0x5F34, "01"), (0x9F02, "00 00 00 00 12 34"),
            (0x9F03, "00 00 00 00 00 00"), (0x5F2A, "09 78"), (0x9C, "00"))
        #expect(log.record(like: data) != nil)
        var value = try #require(data[tag])
        value[value.count - 1] ^= 0x01
        data[tag] = value
        expectEqual(log.record(like: data), nil)
        data[tag] = nil
        expectEqual(log.record(like: data), nil)
    }

    /// DF811C: the last second of the lifetime, and the one after it; one before, as after the clock was set back.
    @Test(
        "a torn transaction lives through the last second of its lifetime",
        arguments: [(-1, false), (0, true), (300, true), (301, false)])
    func lifetime(_ seconds: Int, _ isThere: Bool) throws {
        let lost = try Kernel2Bench().run(try ShortCard().read + ["-"])
        var log = try #require(lost.outcome.tornTransactions)
        let day = try #require(CalendarDate(year: 2026, month: 11, day: 21))
        let now = 12 * 3600 + seconds
        let time = try #require(
            TerminalTime(day, hour: now / 3600, minute: now / 60 % 60, second: now % 60))
        log.removeAll(olderThan: 300, at: time)
        #expect(log.isEmpty != isThere)
    }

    /// From the last seconds of a month, a leap day and a year into the next.
    @Test(
        "a torn transaction lives on over the end of a month",
        arguments: [
            ((2026, 2, 28), (2026, 3, 1), 120), ((2028, 2, 28), (2028, 2, 29), 120), ((2028, 2, 29), (2028, 3, 1), 120),
            ((2028, 2, 28), (2028, 3, 1), 86_520), ((2026, 12, 31), (2027, 1, 1), 120),
            ((2026, 4, 30), (2026, 5, 1), 120), ((2100, 2, 28), (2100, 3, 1), 120),
        ])
    func lifetimeOverTheEndOfAMonth(
        _ first: (Int, Int, Int), _ second: (Int, Int, Int), _ seconds: Int
    ) throws {
        let day = try #require(CalendarDate(year: first.0, month: first.1, day: first.2))
        let next = try #require(CalendarDate(year: second.0, month: second.1, day: second.2))
        let record = TornTransactionLog.Record(
            data: DataRecord(), time: try #require(TerminalTime(day, hour: 23, minute: 59)))
        let now = try #require(TerminalTime(next, hour: 0, minute: 1))
        for (lifetime, isThere) in [(seconds, true), (seconds - 1, false)] {
            var log = TornTransactionLog()
            _ = log.add(record, maximum: 2)
            log.removeAll(olderThan: lifetime, at: now)
            #expect(log.isEmpty != isThere, "\(lifetime)")
        }
    }

    /// Measured Relay Resistance Processing Time, DF8306, as it is kept with a torn transaction: two bytes of 100 microseconds.
    @Test("a time that has no place in two bytes is the longest", arguments: [(10_000, "003A"), (7_000_000, "FFFF")])
    func longestTime(_ time: Int, _ measured: String) throws {
        var bench = Kernel2Bench()
        bench.relayTimes = [time, time, time]
        let answers = [String](repeating: "80 0A AA BB CC DD 000A 0050 0018 90 00", count: time > 10_000 ? 3 : 1)
        let lost = try bench.run(
            [template(0x77, "82 02 18 81  94 04 10 01 01 00")] + answers + [ShortCard().record, "-"])
        let log = try #require(lost.outcome.tornTransactions)
        let account = try answer(
            (0x5A, "54 13 33 00 89 01 04 34"), (0x5F34, "01"), (0x9F02, "00 00 00 00 12 34"),
            (0x9F03, "00 00 00 00 00 00"), (0x5F2A, "09 78"), (0x9C, "00"))
        expectEqual(log.record(like: account)?.data[0xDF8306]?.hex, measured)
    }

    // MARK: Records (EMV Book 3, 6.5.11.4 and 10.3)

    /// Tag and length of template 70 are signed from file 11 on.
    @Test("a signed record of file 10 is hashed without its tag, one of file 11 with it", arguments: [10, 11])
    func signedRecord(_ file: UInt8) throws {
        var responses = try SigningCard().responses
        let locator = [file << 3, 0x01, 0x01, 0x01].hex
        responses[0] = responses[0].replacing("940C08010101", with: "940C" + locator)
        #expect(responses[0].contains(locator))
        let run = try Kernel3Bench.signing.run(responses)
        expectEqual(run.commands[1], "00B201" + [file << 3 | 0x04].hex + "00")
        expectEqual(run.outcome.isAuthentic == true, file == 10, "\(run.outcome.reason)")
        expectEqual(run.outcome.kind, file == 10 ? .approved : .declined)
    }

    /// A record of files 1 to 10 is one template 70; the contents of the others are the issuer's.
    @Test("a record that is no template 70 ends the application up to file 10", arguments: [1, 10, 11, 30])
    func recordOfAnotherForm(_ file: UInt8) throws {
        let entry = [file << 3, 0x01, 0x01, 0x00].hex
        for record in ["5F 24 03 31 12 31 90 00", "FF FF 90 00", "5F 24 7F 31 90 00"] {
            let third = try Kernel3Bench().run(processingOptions("94 04" + entry), record)
            expectEqual(third.outcome.kind, file <= 10 ? .endApplication : .onlineRequest, "\(third.outcome.reason)")
        }
        var card = ShortCard()
        card.locator = "10 01 01 00" + entry
        let read = try card.read + ["5F 24 03 31 12 31 90 00"]
        let second = try Kernel2Bench().run(file <= 10 ? read : read + [MChipCard.cryptogram("80")])
        expectEqual(second.error, file <= 10 ? "00040000001C" : "0000000000FF", "\(second.outcome.reason)")
        // Kernel 2 ends even where the record is signed.
        card.locator = "10 01 01 00" + [file << 3, 0x01, 0x01, 0x01].hex
        let signed = try Kernel2Bench().run(
            card.read + ["5F 24 03 31 12 31 90 00"] + (file <= 10 ? [] : [MChipCard.cryptogram("80")]))
        expectEqual(signed.error, file <= 10 ? "00040000001C" : "0000000000FF", "\(signed.outcome.reason)")
    }

    /// EMV Book 3, 10.2: four bytes an entry, and one byte for the length of all.
    @Test("an AFL of 63 entries is one, of 64 it is none; record 128 is read, and no more")
    func longestLocator() throws {
        let entry: [UInt8] = [0x08, 0x01, 0x01, 0x00]
        try expectEqual(ApplicationFileLocator(Array(repeatElement(entry, count: 63).joined())).entries.count, 63)
        #expect(throws: ApplicationFileLocatorError.self) {
            try ApplicationFileLocator(Array(repeatElement(entry, count: 64).joined()))
        }
        var reader: RecordReader? = try RecordReader([0x08, 0x01, 0x80, 0x00])
        #expect(reader?.command != nil)
        reader = try? RecordReader([0x08, 0x01, 0x81, 0x00])
        #expect(reader == nil)
    }

    // MARK: Kernel 2: lengths of what the card gives

    /// Format 1 of GENERATE AC (EMV Book 3, 6.5.5.4): CID 1, ATC 2, cryptogram 8, then up to 32 bytes for the issuer.
    @Test("a cryptogram in format 1 has 11 to 43 bytes", arguments: [10, 11, 12, 43, 44])
    func cryptogramInFormat1(_ count: Int) throws {
        let data = [0x80, 0x00, 0x42] + [UInt8](repeating: 0xAA, count: count - 3)
        let run = try Kernel2Bench().run(try ShortCard().read + [TLVTag(0x80).encode(data).hex.answered])
        expectEqual(run.outcome.kind, (11...43).contains(count) ? .onlineRequest : .endApplication)
        if count > 11, count < 44 {
            expectEqual(run[record: 0x9F10], String(repeating: "AA", count: count - 11))
        } else {
            expectEqual(run[record: 0x9F10], nil)
        }
    }

    /// S9.21 to S9.24: the card gives what was asked for, or less.
    @Test("a card that is asked to decline gives neither an ARQC nor a TC", arguments: ["00", "80", "40"])
    func moreThanAskedFor(_ information: String) throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8121": "8000000000"]
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram(information)])
        expectEqual(run.commands.last?.hasPrefix("80AE00"), true)
        expectEqual(run.error, information == "00" ? "0000000000FF" : "00060000001C", "\(run.outcome.reason)")
    }

    /// S910.39: one digit for the index of the CA key, 0 where it has more than one.
    @Test(
        "the index of the CA key in track 2",
        arguments: [("00", "0"), ("09", "9"), ("0A", "0"), ("FF", "0")])
    func indexInTrack(_ index: String, _ digit: String) throws {
        var card = ShortCard()
        card.more = "8F 01 \(index)"
        let run = try Kernel2Bench().run(
            template(0x77, "82 02 18 81  94 04 10 01 01 00"), "80 0A AA BB CC DD 000A 0050 0018 90 00", card.record,
            MChipCard.cryptogram("80"))
        expectEqual(run[record: 0x57], "5413330089010434D3112201" + digit + "052445187005F", "\(run.outcome.reason)")
    }

    /// DF8131: each row of eight bytes counts, the last one, too.
    @Test("the last row of the phone message table counts")
    func lastPhoneMessage() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8131": "0008000008001600 000000000000 20 00".filter { $0 != " " }]
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80", "DF 4B 03 00 01 00")])
        #expect(run.requests.last?.message == .seePhone && run.outcome.start == .b)
    }

    /// A limit of 0 is reached by any amount; there is none below it.
    @Test("limits of 0 in the combination", arguments: [0, 1] as [UInt64])
    func limitsOfZero(_ amount: UInt64) throws {
        var bench = Kernel2Bench()
        (bench.amount, bench.transactionLimit) = (amount, 0)
        let refused = try bench.run(
            try amount == 0 ? ShortCard().read + [MChipCard.cryptogram("80")] : ShortCard().read)
        expectEqual(refused.outcome.kind, amount == 0 ? .onlineRequest : .selectNext)
        (bench.transactionLimit, bench.cvmRequiredLimit) = (nil, 0)
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])
        expectEqual(run.outcome.receipt, amount > 0)
    }

    /// The terminal speaks once to each exchange.
    @Test("an answer of the terminal that nobody asked for sends no command again")
    func answerOfTheTerminalTwice() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8112": ""]
        var kernel = Kernel2(try bench.activation())
        _ = kernel.next(.start)
        let options = try ResponseAPDU(wire(ShortCard().processingOptions))
        guard case .exchange = kernel.next(.response(options, after: .zero)).action,
            case .send = kernel.next(.terminalData(DataRecord())).action,
            case .outcome(let outcome) = kernel.next(.terminalData(DataRecord())).action
        else {
            Issue.record("no exchange, no command, or one command too many")
            return
        }
        expectEqual(outcome.kind, .endApplication, "\(outcome.reason)")
    }

    // MARK: Kernel 3

    /// 57 has 19 bytes at the most (EMV Book 3, Annex A).
    @Test("track 2 of 19 bytes, and of 20", arguments: [("", true), ("45", false)])
    func longestTrack(_ more: String, _ isTrack: Bool) throws {
        let digits = "4761739001010010D3112201123456789012" + more + "3F"
        let run = try Kernel3Bench().run(
            processingOptions(without: ["57"], TLVTag(0x57).encode(wire(digits)).hex))
        expectEqual(run.outcome.kind, isTrack ? .onlineRequest : .endApplication, "\(run.outcome.reason)")
    }

    /// Book C-3, Annex A: 1 to 16 bytes.
    @Test(
        "an application program identifier has 1 to 16 bytes",
        arguments: [(0, false), (1, true), (16, true), (17, false)])
    func programIdentifiers(_ count: Int, _ isSound: Bool) {
        let identifier = [UInt8](repeating: 0x31, count: count)
        expectEqual(Kernel3.DynamicReaderLimits(applicationProgramIdentifier: identifier) != nil, isSound)
    }

    // MARK: Receipts

    /// 84 has 16 bytes at the most, the name for SELECT has more with an extended selection.
    @Test("the AID of a receipt is the first 16 bytes of the name; its facts have 128 bytes at the most")
    func receiptFacts() throws {
        let name = (0..<20).map { UInt8($0) }
        let facts = try #require(ReceiptFacts(name: name, .none) { _ in nil })
        expectEqual(facts.applicationIdentifier, Array(name.prefix(16)))
        for count in [128, 129] {
            let error = #expect(throws: ReceiptFacts.Malformed.self) {
                try ReceiptFacts(encoded: [UInt8](repeating: 0x5A, count: count))
            }
            expectEqual(error?.reason.contains("more than 128 bytes"), count == 129)
        }
    }

    // MARK: Offline data authentication

    /// EMV Book 2, 5.2: a key is valid through its last day.
    @Test("the last day of a CA key, and the one after it")
    func lastDay() throws {
        var card = Card(try #require(Minted.all.cards.first { $0.name == "ordinary" }))
        let key = try #require(Minted.authorities[.test, bytes("A000000003"), 0xE1])
        let last = try #require(CalendarDate(year: 2026, month: 1, day: 15))
        card.keys = CAPublicKeys([
            try CAPublicKey(
                environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                checksum: key.checksum, expiration: last)
        ])
        for (day, isValid) in [(14, true), (15, true), (16, false)] {
            card.date = (2026, 1, day)
            let failure = AuthenticationFailure(.caPublicKey, .expired)
            #expect((card.issuerKey() == .failure(failure)) != isValid, "\(day)")
            #expect((card.iccKey() == .failure(failure)) != isValid, "\(day)")
        }
    }
}
