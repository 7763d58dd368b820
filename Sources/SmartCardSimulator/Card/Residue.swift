import CCryptoLegacy

/// A natural number modulo another one, which is not zero.
struct Residue: Hashable, Sendable {
    let modulus: [UInt8]
    /// As many bytes as the modulus has, most significant byte first.
    let bytes: [UInt8]

    /// Reduces a number of any length, most significant byte first.
    init(_ number: [UInt8], modulo modulus: [UInt8]) {
        self.modulus = modulus
        bytes = Self.calculate([number], modulus) { BN_nnmod($0, $1[0], $2, $3) }
    }

    private init(
        _ operands: [[UInt8]], _ modulus: [UInt8],
        _ operation: (OpaquePointer?, [OpaquePointer?], OpaquePointer?, OpaquePointer?) -> Int32
    ) {
        self.modulus = modulus
        bytes = Self.calculate(operands, modulus, operation)
    }

    static func + (a: Residue, b: Residue) -> Residue {
        Residue([a.bytes, b.bytes], a.modulus) { BN_mod_add($0, $1[0], $1[1], $2, $3) }
    }

    static func * (a: Residue, b: Residue) -> Residue {
        Residue([a.bytes, b.bytes], a.modulus) { BN_mod_mul($0, $1[0], $1[1], $2, $3) }
    }

    static prefix func - (a: Residue) -> Residue {
        Residue([[], a.bytes], a.modulus) { BN_mod_sub($0, $1[0], $1[1], $2, $3) }
    }

    /// - Parameter exponent: most significant byte first.
    func power(_ exponent: [UInt8]) -> Residue {
        Residue([bytes, exponent], modulus) { BN_mod_exp($0, $1[0], $1[1], $2, $3) }
    }

    /// A small number with the same modulus.
    func number(_ number: UInt8) -> Residue { Residue([number], modulo: modulus) }

    /// By Fermat's little theorem: the modulus is prime.  Zero for zero.
    var inverse: Residue { power((-number(2)).bytes) }

    private static func calculate(
        _ operands: [[UInt8]], _ modulus: [UInt8],
        _ operation: (OpaquePointer?, [OpaquePointer?], OpaquePointer?, OpaquePointer?) -> Int32
    ) -> [UInt8] {
        let context = BN_CTX_new()
        let numbers = ([[], modulus] + operands).map { BN_bin2bn($0, Int32($0.count), nil) }
        defer {
            for number in numbers { BN_clear_free(number) }
            BN_CTX_free(context)
        }
        var bytes = [UInt8](repeating: 0, count: modulus.count)
        guard operation(numbers[0], Array(numbers.dropFirst(2)), numbers[1], context) == 1,
            BN_bn2binpad(numbers[0], &bytes, Int32(bytes.count)) == Int32(bytes.count)
        else { preconditionFailure("no memory") }
        return bytes
    }
}
