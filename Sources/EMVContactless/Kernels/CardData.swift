import SmartCard

/// The data objects from the card's answers to GET PROCESSING OPTIONS, READ RECORD and GENERATE AC, by tag.
struct CardData: Sendable {
    /// The scheme that decides the meaning of ambiguous tags.
    let scope: DataElement.Scope
    private var values: [TLVTag: [UInt8]] = [:]

    init(scope: DataElement.Scope) { self.scope = scope }

    /// The value of `tag`; nil if the card did not supply it, or left it empty.
    subscript(tag: TLVTag) -> [UInt8]? { values[tag].flatMap { $0.isEmpty ? nil : $0 } }

    /// Adds primitive objects.
    ///
    /// Objects that the terminal or the issuer must supply are ignored (EMV Book 3, 7.5).
    ///
    /// - Throws: ``RedundantData`` at the first object that the card already supplied (EMV Book 3, 10.2).
    mutating func add(_ objects: [DataRecord.Element]) throws(RedundantData) {
        for object in objects {
            switch DataElement[object.tag, scope]?.source {
            case .terminal, .issuer, .kernel: continue
            case .card, nil: break
            }
            guard values.updateValue(object.value, forKey: object.tag) == nil else {
                throw RedundantData(tag: object.tag)
            }
        }
    }
}

/// Contains clear account data, and prints as a number.
extension CardData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The number as text: `12 data objects`.
    var description: String { "\(values.count) data objects" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// A primitive data object that the card supplied twice.
struct RedundantData: Error, Hashable, Sendable {
    let tag: TLVTag
}
