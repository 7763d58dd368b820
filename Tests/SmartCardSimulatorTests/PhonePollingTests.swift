import SmartCard
import TestSupport
import Testing
import Waiting

@testable import SmartCardSimulator

/// A built-in phone with parameters of its own.
func walletPhone(_ name: String, _ parameters: String = "") throws -> WalletPhone {
    let file = try CardFile(parsing: "variant \(name) {\n\(parameters)\n}")
    guard case .emv(let personality, let phone?) = file.kind else { throw CardError(.other, "no phone") }
    return WalletPhone(phone, over: EMVCard(radio: file.radio, personality: personality))
}

/// What phones make of frames: enhanced contactless polling, as kormax describes it, and the frames that proxmark3 has sniffed.
@Suite struct PhonePollingTests {
    static let frames: [(frame: String, crcA: String, crcB: String, wish: PhonePolling.Wish)] = [
        ("6A 01 00 00 00", "F6 F1", "D7 3E", .passOrPayment),
        ("6A 01 00 00 01", "7F E0", "5E 2F", .passAndPayment),
        ("6A 01 00 00 02", "E4 D2", "C5 1D", .passOnly),
        ("6A 01 00 00 03", "6D C3", "4C 0C", .paymentOnly),
        ("6A 01 CF 00 00", "AB B1", "8A 7E", .nothingHere),  // ignore
        ("6A 01 C3 00 00", "08 14", "29 DB", .nothingHere),  // a gym's machine
        ("6A 02 81 03 00 00", "35 51", "09 91", .nothingHere),  // identity documents
        (
            "6A 02 C8 01 00 03 00 02 79 00 00 00 00", "C2 D8", "11 34",  // Transport for London
            .transit(networks: [0x79, 0x00, 0x00, 0x00, 0x00])
        ),
    ]

    @Test("Each published frame has its checksums and its meaning", arguments: frames)
    func published(_ frame: (frame: String, crcA: String, crcB: String, wish: PhonePolling.Wish)) {
        let content = bytes(frame.frame)
        expectEqual(RadioChecksum.a(content), bytes(frame.crcA))
        expectEqual(RadioChecksum.b(content), bytes(frame.crcB))
        expectEqual(PhonePolling.Wish(content), frame.wish)
    }

    @Test(
        "What is no polling frame says nothing",
        arguments: [
            "", "6A", "6A 01 00 00", "6A 01 00 00 00 00", "6A 03 00 00 00", "6A 02 C8 01 00 03", "26", "6B 01 00 00 00",
        ])
    func malformed(_ frame: String) { expectEqual(PhonePolling.Wish(bytes(frame)), nil) }

    private static let requests: [Character: RadioFrame] = [
        "A": RadioFrame(.typeA, [0x26]), "B": RadioFrame(.typeB, [0x05, 0x00, 0x00]),
        "F": RadioFrame(.felica, [0x06, 0x00, 0xFF, 0xFF, 0x00, 0x03]),
    ]

    @Test(
        "A phone decides after three requests of one technology, two loops of two, one of three",
        arguments: [
            ("AAAA", 4), ("ABABA", 5), ("ABFA", 4), ("AAA", nil), ("ABAB", nil), ("ABF", nil), ("AABA", nil),
            ("BBBA", 4), ("AFFAA", 5), ("ABFFA", 5),
        ] as [(String, Int?)])
    func decision(_ loop: String, _ answered: Int?) throws {
        let phone = try walletPhone("phone-apple", "screen both")
        let answer = loop.enumerated().first { _, technology in
            phone.notice(.frame(Self.requests[technology] ?? RadioFrame(.typeA, []))) && technology == "A"
        }
        expectEqual(answer.map { $0.offset + 1 }, answered)
    }

    /// Polls with one frame until the phone answers, eight times at most.
    private func poll(_ phone: WalletPhone, _ frame: String?) -> Int? {
        for count in 1...8 {
            if phone.notice(.frame(RadioFrame(.typeA, [0x26]))) { return count }
            if let frame { _ = phone.notice(.frame(RadioFrame(.typeA, bytes(frame)))) }
        }
        return nil
    }

    private static let selectPasses = "00 A4 04 00 0A 4F 53 45 2E 56 41 53 2E 30 31 00"
    private static let selectDirectory = "00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00"

    private func status(_ phone: WalletPhone, _ command: String) -> String? {
        phone.exchange(bytes(command))?.suffix(2).hex(separator: " ")
    }

