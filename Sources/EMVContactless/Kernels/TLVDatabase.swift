import SmartCard

/// The data objects of a transaction, by tag (Book C-2, 4.1, TLV Database): those of the terminal, the card and the
/// kernel.
///
/// An object may be absent, empty, or have a value.
struct TLVDatabase: Sendable {
    /// A kernel's rules for the data objects that a card supplies.
    struct Rules: Sendable {
        /// The scheme that decides the meaning of ambiguous tags.
        let scope: DataElement.Scope
        let nestedTemplates: NestedTemplates
        /// True if objects are stored that the dictionary does not contain; false if they are ignored, unless the
        /// terminal has set them without a value.
        let storesUnknownObjects: Bool
        /// True if the card may supply an object again that was empty.
        let emptyObjectsMayFollow: Bool
        /// The objects of the terminal, the issuer or the kernel with which a response is malformed.  Others of theirs
        /// are ignored (EMV Book 3, 7.5).
        var refusedObjects: Set<TLVTag> = []
        /// The objects whose length is checked when they are stored.
        var measuredObjects: Set<TLVTag> = []
    }

    let rules: Rules
    private var values: [TLVTag: [UInt8]]

    init(rules: Rules, values: [TLVTag: [UInt8]] = [:]) { (self.rules, self.values) = (rules, values) }

    /// The value of `tag`; nil if it is absent or empty.
    subscript(tag: TLVTag) -> [UInt8]? {
        get { values[tag].flatMap { $0.isEmpty ? nil : $0 } }
        set { values[tag] = newValue }
    }

    var count: Int { values.count }

    func isPresent(_ tag: TLVTag) -> Bool { values[tag] != nil }
    /// Returns true if the object is present without a value.
    func isEmpty(_ tag: TLVTag) -> Bool { values[tag]?.isEmpty == true }

    /// Returns a byte of `tag`; 0 if there is none.
    func byte(_ tag: TLVTag, at index: Int = 0) -> UInt8 {
        let value = values[tag] ?? []
        return value.indices.contains(index) ? value[index] : 0
    }

    /// Returns a binary number; 0 if there is none.
    func number(_ tag: TLVTag) -> Int { (values[tag] ?? []).suffix(4).reduce(0) { $0 << 8 | Int($1) } }

    /// Returns a number in format n; nil if it contains other digits.
    func amount(_ tag: TLVTag) -> UInt64? { values[tag].flatMap { UInt64($0.hex) } }

    // MARK: The card's objects

    /// Stores the primitive objects of a response, with those of nested templates if the kernel opens them.
    ///
    /// - Throws: ``MalformedCardData`` at the first object that breaks a rule; those before it are stored.
    mutating func store(_ objects: TLVList) throws(MalformedCardData) {
        try store(rules.nestedTemplates.objects(of: objects))
    }

    /// Stores primitive objects, in the card's order.
    mutating func store(_ objects: [DataRecord.Element]) throws(MalformedCardData) {
        for object in objects { try store(object.tag, object.value) }
    }

    /// Stores a value that is encoded without its tag.
    ///
    /// - Throws: ``MalformedCardData`` if the card has supplied the object before (EMV Book 3, 10.2), must not supply
    ///   it, or supplies it in a wrong length.
    mutating func store(_ tag: TLVTag, _ value: [UInt8]) throws(MalformedCardData) {
        let element = DataElement[tag, rules.scope]
        switch element?.source {
        case .card: break
        case nil: guard rules.storesUnknownObjects || isPresent(tag) else { return }
        case .terminal, .issuer, .kernel:
            guard !rules.refusedObjects.contains(tag) else {
                throw MalformedCardData(reason: "\(tag) must not come from the card")
            }
            return
        }
        guard rules.emptyObjectsMayFollow ? self[tag] == nil : !isPresent(tag) else {
            throw MalformedCardData(reason: "the card gives \(tag) twice")
        }
        if rules.measuredObjects.contains(tag), let element, !value.isEmpty, !element.length.contains(value.count) {
            throw MalformedCardData(reason: "\(tag) has \(value.count) bytes")
        }
        values[tag] = value
    }

    // MARK: Data object lists

    /// Returns the values for a list of the card (EMV Book 3, 5.4).
    func related(to list: [UInt8]) throws(MalformedCardData) -> [UInt8] {
        do {
            return try DataObjectList(list).value(scope: rules.scope) { self[$0] }
        } catch {
            throw MalformedCardData(reason: "\(error)")
        }
    }

    /// Returns the tags of a list that are present without a value: the terminal wants to be asked for them (Book C-2,
    /// Data Needed).
    func missing(for list: [UInt8]?) -> [TLVTag] {
        guard let list, let entries = try? DataObjectList(list).entries else { return [] }
        return entries.map(\.tag).filter { isEmpty($0) }
    }
}

/// Contains clear account data, and prints as a number.
extension TLVDatabase: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The number as text: `12 data objects`.
    var description: String { "\(count) data objects" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}
