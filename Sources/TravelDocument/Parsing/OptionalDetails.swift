import SmartCard

/// DG13: details at the discretion of the issuing state (ICAO 9303-10, 4.7.13).
public struct OptionalDetails: Hashable, Sendable {
    /// The contents of the file, which no standard describes.
    public let contents: [UInt8]

    /// Parses `6D contents`.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var file = try Template(bytes, of: .dataGroup(13), readsContents: false)
        contents = file.take().map { Array($0.value) } ?? []
    }
}

extension OptionalDetails: PersonalData {
    /// The number of bytes.
    public var description: String { "optional details: \(contents.count) bytes" }
}
