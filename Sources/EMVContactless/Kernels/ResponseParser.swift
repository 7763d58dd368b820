import SmartCard

/// A parser of the card's responses that consist of one template: 77, whose objects have tags (format 2), or 80, whose
/// values have none (format 1) (EMV Book 3, 6.5.5.4 and 6.5.8.4).
struct ResponseParser: Sendable {
    /// The values of template 80; nil for a command whose response is always template 77.
    let format1: ResponseFormat1?
    let nestedTemplates: NestedTemplates

    /// Parses a response.
    ///
    /// - Returns: the primitive objects, in the card's order.
    /// - Throws: ``MalformedCardData``, with a reason for the terminal's log.
    func objects(of response: ResponseAPDU) throws(MalformedCardData) -> [DataRecord.Element] {
        let objects: TLVList
        do { objects = try TLVList(response.data) } catch { throw MalformedCardData(reason: "\(error)") }
        guard objects.count == 1, let template = objects.first else {
            throw MalformedCardData(reason: "not one template")
        }
        switch (template.tag, format1) {
        case (0x77, _): return nestedTemplates.objects(of: template.children)
        case (0x80, let format?):
            guard let values = format.split(template.value) else {
                throw MalformedCardData(reason: "template 80 of \(template.value.count) bytes")
            }
            return values.map { DataRecord.Element($0.tag, $0.value) }
        case (_, nil): throw MalformedCardData(reason: "not template 77")
        default: throw MalformedCardData(reason: "neither template 77 nor 80")
        }
    }
}

/// A kernel's rule for templates inside a template.
enum NestedTemplates: Sendable {
    /// Their objects count as those beside them (Book C-2, 4.5.4).
    case opened
    /// Nested templates are unknown objects (Book C-3).
    case ignored

    /// Returns the primitive objects of a list, in order.
    func objects(of list: TLVList) -> [DataRecord.Element] {
        switch self {
        case .opened: Self.primitive(list.flattened)
        case .ignored: Self.primitive(list)
        }
    }

    private static func primitive(_ objects: some Sequence<TLV>) -> [DataRecord.Element] {
        objects.lazy.filter { !$0.tag.isConstructed }.map { DataRecord.Element($0.tag, Array($0.value)) }
    }
}

/// Data of the card that cannot be parsed, or that the card must not supply.
struct MalformedCardData: Error {
    let reason: String
}
