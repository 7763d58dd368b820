import SmartCard

/// The data objects that a card gave with its answers to GET PROCESSING OPTIONS, READ RECORD and GENERATE AC, by tag.
struct CardData: Sendable {
    /// Whose meaning tags have that mean different things.
    let scope: DataElement.Scope
    private var values: [TLVTag: [UInt8]] = [:]

    init(scope: DataElement.Scope) { self.scope = scope }

    /// The value of `tag`; nil if the card did not give it, or gave it empty.
    subscript(tag: TLVTag) -> [UInt8]? { values[tag].flatMap { $0.isEmpty ? nil : $0 } }

    /// Adds the primitive objects of a template.
    ///
    /// What the terminal or the issuer has to supply is ignored (EMV Book 3, 7.5).
    ///
    /// - Throws: ``RedundantData`` at the first object that the card gave before (EMV Book 3, 10.2).
    mutating func add(_ objects: some Sequence<TLV>) throws(RedundantData) {
        for object in objects where !object.tag.isConstructed {
            try add(object.tag, object.value)
        }
    }

    /// Adds a value that is not coded with its tag.
    mutating func add(_ tag: TLVTag, _ value: some Collection<UInt8>) throws(RedundantData) {
        switch DataElement[tag, scope]?.source {
        case .terminal, .issuer, .kernel: return
        case .card, nil: break
        }
        guard values.updateValue(Array(value), forKey: tag) == nil else { throw RedundantData(tag: tag) }
    }
}

/// It holds account data in the clear, and prints as a number.
extension CardData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `12 data objects`
    var description: String { "\(values.count) data objects" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// A primitive data object that the card gave twice.
struct RedundantData: Error, Hashable, Sendable {
    let tag: TLVTag
}
