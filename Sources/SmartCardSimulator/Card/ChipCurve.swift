import CCryptoLegacy

/// An elliptic curve of ICAO 9303-11, 9.5.1, table 6, with a generator.  Points are encoded uncompressed, `04 x y`.
final class ChipCurve: @unchecked Sendable {
    // Unchecked: nothing changes the group after `init`.
    private let group: OpaquePointer
    private let generator: [UInt8]

    /// libcrypto's numbers of the curves, by the numbers of table 6.
    private static let numbers: [Int: Int32] = [
        8: NID_X9_62_prime192v1, 9: NID_brainpoolP192r1, 10: NID_secp224r1, 11: NID_brainpoolP224r1,
        12: NID_X9_62_prime256v1, 13: NID_brainpoolP256r1, 14: NID_brainpoolP320r1, 15: NID_secp384r1,
        16: NID_brainpoolP384r1, 17: NID_brainpoolP512r1, 18: NID_secp521r1,
    ]

    /// - Returns: nil for a number that is that of no curve.
    init?(_ number: Int) {
        guard let nid = Self.numbers[number], let group = EC_GROUP_new_by_curve_name(nid) else { return nil }
        self.group = group
        guard let generator = EC_GROUP_get0_generator(group).flatMap({ Self.encode($0, group) }) else { return nil }
        self.generator = generator
    }

    private init(_ other: ChipCurve, generator: [UInt8]) {
        guard let group = EC_GROUP_dup(other.group) else { preconditionFailure("no memory") }
        (self.group, self.generator) = (group, generator)
    }

    deinit { EC_GROUP_free(group) }

    /// Draws a private key and its public key.
    func makeKeyPair() -> (privateKey: [UInt8], publicKey: [UInt8])? {
        // Some bits more than the order has; libcrypto takes the number modulo the order.
        let privateKey = (0..<72).map { _ in UInt8.random(in: 0...255) }
        return multiply(generator, by: privateKey).map { (privateKey, $0) }
    }

    /// Returns the generator times a private key.
    func publicKey(of privateKey: [UInt8]) -> [UInt8]? { multiply(generator, by: privateKey) }

    /// The x-coordinate of an encoded point, with its leading zeros (ICAO 9303-11, 9.7.3).
    static func abscissa(of point: [UInt8]) -> [UInt8] { Array(point.dropFirst().prefix((point.count - 1) / 2)) }

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
    func multiply(_ point: [UInt8], by number: [UInt8]) -> [UInt8]? {
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

    /// Generic mapping: the same curve with the generator s·G + H (ICAO 9303-11, 4.4.3.3.1).
    func mapped(_ nonce: [UInt8], _ shared: [UInt8]) -> ChipCurve? {
        guard let multiple = multiply(generator, by: nonce) else { return nil }
        let sum = calculate { result, context in
            guard let a = decode(multiple, context), let b = decode(shared, context) else { return false }
            defer { for point in [a, b] { EC_POINT_free(point) } }
            return EC_POINT_add(group, result, a, b, context) == 1
        }
        return sum.map { ChipCurve(self, generator: $0) }
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

    private static func encode(_ point: OpaquePointer, _ group: OpaquePointer) -> [UInt8]? {
        // P-521 has 66 bytes a coordinate.
        var bytes = [UInt8](repeating: 0, count: 133)
        let count = EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &bytes, bytes.count, nil)
        return count > 0 ? Array(bytes.prefix(count)) : nil
    }
}
