import SmartCard

/// Text, as DG11, DG12 and DG16 contain it: UTF-8, or ISO/IEC 8859-1 by issuers of earlier days.
extension Template {
    /// Reads free text.  Fillers in it stand for blanks, as in ICAO 9303-10, A.5.
    ///
    /// - Returns: nil for an object without a value.
    func text(_ object: TLV) -> String? {
        let text = Self.decode(object.value)
        return text.isEmpty ? nil : String(text.map { $0 == "<" ? " " : $0 })
    }

    /// Reads fields with a filler between each two: `ANYTOWN<MN`.
    func fields(_ object: TLV) -> [String] {
        Self.decode(object.value).split(separator: "<").map(String.init)
    }

    /// Reads a name; nil for an object without a value.
    func name(_ object: TLV) -> DocumentName? {
        let text = Self.decode(object.value)
        return text.isEmpty ? nil : DocumentName(text)
    }

    /// Reads a list of names, template A0: their number, 1 to 99, and an object with this tag for each.
    func names(_ object: TLV, _ tag: TLVTag) throws(TravelDocumentFormatError) -> [DocumentName] {
        var template = Template(object, in: file)
        let count = try template.takeCount(0...99)
        var names: [DocumentName] = []
        for _ in 0..<count {
            if let name = name(try template.take(tag)) { names.append(name) }
        }
        try template.finish()
        return names
    }

    /// Reads an image; nil for an object without a value.
    func image(_ object: TLV) -> EncodedImage? {
        object.value.isEmpty ? nil : EncodedImage(Array(object.value))
    }

    private static func decode(_ value: ArraySlice<UInt8>) -> String {
        String(validating: value, as: UTF8.self)
            ?? String(String.UnicodeScalarView(value.map { Unicode.Scalar($0) }))
    }
}
