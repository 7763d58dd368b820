import CCryptoLegacy

/// An RSA key with its private half, in the clear: the key of a test card, its issuer or a test certification authority.
///
/// This file and `TripleDES.swift` are the two of this target that call libcrypto.
struct RSAKey: Hashable, Sendable {
    /// How many bytes a modulus has; 248 is EMV's bound (EMV Book 2, 11.1).
    static let lengths = 64...248

    /// Most significant byte first, the highest bit set.
    let modulus: [UInt8]
    /// The public exponent: 3 or 65537, in 1 or 3 bytes (EMV Book 2, 11.1).
    let exponent: [UInt8]
    let privateExponent: [UInt8]

    /// - Returns: nil unless modulus and exponent are as EMV has them and what the private exponent signs the public one
    ///   recovers.
    init?(modulus: [UInt8], exponent: [UInt8], privateExponent: [UInt8]) {
        guard Self.lengths.contains(modulus.count), let first = modulus.first, first & 0x80 != 0,
            [[0x03], [0x01, 0x00, 0x01]].contains(exponent), Self.lengths.upperBound >= privateExponent.count
        else { return nil }
        self.modulus = modulus
        self.exponent = exponent
        self.privateExponent = privateExponent
        let trial = [UInt8](repeating: 0x6A, count: modulus.count)
        guard let signed = sign(trial), Self.power(signed, exponent, modulus) == trial else { return nil }
    }

    /// Raw RSA with the private exponent (EMV Book 2, B2.1).
    ///
    /// - Returns: as many bytes as the modulus has; nil if `block` has more or libcrypto refuses.
    func sign(_ block: [UInt8]) -> [UInt8]? { Self.power(block, privateExponent, modulus) }

    /// A digital signature that gives message recovery (EMV Book 2, A2.1.2; ISO/IEC 9796-2, scheme 1).
    ///
    /// - Parameters:
    ///   - recoverable: what the signature carries, 22 bytes less than the modulus.
    ///   - rest: what is hashed after it.
    func sign(recoverable: [UInt8], rest: [UInt8]) -> [UInt8]? {
        guard recoverable.count == modulus.count - 22, let hash = Self.sha1(recoverable + rest) else { return nil }
        return sign([0x6A] + recoverable + hash + [0xBC])
    }

    /// - Returns: 20 bytes; nil if libcrypto refuses.
    static func sha1(_ message: [UInt8]) -> [UInt8]? {
        var hash = [UInt8](repeating: 0, count: 20)
        return EVP_Digest(message, message.count, &hash, nil, EVP_sha1(), nil) == 1 ? hash : nil
    }

    private static func power(_ base: [UInt8], _ exponent: [UInt8], _ modulus: [UInt8]) -> [UInt8]? {
        guard base.count <= modulus.count, let context = BN_CTX_new() else { return nil }
        defer { BN_CTX_free(context) }
        let operands: [[UInt8]] = [base, exponent, modulus, []]
        let numbers = operands.map { BN_bin2bn($0, Int32($0.count), nil) }
        defer { for number in numbers { BN_free(number) } }
        var out = [UInt8](repeating: 0, count: modulus.count)
        guard !numbers.contains(nil),
            BN_mod_exp(numbers[3], numbers[0], numbers[1], numbers[2], context) == 1,
            BN_bn2binpad(numbers[3], &out, Int32(out.count)) == Int32(out.count)
        else { return nil }
        return out
    }
}
