import CCryptoLegacy
import SmartCard

/// A subgroup of prime order of the numbers modulo a prime, with a generator.
///
/// Elements are encoded with as many bytes as the prime.
struct ModularGroup: KeyAgreement {
    private let field: PrimeField
    private let order: BigNumber
    private let generator: BigNumber

    static let publicKeyTag: UInt32 = 0x84
    var primeBits: Int { field.prime.bitCount }
    private var length: Int { field.prime.byteCount }

    init?(_ group: RFC5114.Group) {
        guard let numbers = try? [group.prime, group.order, group.generator].map({ BigNumber(try [UInt8](hex: $0)) })
        else { return nil }
        self.init(PrimeField(prime: numbers[0]), order: numbers[1], generator: numbers[2])
    }

    private init(_ field: PrimeField, order: BigNumber, generator: BigNumber) {
        (self.field, self.order, self.generator) = (field, order, generator)
    }

    /// The public key has no leading zero: there are chips that drop it from a token, and others that do not.
    func makeKeyPair(_ random: inout some RandomSource) -> KeyPair? {
        for _ in 0..<100 {
            let privateKey = order.randomBelow(&random)
            guard let element = field.power(generator, privateKey), let publicKey = element.bytes(length) else {
                return nil
            }
            if publicKey[0] != 0 { return KeyPair(privateKey: privateKey, publicKey: publicKey) }
        }
        return nil
    }

    func agree(_ privateKey: BigNumber, _ publicKey: [UInt8]) -> [UInt8]? {
        let element = BigNumber(publicKey)
        // An element of another subgroup would disclose the private key modulo that one's order.
        guard publicKey.count <= length, element.isLess(than: field.prime),
            field.power(element, order)?.isOne == true, let shared = field.power(element, privateKey), !shared.isOne
        else { return nil }
        return shared.bytes(length)
    }

    func secret(of element: [UInt8]) -> [UInt8] { element }

    func mapped(_ nonce: [UInt8], with element: [UInt8]) -> ModularGroup? {
        guard let factor = field.power(generator, BigNumber(nonce)),
            let mapped = field.multiply(factor, BigNumber(element)), !mapped.isOne
        else { return nil }
        return ModularGroup(field, order: order, generator: mapped)
    }

    /// 4.4.3.3.4: the bytes, raised to the power of the cofactor.
    func mapped(_ pseudorandom: [UInt8]) -> ModularGroup? {
        guard let base = field.reduce(BigNumber(pseudorandom)),
            let less = BigNumber(
                field.prime, calculate: { result, prime, _ in BN_sub(result, prime[0], BN_value_one()) }),
            let cofactor = BigNumber(less, order, calculate: { BN_div($0, nil, $1[0], $1[1], $2) }),
            let mapped = field.power(base, cofactor), !mapped.isOne, !mapped.isZero
        else { return nil }
        return ModularGroup(field, order: order, generator: mapped)
    }
}
