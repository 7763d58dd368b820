/// EF.SOD: the digests of the data groups, signed (ICAO 9303-10, 4.6.2).
///
/// Parsing it believes nothing; ``PassiveAuthentication`` says whether to.
public struct SecurityObject: Sendable {
    /// The type of the signed content: 2.23.136.1.1.1 in ICAO 9303.
    public var contentType: OID { signedData.contentType }
    /// The version of the LDS security object, 0 or 1.
    public let version: Int
    /// The digests of the data groups, by number.
    public let dataGroupDigests: [Int: [UInt8]]
    /// The version of the data structure, such as `0108`, which version 1 tells.
    public let ldsVersion: String?
    /// The version of Unicode, such as `040000`, which version 1 tells.
    public let unicodeVersion: String?
    /// The certificates in the file, of which one is the signer's.
    public var certificates: [Certificate] { signedData.certificates }

    let signedData: SignedData
    let digestAlgorithm: AlgorithmIdentifier

    /// The longest file.
    static let maximumLength = 1 << 20

    /// Parses the file, all of it.
    ///
    /// - Parameter file: 77 with a SignedData, whose lengths may be indefinite.
    /// - Throws: ``MalformedObject``.
    public init(_ file: [UInt8]) throws(MalformedObject) {
        let due = "EF.SOD"
        guard file.count <= Self.maximumLength else { throw MalformedObject(due: "at most a mebibyte", offset: 0) }
        let definite = try BasicEncoding.definite(file, due)
        signedData = try SignedData(ASN1(definite, 0x77, due).content)

        // ICAO 9303-10, 4.6.2.3.
        let object = try ASN1(signedData.content, ASN1.Tag.sequence, "LDSSecurityObject")
        var fields = object.fields
        version = try fields.take(ASN1.Tag.integer, "version").number("version")
        guard version <= 1 else { throw object.fault("version 0 or 1") }
        digestAlgorithm = try AlgorithmIdentifier(fields.take("hashAlgorithm"))
        dataGroupDigests = try Self.digests(fields.take(ASN1.Tag.sequence, "dataGroupHashValues"))
        let info = try fields.takeOptional(ASN1.Tag.sequence, "ldsVersionInfo")
        try fields.end("LDSSecurityObject")
        var versions = info?.fields
        ldsVersion = try Self.text(&versions, "ldsVersion")
        unicodeVersion = try Self.text(&versions, "unicodeVersion")
        try versions?.end("LDSVersionInfo")
    }

    private static func digests(_ list: ASN1) throws(MalformedObject) -> [Int: [UInt8]] {
        let due = "DataGroupHash"
        var digests: [Int: [UInt8]] = [:]
        for element in try list.elements(ASN1.Tag.sequence, due) {
            var fields = element.fields
            let number = try fields.take(ASN1.Tag.integer, due).number(due)
            let digest = try fields.take(ASN1.Tag.octetString, due).content
            try fields.end(due)
            guard (1...16).contains(number), digests.updateValue(Array(digest), forKey: number) == nil else {
                throw element.fault("the number of a data group, once")
            }
        }
        guard digests.count >= 2 else { throw list.fault("two data groups at least") }
        return digests
    }

    private static func text(_ fields: inout ASN1Fields?, _ due: String) throws(MalformedObject) -> String? {
        guard let value = try fields?.take(0x13, due) else { return nil }
        return String(decoding: value.content, as: UTF8.self)
    }

    /// Types of contents seen in documents, beside that of ICAO 9303: of China; of Belgium and France; of the
    /// Netherlands.
    private static let unusualContentTypes: Set<OID> = [
        .data, OID("1.3.27.1.1.1"), OID("1.2.528.1.1006.1.20.1"),
    ]

    /// Judges the type of the content.
    static func outcome(ofContentType type: OID) -> Finding.Outcome {
        if type == OID("2.23.136.1.1.1") { return .passed }
        return unusualContentTypes.contains(type)
            ? .flagged(.unusualContentType(type)) : .failed(.otherContentType(type))
    }
}
