/// The frames on a PN532's serial line (NXP UM0701-02, 6.2.1), as the chip sees them.
enum PN532Frame {
    static let acknowledgment: [UInt8] = [0x00, 0x00, 0xFF, 0x00, 0xFF, 0x00]
    static let error: [UInt8] = [0x00, 0x00, 0xFF, 0x01, 0xFF, 0x7F, 0x81, 0x00]

    /// A response from `D5` on, in a frame that is extended if need be.
    static func response(_ data: [UInt8]) -> [UInt8] {
        let length = data.count
        var frame: [UInt8] = [0x00, 0x00, 0xFF]
        if length < 0x100 {
            frame += [UInt8(truncatingIfNeeded: length), UInt8(truncatingIfNeeded: 0x100 - length)]
        } else {
            let (high, low) = (UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length))
            frame += [0xFF, 0xFF, high, low, 0 &- high &- low]
        }
        return frame + data + [0 &- data.reduce(0, &+), 0x00]
    }
}

/// The chip's receiver, which assembles frames from the host byte by byte.
struct PN532FrameReceiver {
    enum Frame: Hashable {
        /// From `D4` on.
        case command([UInt8])
        case acknowledgment
        case negativeAcknowledgment
    }

    /// The bytes of a frame received so far, from its start code on, or the part of the start code received so far.
    private var bytes: [UInt8] = []

    /// - Returns: the frame that this byte completes.  A frame with a wrong checksum is dropped: the chip is silent.
    mutating func take(_ byte: UInt8) -> Frame? {
        bytes.append(byte)
        switch bytes.count {
        case 1:
            if byte != 0x00 { bytes = [] }
            return nil
        case 2:
            if byte != 0xFF { bytes = byte == 0x00 ? [0x00] : [] }
            return nil
        case 3: return nil
        default: break
        }
        switch (bytes[2], bytes[3]) {
        case (0x00, 0xFF): return end(.acknowledgment)
        case (0xFF, 0x00): return end(.negativeAcknowledgment)
        case (0xFF, 0xFF):
            guard bytes.count >= 7 else { return nil }
            guard bytes[4] &+ bytes[5] &+ bytes[6] == 0 else { return end(nil) }
            return data(after: 7, length: Int(bytes[4]) << 8 | Int(bytes[5]))
        case (let length, let checksum):
            guard length &+ checksum == 0 else { return end(nil) }
            return data(after: 4, length: Int(length))
        }
    }

    private mutating func data(after header: Int, length: Int) -> Frame? {
        guard (1...265).contains(length) else { return end(nil) }
        guard bytes.count == header + length + 1 else { return nil }
        let isWhole = bytes[header] == 0xD4 && bytes[header...].reduce(0, &+) == 0
        return end(isWhole ? .command(Array(bytes[header..<header + length])) : nil)
    }

    private mutating func end(_ frame: Frame?) -> Frame? {
        bytes = []
        return frame
    }
}
