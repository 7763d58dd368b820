public import SmartCard

/// A frame that a reader sends to every card in its field between its polls, and that no card answers.
///
/// Phones take from such frames what a terminal is for, before they answer its polls.  The chip and its driver do not
/// know what a frame means: its bytes are the caller's.
public struct BroadcastFrame: Hashable, Sendable {
    /// The frame's bytes without checksum, 1 to ``maximumLength``.
    public let bytes: [UInt8]

    /// The greatest number of bytes: what an ACR122U passes on to its chip in one command, less the checksum.
    public static let maximumLength = 250

    /// Creates a frame.
    ///
    /// - Parameter bytes: the frame without checksum.
    /// - Returns: nil for no bytes, and for more than ``maximumLength``.
    public init?(_ bytes: [UInt8]) {
        guard (1...Self.maximumLength).contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// Returns the bytes on the air: the frame and its checksum, CRC_A or CRC_B, least significant byte first (ISO/IEC
    /// 14443-3, 6.2.4, 7.2 and annex B).
    ///
    /// - Returns: nil for FeliCa, whose frames begin with their length.
    public func framed(for technology: PollingTechnology) -> [UInt8]? {
        switch technology {
        case .typeA: bytes + Self.checksum(bytes, from: 0x6363).littleEndianBytes
        case .typeB: bytes + (~Self.checksum(bytes, from: 0xFFFF)).littleEndianBytes
        case .felica212, .felica424: nil
        }
    }

    /// The polynomial x¹⁶ + x¹² + x⁵ + 1, least significant bit first.
    private static func checksum(_ bytes: [UInt8], from start: UInt16) -> UInt16 {
        bytes.reduce(start) { sum, byte in
            (0..<8).reduce(sum ^ UInt16(byte)) { sum, _ in sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0x8408 }
        }
    }
}

extension BroadcastFrame: CustomStringConvertible {
    /// `6A 01 00 00 02`
    public var description: String { bytes.hex(separator: " ") }
}

extension UInt16 {
    fileprivate var littleEndianBytes: [UInt8] { bigEndianBytes.reversed() }
}

/// A frame that was sent while the reader polled, and what followed.
public struct Broadcast: Sendable {
    /// The bytes on the air, checksum included.
    public let frame: [UInt8]
    /// The technology whose poll the frame follows, and by whose modulation it was sent.
    public let technology: PollingTechnology
    public let outcome: Outcome
    /// The time at which the chip reported the outcome.
    public let instant: ContinuousClock.Instant

    /// The event that followed a frame.
    public enum Outcome: Sendable {
        /// Nothing, as intended: the chip sent the frame, and its time limit passed.
        case silence
        /// An answer of these bytes, which no card should give.
        case answer([UInt8])
        /// The chip or the reader reported an error, with a ``PN532Error`` or ``ACR122UStatus`` as its cause.  After one
        /// of kind `unsupported`, no more frames are sent.
        case failure(CardError)
    }
}
