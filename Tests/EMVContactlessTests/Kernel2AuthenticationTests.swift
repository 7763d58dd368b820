import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Combined data authentication, relay resistance and data storage, by a card whose signatures another program made
/// (Vectors/kernel2.py), which has every byte that the terminal is to send.
@Suite struct Kernel2AuthenticationTests {
    /// The terminal asks for a TC, or for an ARQC above its floor limit; the card gives that, or less.
    @Test(
        arguments: [
            // Floor limit, P1, answer, outcome
            (nil, "50", Kernel2Vectors.tc, .approved), (0, "90", Kernel2Vectors.arqc, .onlineRequest),
            (nil, "50", Kernel2Vectors.arqcForTC, .onlineRequest),
            // Lengths in more bytes than they need are hashed as they came.
            (nil, "50", Kernel2Vectors.longLength, .approved),
        ] as [(UInt64?, String, String, Outcome.Kind)])
    func combinedAuthentication(
        _ floorLimit: UInt64?, _ control: String, _ answer: String, _ kind: Outcome.Kind
    ) throws {
        var bench = try Kernel2Bench.signing
        bench.floorLimit = floorLimit
        let run = try bench.run(try MChipCard().read + [answer.answered])
        expectEqual(run.outcome.kind, kind, "\(run.outcome.reason)")
        expectEqual(run.outcome.isAuthentic, true)
        expectEqual(run.commands.last?.hasPrefix("80AE" + control), true)
        // Only the signature has the cryptogram.
        expectEqual(run[record: 0x9F26], "4A8CF7AC9A9378A0")
        expectEqual(run[record: 0x95], floorLimit == nil ? "0000000001" : "0000008001")
    }

    /// An AAC is signed where the card says that it does so (9F5D), and only then has to be.
    @Test func signedDecline() throws {
        var bench = try Kernel2Bench.signing
        bench.data = ["DF8121": "0000000001"]
        let plain = try bench.run(try MChipCard().read + [MChipCard.cryptogram("00")])
        #expect(plain.commands.last?.hasPrefix("80AE00") == true && plain.outcome.kind == .tryAnotherInterface)
        bench.discretionary = "9F 5D 03 01 01 00"
        let signed = try bench.run(try MChipCard().read + [Kernel2Vectors.aac.answered])
        #expect(signed.commands.last?.hasPrefix("80AE10") == true && signed.outcome.isAuthentic == true)
        expectEqual(signed.outcome.kind, .tryAnotherInterface)
        let unsigned = try bench.run(try MChipCard().read + [MChipCard.cryptogram("00")])
        expectEqual(unsigned.error, "00060000001C")
    }

    /// A card that was asked to sign an approval may decline without; anything else it has to sign.
    @Test(
        arguments: [("00", .tryAnotherInterface), ("40", .endApplication), ("80", .endApplication)]
            as [(String, Outcome.Kind)])
    func withoutSignature(_ information: String, _ kind: Outcome.Kind) throws {
        let run = try Kernel2Bench.signing.run(try MChipCard().read + [MChipCard.cryptogram(information)])
        #expect(run.outcome.kind == kind && run.outcome.isAuthentic == nil)
        expectEqual(run.error, kind == .endApplication ? "00060000001C" : "0000000000FF")
    }

    /// CAM FAILED: no byte of the answer, the records or what was sent may be another one.
    @Test func whatCDAFinds() throws {
        let answer = try wire(Kernel2Vectors.tc)
        for index in stride(from: 10, to: answer.count, by: 7) {
            var changed = answer
            changed[index] ^= 0x01
            let run = try Kernel2Bench.signing.run(try MChipCard().read + [changed.hex.answered])
            expectEqual(run.outcome.kind, .endApplication, "\(index)")
            #expect(["00020000001C", "00040000001C"].contains(run.error), "\(index): \(run.outcome.reason)")
            expectEqual(run.outcome.dataRecord, nil)
        }
        var other = try Kernel2Bench.signing
        other.unpredictableNumber = "11 22 33 45"
        let run = try other.run(try MChipCard().read + [Kernel2Vectors.tc.answered])
        #expect(run.error == "00020000001C" && run.outcome.isAuthentic == false)
        expectEqual(run.outcome.userInterfaceRequest?.message, .insertSwipeOrTryAnotherCard)
    }