    /// Screen, frame, and the answers to both SELECTs; nil for a phone that does not answer.
    @Test(
        "The last frame selects passes, payment card or both, and without one the screen does",
        arguments: [
            ("closed", "6A 01 00 00 00", "90 00", "90 00"), ("closed", "6A 01 00 00 01", "90 00", "90 00"),
            ("closed", "6A 01 00 00 02", "90 00", "6A 82"), ("closed", "6A 01 00 00 03", "6A 82", "90 00"),
            ("card", "6A 01 00 00 02", "90 00", "6A 82"), ("both", "6A 01 CF 00 00", nil, nil),
            ("both", "6A 02 81 03 00 00", nil, nil),
            ("closed", "6A 02 C8 01 00 03 00 02 79 00 00 00 00", "6A 82", "90 00"),
            ("closed", "6A 02 C8 01 00 03 00 02 18 00 00 00 00", nil, nil), ("closed", nil, nil, nil),
            ("pass", nil, "90 00", "6A 82"), ("card", nil, "6A 82", "90 00"), ("both", nil, "90 00", "90 00"),
        ] as [(String, String?, String?, String?)])
    func selection(_ screen: String, _ frame: String?, _ passes: String?, _ directory: String?) throws {
        let phone = try walletPhone("phone-apple", "screen \(screen)")
        expectEqual(poll(phone, frame), passes == nil ? nil : 4)
        expectEqual(status(phone, Self.selectPasses), passes)
        expectEqual(status(phone, Self.selectDirectory), directory)
        expectEqual(phone.answersAnyReader, screen != "closed")
    }

    @Test(
        "A field that drops for a moment is forgiven, for transit for longer", .simulatedTime,
        arguments: [
            ("6A 01 00 00 00", 300, 1), ("6A 01 00 00 00", 301, 4),
            ("6A 02 C8 01 00 03 00 02 79 00 00 00 00", 750, 1), ("6A 02 C8 01 00 03 00 02 79 00 00 00 00", 751, 4),
        ])
    func grace(_ frame: String, _ gap: Int, _ answered: Int) async throws {
        let phone = try walletPhone("phone-apple")
        _ = phone.notice(.fieldOn)
        expectEqual(poll(phone, frame), 4)
        _ = phone.notice(.fieldOff)
        try await Time.sleep(for: .milliseconds(gap))
        _ = phone.notice(.fieldOn)
        expectEqual(poll(phone, frame), answered)
        #expect(!phone.isDone)
    }

    @Test("A phone is done after DESELECT and a field that drops, and makes up its mind anew", .simulatedTime)
    func done() async throws {
        let phone = try walletPhone("phone-apple")
        _ = phone.notice(.fieldOn)
        expectEqual(poll(phone, "6A 01 00 00 02"), 4)
        expectEqual(status(phone, Self.selectPasses), "90 00")
        _ = phone.notice(.deselect)
        #expect(!phone.isDone)
        _ = phone.notice(.fieldOff)
        #expect(phone.isDone)
        _ = phone.notice(.fieldOn)
        _ = phone.notice(.fieldOff)
        try await Time.sleep(for: .seconds(1))
        _ = phone.notice(.fieldOn)
        #expect(phone.isDone, "until the next session")
        expectEqual(poll(phone, "6A 01 00 00 03"), 4)
        expectEqual(status(phone, Self.selectPasses), "6A 82", "the wish is the new one")
        #expect(!phone.isDone)
    }

    /// kormax: a terminal that wants both does not end the session after a failed read.
    @Test("After a failed read and DESELECT a phone that was to pay, too, shows no passes until the session ends")
    func routeCloses() throws {
        let phone = try walletPhone("phone-apple", "locked 1")
        _ = phone.notice(.fieldOn)
        expectEqual(poll(phone, "6A 01 00 00 01"), 4)
        phone.reset()
        expectEqual(status(phone, Self.selectPasses), "90 00")
        expectEqual(status(phone, ApplePhoneTests.getData()), "62 87")
        _ = phone.notice(.deselect)
        phone.reset()
        expectEqual(status(phone, Self.selectPasses), "6A 82")
        expectEqual(status(phone, Self.selectDirectory), "90 00")
        _ = phone.notice(.deselect)
        _ = phone.notice(.fieldOff)
        phone.reset()
        _ = phone.notice(.fieldOn)
        expectEqual(poll(phone, "6A 01 00 00 01"), 4)
        expectEqual(status(phone, Self.selectPasses), "90 00")
        expectEqual(status(phone, ApplePhoneTests.getData()), "90 00")
    }
}
