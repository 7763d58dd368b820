public import SmartCard

/// DG12: additional details of the document (ICAO 9303-10, 4.7.12).
///
/// An element that is not there, or that is empty, is nil or an empty list.  Fillers in free text stand for blanks.
public struct AdditionalDocumentDetails: Hashable, Sendable {
    /// Object 5C: the tags that the file lists, which need not be those that it has.
    public private(set) var tagList: [TLVTag] = []
    /// Object 5F19.
    public private(set) var issuingAuthority: String?
    /// Object 5F26.
    public private(set) var dateOfIssue: DocumentDate?
    /// Objects 5F1A, in template A0; some issuers have them without one.
    public private(set) var otherPersons: [DocumentName] = []
    /// Object 5F1B.
    public private(set) var endorsementsAndObservations: String?
    /// Object 5F1C.
    public private(set) var taxOrExitRequirements: String?
    /// Object 5F1D.
    public private(set) var imageOfFront: EncodedImage?
    /// Object 5F1E.
    public private(set) var imageOfRear: EncodedImage?
    /// Object 5F55.
    public private(set) var timeOfPersonalization: DocumentTime?
    /// Object 5F56.
    public private(set) var personalizationSystemSerialNumber: String?
    /// Objects that the standard does not have.
    public private(set) var otherObjects: [OtherObject] = []

    /// Parses `6C { 5C tags, elements }`; the elements may be in any order, each once.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .dataGroup(12))
        tagList = try content.takeTagList()
        var seen: Set<TLVTag> = []
        while let object = content.take() {
            if !seen.insert(object.tag).inserted, object.tag != 0x5F1A {
                throw content.error(.singleObject(object.tag), at: object.offset)
            }
            try set(object, in: content)
        }
    }

    private mutating func set(_ object: TLV, in content: Template) throws(TravelDocumentFormatError) {
        switch object.tag {
        case 0x5F19: issuingAuthority = content.text(object)
        case 0x5F26: dateOfIssue = try content.date(object)
        case 0xA0: otherPersons += try content.names(object, 0x5F1A)
        case 0x5F1A: otherPersons += [content.name(object)].compactMap(\.self)
        case 0x5F1B: endorsementsAndObservations = content.text(object)
        case 0x5F1C: taxOrExitRequirements = content.text(object)
        case 0x5F1D: imageOfFront = content.image(object)
        case 0x5F1E: imageOfRear = content.image(object)
        case 0x5F55: timeOfPersonalization = try content.time(object)
        case 0x5F56: personalizationSystemSerialNumber = content.text(object)
        default: otherObjects.append(OtherObject(object))
        }
    }
}

extension AdditionalDocumentDetails: PersonalData {
    /// The number of elements in the list.
    public var description: String { "additional document details: \(tagList.count) elements" }
}