    /// S456.25: what is missing shows in the TVR, and CDA is not asked for.
    @Test(arguments: [
        ("9F47 01 03", "2400000001"), ("", "0400000001"),
    ])
    func withoutKeys(_ missing: String, _ results: String) throws {
        var bench = try Kernel2Bench.signing
        var card = MChipCard()
        if missing.isEmpty { bench.keys = CAPublicKeys() } else { card.iccCertificate = "" }
        let run = try bench.run(try card.read + [MChipCard.cryptogram("80")])
        expectEqual(run.commands.last?.hasPrefix("80AE80"), true)
        expectEqual(run[record: 0x95], results)
    }

    /// S456.26: the AIP is signed, or the card is no good.
    @Test func withoutTheSignedProfile() throws {
        var card = MChipCard()
        card.record = card.record.replacingSuffix("9F4A0182", with: "9F4A0195")
        try expectEqual(Kernel2Bench.signing.run(card.read).error, "00060000001C")
        card.record = Kernel2Vectors.record.replacingSuffix("9F4A0182", with: "")
        try expectEqual(Kernel2Bench.signing.run(card.read).error, "00060000001C")
    }

    // MARK: Relay resistance

    /// Times in units of 100 µs: the card takes 10 to 80 and 24 for its answer; the terminal's command takes 18.
    @Test(arguments: [
        // µs, minimum, maximum, estimate; TVR byte 5, tries, measured
        ([10_000], "000A 0050 0018", "02", 1, "003A"),  // 100 - 18 - 24 = 58
        ([4_200], "000A 0050 0018", "02", 1, "0000"),  // 42 - 42, less than 10, by no more than 20
        ([17_200], "000A 0050 0018", "02", 1, "0082"),  // 130 = 80 + 50: just in time
        ([17_300, 10_000], "000A 0050 0018", "02", 2, "003A"),
        ([20_000, 20_000, 20_000], "000A 0050 0018", "06", 3, "009E"),
        ([40_000, 40_000, 40_000], "000A 0050 0018", "0E", 3, "0166"),  // 358 - 10 > 300
        ([20_000], "000A 2000 0018", "02", 1, "009E"),
        ([35_200], "000A 2000 0018", "02", 1, "0136"),  // 310 - 10 = 300: not above the threshold
        ([35_300], "000A 2000 0018", "0A", 1, "0137"),
        ([7_000_000, 7_000_000, 7_000_000], "000A 0050 0018", "0E", 3, "FFFF"),  // 69958 has no place in two bytes
        ([10_000], "000A 0050 000C", "02", 1, "0046"),  // 12 of 24: just half; 100 - 18 - 12
        ([10_000], "000A 0050 000B", "0A", 1, "0047"),  // 11 of 24: less than half
        ([10_000], "000A 0050 0030", "02", 1, "003A"),  // 24 of 48: just half
        ([10_000], "000A 0050 0031", "0A", 1, "003A"),  // 24 of 49
        ([10_000], "000A 0050 0000", "0A", 1, "0052"),  // no estimate is no match
    ])
    func relayTimes(_ times: [Int], _ limits: String, _ results: String, _ tries: Int, _ measured: String) throws {
        var bench = Kernel2Bench()
        bench.relayTimes = times
        let answers = [String](repeating: "80 0A AA BB CC DD \(limits) 90 00", count: tries)
        let run = try bench.run(
            [template(0x77, "82 02 18 81  94 04 10 01 01 00")] + answers + [
                ShortCard().record, MChipCard.cryptogram("80"),
            ])
        let numbers = ["55667788", "99AABBCC", "DDEEFF00"].prefix(tries)
        expectEqual(run.commands[1...tries].map(\.self), numbers.map { "80EA000004\($0)00" })
        expectEqual(run[record: 0x95], "80000000" + results)
        expectEqual(run[record: 0x9F37], numbers.last)
        // S910.39: key F7 is none of 0 to 9; the number of further tries; DDCC as CCDD, 52445; BB, 187; the time in ms.
        let milliseconds = min((Int(measured, radix: 16) ?? 0) / 10, 999)
        let discretionary = "0\(tries - 1)52445187" + String(("000" + "\(milliseconds)").suffix(3))
        expectEqual(run[record: 0x57], "5413330089010434D3112201" + discretionary + "F")
    }

