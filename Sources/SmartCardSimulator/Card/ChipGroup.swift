import SmartCard

/// A group of the standardized domain parameters, with a generator (ICAO 9303-11, 9.5.1).
protocol ChipGroup: Sendable {
    /// The tag of a public key in the data that a token is over: 84 for a number, 86 for a point (9.4).
    var publicKeyTag: TLVTag { get }
    /// The prime of the field, most significant byte first.
    var prime: [UInt8] { get }

    /// Draws a private key and its public key.
    func makeKeyPair() -> (privateKey: [UInt8], publicKey: [UInt8])?
    /// Returns a private key times a public key; nil if that is not of the group, or the result is the neutral element.
    func agree(_ publicKey: [UInt8], _ privateKey: [UInt8]) -> [UInt8]?
    /// Returns the bytes of an agreed element that keys are derived from, with their leading zeros (9.7.3).
    func secret(of element: [UInt8]) -> [UInt8]
    /// Generic mapping: the same group with another generator (4.4.3.3.1).
    ///
    /// - Parameter shared: the agreed element of the mapping's keys.
    func mapped(_ nonce: [UInt8], _ shared: [UInt8]) -> Self?
    /// Integrated mapping: the same group with another generator (4.4.3.3.2).
    func mapped(_ pseudorandom: [UInt8]) -> Self?
}
