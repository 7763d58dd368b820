/// The padding of messages to whole blocks: `80`, then as many `00` as it takes (ISO/IEC 7816-4, 10.4; ISO/IEC 9797-1, 6.3,
/// method 2).
///
/// CardEncryption has its own: it pads in storage that is wiped, and does not know cards.
package enum BlockPadding {
    /// Returns `message` with padding: one byte at least, and a block at most.
    package static func padded(_ message: [UInt8], blockLength: Int) -> [UInt8] {
        message + [0x80] + [UInt8](repeating: 0, count: blockLength - 1 - message.count % blockLength)
    }

    /// Returns `blocks` without their padding; nil if there is none, or more than a block of it.
    package static func unpadded(_ blocks: [UInt8], blockLength: Int) -> [UInt8]? {
        guard let mark = blocks.lastIndex(where: { $0 != 0 }), blocks[mark] == 0x80,
            blocks.count - mark <= blockLength
        else { return nil }
        return Array(blocks[..<mark])
    }
}
