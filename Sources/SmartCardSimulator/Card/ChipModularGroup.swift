import CCryptoLegacy
import SmartCard

/// A subgroup of prime order of the numbers modulo a prime (RFC 5114, 2.1 to 2.3): the standardized domain parameters 0 to 2
/// of ICAO 9303-11, 9.5.1.  Elements are encoded with as many bytes as the prime has.
struct ChipModularGroup: ChipGroup {
    let prime: [UInt8]
    private let order: [UInt8]
    let generator: [UInt8]

    /// libcrypto's names of the groups, by their numbers.
    private static let names = ["dh_1024_160", "dh_2048_224", "dh_2048_256"]

    /// - Returns: nil if no group has this number.
    init?(_ number: Int) {
        guard Self.names.indices.contains(number), let context = EVP_PKEY_CTX_new_from_name(nil, "DHX", nil) else {
            return nil
        }
        defer { EVP_PKEY_CTX_free(context) }
        var parameters: OpaquePointer?
        guard EVP_PKEY_paramgen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, Self.names[number]) == 1,
            EVP_PKEY_paramgen(context, &parameters) == 1
        else { return nil }
        defer { EVP_PKEY_free(parameters) }
        func parameter(_ name: String) -> [UInt8]? {
            var number: OpaquePointer?
            guard EVP_PKEY_get_bn_param(parameters, name, &number) == 1 else { return nil }
            defer { BN_free(number) }
            var bytes = [UInt8](repeating: 0, count: Int(BN_num_bits(number) + 7) / 8)
            return BN_bn2bin(number, &bytes) == Int32(bytes.count) ? bytes : nil
        }
        guard let prime = parameter("p"), let order = parameter("q"), let generator = parameter("g") else { return nil }
        (self.prime, self.order, self.generator) = (prime, order, generator)
    }

    private init(_ other: ChipModularGroup, generator: Residue) {
        (prime, order, self.generator) = (other.prime, other.order, generator.bytes)
    }

    var publicKeyTag: TLVTag { 0x84 }

    /// The public key does not begin with a zero: some leave the zeros out, and others do not.
    func makeKeyPair() -> (privateKey: [UInt8], publicKey: [UInt8])? {
        for _ in 0..<64 {
            let privateKey = order.map { _ in UInt8.random(in: 0...255) }
            let publicKey = residue(generator).power(privateKey).bytes
            if publicKey.first != 0 { return (privateKey, publicKey) }
        }
        return nil
    }

    func agree(_ publicKey: [UInt8], _ privateKey: [UInt8]) -> [UInt8]? {
        guard (1...prime.count).contains(publicKey.count) else { return nil }
        let key = residue(publicKey)
        guard key.bytes.suffix(publicKey.count).elementsEqual(publicKey), key.power(order) == key.number(1) else {
            return nil
        }
        let element = key.power(privateKey)
        return element == key.number(1) ? nil : element.bytes
    }

    func secret(of element: [UInt8]) -> [UInt8] { element }

    /// The generator g^s·h.
    func mapped(_ nonce: [UInt8], _ shared: [UInt8]) -> ChipModularGroup? {
        withGenerator(residue(generator).power(nonce) * residue(shared))
    }

    /// The generator R^((p-1)/q).
    func mapped(_ pseudorandom: [UInt8]) -> ChipModularGroup? {
        // The exponent is -1/q modulo p, and below p.
        withGenerator(residue(pseudorandom).power((-residue(order).inverse).bytes))
    }

    private func withGenerator(_ generator: Residue) -> ChipModularGroup? {
        [0, 1].contains { generator == generator.number($0) } ? nil : ChipModularGroup(self, generator: generator)
    }

    private func residue(_ number: [UInt8]) -> Residue { Residue(number, modulo: prime) }
}
