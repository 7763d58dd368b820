import Crypto
import Foundation
import SmartCard

/// The SHA-256 of a payment's canonical form, stored inline: thousands are in memory.
struct PaymentHash: Hashable, Sendable {
    private let words: SIMD4<UInt64>

    init(_ digest: SHA256.Digest) { words = Self.words(digest) }

    /// Creates a hash from its bytes.
    ///
    /// - Returns: nil unless there are 32.
    init?(_ bytes: Data) {
        guard bytes.count == SHA256.byteCount else { return nil }
        words = Self.words(bytes)
    }

    var bytes: Data {
        Data((0..<SHA256.byteCount).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> UInt64(56 - $0 % 8 * 8)) })
    }

    private static func words(_ bytes: some Sequence<UInt8>) -> SIMD4<UInt64> {
        bytes.enumerated().reduce(into: .zero) { $0[$1.offset / 8] = $0[$1.offset / 8] << 8 | UInt64($1.element) }
    }
}

extension PaymentHash: CustomStringConvertible {
    /// The hash in lower-case hexadecimal digits.
    var description: String { bytes.hex.lowercased() }
}
