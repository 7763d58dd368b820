import CCryptoLegacy

/// An elliptic curve over a prime field, with a generator.
///
/// Points are encoded uncompressed: 04, then x and y with as many bytes as the prime.
struct EllipticCurve: KeyAgreement {
    private let group: Group
    private let field: PrimeField
    private let a: BigNumber
    private let b: BigNumber
    private let order: BigNumber

    static let publicKeyTag: UInt32 = 0x86
    var primeBits: Int { field.prime.bitCount }
    private var length: Int { field.prime.byteCount }

    /// The curve with this number among the standardized domain parameters (ICAO 9303-11, 9.5.1, table 6).
    static func named(_ number: Int) -> EllipticCurve? {
        identifiers[number].flatMap { EC_GROUP_new_by_curve_name($0) }.flatMap { EllipticCurve(Group($0)) }
    }

    private static let identifiers: [Int: Int32] = [
        8: NID_X9_62_prime192v1, 9: NID_brainpoolP192r1, 10: NID_secp224r1, 11: NID_brainpoolP224r1,
        12: NID_X9_62_prime256v1, 13: NID_brainpoolP256r1, 14: NID_brainpoolP320r1, 15: NID_secp384r1,
        16: NID_brainpoolP384r1, 17: NID_brainpoolP512r1, 18: NID_secp521r1,
    ]

    private init?(_ group: Group) {
        let (prime, a, b, order) = (BigNumber([]), BigNumber([]), BigNumber([]), BigNumber([]))
        let isRead = withPointers(group, prime, a, b, order) {
            EC_GROUP_get_curve($0[0], $0[1], $0[2], $0[3], nil) == 1 && EC_GROUP_get_order($0[0], $0[4], nil) == 1
        }
        guard isRead else { return nil }
        (self.group, field, self.a, self.b, self.order) = (group, PrimeField(prime: prime), a, b, order)
    }

    /// Returns the same curve with another generator.
    private func with(generator: Point) -> EllipticCurve? {
        let copy = withPointers(group, generator, order) { objects -> OpaquePointer? in
            guard let copy = EC_GROUP_dup(objects[0]) else { return nil }
            if EC_GROUP_set_generator(copy, objects[1], objects[2], BN_value_one()) == 1 { return copy }
            EC_GROUP_free(copy)
            return nil
        }
        return copy.flatMap { EllipticCurve(Group($0)) }
    }

    // MARK: Agreement

    func makeKeyPair(_ random: inout some RandomSource) -> KeyPair? {
        let privateKey = order.randomBelow(&random)
        let point = Point(group, privateKey) { EC_POINT_mul($1[0], $0, $1[1], nil, nil, $2) }
        return point.flatMap(encode).map { KeyPair(privateKey: privateKey, publicKey: $0) }
    }

    func agree(_ privateKey: BigNumber, _ publicKey: [UInt8]) -> [UInt8]? {
        decode(publicKey).flatMap { multiply($0, privateKey) }.flatMap(encode)
    }

    func secret(of element: [UInt8]) -> [UInt8] { Array(element.dropFirst().prefix(length)) }

    /// Returns true if `product` is `factor` times `point`.
    func isProduct(_ product: [UInt8], of point: [UInt8], _ factor: [UInt8]) -> Bool {
        decode(point).flatMap { multiply($0, BigNumber(factor)) }.flatMap(encode) == .some(product)
    }

    // MARK: Mapping

    /// 4.4.3.3.1: s·G + H.
    func mapped(_ nonce: [UInt8], with element: [UInt8]) -> EllipticCurve? {
        guard let shared = decode(element),
            let point = Point(
                group, BigNumber(nonce), shared,
                calculate: { result, objects, context in
                    EC_POINT_mul(objects[0], result, objects[1], objects[2], BN_value_one(), context)
                }), encode(point) != nil
        else { return nil }
        return with(generator: point)
    }

