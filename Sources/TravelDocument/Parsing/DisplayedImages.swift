import SmartCard

/// DG5: portraits of the holder, as they are displayed (ICAO 9303-10, 4.7.5).
public struct DisplayedPortraits: Hashable, Sendable {
    public let images: [EncodedImage]

    /// Parses `65 { 02 number, 5F40 image, … }`, with 1 to 9 images.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        images = try Template.displayedImages(bytes, of: .dataGroup(5), 0x5F40)
    }
}

/// DG7: the holder's signature or usual mark, as it is displayed (ICAO 9303-10, 4.7.7).
public struct DisplayedSignatures: Hashable, Sendable {
    public let images: [EncodedImage]

    /// Parses `67 { 02 number, 5F43 image, … }`, with 1 to 9 images.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        images = try Template.displayedImages(bytes, of: .dataGroup(7), 0x5F43)
    }
}

extension Template {
    fileprivate static func displayedImages(
        _ bytes: [UInt8], of file: ElementaryFile, _ tag: TLVTag
    ) throws(TravelDocumentFormatError) -> [EncodedImage] {
        var content = try Template(bytes, of: file)
        let count = try content.takeCount(1...9)
        var images: [EncodedImage] = []
        for _ in 0..<count {
            let object = try content.take(tag)
            guard let image = content.image(object) else {
                throw content.error(.element(.image), at: object.value.startIndex)
            }
            images.append(image)
        }
        try content.finish()
        return images
    }
}

extension DisplayedPortraits: PersonalData {
    /// The number of images.
    public var description: String { "displayed portraits: \(images.count)" }
}

extension DisplayedSignatures: PersonalData {
    /// The number of images.
    public var description: String { "displayed signatures: \(images.count)" }
}
