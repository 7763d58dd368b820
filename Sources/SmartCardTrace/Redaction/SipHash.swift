/// SipHash-2-4 (Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012).  Without the key, its output can be
/// neither computed nor checked.
struct SipHash: Sendable {
    private let k0: UInt64
    private let k1: UInt64

    /// - Parameter key: 16 bytes; missing ones are zero, more are not used.
    init(key: [UInt8]) {
        func word(_ start: Int) -> UInt64 {
            key.dropFirst(start).prefix(8).enumerated().reduce(0) { $0 | UInt64($1.element) << (8 * UInt64($1.offset)) }
        }
        (k0, k1) = (word(0), word(8))
    }

    func hash(_ message: [UInt8]) -> UInt64 {
        var v0 = k0 ^ 0x736f_6d65_7073_6575
        var v1 = k1 ^ 0x646f_7261_6e64_6f6d
        var v2 = k0 ^ 0x6c79_6765_6e65_7261
        var v3 = k1 ^ 0x7465_6462_7974_6573
        func rotated(_ x: UInt64, _ count: UInt64) -> UInt64 { x << count | x >> (64 - count) }
        func round() {
            v0 &+= v1
            v1 = rotated(v1, 13) ^ v0
            v0 = rotated(v0, 32)
            v2 &+= v3
            v3 = rotated(v3, 16) ^ v2
            v0 &+= v3
            v3 = rotated(v3, 21) ^ v0
            v2 &+= v1
            v1 = rotated(v1, 17) ^ v2
            v2 = rotated(v2, 32)
        }
        for start in stride(from: 0, through: message.count, by: 8) {
            let block = message[start...].prefix(8)
            var word = block.enumerated().reduce(UInt64(0)) { $0 | UInt64($1.element) << (8 * UInt64($1.offset)) }
            if block.count < 8 { word |= UInt64(truncatingIfNeeded: message.count) << 56 }
            v3 ^= word
            round()
            round()
            v0 ^= word
            if block.count < 8 { break }
        }
        v2 ^= 0xFF
        for _ in 0..<4 { round() }
        return v0 ^ v1 ^ v2 ^ v3
    }
}
