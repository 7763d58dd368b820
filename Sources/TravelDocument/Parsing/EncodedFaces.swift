import SmartCard

/// DG2: images of the holder's face, for recognition (ICAO 9303-10, 4.7.2).
public struct EncodedFaces: Hashable, Sendable {
    /// Biometric information templates, 1 to 9; the most recent first.
    public let templates: [BiometricInformationTemplate]

    /// The faces of all templates.
    public var faces: [FaceImage] { templates.flatMap(\.faces) }

    /// Parses `75 { 7F61 { 02 number, 7F60 template, … } }`.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .dataGroup(2))
        var group = try content.takeTemplate(0x7F61)
        try content.finish()
        let count = try group.takeCount(1...9)
        var templates: [BiometricInformationTemplate] = []
        for _ in 0..<count { templates.append(try BiometricInformationTemplate(group.takeTemplate(0x7F60))) }
        try group.finish()
        self.templates = templates
    }
}

/// A biometric information template of a face: a header, and a biometric data block (ISO/IEC 7816-11; ICAO 9303-10,
/// 4.7.2.1, table 44).
public struct BiometricInformationTemplate: Hashable, Sendable {
    /// The standard of a biometric data block (ICAO 9303-10, 4.5.6, table 1).
    public enum Encoding: Hashable, Sendable {
        /// ISO/IEC 19794-5:2005, object 5F2E.
        case iso19794(FaceRecord)
        /// ISO/IEC 39794-5, object 7F2E.
        case iso39794(FaceImageDataBlock)
    }

    public let header: BiometricHeader
    public let encoding: Encoding

    public var faces: [FaceImage] {
        switch encoding {
        case .iso19794(let record): record.faces
        case .iso39794(let block): block.faces
        }
    }

    /// Parses `{ A1 header, 5F2E or 7F2E data }`.
    init(_ template: Template) throws(TravelDocumentFormatError) {
        var template = template
        header = try BiometricHeader(template.takeTemplate(0xA1))
        if let data = template.takeIfNext(0x5F2E) {
            encoding = .iso19794(try FaceRecord(data, in: template.file))
        } else {
            encoding = .iso39794(try FaceImageDataBlock(template.takeTemplate(0x7F2E)))
        }
        try template.finish()
    }
}

/// The header of a biometric information template (ICAO 9303-10, 4.7.2.1, table 44).
public struct BiometricHeader: Hashable, Sendable {
    /// Object 80: the version of the header, 0101.
    public private(set) var version: [UInt8]?
    /// Object 81: 02 for the features of a face.
    public private(set) var biometricType: [UInt8]?
    /// Object 82.
    public private(set) var biometricSubtype: [UInt8]?
    /// Object 83: date and time as seven bytes of packed digits, or as the issuer has it.
    public private(set) var creationTime: [UInt8]?
    /// Object 85: the first and the last day as four bytes of packed digits each, or as the issuer has them.
    public private(set) var validityPeriod: [UInt8]?
    /// Object 86: the product that made the data.
    public private(set) var creator: [UInt8]?
    /// Object 87: the format's owner, most significant byte first; 0101 is ISO/IEC JTC 1/SC 37.
    public private(set) var formatOwner: UInt16 = 0
    /// Object 88: the owner's number of the format, most significant byte first; 0008 is ISO/IEC 19794-5.
    public private(set) var formatType: UInt16 = 0
    /// Objects that the standard does not have.
    public private(set) var otherObjects: [OtherObject] = []

    init(_ template: Template) throws(TravelDocumentFormatError) {
        var template = template
        var seen: Set<TLVTag> = []
        while let object = template.take() {
            guard seen.insert(object.tag).inserted else {
                throw template.error(.singleObject(object.tag), at: object.offset)
            }
            switch object.tag {
            case 0x80: version = Array(object.value)
            case 0x81: biometricType = Array(object.value)
            case 0x82: biometricSubtype = Array(object.value)
            case 0x83: creationTime = Array(object.value)
            case 0x85: validityPeriod = Array(object.value)
            case 0x86: creator = Array(object.value)
            case 0x87: formatOwner = try template.twoBytes(object)
            case 0x88: formatType = try template.twoBytes(object)
            default: otherObjects.append(OtherObject(object))
            }
        }
        for tag: TLVTag in [0x87, 0x88] where !seen.contains(tag) {
            throw template.error(.object(tag), at: template.offset)
        }
    }
}

extension Template {
    fileprivate func twoBytes(_ object: TLV) throws(TravelDocumentFormatError) -> UInt16 {
        guard object.value.count == 2 else { throw error(.length(2...2), at: object.value.startIndex) }
        return object.value.reduce(0) { $0 << 8 | UInt16($1) }
    }
}

extension EncodedFaces: PersonalData {
    /// The number of templates.
    public var description: String { "encoded faces: \(templates.count) templates" }
}

extension BiometricInformationTemplate: PersonalData {
    /// The number of faces.
    public var description: String { "biometric information template: \(faces.count) faces" }
}