    /// S3.61: what the card has been told with the PDOL, it may have passed on already.
    @Test func entropyIsFresh() throws {
        var bench = Kernel2Bench()
        bench.fci = "9F 38 03  9F 37 04"
        let run = try bench.run(
            template(0x77, "82 02 18 81  94 04 10 01 01 00"), "80 0A AA BB CC DD 000A 0050 0018 90 00",
            ShortCard().record, MChipCard.cryptogram("80"))
        expectEqual(run.commands[0], joined("80A8000006", "8304", "11223344", "00"))
        expectEqual(run.commands[1], joined("80EA000004", "55667788", "00"))
        expectEqual(run[record: 0x9F37], "55667788")
    }

    @Test(arguments: [
        // µs, minimum, error
        (10_000, "0050", "00060000001C"),  // 58 < 80 - 20
        (10_200, "0050", "0000000000FF"),  // 60
    ])
    func tooEarly(_ time: Int, _ minimum: String, _ error: String) throws {
        var bench = Kernel2Bench()
        bench.relayTimes = [time]
        let early = error != "0000000000FF"
        let run = try bench.run(
            [template(0x77, "82 02 18 81  94 04 10 01 01 00"), "80 0A AA BB CC DD \(minimum) 0100 0018 90 00"]
                + (early ? [] : [ShortCard().record, MChipCard.cryptogram("80")]))
        expectEqual(run.error, error)
    }

    @Test(
        arguments: [
            "80 09 AA BB CC DD 00 0A 00 50 00", "77 0A AA BB CC DD 00 0A 00 50 00 18",
            "80 0A AA BB CC DD 00 0A 00 50 00 18 00", "",
        ])
    func noRelayData(_ answer: String) throws {
        let run = try Kernel2Bench().run([template(0x77, "82 02 18 81  94 04 10 01 01 00"), answer + "90 00"])
        expectEqual(run.error, "00040000001C")
    }

    /// What was exchanged is signed along with the cryptogram.
    @Test(
        arguments: [
            ([10_000], Kernel2Vectors.relay, .approved), ([20_000, 10_000], Kernel2Vectors.relayAgain, .approved),
            ([40_000, 40_000, 40_000], Kernel2Vectors.relayLate, .onlineRequest),
            ([10_000], Kernel2Vectors.relayOfAnother, .endApplication), ([10_000], Kernel2Vectors.tc, .endApplication),
        ] as [([Int], String, Outcome.Kind)])
    func relayResistanceIsSigned(_ times: [Int], _ answer: String, _ kind: Outcome.Kind) throws {
        var bench = try Kernel2Bench.signing.relaying
        bench.relayTimes = times
        var card = MChipCard()
        card.aip = "19 81"
        card.iccCertificate = Kernel2Vectors.iccCertificateRelay
        let relay = [String](repeating: "80 0A AA BB CC DD  00 0A  00 50  00 18 90 00", count: times.count)
        let run = try bench.run([card.processingOptions] + relay + card.records + [answer.answered])
        expectEqual(run.outcome.kind, kind, "\(run.outcome.reason)")
        expectEqual(run.outcome.isAuthentic, kind != .endApplication)
    }

    // MARK: Devices

    /// 7.5, CVM.1 to CVM.4, and GAC.22 and GAC.23: without CDA a device declines.
    @Test func mchipOnDevice() throws {
        var card = MChipCard()
        card.aip = "1B 80"
        card.iccCertificate = Kernel2Vectors.iccCertificateDevice
        let run = try Kernel2Bench.signing.run(card.read + [Kernel2Vectors.onDevice.answered])
        #expect(run.outcome.kind == .approved && run.outcome.cvm == Outcome.CVM.none, "\(run.outcome.reason)")
        expectEqual(run[record: 0x9F34], "3F0002")

        var above = Kernel2Bench()
        above.amount = 60_00
        card.aip = "1A 80"
        let declined = try above.run(card.read + [MChipCard.cryptogram("00")])
        expectEqual(declined.commands.last?.hasPrefix("80AE00"), true)
        #expect(declined.outcome.cvm == .deviceCVM && declined.outcome.receipt)
        expectEqual(declined[record: 0x9F34], "010002")
    }
}

extension String {
    fileprivate func replacingSuffix(_ suffix: String, with other: String) -> String {
        let text = filter { !$0.isWhitespace }
        return text.hasSuffix(suffix) ? String(text.dropLast(suffix.count)) + other : text
    }
}
