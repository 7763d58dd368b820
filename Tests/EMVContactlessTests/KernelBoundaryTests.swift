import SmartCard
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
        #expect(try run("DF8123")[record: 0x95] == (exceeds ? "8000008001" : "8000000001"))
        for (tag, aip) in [("DF8124", "18 80"), ("DF8125", "1A 80")] {
            let outcome = try run(tag, aip: aip)
            #expect((outcome.outcome.kind == .selectNext) == exceeds, "\(tag): \(outcome.outcome.reason)")
            #expect((outcome.error == "0005000000FF") == exceeds)
        }
        // 9F33 byte 2: DF8118, or below the limit DF8119.
        let verified = try run("DF8126")
        #expect(verified[record: 0x9F33] == (exceeds ? "E06008" : "E00808"))
        #expect(verified.outcome.receipt == exceeds)
    }

    @Test("an amount one below, at and one above the combination's floor limit", arguments: [12_33, 12_34, 12_35])
    func floorLimitOfTheCombination(_ limit: UInt64) throws {
        var bench = Kernel2Bench()
        bench.floorLimit = limit
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])
        #expect(run[record: 0x95] == (limit < 12_34 ? "8000008001" : "8000000001"))
    }

    @Test("mag-stripe mode: an amount one below, at and one above DF8124", arguments: [12_33, 12_34, 12_35])
    func limitOfMagStripeMode(_ limit: UInt64) throws {
        var bench = Kernel2Bench()
        bench.data = ["DF8124": packed(limit, bytes: 6).hex]
        let card = try MagStripeCard().read
        let run = try bench.run(limit < 12_34 ? card : card + [MagStripeCard.checksum()])
        #expect(run.outcome.kind == (limit < 12_34 ? .selectNext : .onlineRequest), "\(run.outcome.reason)")
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
        #expect(log.record(like: data) == nil)
        data[tag] = nil
        #expect(log.record(like: data) == nil)
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

    // MARK: Records (EMV Book 3, 6.5.11.4 and 10.3)

    /// Tag and length of template 70 are signed from file 11 on.
    @Test("a signed record of file 10 is hashed without its tag, one of file 11 with it", arguments: [10, 11])
    func signedRecord(_ file: UInt8) throws {
        var responses = try SigningCard().responses
        let locator = [file << 3, 0x01, 0x01, 0x01].hex
        responses[0] = responses[0].replacing("940C08010101", with: "940C" + locator)
        #expect(responses[0].contains(locator))
        let run = try Kernel3Bench.signing.run(responses)
        #expect(run.commands[1] == "00B201" + [file << 3 | 0x04].hex + "00")
        #expect((run.outcome.isAuthentic == true) == (file == 10), "\(run.outcome.reason)")
        #expect(run.outcome.kind == (file == 10 ? .approved : .declined))
    }

    /// A record of files 1 to 10 is one template 70; the contents of the others are the issuer's.
    @Test("a record that is no template 70 ends the application up to file 10", arguments: [1, 10, 11, 30])
    func recordOfAnotherForm(_ file: UInt8) throws {
        let entry = [file << 3, 0x01, 0x01, 0x00].hex
        for record in ["5F 24 03 31 12 31 90 00", "FF FF 90 00"] {
            let third = try Kernel3Bench().run(processingOptions("94 04" + entry), record)
            #expect(third.outcome.kind == (file <= 10 ? .endApplication : .onlineRequest), "\(third.outcome.reason)")
        }
        var card = ShortCard()
        card.locator = "10 01 01 00" + entry
        let read = try card.read + ["5F 24 03 31 12 31 90 00"]
        let second = try Kernel2Bench().run(file <= 10 ? read : read + [MChipCard.cryptogram("80")])
        #expect(second.error == (file <= 10 ? "00040000001C" : "0000000000FF"), "\(second.outcome.reason)")
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
