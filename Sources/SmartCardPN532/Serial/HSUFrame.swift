/// The frames of the PN532's high speed UART (NXP UM0701-02, 6.2.1).
enum HSUFrame: Hashable {
    /// A response of the chip, beginning with `D5`.
    case response([UInt8])
    case acknowledgment
    case negativeAcknowledgment
    /// The chip did not understand a command (6.2.1.5).
    case error
    /// A frame with a wrong checksum.
    case damaged

    static let acknowledgmentBytes: [UInt8] = [0x00, 0x00, 0xFF, 0x00, 0xFF, 0x00]
    static let negativeAcknowledgmentBytes: [UInt8] = [0x00, 0x00, 0xFF, 0xFF, 0x00, 0x00]

    /// The bytes that wake a sleeping chip: more than five rising edges, and enough time (7.2.11).
    static let wakeUpBytes: [UInt8] = [0x55, 0x55] + [UInt8](repeating: 0x00, count: 14)

    /// The length of TFI and data in the longest frame (6.2.1.2).
    static let maximumLength = 265

    /// Returns the frame of a command, which begins with `D4` and has at most ``maximumLength`` bytes: a normal frame,
    /// or an extended one if the length does not fit into a byte.
    static func command(_ command: [UInt8]) -> [UInt8] {
        let length = command.count
        let header: [UInt8] =
            if length <= 0xFF {
                [UInt8(truncatingIfNeeded: length), UInt8(truncatingIfNeeded: -length)]
            } else {
                [0xFF, 0xFF] + [UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)].withChecksum
            }
        return [0x00, 0x00, 0xFF] + header + command.withChecksum + [0x00]
    }
}

extension [UInt8] {
    /// The bytes followed by the byte that makes their sum zero.
    fileprivate var withChecksum: [UInt8] { self + [0 &- reduce(0, &+)] }
}

/// Finds frames in received bytes, whatever lies between them.
struct HSUFrameReader {
    /// The received bytes that are not consumed yet; never more than a frame.
    private var bytes: [UInt8] = []

    /// True if a frame, or bytes that look like one, have begun.
    var isWithinFrame: Bool { bytes.count >= 2 }

    mutating func append(_ new: some Sequence<UInt8>) { bytes += new }

    /// Skips the frame that has begun; another may begin within it.
    mutating func skipFrame() { bytes.removeFirst(Swift.min(2, bytes.count)) }

    mutating func removeAll() { bytes = [] }

    /// - Returns: nil until more bytes have arrived.
    mutating func next() -> HSUFrame? {
        while let start = startCode() {
            // The start code is consumed whatever follows: a frame may begin within bytes that only look like one.
            bytes.removeFirst(start + 2)
            switch frame() {
            case .whole(let frame, let count):
                bytes.removeFirst(count)
                return frame
            case .damaged: return .damaged
            case .none: continue
            case .incomplete:
                bytes = [0x00, 0xFF] + bytes
                return nil
            }
        }
        bytes.removeFirst(Swift.max(bytes.count - 1, 0))
        return nil
    }

    private enum Sight {
        case whole(HSUFrame, count: Int)
        case damaged
        case none
        case incomplete
    }

    /// Returns the position of `00 FF`.
    private func startCode() -> Int? {
        bytes.indices.dropLast().first { bytes[$0] == 0x00 && bytes[$0 + 1] == 0xFF }
    }

    /// Parses the bytes after the start code.
    private func frame() -> Sight {
        guard bytes.count >= 2 else { return .incomplete }
        switch (bytes[0], bytes[1]) {
        case (0x00, 0xFF): return .whole(.acknowledgment, count: 2)
        case (0xFF, 0x00): return .whole(.negativeAcknowledgment, count: 2)
        case (0xFF, 0xFF):
            guard bytes.count >= 5 else { return .incomplete }
            guard bytes[2] &+ bytes[3] &+ bytes[4] == 0 else { return .none }
            return data(from: 5, length: Int(bytes[2]) << 8 | Int(bytes[3]))
        case (let length, let checksum):
            guard length &+ checksum == 0 else { return .none }
            return data(from: 2, length: Int(length))
        }
    }

    private func data(from start: Int, length: Int) -> Sight {
        guard (1...HSUFrame.maximumLength).contains(length) else { return .none }
        guard bytes.count > start + length else { return .incomplete }
        let data = bytes[start..<start + length]
        guard data.reduce(bytes[start + length], &+) == 0 else { return .damaged }
        let count = start + length + 1
        switch data.first {
        case 0xD5: return .whole(.response(Array(data)), count: count)
        case 0x7F where length == 1: return .whole(.error, count: count)
        default: return .none
        }
    }
}
