import CCryptoLegacy

/// The RSA operation with a public key, without padding (EMV Book 2, B2.1.3).
///
/// Of this target only this file and ``DataStorageDigest`` call libcrypto.
struct RSAPublicKey: Hashable, Sendable {
    /// The longest modulus: 1984 bits (EMV Book 2, B2.1).
    static let maximumLength = 248

    /// The modulus, most significant byte first.
    let modulus: [UInt8]
    /// The exponent, most significant byte first, as it was coded.
    let exponent: [UInt8]
    /// The exponent is 2 to the power of this, plus 1.
    private let squarings: Int

    /// Creates a key.
    ///
    /// - Returns: nil unless the exponent is 3 or 2^16 + 1, as in EMV (EMV Book 2, B2.1), and the modulus has 1 to 248
    ///   bytes.
    init?(modulus: [UInt8], exponent: [UInt8]) {
        guard (1...Self.maximumLength).contains(modulus.count), (1...3).contains(exponent.count) else { return nil }
        switch exponent.reduce(0, { $0 << 8 | UInt32($1) }) {
        case 3: squarings = 1
        case 0x1_0001: squarings = 16
        default: return nil
        }
        self.modulus = modulus
        self.exponent = exponent
    }

    /// Recovers the signed data, which has as many bytes as the modulus.
    ///
    /// - Returns: nil if `signature` does not have that length, or is not less than the modulus.
    func recover(_ signature: [UInt8]) -> [UInt8]? {
        guard signature.count == modulus.count, let context = BN_CTX_new() else { return nil }
        defer { BN_CTX_free(context) }
        BN_CTX_start(context)
        defer { BN_CTX_end(context) }
        let (n, s, power) = (BN_CTX_get(context), BN_CTX_get(context), BN_CTX_get(context))
        guard power != nil, BN_bin2bn(modulus, Int32(modulus.count), n) != nil,
            BN_bin2bn(signature, Int32(signature.count), s) != nil, BN_cmp(s, n) < 0, BN_copy(power, s) != nil
        else { return nil }
        for _ in 0..<squarings {
            guard BN_mod_sqr(power, power, n, context) == 1 else { return nil }
        }
        var result = [UInt8](repeating: 0, count: modulus.count)
        guard BN_mod_mul(power, power, s, n, context) == 1,
            BN_bn2binpad(power, &result, Int32(result.count)) == Int32(result.count)
        else { return nil }
        return result
    }
}

/// Returns the SHA-1 of a message, hash algorithm indicator 01 (EMV Book 2, B3.1): 20 bytes.
func sha1(_ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
    SHA1(message, message.count, &digest)
    return digest
}
