import SmartCard

/// The protocols that a chip offers: a SET OF SecurityInfo, as EF.CardAccess, EF.CardSecurity and DG14 contain it
/// (ICAO 9303-11, 9.2).
struct SecurityInfos: Sendable {
    /// A SecurityInfo: an object identifier and what belongs to it.
    struct Info: Sendable {
        /// The object identifier, in the bytes of its encoding.
        let identifier: [UInt8]
        /// The encoded values after it.
        let parameters: [TLV]

        /// - Returns: nil if this is no SEQUENCE that begins with an object identifier.
        init?(_ info: TLV) {
            guard info.tag == 0x30, let identifier = info.children.first, identifier.tag == 0x06 else { return nil }
            self.identifier = Array(identifier.value)
            parameters = Array(info.children.dropFirst())
        }
    }

    let infos: [Info]

    /// Parses a file.  An info that is not one is left out: chips have such, and others beside them.
    ///
    /// - Returns: nil if the file does not contain a set.
    init?(_ file: [UInt8]) {
        guard let set = (try? TLVList(file, padding: []))?.first, set.tag == 0x31 else { return nil }
        infos = set.children.compactMap(Info.init)
    }

    /// Parses DG14 (ICAO 9303-10, 4.7.14).
    ///
    /// - Throws: ``MalformedObject``.
    init(dataGroup14 file: [UInt8]) throws(MalformedObject) {
        let set = try ASN1(file, 0x6E, "DG14").inner(ASN1.Tag.set, "SecurityInfos")
        guard let infos = SecurityInfos(Array(set.encoded)) else { throw set.fault("SecurityInfos") }
        self = infos
    }

    /// The variants of PACE, in the order in which to try them: with chip authentication, then generic mapping, then
    /// integrated mapping, each first with elliptic curves; the chip's order between equals.
    var paceInfos: [PACEInfo] {
        infos.compactMap(PACEInfo.init).enumerated()
            .sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }.map(\.element)
    }
}

/// A variant of PACE that a chip offers (ICAO 9303-11, 9.2.1).
public struct PACEInfo: Hashable, Sendable, CustomStringConvertible {
    /// The last but one component of the object identifier.
    enum Variant: UInt8, Hashable, Sendable, CaseIterable {
        case dhGenericMapping = 1
        case ecdhGenericMapping, dhIntegratedMapping, ecdhIntegratedMapping
        /// Generic mapping, whose key proves that the chip is genuine.
        case ecdhChipAuthenticationMapping = 6

        var isElliptic: Bool { self != .dhGenericMapping && self != .dhIntegratedMapping }
        var isIntegrated: Bool { self == .dhIntegratedMapping || self == .ecdhIntegratedMapping }
    }

    let variant: Variant
    let cipher: SessionCipher
    /// The number of the standardized domain parameters; nil: the chip brings its own.
    let domainParameters: Int?

    /// id-PACE, 0.4.0.127.0.7.2.2.4.
    private static let prefix: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x04]

    init(_ variant: Variant, _ cipher: SessionCipher, domainParameters: Int?) {
        (self.variant, self.cipher, self.domainParameters) = (variant, cipher, domainParameters)
    }

    /// - Returns: nil for an info of another protocol, or of a version other than 2.
    init?(_ info: SecurityInfos.Info) {
        guard info.identifier.count == Self.prefix.count + 2, info.identifier.starts(with: Self.prefix),
            let variant = Variant(rawValue: info.identifier[Self.prefix.count]),
            let cipher = SessionCipher(rawValue: info.identifier[Self.prefix.count + 1]),
            variant != .ecdhChipAuthenticationMapping || cipher != .tripleDES,
            let version = info.parameters.first, version.tag == 0x02, version.value == [2]
        else { return nil }
        self.init(variant, cipher, domainParameters: nil)
        guard info.parameters.count > 1 else { return }
        let number = info.parameters[1]
        guard number.tag == 0x02, number.value.count == 1, let value = number.value.first else { return nil }
        self.init(variant, cipher, domainParameters: Int(value))
    }

    /// The object identifier, in the bytes of its encoding.
    var identifier: [UInt8] { Self.prefix + [variant.rawValue, cipher.rawValue] }

    /// The group to agree in.
    ///
    /// - Returns: nil for parameters of the chip's own, for reserved ones, for those of another kind, and for integrated
    ///   mapping on P-224, number 10, on which it is not defined (ICAO 9303-11, 9.5.1, table 6).
    var group: (any KeyAgreement)? {
        guard let domainParameters, variant.isElliptic == (domainParameters > 2),
            variant != .ecdhIntegratedMapping || domainParameters != 10
        else { return nil }
        return StandardizedDomainParameters.group(domainParameters)
    }

    /// The variant, the cipher and the number of the domain parameters: `ECDH-GM-AES-128, parameters 13`.
    public var description: String {
        let mapping =
            switch variant {
            case .dhGenericMapping: "DH-GM"
            case .ecdhGenericMapping: "ECDH-GM"
            case .dhIntegratedMapping: "DH-IM"
            case .ecdhIntegratedMapping: "ECDH-IM"
            case .ecdhChipAuthenticationMapping: "ECDH-CAM"
            }
        return "\(mapping)-\(cipher.name), " + (domainParameters.map { "parameters \($0)" } ?? "parameters of its own")
    }

    fileprivate var rank: Int {
        switch variant {
        case .ecdhChipAuthenticationMapping: 0
        case .ecdhGenericMapping: 1
        case .dhGenericMapping: 2
        case .ecdhIntegratedMapping: 3
        case .dhIntegratedMapping: 4
        }
    }
}