    /// 4.4.3.3.3 and appendix B: the point that a field element determines, in constant time.
    ///
    /// - Returns: nil for a prime that is not 3 modulo 4, as that of P-224, for which there is no such formula.
    func mapped(_ pseudorandom: [UInt8]) -> EllipticCurve? {
        guard field.prime.hasBit(1), let u = field.reduce(BigNumber(pseudorandom)),
            // α = -u², and X₂ = -b/a · (1 + 1/(α + α²)), X₃ = α·X₂.
            let minusAlpha = field.multiply(u, u), let alpha = field.negative(minusAlpha),
            let alphaSquared = field.multiply(alpha, alpha), let sum = field.add(alpha, alphaSquared),
            let inverse = field.inverse(sum), let factor = field.add(BigNumber([1]), inverse),
            let minusB = field.negative(b), let inverseA = field.inverse(a),
            let quotient = field.multiply(minusB, inverseA),
            let x2 = field.multiply(quotient, factor), let x3 = field.multiply(alpha, x2),
            // h₂ = X₂³ + a·X₂ + b, and A = h₂ to the power of p - 1 - (p + 1)/4.
            let square = field.multiply(x2, x2), let cube = field.multiply(square, x2),
            let linear = field.multiply(a, x2), let sumOfTwo = field.add(cube, linear), let h2 = field.add(sumOfTwo, b),
            let exponent = BigNumber(
                field.prime,
                calculate: { result, prime, _ in
                    BN_copy(result, prime[0]) != nil && BN_add_word(result, 1) == 1 && BN_rshift(result, result, 2) == 1
                        && BN_sub(result, prime[0], result) == 1 && BN_sub_word(result, 1) == 1 ? 1 : 0
                }),
            let root = field.power(h2, exponent), let rootSquared = field.multiply(root, root),
            let test = field.multiply(rootSquared, h2),
            // Where A²·h₂ is 1, h₂ is a square, and the point is (X₂, A·h₂); else it is (X₃, A·u³·h₂).
            let y2 = field.multiply(root, h2), let uCubed = field.multiply(u, minusAlpha),
            let y3 = field.multiply(uCubed, y2)
        else { return nil }
        let (x, y) = test.isOne ? (x2, y2) : (x3, y3)
        return Point(group, x, y) { EC_POINT_set_affine_coordinates($1[0], $0, $1[1], $1[2], $2) }.flatMap(with)
    }

    // MARK: Points

    /// A group of libcrypto, which several threads may use at once.
    private final class Group: CryptoObject, @unchecked Sendable {
        let pointer: OpaquePointer

        /// - Parameter pointer: owned from now on.
        init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { EC_GROUP_free(pointer) }
    }

    private final class Point: CryptoObject {
        let pointer: OpaquePointer

        /// Creates the result of a calculation, which is lent the group and the operands.
        ///
        /// - Returns: nil if `calculate` does not return 1.
        init?(
            _ group: Group, _ operands: any CryptoObject...,
            calculate: (_ result: OpaquePointer, _ objects: [OpaquePointer], _ context: OpaquePointer) -> Int32
        ) {
            guard let pointer = withPointers(group, body: { EC_POINT_new($0[0]) }) else {
                preconditionFailure("no memory")
            }
            self.pointer = pointer
            let objects = [group] + operands
            let status = withExtendedLifetime(objects) {
                withContext { calculate(pointer, objects.map(\.pointer), $0) }
            }
            guard status == 1 else { return nil }
        }

        deinit { EC_POINT_clear_free(pointer) }
    }

    private func multiply(_ point: Point, _ factor: BigNumber) -> Point? {
        Point(group, point, factor) { EC_POINT_mul($1[0], $0, nil, $1[1], $1[2], $2) }
    }

    /// - Returns: nil for the point at infinity.
    private func encode(_ point: Point) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 1 + 2 * length)
        let count = withPointers(group, point) {
            EC_POINT_point2oct($0[0], $0[1], POINT_CONVERSION_UNCOMPRESSED, &bytes, bytes.count, nil)
        }
        return count == bytes.count ? bytes : nil
    }

    /// - Returns: nil for anything but an uncompressed point on the curve.
    private func decode(_ bytes: [UInt8]) -> Point? {
        guard bytes.count == 1 + 2 * length, bytes[0] == 0x04 else { return nil }
        return Point(group) { EC_POINT_oct2point($1[0], $0, bytes, bytes.count, $2) }
    }
}
