import SmartCard

/// A protocol of chip authentication that a chip offers (ICAO 9303-11, 9.2).
public struct ChipAuthenticationInfo: Hashable, Sendable {
    let cipher: SessionCipher
    let isElliptic: Bool
    /// The number of the key that it uses, where the chip has several.
    public let keyIdentifier: [UInt8]?

    /// id-CA, 0.4.0.127.0.7.2.2.3.
    static let prefix: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x03]
    /// The component for Diffie-Hellman, and for its elliptic form.
    fileprivate static let kinds: ClosedRange<UInt8> = 1...2

    /// - Returns: nil for an info of another protocol.
    init?(_ info: SecurityInfos.Info) {
        guard info.identifier.count == Self.prefix.count + 2, info.identifier.starts(with: Self.prefix),
            let kind = info.identifier.dropLast().last, Self.kinds.contains(kind),
            let cipher = info.identifier.last.flatMap(SessionCipher.init)
        else { return nil }
        (self.cipher, isElliptic) = (cipher, kind == 2)
        keyIdentifier = info.parameters.dropFirst().first.map { Array($0.value) }
    }

    /// True unless the key is known to be another protocol's.
    func mayUse(_ key: ChipAuthenticationPublicKey) -> Bool {
        guard let keyIdentifier, let other = key.keyIdentifier else { return true }
        return keyIdentifier == other
    }
}

extension ChipAuthenticationInfo: CustomStringConvertible {
    /// The protocol, and the number of its key: `CA-ECDH-AES-128, key 1`.
    public var description: String {
        "CA-\(isElliptic ? "ECDH" : "DH")-\(cipher.name)" + (keyIdentifier.map { ", key \($0.hex)" } ?? "")
    }
}

/// A public key of the chip for chip authentication and its mapping, in a standardized group (ICAO 9303-11, 9.2).
public struct ChipAuthenticationPublicKey: Sendable {
    let group: any KeyAgreement
    /// The number of the standardized domain parameters (ICAO 9303-11, 9.5.1).
    public let domainParameters: Int
    /// The point, uncompressed; or the number, without leading zeros.
    public let value: [UInt8]
    let isElliptic: Bool
    /// The number of the key, where the chip has several.
    public let keyIdentifier: [UInt8]?

    /// id-PK, 0.4.0.127.0.7.2.2.1.
    static let prefix: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x01]

    /// - Returns: nil for another info, and for a key in a group that is not a standardized one.
    init?(_ info: SecurityInfos.Info) {
        guard info.identifier.count == Self.prefix.count + 1, info.identifier.starts(with: Self.prefix),
            let kind = info.identifier.last, ChipAuthenticationInfo.kinds.contains(kind),
            let encoded = info.parameters.first?.encoded,
            let key = try? AgreementKey(ASN1(Array(encoded), ASN1.Tag.sequence, "SubjectPublicKeyInfo")),
            key.isElliptic == (kind == 2)
        else { return nil }
        (group, domainParameters, value, isElliptic) = (key.group, key.domainParameters, key.value, key.isElliptic)
        keyIdentifier = info.parameters.dropFirst().first.map { Array($0.value) }
    }
}

extension ChipAuthenticationPublicKey: Hashable {
    /// Two keys are equal if their groups, values and numbers are.
    public static func == (a: Self, b: Self) -> Bool {
        a.domainParameters == b.domainParameters && a.value == b.value && a.keyIdentifier == b.keyIdentifier
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(domainParameters)
        hasher.combine(value)
        hasher.combine(keyIdentifier)
    }
}

extension ChipAuthenticationPublicKey: PersonalData {
    /// The group, and the number of the key: `public key, parameters 12, key 1`.
    public var description: String {
        "public key, parameters \(domainParameters)" + (keyIdentifier.map { ", key \($0.hex)" } ?? "")
    }
}
