import SmartCard

/// A face image data block of ISO/IEC 39794-5, in the application profile of ICAO for eMRTDs.
///
/// Elements that later editions add are skipped, as the standard's extension markers allow.
public struct FaceImageDataBlock: Hashable, Sendable {
    /// The faces of the representations; the profile has one.
    public let faces: [FaceImage]

    /// Parses the contents of object 7F2E (ICAO 9303-10, 4.5.6, table 2): `A1 { 65 { A0 version, A1 representations } }`.
    init(_ template: Template) throws(TravelDocumentFormatError) {
        var template = template
        var data = try template.takeTemplate(0xA1)
        try template.finish()
        let block = ASN1Block(try data.take(0x65), in: template.file)
        try data.finish()
        _ = try block.element(0xA0)
        var representations = try block.template(0xA1)
        var faces: [FaceImage] = []
        repeat {
            faces.append(try FaceImage(representation: ASN1Block(representations.take(0x30), in: template.file)))
        } while representations.next != nil
        self.faces = faces
    }
}

extension FaceImage {
    /// RepresentationBlock: `{ A1 image { A0 base { A0 two dimensions { 80 image, A1 information } } }, A8 metadata }`.
    fileprivate init(representation block: ASN1Block) throws(TravelDocumentFormatError) {
        let image = try block.block(0xA1).block(0xA0).block(0xA0)
        let data = try image.element(0x80)
        guard !data.value.isEmpty else { throw image.error(.element(.image), at: data.value.startIndex) }
        // ImageInformation2DBlock, imageSizeBlock: `A7 { 80 width, 81 height }`.
        let size = try image.block(0xA1).optionalBlock(0xA7)
        // IdentityMetadataBlock, gender: `A0 { 80 code }` or, in ICAO's profile, `A0 { A1 { 80 code } }`.
        let gender = try block.optionalBlock(0xA8)?.optionalBlock(0xA0)
        self.init(
            image: EncodedImage(Array(data.value)), width: try size?.integer(0x80), height: try size?.integer(0x81),
            gender: try gender.map { gender throws(TravelDocumentFormatError) in
                try (gender.optionalBlock(0xA1) ?? gender).integer(0x80)
            }.flatMap(Gender.init(iso39794:)), information: nil)
    }
}

extension FaceImage.Gender {
    /// ISO/IEC 39794-5, GenderCode.
    fileprivate init?(iso39794 number: Int) {
        switch number {
        case 0: self = .unknown
        case 1: self = .other
        case 2: self = .male
        case 3: self = .female
        default: return nil
        }
    }
}

/// A SEQUENCE or a CHOICE whose elements have tags of their own, in DER or BER.
private struct ASN1Block {
    private let object: TLV
    private let file: ElementaryFile

    init(_ object: TLV, in file: ElementaryFile) { (self.object, self.file) = (object, file) }

    func error(_ due: TravelDocumentFormatError.Due, at offset: Int) -> TravelDocumentFormatError {
        TravelDocumentFormatError(file: file, offset: offset, due: due)
    }

    func optionalElement(_ tag: TLVTag) throws(TravelDocumentFormatError) -> TLV? {
        let found = object.children.filter { $0.tag == tag }
        if found.count > 1 { throw error(.singleObject(tag), at: found[1].offset) }
        return found.first
    }

    func element(_ tag: TLVTag) throws(TravelDocumentFormatError) -> TLV {
        guard let element = try optionalElement(tag) else { throw error(.object(tag), at: object.value.startIndex) }
        return element
    }

    func block(_ tag: TLVTag) throws(TravelDocumentFormatError) -> ASN1Block { ASN1Block(try element(tag), in: file) }

    func optionalBlock(_ tag: TLVTag) throws(TravelDocumentFormatError) -> ASN1Block? {
        try optionalElement(tag).map { ASN1Block($0, in: file) }
    }

    func template(_ tag: TLVTag) throws(TravelDocumentFormatError) -> Template {
        Template(try element(tag), in: file)
    }

    /// An INTEGER or ENUMERATED from 0 to 65,535.
    func integer(_ tag: TLVTag) throws(TravelDocumentFormatError) -> Int {
        let value = try element(tag).value
        // In two's complement: the first bit is the sign.
        guard let first = value.first, first < 0x80, value.count <= 3, value.count < 3 || first == 0 else {
            throw error(.element(.integer), at: value.startIndex)
        }
        return value.reduce(0) { $0 << 8 | Int($1) }
    }
}

extension FaceImageDataBlock: PersonalData {
    /// The number of faces.
    public var description: String { "face image data block: \(faces.count) faces" }
}
