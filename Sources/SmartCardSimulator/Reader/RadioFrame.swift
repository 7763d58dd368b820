package import Waiting

/// A frame that a reader sends to every card in its field, while it has selected none: a request for cards, or a polling frame
/// of enhanced contactless polling, which tells phones what the reader wants.
public struct RadioFrame: Hashable, Sendable {
    /// The way in which a frame is modulated, which decides what cards hear it as one of theirs.
    public enum Modulation: Hashable, Sendable {
        /// ISO/IEC 14443 type A, at 106 kbit/s.
        case typeA
        /// ISO/IEC 14443 type B, at 106 kbit/s.
        case typeB
        /// JIS X 6319-4, at 212 or 424 kbit/s.
        case felica
    }

    /// The modulation of the frame.
    public let modulation: Modulation
    /// The frame without its checksum.  A request for cards of type A, `26` or `52`, has seven bits.
    public let bytes: [UInt8]

    /// Creates a frame, `bytes` without the checksum.
    public init(_ modulation: Modulation, _ bytes: [UInt8]) { (self.modulation, self.bytes) = (modulation, bytes) }

    /// True for a request for cards: REQA or WUPA (ISO/IEC 14443-3, 6.4.1), REQB or WUPB (7.7), Polling (JIS X 6319-4).
    public var isRequest: Bool {
        switch modulation {
        case .typeA: bytes == [0x26] || bytes == [0x52]
        case .typeB: bytes.count == 3 && bytes[0] == 0x05
        case .felica: bytes.count == 6 && bytes[0] == 0x06 && bytes[1] == 0x00
        }
    }
}

/// An event in the field that a card notices besides exchanges.
public enum RadioEvent: Hashable, Sendable {
    /// The field comes up, or the card comes into it.
    case fieldOn
    /// The field drops, or the card leaves it.
    case fieldOff
    /// A frame for all cards.
    case frame(RadioFrame)
    /// The reader ends its exchange with this card by S(DESELECT) (ISO/IEC 14443-4, 8).
    case deselect
}

/// A transmission of a software PN532 outside of exchanges, with its time.
package struct RadioRecord: Hashable, Sendable {
    /// The transmission.
    package enum Event: Hashable, Sendable {
        /// The field came up, or dropped.
        case field(isOn: Bool)
        /// A whole frame for all cards, and the identifiers of the cards that answered.
        case frame(RadioFrame, answeredBy: [[UInt8]])
        /// Bytes that no card takes for a frame: cut by CIU_BitFraming, with a wrong checksum or without one, without parity,
        /// or modulated in a way that is none.
        case noFrame([UInt8], reason: String)
        /// S(DESELECT), to the card with this identifier.
        case deselect([UInt8])
    }

    package let event: Event
    package let instant: Time.Instant
}

/// Checksums of the radio protocols.
enum RadioChecksum {
    /// CRC_A (ISO/IEC 14443-3, annex B): the least significant byte first.
    static func a(_ bytes: some Sequence<UInt8>) -> [UInt8] { crc(bytes, from: 0x6363) }

    /// CRC_B, the complement of a sum from FFFF.
    static func b(_ bytes: some Sequence<UInt8>) -> [UInt8] { crc(bytes, from: 0xFFFF).map(~) }

    private static func crc(_ bytes: some Sequence<UInt8>, from start: UInt16) -> [UInt8] {
        var crc = start
        for byte in bytes {
            let low = byte ^ UInt8(truncatingIfNeeded: crc)
            let b = UInt16(low ^ (low << 4))
            crc = (crc >> 8) ^ (b << 8) ^ (b << 3) ^ (b >> 4)
        }
        return [UInt8(truncatingIfNeeded: crc), UInt8(truncatingIfNeeded: crc >> 8)]
    }
}
