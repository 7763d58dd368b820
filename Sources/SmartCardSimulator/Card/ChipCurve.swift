import CCryptoLegacy
import SmartCard

/// An elliptic curve of ICAO 9303-11, 9.5.1, table 6, with a generator.  Points are encoded uncompressed, `04 x y`.
final class ChipCurve: ChipGroup, @unchecked Sendable {
    // Unchecked: nothing changes the group after `init`.
    private let group: OpaquePointer
    let generator: [UInt8]
    let prime: [UInt8]
    /// The order of the curve, which is prime.
    private let order: [UInt8]
    /// The coefficients of y² = x³ + a·x + b.
    private let a: Residue
    private let b: Residue

    /// libcrypto's numbers of the curves, by the numbers of table 6.
    private static let numbers: [Int: Int32] = [
        8: NID_X9_62_prime192v1, 9: NID_brainpoolP192r1, 10: NID_secp224r1, 11: NID_brainpoolP224r1,
        12: NID_X9_62_prime256v1, 13: NID_brainpoolP256r1, 14: NID_brainpoolP320r1, 15: NID_secp384r1,
        16: NID_brainpoolP384r1, 17: NID_brainpoolP512r1, 18: NID_secp521r1,
    ]

    /// - Returns: nil if no curve has this number.
    init?(_ number: Int) {
        guard let nid = Self.numbers[number], let group = EC_GROUP_new_by_curve_name(nid) else { return nil }
        self.group = group
        let numbers = (0..<3).map { _ in BN_new() }
        defer { for number in numbers { BN_free(number) } }
        guard EC_GROUP_get_curve(group, numbers[0], numbers[1], numbers[2], nil) == 1,
            let prime = Self.bytes(numbers[0]), let a = Self.bytes(numbers[1]), let b = Self.bytes(numbers[2]),
            let order = Self.bytes(EC_GROUP_get0_order(group)),
            let generator = EC_GROUP_get0_generator(group).flatMap({ Self.encode($0, group) })
        else { return nil }
        (self.prime, self.order, self.generator) = (prime, order, generator)
        (self.a, self.b) = (Residue(a, modulo: prime), Residue(b, modulo: prime))
    }

    private init(_ other: ChipCurve, generator: [UInt8]) {
        guard let group = EC_GROUP_dup(other.group) else { preconditionFailure("no memory") }
        (self.group, self.generator) = (group, generator)
        (prime, order, a, b) = (other.prime, other.order, other.a, other.b)
    }

    deinit { EC_GROUP_free(group) }

    var publicKeyTag: TLVTag { 0x86 }

    func makeKeyPair() -> (privateKey: [UInt8], publicKey: [UInt8])? {
        // Some bits more than the order has; libcrypto takes the number modulo the order.
        let privateKey = (0..<72).map { _ in UInt8.random(in: 0...255) }
        return publicKey(of: privateKey).map { (privateKey, $0) }
    }

    /// The key pair of a private key, or for nil a new one.
    func keyPair(_ privateKey: [UInt8]?) -> (privateKey: [UInt8], publicKey: [UInt8])? {
        guard let privateKey else { return makeKeyPair() }
        return publicKey(of: privateKey).map { (privateKey, $0) }
    }

    /// The compressed form of a point: 02 or 03, and x (SEC 1, 2.3.3).
    func compressed(_ point: [UInt8]) -> [UInt8] { [0x02 | (point.last ?? 0) & 0x01] + secret(of: point) }

    /// The point that a compressed form stands for; nil if that is none.
    func expanded(_ point: [UInt8]) -> [UInt8]? {
        guard point.count == prime.count + 1, point[0] == 0x02 || point[0] == 0x03 else { return nil }
        return calculate { result, context in EC_POINT_oct2point(group, result, point, point.count, context) == 1 }
    }

    /// Verifies a signature (ECDSA with SHA-256, in DER) by a public key on P-256, which this curve has to be.
    func verifies(_ signature: [UInt8], over message: [UInt8], by publicKey: [UInt8]) -> Bool {
        // SubjectPublicKeyInfo (RFC 5480, 2): id-ecPublicKey, prime256v1.
        let information: [UInt8] =
            [
                0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86,
                0x48,
                0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
            ] + publicKey
        guard publicKey.count == 65, let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        let key = information.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_PUBKEY(nil, &start, buffer.count)
        }
        defer { EVP_PKEY_free(key) }
        return key != nil && EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    func publicKey(of privateKey: [UInt8]) -> [UInt8]? { multiply(generator, by: privateKey) }

    func agree(_ publicKey: [UInt8], _ privateKey: [UInt8]) -> [UInt8]? { multiply(publicKey, by: privateKey) }

