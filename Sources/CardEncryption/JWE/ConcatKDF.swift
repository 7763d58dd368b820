import Crypto

/// The Concat KDF of NIST SP 800-56A with SHA-256, as used by ECDH-ES (RFC 7518, section 4.6.2).
enum ConcatKDF {
    /// Derives a key.
    ///
    /// - Parameter algorithm: `enc` for the content key itself, `alg` for the key that wraps it.
    /// - Parameter bitCount: at most 256, so that one round of the hash suffices.
    static func key(
        _ secret: SharedSecret, algorithm: String, partyU: [UInt8], partyV: [UInt8], bitCount: Int
    ) -> SymmetricKey {
        var hash = SHA256()
        hash.update(data: bigEndian(1))
        secret.withUnsafeBytes { hash.update(bufferPointer: $0) }
        for part in [Array(algorithm.utf8), partyU, partyV] {
            hash.update(data: bigEndian(part.count))
            hash.update(data: part)
        }
        hash.update(data: bigEndian(bitCount))
        return hash.finalize().withUnsafeBytes { digest in
            SymmetricKey(data: UnsafeRawBufferPointer(rebasing: digest.prefix(bitCount / 8)))
        }
    }

    private static func bigEndian(_ number: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
