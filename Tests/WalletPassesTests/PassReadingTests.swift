import CardEncryption
import Foundation
import SmartCard
import TestSupport
import Testing

@testable import WalletPasses

/// Both wallets in one value, and phones that break the rules.
@Suite struct PassReadingTests {
    private static let applePay = "6F1D 50 08 4170706C65506179 9F21 02 0100 9F24 04 E9CAEDE3 9F23 04 0000003E 9000"
    /// A pass for the key of 33 bytes `33`, from another program; its time is 2F000000.
    private static let answer =
        "70 49 9F2A 00 9F27 43 3D906C015B36890DACBD7C9A96BB74A1EE28B3D2D75B72E09A20EF25CF8E6FD8A9F0350D83A617B79599DFDB"
        + "BD850F98741B195A1FC961E8099A27C3D3B1A4A571D4CE 9000"
    private static let now = Date(timeIntervalSinceReferenceDate: 0x2F00_0000)

    private static func configuration() throws -> PassConfiguration {
        // TEST
        let key = try #require(MerchantKey([UInt8](repeating: 0x33, count: 32)))
        let loyalty = PassMerchant.Apple(passTypeIdentifier: "pass.example.kiosk.loyalty", keys: [MerchantKey(), key])
        let coupon = PassMerchant.Apple(passTypeIdentifier: "pass.example.kiosk.coupon", keys: [key])
        return try PassConfiguration(merchants: [
            PassMerchant(id: "coupon", apple: coupon),
            PassMerchant(id: "loyalty", apple: loyalty, google: try SmartTapVector.google()),
        ])
    }

    private static func reading(
        _ mode: PassReading.Mode, seen: VASFreshness = VASFreshness(), at now: Date = now
    ) throws -> PassReading {
        let configuration = try configuration()
        let secrets = try SmartTapVector.secrets()
        return PassReading(
            configuration.allRequests, configuration: configuration, mode: mode, freshness: seen, at: now,
            secrets: { secrets })
    }

    private static func play(
        _ reading: inout PassReading, _ answers: [[UInt8]]
    ) throws -> (count: Int, outcome: PassReading.Outcome?) {
        var step = reading.next(nil)
        var count = 0
        while case .send = step {
            guard count < answers.count else { return (count, nil) }
            step = reading.next(try ResponseAPDU(answers[count]))
            count += 1
        }
        if case .finished(let outcome) = step { return (count, outcome) }
        return (count, nil)
    }

    private static func outcome(_ mode: PassReading.Mode, _ answers: [String]) throws -> PassReading.Outcome {
        var reading = try reading(mode)
        return try #require(try play(&reading, try answers.map { try SmartTapVector.bytes($0) }).outcome)
    }

    @Test("An iPhone's pass is decrypted, counts once, and payment follows where the mode has it")
    func apple() throws {
        for (mode, mayPay) in [
            (PassReading.Mode.passAndPayment, true), (.passOrPayment, false), (.passOnly, false),
        ] {
            let outcome = try Self.outcome(mode, [Self.applePay, "6A83", Self.answer])
            #expect(outcome.wallet == .apple && outcome.entries.map(\.id) == ["coupon", "loyalty"])
            #expect(outcome.entries.map(\.status) == [.notFound, .success] && outcome.mayPayNow == mayPay)
            #expect(outcome.entries[1].pass?.data.text == "MEMBER-0001" && outcome.entries[1].pass?.date == Self.now)
            #expect(!outcome.wantsAnotherTap && !outcome.isPlainCard && !"\(outcome)".contains("MEMBER"))
        }
        var reading = try Self.reading(.passOnly)
        let answers = try [Self.applePay, "6A83", Self.answer].map { try SmartTapVector.bytes($0) }
        _ = try Self.play(&reading, answers)
        var again = try Self.reading(.passOnly, seen: reading.freshness)
        #expect(try Self.play(&again, answers).outcome?.entries[1].status == .readFailure(.replayed))
        var late = try Self.reading(.passOnly, at: Self.now.addingTimeInterval(301))
        #expect(
            try Self.play(&late, answers).outcome?.entries[1].status == .readFailure(.clockDiffers(seconds: -301)))
    }

    @Test("A locked phone is tapped again, and nothing is paid before")
    func locked() throws {
        for (word, status) in [("6287", PassReading.Status.notActivated), ("6984", .userInterventionRequired)] {
            let outcome = try Self.outcome(.passAndPayment, [Self.applePay, word])
            #expect(outcome.entries.map(\.status) == [status] && outcome.wantsAnotherTap && !outcome.mayPayNow)
        }
    }

    @Test("A plain card has no passes, and may pay")
    func card() throws {
        for (mode, mayPay) in [
            (PassReading.Mode.passAndPayment, true), (.passOrPayment, true), (.passOnly, false),
        ] {
            let outcome = try Self.outcome(mode, ["6A82"])
            #expect(outcome.isPlainCard && outcome.wallet == nil && outcome.entries.isEmpty)
            #expect(outcome.mayPayNow == mayPay)
        }
        var reading = try Self.reading(.paymentOnly)
        let (count, outcome) = try Self.play(&reading, [])
        #expect(count == 0 && outcome?.mayPayNow == true)
    }

    @Test(
        "Google's status words are those of the common table",
        arguments: [
            ("9001", .notFound), ("9300", .notActivated), ("9302", .userInterventionRequired), ("9402", .incorrectData),
            ("9404", .incorrectData), ("9502", .unsupportedVersion),
            ("9500", .readFailure(.refused(.authenticationFailed))),
        ] as [(String, PassReading.Status)])
    func google(_ word: String, _ status: PassReading.Status) throws {
        let outcome = try Self.outcome(.passAndPayment, [SmartTapVector.selection, word])
        #expect(outcome.wallet == .google && outcome.entries.map(\.id) == ["coupon", "loyalty"])
        // Coupons are for Apple Wallet alone.
        #expect(outcome.entries.map(\.status) == [.notFound, status] && outcome.mayPayNow == !status.wantsAnotherTap)
        #expect(outcome.wantsAnotherTap == status.wantsAnotherTap)
    }

    @Test("A phone that breaks the protocol in any byte ends within few commands, and gives no pass of its own making")
    func hostile() throws {
        let apple = try [Self.applePay, "6A83", Self.answer].map { try SmartTapVector.bytes($0) }
        let google = try [SmartTapVector.selection, SmartTapVector.negotiated, SmartTapVector.answers[1]].map {
            try SmartTapVector.bytes($0)
        }
        var random = SplitMix(state: 0x5041_5353)
        for round in 0..<2000 {
            var answers = round.isMultiple(of: 2) ? apple : google
            let index = answers.indices.randomElement(using: &random) ?? 0
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let at = Int.random(in: 0..<answers[index].count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: answers[index][at] ^= 1 << UInt8.random(in: 0...7, using: &random)
                case 1: answers[index].insert(.random(in: 0...255, using: &random), at: at)
                case 2: answers[index].removeLast(min(at, answers[index].count - 2))
                default: answers[index][at] = .random(in: 0...255, using: &random)
                }
            }
            // Whatever else it is asked, it answers from the same.
            let more = (0..<600).map { answers[$0 % answers.count] }
            var reading = try Self.reading(.passAndPayment)
            let (count, outcome) = try Self.play(&reading, answers + more)
            #expect(outcome != nil && count <= 300, "\(round)")
            for entry in outcome?.entries ?? [] where entry.status == .success {
                #expect(["MEMBER-0001", "2018"].contains(entry.pass?.data.text ?? ""), "\(round)")
            }
        }
    }
}