    /// The x-coordinate, with its leading zeros (ICAO 9303-11, 9.7.3).
    func secret(of element: [UInt8]) -> [UInt8] { Array(element.dropFirst().prefix((element.count - 1) / 2)) }

    /// Returns one private key divided by another, modulo the order and with as many bytes.
    func quotient(_ dividend: [UInt8], _ divisor: [UInt8]) -> [UInt8] {
        (Residue(dividend, modulo: order) * Residue(divisor, modulo: order).inverse).bytes
    }

    /// ECParameters that spell out the curve instead of naming it (ICAO 9303-11, 9.5.2; RFC 3279, 2.3.5), in DER.
    var explicitParameters: [UInt8]? {
        guard let group = EC_GROUP_dup(group) else { return nil }
        defer { EC_GROUP_free(group) }
        EC_GROUP_set_asn1_flag(group, OPENSSL_EC_EXPLICIT_CURVE)
        var bytes = [UInt8](repeating: 0, count: Int(max(0, i2d_ECPKParameters(group, nil))))
        let count = bytes.withUnsafeMutableBufferPointer { buffer in
            var start = buffer.baseAddress
            return start == nil ? 0 : i2d_ECPKParameters(group, &start)
        }
        return count > 0 ? bytes : nil
    }

    /// Returns `number` times a point; nil if the point is not on the curve, or the result is at infinity.
    private func multiply(_ point: [UInt8], by number: [UInt8]) -> [UInt8]? {
        calculate { result, context in
            guard let base = decode(point, context), let factor = BN_bin2bn(number, Int32(number.count), nil) else {
                return false
            }
            defer {
                EC_POINT_free(base)
                BN_clear_free(factor)
            }
            return EC_POINT_mul(group, result, nil, base, factor, context) == 1
        }
    }

    /// The generator s·G + H.
    func mapped(_ nonce: [UInt8], _ shared: [UInt8]) -> ChipCurve? {
        guard let multiple = multiply(generator, by: nonce) else { return nil }
        let sum = calculate { result, context in
            guard let a = decode(multiple, context), let b = decode(shared, context) else { return false }
            defer { for point in [a, b] { EC_POINT_free(point) } }
            return EC_POINT_add(group, result, a, b, context) == 1
        }
        return sum.map { ChipCurve(self, generator: $0) }
    }

    /// The generator is the point that a number encodes (ICAO 9303-11, B.2), on a curve whose prime is 3 modulo 4: each but
    /// P-224.
    func mapped(_ pseudorandom: [UInt8]) -> ChipCurve? {
        let t = Residue(pseudorandom, modulo: prime)
        let (one, alpha) = (t.number(1), -(t * t))
        let x2 = -b * a.inverse * (one + (alpha + alpha * alpha).inverse)
        let h2 = x2 * x2 * x2 + a * x2 + b
        // The inverse of a square root, where there is one: the exponent (p+1)/4 is 1/4 modulo p.
        let root = h2.power(t.number(4).inverse.bytes).inverse
        let (x, y) = root * root * h2 == one ? (x2, root * h2) : (alpha * x2, root * t * t * t * h2)
        let generator: [UInt8] = [0x04] + x.bytes + y.bytes
        // On the curve, and so of its order: no curve has a cofactor.
        return calculate { result, context in
            EC_POINT_oct2point(group, result, generator, generator.count, context) == 1
        }.map { ChipCurve(self, generator: $0) }
    }

    private func calculate(_ body: (_ result: OpaquePointer, _ context: OpaquePointer) -> Bool) -> [UInt8]? {
        guard let context = BN_CTX_new() else { return nil }
        defer { BN_CTX_free(context) }
        guard let result = EC_POINT_new(group) else { return nil }
        defer { EC_POINT_free(result) }
        guard body(result, context), EC_POINT_is_at_infinity(group, result) == 0 else { return nil }
        return Self.encode(result, group)
    }

    private func decode(_ bytes: [UInt8], _ context: OpaquePointer) -> OpaquePointer? {
        guard bytes.first == 0x04, let point = EC_POINT_new(group) else { return nil }
        guard EC_POINT_oct2point(group, point, bytes, bytes.count, context) == 1 else {
            EC_POINT_free(point)
            return nil
        }
        return point
    }

    private static func bytes(_ number: OpaquePointer?) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: Int(BN_num_bits(number) + 7) / 8)
        return BN_bn2bin(number, &bytes) == Int32(bytes.count) ? bytes : nil
    }

    private static func encode(_ point: OpaquePointer, _ group: OpaquePointer) -> [UInt8]? {
        // P-521 has 66 bytes a coordinate.
        var bytes = [UInt8](repeating: 0, count: 133)
        let count = EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &bytes, bytes.count, nil)
        return count > 0 ? Array(bytes.prefix(count)) : nil
    }
}
