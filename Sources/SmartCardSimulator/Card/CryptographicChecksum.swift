/// The CVC3 of mag-stripe mode, by which the issuer tells a card from a copy of its tracks (EMV Contactless Book C-2,
/// COMPUTE CRYPTOGRAPHIC CHECKSUM; the computation is Mastercard's, as PyEMV's `cvv.generate_cvc3` has it).
struct CryptographicChecksum: Hashable, Sendable {
    /// The card's key for it, KDcvc3.
    let key: TripleDES

    /// Returns the CVC3: the last 2 bytes of IVCVC3, unpredictable number and counter, encrypted as one block.
    ///
    /// IVCVC3 is the last 2 bytes of a MAC over the personalized track.
    ///
    /// - Parameters:
    ///   - track: the value of tag 56 or 9F6B.
    ///   - unpredictableNumber: 9F6A, 4 bytes.
    ///   - atc: 2 bytes.
    /// - Returns: nil if a length is wrong, or libcrypto refuses.
    func callAsFunction(track: [UInt8], unpredictableNumber: [UInt8], atc: [UInt8]) -> [UInt8]? {
        guard let first = key.mac(track, padding: .marker)?.suffix(2) else { return nil }
        let block = first + unpredictableNumber + atc
        guard block.count == 8 else { return nil }
        return key.encrypt(Array(block)).map { Array($0.suffix(2)) }
    }
}
