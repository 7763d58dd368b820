import CCryptoLegacy

/// An object of libcrypto, released with its owner.
protocol CryptoObject: AnyObject {
    /// Valid as long as the owner exists: use it in ``withPointers(_:_:)`` alone.
    var pointer: OpaquePointer { get }
}

/// Lends the objects of these owners, in order, and keeps the owners meanwhile.
func withPointers<Result>(_ owners: any CryptoObject..., body: ([OpaquePointer]) -> Result) -> Result {
    withExtendedLifetime(owners) { body(owners.map(\.pointer)) }
}

/// A context for the intermediate results of libcrypto, wiped at its end.
func withContext<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    guard let context = BN_CTX_secure_new() else { preconditionFailure("no memory") }
    defer { BN_CTX_free(context) }
    return body(context)
}

/// A natural number of any length, wiped when it is released.
final class BigNumber: CryptoObject, @unchecked Sendable {
    // Unchecked: nothing changes the number once it is initialized.
    let pointer: OpaquePointer

    /// Creates a number from its bytes, most significant first.
    init(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard let pointer = BN_bin2bn(bytes, Int32(bytes.count), nil) else { preconditionFailure("no memory") }
        self.pointer = pointer
    }

    /// Creates the result of a calculation.
    ///
    /// - Parameters:
    ///   - operands: lent to `calculate`, in order.
    ///   - calculate: sets the result; returns 1, as functions of libcrypto do.
    /// - Returns: nil if `calculate` returns something else.
    init?(
        _ operands: BigNumber...,
        calculate: (_ result: OpaquePointer, _ operands: [OpaquePointer], _ context: OpaquePointer) -> Int32
    ) {
        guard let pointer = BN_new() else { preconditionFailure("no memory") }
        self.pointer = pointer
        let status = withExtendedLifetime(operands) {
            withContext { calculate(pointer, operands.map(\.pointer), $0) }
        }
        guard status == 1 else { return nil }
    }

    deinit { BN_clear_free(pointer) }

    /// The number of bits, without leading zeros.
    var bitCount: Int { withPointers(self) { Int(BN_num_bits($0[0])) } }
    /// The number of bytes, without leading zeros.
    var byteCount: Int { (bitCount + 7) / 8 }
    var isZero: Bool { withPointers(self) { BN_is_zero($0[0]) == 1 } }
    var isOne: Bool { withPointers(self) { BN_is_one($0[0]) == 1 } }

    /// Returns true if the bit of this weight, a power of two, is set.
    func hasBit(_ exponent: Int32) -> Bool { withPointers(self) { BN_is_bit_set($0[0], exponent) == 1 } }

    func isLess(than other: BigNumber) -> Bool { withPointers(self, other) { BN_cmp($0[0], $0[1]) < 0 } }

    /// The bytes, most significant first, with zeros in front.
    ///
    /// - Returns: nil if the number needs more bytes.
    func bytes(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return withPointers(self) { BN_bn2binpad($0[0], &bytes, Int32(count)) } == Int32(count) ? bytes : nil
    }

    /// Returns a random number from 1 to this one less one: bits are drawn until they are such a number.
    func randomBelow(_ random: inout some RandomSource) -> BigNumber {
        let mask: UInt8 = bitCount.isMultiple(of: 8) ? 0xFF : 0xFF >> UInt8(8 - bitCount % 8)
        while true {
            var bytes = random.bytes(byteCount)
            bytes[0] &= mask
            let number = BigNumber(bytes)
            if !number.isZero, number.isLess(than: self) { return number }
        }
    }
}

/// Arithmetic modulo a prime.
struct PrimeField: Sendable {
    let prime: BigNumber

    func add(_ a: BigNumber, _ b: BigNumber) -> BigNumber? {
        BigNumber(a, b, prime) { BN_mod_add($0, $1[0], $1[1], $1[2], $2) }
    }

    func multiply(_ a: BigNumber, _ b: BigNumber) -> BigNumber? {
        BigNumber(a, b, prime) { BN_mod_mul($0, $1[0], $1[1], $1[2], $2) }
    }

    /// Takes the time that the lengths determine, and not the exponent's bits.
    func power(_ base: BigNumber, _ exponent: BigNumber) -> BigNumber? {
        BigNumber(base, exponent, prime) { BN_mod_exp_mont_consttime($0, $1[0], $1[1], $1[2], $2, nil) }
    }

    func inverse(_ a: BigNumber) -> BigNumber? {
        BigNumber(a, prime) { BN_mod_inverse($0, $1[0], $1[1], $2) != nil ? 1 : 0 }
    }

    func negative(_ a: BigNumber) -> BigNumber? {
        BigNumber(BigNumber([]), a, prime) { BN_mod_sub($0, $1[0], $1[1], $1[2], $2) }
    }

    func reduce(_ a: BigNumber) -> BigNumber? { BigNumber(a, prime) { BN_nnmod($0, $1[0], $1[1], $2) } }
}
