import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// Frames from the host to every card, through the registers of the PN532 (data sheet, 8.6.23), by the steps that drivers of
/// ACR122U readers take for phones.
@Suite struct RadioFrameTests {
    private let bus: ACR122UBus
    private let phone: WalletPhone

    init() throws {
        phone = try walletPhone("phone-apple", "screen closed")
        bus = ACR122UBus(card: phone)
        _ = bus.apdu("FF 00 51 7F 00")  // the reader does not look for cards itself
        _ = direct("D4 32 05 FF 01 00")  // a request once
        _ = direct("D4 32 02 00 0B 04")  // an answer within 0.8 ms
        bus.reader.radioRecords = []
    }

    private func direct(_ command: String) -> String {
        let length = bytes(command).count
        return bus.apdu("FF 00 00 00 \([UInt8(length)].hex) \(command)")
    }

    private var events: [RadioRecord.Event] { bus.reader.radioRecords.map(\.event) }

    private static let reqA = RadioFrame(.typeA, [0x26])
    private static let passOnly = RadioFrame(.typeA, bytes("6A 01 00 00 02"))

    @Test("A phone stays silent for three requests with a frame between two of them, and answers the fourth")
    func loop() throws {
        for _ in 0..<3 {
            expectEqual(direct("D4 4A 01 00"), "D5 4B 00 90 00")
            expectEqual(direct("D4 06 63 3D"), "D5 07 07 90 00", "seven bits after REQA")
            expectEqual(direct("D4 08 63 3D 00"), "D5 09 90 00")
            expectEqual(direct("D4 42 6A 01 00 00 02 E4 D2"), "D5 43 01 90 00")
        }
        #expect(direct("D4 4A 01 00").hasPrefix("D5 4B 01 01 00 04 20 04 08 5C 21 7E"))
        #expect(direct("D4 40 01 00 A4 04 00 0A 4F 53 45 2E 56 41 53 2E 30 31 00").hasPrefix("D5 41 00 6F 1D 50 08"))
        expectEqual(direct("D4 44 01"), "D5 45 00 90 00")
        expectEqual(direct("D4 32 01 00"), "D5 33 90 00")
        #expect(phone.isDone)
        let silence = [
            RadioRecord.Event.frame(Self.reqA, answeredBy: []), .frame(Self.passOnly, answeredBy: []),
        ]
        let uid = bytes("08 5C 21 7E")
        expectEqual(
            events,
            silence + silence + silence + [
                .frame(Self.reqA, answeredBy: [uid]), .deselect(uid), .field(isOn: false),
            ])
        let instants = bus.reader.radioRecords.map(\.instant)
        expectEqual(instants, instants.sorted())
    }

    /// What precedes the frame, the frame, and what becomes of it.
    @Test(
        "A frame reaches cards as the registers have the chip send it, or no card at all",
        arguments: [
            ("", "6A 01 00 00 02 E4 D2", "cut to 7 bits of its last byte"),
            ("D4 08 63 3D 00", "6A 01 00 00 02", "without its CRC_A"),
            ("D4 08 63 3D 00", "6A 01 00 00 02 C5 1D", "without its CRC_A"),
            ("D4 08 63 3D 00", "6A 01 00 00 02 E4 D2", nil),
            ("D4 08 63 3D 00 63 02 80", "6A 01 00 00 02", nil),  // the chip appends the checksum
            ("D4 08 63 3D 00 63 0D 10", "6A 01 00 00 02 E4 D2", "type A without parity"),
            ("D4 08 63 3D 00 63 05 00", "6A 01 00 00 02 E4 D2", "type A, and the carrier is only weakened"),
            ("D4 08 63 3D 00 63 02 10", "6A 01 00 00 02 E4 D2", "CIU_TxMode 16"),
            (
                "D4 08 63 3D 00 63 02 03 63 03 03", "6A 01 00 00 02 C5 1D",
                "type B, and the carrier is switched off and on"
            ),
        ] as [(String, String, String?)])
    func registers(_ preparation: String, _ frame: String, _ obstacle: String?) {
        expectEqual(direct("D4 4A 01 00"), "D5 4B 00 90 00")
        if !preparation.isEmpty { _ = direct(preparation) }
        expectEqual(direct("D4 42 \(frame)"), "D5 43 01 90 00")
        expectEqual(
            events.last,
            obstacle.map { .noFrame(bytes(frame), reason: $0) } ?? .frame(Self.passOnly, answeredBy: []))
    }

