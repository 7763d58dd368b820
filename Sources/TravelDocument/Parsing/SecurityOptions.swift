import SmartCard

/// DG14: the protocols that the chip offers, with its keys (ICAO 9303-10, 4.7.14; ICAO 9303-11, 9.2).
///
/// The issuing state signs it, unlike EF.CardAccess, which has some of the same.
public struct SecurityOptions: Hashable, Sendable {
    /// The protocols, in the file's order.
    public let infos: [SecurityInfo]
    /// Elements of the set that are no SecurityInfo, encoded: some chips have such.
    public let otherElements: [[UInt8]]

    /// Parses `6E { SET OF SecurityInfo }`.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .dataGroup(14))
        let set = try content.take(0x31)
        try content.finish()
        infos = set.children.compactMap(SecurityInfo.init)
        otherElements = set.children.filter { SecurityInfo($0) == nil }.map { Array($0.encoded) }
    }
}

extension SecurityOptions: PersonalData {
    /// The number of protocols.
    public var description: String { "security options: \(infos.count) infos" }
}

/// A protocol of a chip, or a key for one: a SecurityInfo (ICAO 9303-11, 9.2).
public struct SecurityInfo: Hashable, Sendable {
    /// The protocols that this package reads, as their infos have them.
    public enum Details: Hashable, Sendable {
        /// PACEInfo.
        case pace(PACEInfo)
        /// ChipAuthenticationInfo.
        case chipAuthentication(ChipAuthenticationInfo)
        /// ChipAuthenticationPublicKeyInfo.
        case chipAuthenticationPublicKey(ChipAuthenticationPublicKey)
        /// ActiveAuthenticationInfo: the algorithm of the signatures, for a key on an elliptic curve.
        case activeAuthentication(signatureAlgorithm: OID)
        /// TerminalAuthenticationInfo, with the protocol's version.
        case terminalAuthentication(version: Int)
        /// Another protocol; or one of these with parameters that this package does not know, such as domain parameters of
        /// the chip's own.
        case other
    }

    /// The object identifier of the protocol.
    public let identifier: OID
    /// The values after the object identifier, encoded.
    public let parameters: [[UInt8]]
    /// The parameters, as far as this package knows the protocol.
    public let details: Details

    /// - Returns: nil if this is no SecurityInfo.
    init?(_ object: TLV) {
        guard let info = SecurityInfos.Info(object), let identifier = OID(content: info.identifier) else { return nil }
        self.identifier = identifier
        parameters = info.parameters.map { Array($0.encoded) }
        details = Details(identifier, info)
    }
}

extension SecurityInfo.Details {
    fileprivate init(_ identifier: OID, _ info: SecurityInfos.Info) {
        self =
            if let pace = PACEInfo(info) {
                .pace(pace)
            } else if let chipAuthentication = ChipAuthenticationInfo(info) {
                .chipAuthentication(chipAuthentication)
            } else if let key = ChipAuthenticationPublicKey(info) {
                .chipAuthenticationPublicKey(key)
            } else if let algorithm = ActiveAuthentication.signatureAlgorithm(info) {
                .activeAuthentication(signatureAlgorithm: algorithm)
            } else if identifier == Self.terminalAuthentication, let version = info.parameters.first,
                version.tag == 0x02, version.value.count == 1, let number = version.value.first
            {
                .terminalAuthentication(version: Int(number))
            } else {
                .other
            }
    }

    /// id-TA (BSI TR-03110-3, A.1.1.3).
    private static let terminalAuthentication = OID("0.4.0.127.0.7.2.2.2")
}

extension SecurityInfo: PersonalData {
    /// The object identifier.
    public var description: String { "security info \(identifier)" }
}
