import CCryptoLegacy
import Synchronization

/// An RSA key with its private half, in the clear: the key of a test card, its issuer or a test certification authority.
///
/// This file, `AES.swift`, `ChipCurve.swift`, `ChipModularGroup.swift`, `Residue.swift` and `TripleDES.swift` are those of this
/// target that call libcrypto.
struct RSAKey: Hashable, Sendable {
    /// The permitted lengths of a modulus, in bytes; 248 is EMV's limit (EMV Book 2, 11.1).
    static let lengths = 64...248

    /// Most significant byte first, the highest bit set.
    let modulus: [UInt8]
    /// The public exponent: 3 or 65537, in 1 or 3 bytes (EMV Book 2, 11.1).
    let exponent: [UInt8]
    let privateExponent: [UInt8]

    /// - Returns: nil unless modulus and exponent are valid in EMV and the public exponent recovers what the private
    ///   exponent
    ///   signs.
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
    /// - Returns: as many bytes as the modulus has; nil if `block` has more.
    func sign(_ block: [UInt8]) -> [UInt8]? { Self.power(block, privateExponent, modulus) }

    /// Returns a digital signature with message recovery (EMV Book 2, A2.1.2; ISO/IEC 9796-2, scheme 1).
    ///
    /// - Parameters:
    ///   - recoverable: the content of the signature, 22 bytes less than the modulus.
    ///   - rest: data that are hashed after it.
    func sign(recoverable: [UInt8], rest: [UInt8]) -> [UInt8]? {
        guard recoverable.count == modulus.count - 22, let hash = Self.sha1(recoverable + rest) else { return nil }
        return sign([0x6A] + recoverable + hash + [0xBC])
    }

    /// - Returns: 20 bytes; nil if libcrypto refuses.
    static func sha1(_ message: [UInt8]) -> [UInt8]? {
        var hash = [UInt8](repeating: 0, count: 20)
        return EVP_Digest(message, message.count, &hash, nil, EVP_sha1(), nil) == 1 ? hash : nil
    }

    /// - Returns: 32 bytes; nil if libcrypto refuses.
    static func sha256(_ message: [UInt8]) -> [UInt8]? {
        var hash = [UInt8](repeating: 0, count: 32)
        return EVP_Digest(message, message.count, &hash, nil, EVP_sha256(), nil) == 1 ? hash : nil
    }

    /// Returns a signature RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, 8.2.1 and 9.2).
    func signature(over message: [UInt8]) -> [UInt8]? {
        guard let hash = Self.sha256(message) else { return nil }
        // DigestInfo of SHA-256 (RFC 8017, 9.2, note 1).
        let info: [UInt8] =
            [
                0x30, 0x31, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
                0x04, 0x20,
            ] + hash
        let padding = [UInt8](repeating: 0xFF, count: max(8, modulus.count - info.count - 3))
        return sign([0x00, 0x01] + padding + [0x00] + info)
    }

    private static func power(_ base: [UInt8], _ exponent: [UInt8], _ modulus: [UInt8]) -> [UInt8]? {
        base.count <= modulus.count ? Residue(base, modulo: modulus).power(exponent).bytes : nil
    }
}

// MARK: Minting

extension RSAKey {
    private struct Name: Hashable {
        let role: String
        let length: Int
        let exponentLength: Int
    }

    private static let minted = Mutex<[Name: RSAKey]>([:])

    /// A TEST key that follows from its name and its length, and takes about a second to find.
    ///
    /// - Parameters:
    ///   - length: bytes of the modulus.
    ///   - exponentLength: 1 for the exponent 03, 3 for 010001.
    /// - Returns: nil for a length that EMV does not have.
    static func minted(_ role: String, length: Int, exponentLength: Int) -> RSAKey? {
        let exponents: [Int: [UInt8]] = [1: [0x03], 3: [0x01, 0x00, 0x01]]
        guard lengths.contains(length), let exponent = exponents[exponentLength] else { return nil }
        let name = Name(role: role, length: length, exponentLength: exponentLength)
        if let key = minted.withLock({ $0[name] }) { return key }
        guard let key = mint("swift-contactless TEST \(role) \(length) \(exponentLength)", length, exponent) else {
            return nil
        }
        minted.withLock { $0[name] = key }
        return key
    }

    private static func mint(_ seed: String, _ length: Int, _ exponent: [UInt8]) -> RSAKey? {
        guard let context = BN_CTX_new() else { return nil }
        defer { BN_CTX_free(context) }
        // p, q, n, φ(n) with its factor of q, e, d.
        let numbers = (0..<6).map { _ in BN_new() }
        defer { for number in numbers { BN_free(number) } }
        let (p, q, n, phi, e, d) = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
        guard !numbers.contains(nil), BN_bin2bn(exponent, Int32(exponent.count), e) != nil,
            findPrime(p, seed + " p", bits: length * 4, e, context),
            findPrime(q, seed + " q", bits: length * 4, e, context),
            BN_mul(n, p, q, context) == 1, BN_sub_word(p, 1) == 1, BN_sub_word(q, 1) == 1,
            BN_mul(phi, p, q, context) == 1, BN_mod_inverse(d, e, phi, context) != nil
        else { return nil }
        var (modulus, privateExponent) = ([UInt8](repeating: 0, count: length), [UInt8](repeating: 0, count: length))
        guard BN_bn2binpad(n, &modulus, Int32(length)) == Int32(length),
            BN_bn2binpad(d, &privateExponent, Int32(length)) == Int32(length)
        else { return nil }
        return RSAKey(modulus: modulus, exponent: exponent, privateExponent: privateExponent)
    }

    /// The first prime from the number on that follows from `seed`.  Its two highest bits are set, so that a product of two
    /// has all its bits; less one it has no factor with `exponent` in common, itself a prime.
    private static func findPrime(
        _ number: OpaquePointer?, _ seed: String, bits: Int, _ exponent: OpaquePointer?, _ context: OpaquePointer
    ) -> Bool {
        var bytes: [UInt8] = []
        var block: UInt8 = 0
        while bytes.count * 8 < bits {
            guard let hash = sha1(Array(seed.utf8) + [block]) else { return false }
            bytes += hash
            block += 1
        }
        let count = Int32(bits)
        guard BN_bin2bn(bytes, Int32(bytes.count), number) != nil,
            BN_rshift(number, number, Int32(bytes.count) * 8 - count) == 1,
            BN_set_bit(number, count - 1) == 1, BN_set_bit(number, count - 2) == 1, BN_set_bit(number, 0) == 1
        else { return false }
        let prime = BN_get_word(exponent)
        // Among 20,000 odd numbers of 1000 bits there are some 60 primes.
        for _ in 0..<20_000 {
            if BN_mod_word(number, prime) != 1 {
                switch BN_check_prime(number, context, nil) {
                case 1: return BN_num_bits(number) == count
                case 0: break
                default: return false
                }
            }
            guard BN_add_word(number, 2) == 1 else { return false }
        }
        return false
    }
}