    @Test("After a request for cards of type B, frames have the framing and the checksum of type B")
    func typeB() {
        let frame = RadioFrame(.typeB, bytes("6A 01 00 00 02"))
        expectEqual(direct("D4 4A 01 03 00"), "D5 4B 00 90 00")
        expectEqual(direct("D4 06 63 02 63 03 63 3D"), "D5 07 83 83 00 90 00")
        _ = direct("D4 08 63 02 03 63 03 03")
        _ = direct("D4 42 6A 01 00 00 02 C5 1D")
        expectEqual(events.last, .frame(frame, answeredBy: []))
        _ = direct("D4 42 6A 01 00 00 02 E4 D2")
        expectEqual(events.last, .noFrame(bytes("6A 01 00 00 02 E4 D2"), reason: "without its CRC_B"))
        _ = direct("D4 08 63 02 83")
        _ = direct("D4 42 6A 01 00 00 02")
        expectEqual(events.last, .frame(frame, answeredBy: []))
        expectEqual(
            events.first, .frame(RadioFrame(.typeB, [0x05, 0x00, 0x00]), answeredBy: []), "no card of type B is there"
        )
    }

    @Test("A frame that is cut or damaged does not wake a phone, and none does without a field")
    func unheard() {
        for frame in ["6A 01 00 00 02 E4 D2", "6A 01 00 00 02 E4 D3"] {
            for _ in 0..<8 {
                expectEqual(direct("D4 4A 01 00"), "D5 4B 00 90 00")
                if frame.hasSuffix("D3") { _ = direct("D4 08 63 3D 00") }
                _ = direct("D4 42 \(frame)")
            }
        }
        _ = direct("D4 32 01 00")
        bus.reader.radioRecords = []
        expectEqual(direct("D4 42 6A 01 00 00 02 E4 D2"), "D5 43 01 90 00")
        #expect(events.isEmpty)
    }

    @Test("A host's own request is answered, by one card")
    func request() throws {
        bus.reader.remove(phone)
        let visa = try #require(VirtualCards.named("visa"))
        bus.reader.insert(visa)
        expectEqual(direct("D4 42 26"), "D5 43 01 90 00", "eight bits are no REQA")
        _ = direct("D4 08 63 3D 07")
        expectEqual(direct("D4 42 26"), "D5 43 00 44 00 90 00")
        expectEqual(events.last, .frame(Self.reqA, answeredBy: [visa.radio.identifier]))
    }

    @Test("A card answers the first request, whatever was polled for")
    func card() throws {
        bus.reader.remove(phone)
        bus.reader.insert(try #require(VirtualCards.named("visa")))
        #expect(direct("D4 4A 01 00").hasPrefix("D5 4B 01 01"))
    }

    @Test("A reader that looks for cards itself finds a phone that needs no polling frame")
    func ownPolling() throws {
        for (screen, atr) in [("closed", "3B 00"), ("both", "3B 85 80 01 05 78 80 70 02 8B")] {
            let bus = ACR122UBus(card: try walletPhone("phone-apple", "screen \(screen)"))
            expectEqual(bus.powerOn(), atr)
            // NotifySlotChange, from a reader that was observed after the card came.
            expectEqual(bus.reader.cards.count, 1)
        }
        expectEqual(ACR122UBus(card: try walletPhone("phone-google")).powerOn(), "3B 85 80 01 05 78 80 70 02 8B")
    }

    @Test(
        "An unanswered frame takes the time that the host has set", arguments: [("04", 800), ("0A", 51_200), ("00", 0)])
    func patience(_ setting: String, _ microseconds: Int) {
        _ = direct("D4 32 02 00 0B \(setting)")
        _ = bus.events()
        let frame = bytes("FF 00 00 00 09 D4 42 6A 01 00 00 02 E4 D2")
        bus.reader.transferOut(endpoint: 0x02, [0x6F, UInt8(frame.count), 0, 0, 0, 0, 0, 0, 0, 0] + frame)
        let delays = bus.events().map { if case .ready(_, _, let delay) = $0 { delay } else { Duration.zero } }
        expectEqual(delays, [.microseconds(microseconds)])
    }
}
