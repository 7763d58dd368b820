/// The chip's statement, made as it was opened, that it has the private key of EF.CardSecurity and so is not a copy
/// (ICAO 9303-11, 4.4.3.5.2).
///
/// It is worth as much as the public key that it is held against: check with
/// ``CardSecurity/verify(trust:revocationLists:at:issuingState:issued:expires:)`` that the issuing state signed the file.
public struct ChipAuthenticationMapping: Hashable, Sendable {
    /// The end of the comparison with EF.CardSecurity.
    public enum Verdict: Hashable, Sendable {
        /// The chip has the private key.
        case genuine
        /// The chip does not have it: it is a copy.
        case notGenuine
        /// The file has no key for the curve on which the chip was opened.
        case noKey
    }

    private let info: PACEInfo
    /// CA_IC, the ephemeral private key divided by the static one.
    private let quotient: [UInt8]
    /// PK_map,IC, the public key of the mapping.
    private let mappingKey: [UInt8]

    /// - Parameter encrypted: A_IC, data object 8A.
    /// - Returns: nil if it cannot be decrypted.
    init?(encrypted: [UInt8], _ info: PACEInfo, encryptionKey: [UInt8], mappingKey: [UInt8]) {
        let cipher = info.cipher
        let ones = [UInt8](repeating: 0xFF, count: cipher.blockLength)
        guard !encrypted.isEmpty, let iv = cipher.encrypt(block: ones, key: encryptionKey),
            let clear = cipher.cbc(encrypted, key: encryptionKey, iv: iv, encrypting: false),
            let quotient = cipher.unpadded(clear)
        else { return nil }
        (self.info, self.quotient, self.mappingKey) = (info, quotient, mappingKey)
    }

    /// Returns true if the chip has the private key to `publicKey`, an uncompressed point.
    func holds(for publicKey: [UInt8]) -> Bool {
        guard let curve = info.group as? EllipticCurve else { return false }
        return curve.isProduct(mappingKey, of: publicKey, quotient)
    }

    /// Holds the statement against the keys of EF.CardSecurity on the same curve.  A file has one for each
    /// (ICAO 9303-11, 9.2.4).
    public func verdict(of cardSecurity: CardSecurity) -> Verdict {
        let keys = cardSecurity.securityInfos.infos.compactMap(ChipAuthenticationPublicKey.init)
            .filter { $0.isElliptic && $0.domainParameters == info.domainParameters }
        guard !keys.isEmpty else { return .noKey }
        return keys.contains { holds(for: $0.value) } ? .genuine : .notGenuine
    }
}

extension ChipAccess {
    /// The mapping held against EF.CardSecurity; nil without either, or where the file is malformed.
    var mappingVerdict: ChipAuthenticationMapping.Verdict? {
        guard let mapping = chipAuthenticationMapping, let cardSecurity else { return nil }
        return (try? CardSecurity(cardSecurity)).map(mapping.verdict)
    }
}

extension ChipAuthenticationMapping: CustomStringConvertible, CustomReflectable {
    /// The variant of PACE alone.
    public var description: String { "chip authentication mapping of \(info)" }
    public var customMirror: Mirror { Mirror(self, children: ["info": info]) }
}
