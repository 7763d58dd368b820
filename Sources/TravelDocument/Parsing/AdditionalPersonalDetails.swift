public import SmartCard

/// DG11: additional details of the holder (ICAO 9303-10, 4.7.11).
///
/// An element that is not there, or that is empty, is nil or an empty list.  Fillers in free text stand for blanks.
public struct AdditionalPersonalDetails: Hashable, Sendable {
    /// Object 5C: the tags that the file lists, which need not be those that it has.
    public private(set) var tagList: [TLVTag] = []
    /// Object 5F0E: the name in full, in national characters.
    public private(set) var fullName: DocumentName?
    /// Objects 5F0F, in template A0; some issuers have them without one.
    public private(set) var otherNames: [DocumentName] = []
    /// Object 5F10.
    public private(set) var personalNumber: String?
    /// Object 5F2B.
    public private(set) var fullDateOfBirth: DocumentDate?
    /// Object 5F11: its fields.
    public private(set) var placeOfBirth: [String] = []
    /// Object 5F42: its fields.
    public private(set) var permanentAddress: [String] = []
    /// Object 5F12.
    public private(set) var telephone: String?
    /// Object 5F13.
    public private(set) var profession: String?
    /// Object 5F14.
    public private(set) var title: String?
    /// Object 5F15.
    public private(set) var personalSummary: String?
    /// Object 5F16: an image of the document that proves citizenship.
    public private(set) var proofOfCitizenship: EncodedImage?
    /// Object 5F17: the numbers of other valid travel documents.
    public private(set) var otherTravelDocumentNumbers: [String] = []
    /// Object 5F18.
    public private(set) var custodyInformation: String?
    /// Objects that the standard does not have.
    public private(set) var otherObjects: [OtherObject] = []

    /// Parses `6B { 5C tags, elements }`; the elements may be in any order, each once.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .dataGroup(11))
        tagList = try content.takeTagList()
        var seen: Set<TLVTag> = []
        while let object = content.take() {
            if !seen.insert(object.tag).inserted, object.tag != 0x5F0F {
                throw content.error(.singleObject(object.tag), at: object.offset)
            }
            try set(object, in: content)
        }
    }

    private mutating func set(_ object: TLV, in content: Template) throws(TravelDocumentFormatError) {
        switch object.tag {
        case 0x5F0E: fullName = content.name(object)
        case 0xA0: otherNames += try content.names(object, 0x5F0F)
        case 0x5F0F: otherNames += [content.name(object)].compactMap(\.self)
        case 0x5F10: personalNumber = content.text(object)
        case 0x5F2B: fullDateOfBirth = try content.date(object)
        case 0x5F11: placeOfBirth = content.fields(object)
        case 0x5F42: permanentAddress = content.fields(object)
        case 0x5F12: telephone = content.text(object)
        case 0x5F13: profession = content.text(object)
        case 0x5F14: title = content.text(object)
        case 0x5F15: personalSummary = content.text(object)
        case 0x5F16: proofOfCitizenship = content.image(object)
        case 0x5F17: otherTravelDocumentNumbers = content.fields(object)
        case 0x5F18: custodyInformation = content.text(object)
        default: otherObjects.append(OtherObject(object))
        }
    }
}

extension AdditionalPersonalDetails: PersonalData {
    /// The number of elements in the list.
    public var description: String { "additional personal details: \(tagList.count) elements" }
}
