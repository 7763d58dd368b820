/// A group in which reader and chip agree on a secret (ICAO 9303-11, 9.5 and 9.6).
protocol KeyAgreement: Sendable {
    /// Draws a key pair.  Its public key is encoded as the chip expects it in a data object.
    func makeKeyPair(_ random: inout some RandomSource) -> KeyPair?

    /// Returns the group's element that this private key and the other side's public key determine.
    ///
    /// - Returns: nil if the public key is not one: not of the group, or an element that would give the secret away.
    func agree(_ privateKey: BigNumber, _ publicKey: [UInt8]) -> [UInt8]?

    /// The secret in an element, with leading zeros: the x-coordinate, or the element itself.
    func secret(of element: [UInt8]) -> [UInt8]

    /// Maps the nonce generically (ICAO 9303-11, 4.4.3.3.1 and 4.4.3.3.2): the same group, with another generator.
    ///
    /// - Parameter element: a result of ``agree(_:_:)``.
    func mapped(_ nonce: [UInt8], with element: [UInt8]) -> Self?

    /// Maps pseudo-random bytes integratedly (4.4.3.3.3 and 4.4.3.3.4): the same group, with another generator.
    func mapped(_ pseudorandom: [UInt8]) -> Self?

    /// The number of bits of the prime.
    var primeBits: Int { get }

    /// The tag of a public key within the template 7F49 that authentication tokens are over (9.4).
    static var publicKeyTag: UInt32 { get }
}

/// A private key and its public key.
struct KeyPair: Sendable {
    let privateKey: BigNumber
    let publicKey: [UInt8]
}

/// The standardized domain parameters, by number (ICAO 9303-11, 9.5.1, table 6).
enum StandardizedDomainParameters {
    /// - Returns: nil for a number that is reserved.
    static func group(_ number: Int) -> (any KeyAgreement)? {
        switch number {
        case 0: ModularGroup(RFC5114.modp1024Order160)
        case 1: ModularGroup(RFC5114.modp2048Order224)
        case 2: ModularGroup(RFC5114.modp2048Order256)
        default: EllipticCurve.named(number)
        }
    }
}
