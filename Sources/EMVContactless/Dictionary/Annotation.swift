public import SmartCard

/// A data object with its entry in the dictionary: a tree for tools to print.
///
/// Sensitive values are masked unless the caller asks for the clear value; `description` is always masked.
public struct Annotation: Sendable {
    public let tag: TLVTag
    /// The dictionary's element; nil for an unknown tag.
    public let element: DataElement?
    /// The value field.
    public let value: [UInt8]
    /// The meanings of the value's bits.
    public let bits: [BitMeaning]
    /// The objects inside a constructed object.
    public let children: [Annotation]
    private let scope: DataElement.Scope

    /// The element's name.  If the scheme decides and is unknown, all names joined by `or`; `unknown` for an unknown
    /// tag.
    public var name: String {
        if let element { return element.name }
        var names: [String] = []
        for meaning in DataElement.meanings(of: tag) where meaning.scope.isScheme && !names.contains(meaning.name) {
            names.append(meaning.name)
        }
        return names.isEmpty ? "unknown" : names.joined(separator: " or ")
    }

    /// Annotates `object` and all objects inside it.
    ///
    /// - Parameters:
    ///   - object: the object to annotate.
    ///   - scope: the scheme of the application that the object comes from.  An Application Template or an FCI that
    ///     names its application overrides it for its contents.
    ///   - template: the tag of the template that contains the object, if there is one.
    public init(_ object: TLV, scope: DataElement.Scope = .common, in template: TLVTag? = nil) {
        let inner = Self.scope(of: object, outer: scope)
        self.init(
            tag: object.tag, value: Array(object.value), scope: scope, in: template,
            children: object.children.map { Annotation($0, scope: inner, in: object.tag) })
    }

    /// Annotates a value that is encoded without its tag, such as the answer to a DOL or a part of Response Message
    /// Template Format 1.
    public init(
        tag: TLVTag, value: some Collection<UInt8>, scope: DataElement.Scope = .common, in template: TLVTag? = nil
    ) {
        self.init(tag: tag, value: Array(value), scope: scope, in: template, children: [])
    }

    private init(
        tag: TLVTag, value: [UInt8], scope: DataElement.Scope, in template: TLVTag?, children: [Annotation]
    ) {
        self.tag = tag
        self.value = value
        self.scope = scope
        self.children = children
        let element = DataElement[tag, scope, in: template]
        self.element = element
        // Inside a template with its own meaning, a tag does not have its usual bits.
        if case .template = element?.scope {
            bits = []
        } else {
            bits = DataElement.bitMeanings(of: tag, value: value, scope: scope)
        }
    }

    /// Returns the scheme of the application that `object`, a directory entry or an FCI, names: by the requested
    /// kernel, otherwise by the application provider.
    private static func scope(of object: TLV, outer: DataElement.Scope) -> DataElement.Scope {
        guard outer == .common, object.tag == 0x61 || object.tag == 0x6F,
            let name = object.children[0x4F] ?? object.children[0x84], let aid = AID(name.value)
        else { return outer }
        let kernel = KernelIdentifier.requested(by: object.children[0x9F2A]?.value, aid: aid) ?? .any
        return kernel == .any ? DataElement.Scope(aid: aid) : DataElement.Scope(kernel: kernel)
    }

    /// Returns the value as hexadecimal digits, with `*` for sensitive parts.
    ///
    /// - Parameter reveal: true to show everything.
    public func hex(reveal: Bool = false) -> String {
        if reveal { return value.hex }
        guard tag.isConstructed else { return SensitiveData.masked(value, of: tag) }
        // A template with unknown objects may contain anything.
        guard !children.isEmpty else { return String(repeating: "*", count: value.count * 2) }
        return children.map { ($0.tag.bytes + TLVTag.lengthField($0.value.count)).hex + $0.hex() }.joined()
    }

    /// Returns the value in a human-readable form: text, a date, an amount, the name of a country; nil if the
    /// hexadecimal digits say as much.
    ///
    /// - Parameters:
    ///   - reveal: true to show sensitive text in the clear.
    ///   - currency: the currency of amounts, if known.
    public func text(reveal: Bool = false, currency: Currency? = nil) -> String? {
        guard !tag.isConstructed else { return nil }
        if !reveal, let exposure = SensitiveData.exposure(of: value, in: tag) {
            return exposure == .nothing ? nil : SensitiveData.masked(value, of: tag)
        }
        return DataElement.text(of: tag, value: value, element: element, currency: currency)
    }
}

extension Annotation: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The masked object: `5A Application Primary Account Number (PAN): 476173******0010`.
    public var description: String { "\(tag) \(name): \(hex())" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["tag": tag, "name": name, "value": hex()]) }
}

extension TLVTag {
    /// Returns the shortest BER length field for `count` bytes.
    fileprivate static func lengthField(_ count: Int) -> [UInt8] {
        // The encoder's bytes between a tag of one byte and the value.
        Array((0x80 as TLVTag).encode([UInt8](repeating: 0, count: count)).dropFirst().dropLast(count))
    }
}

extension DataObjectList {
    /// Returns the elements in `value`, the answer to this list, such as PDOL related data or a record of the
    /// transaction log.
    ///
    /// - Returns: nil unless `value` has exactly the length of the list.
    public func elements(
        of value: some Collection<UInt8>, scope: DataElement.Scope = .common
    ) -> [Annotation]? {
        guard value.count == length else { return nil }
        var rest = ArraySlice(Array(value))
        return entries.map { entry in
            defer { rest = rest.dropFirst(entry.length) }
            return Annotation(tag: entry.tag, value: rest.prefix(entry.length), scope: scope)
        }
    }
}
