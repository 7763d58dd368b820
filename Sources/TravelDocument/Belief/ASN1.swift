import SmartCard

/// A value in the distinguished encoding of ASN.1, as certificates and signatures have it (ITU-T X.690).
///
/// It is a view of the bytes it was parsed from, and its contents are parsed when asked for.  Tags have one byte, as
/// those of X.509 and CMS.
struct ASN1: Hashable, Sendable {
    /// The tags of X.690, 8.
    enum Tag {
        static let boolean: UInt8 = 0x01
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let octetString: UInt8 = 0x04
        static let null: UInt8 = 0x05
        static let objectIdentifier: UInt8 = 0x06
        static let enumerated: UInt8 = 0x0A
        static let utcTime: UInt8 = 0x17
        static let generalizedTime: UInt8 = 0x18
        static let constructedOctetString: UInt8 = 0x24
        static let sequence: UInt8 = 0x30
        static let set: UInt8 = 0x31

        /// A context-specific tag that contains another value, `[n]`.
        static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }
        /// A context-specific tag of a plain value, `[n] IMPLICIT`.
        static func plainContext(_ number: UInt8) -> UInt8 { 0x80 | number }
    }

    let tag: UInt8
    /// Tag, length and contents.
    let encoded: ArraySlice<UInt8>
    let content: ArraySlice<UInt8>

    /// Parses bytes that are one value.
    ///
    /// - Parameter due: what the value is, for the error.
    init(_ bytes: ArraySlice<UInt8>, _ tag: UInt8, _ due: String) throws(MalformedObject) {
        var fields = ASN1Fields(bytes)
        self = try fields.take(tag, due)
        try fields.end(due)
    }

    init(_ bytes: [UInt8], _ tag: UInt8, _ due: String) throws(MalformedObject) {
        try self.init(bytes[...], tag, due)
    }

    fileprivate init(tag: UInt8, encoded: ArraySlice<UInt8>, content: ArraySlice<UInt8>) {
        (self.tag, self.encoded, self.content) = (tag, encoded, content)
    }

    /// The values that it contains, to be taken one after the other.
    var fields: ASN1Fields { ASN1Fields(content) }

    /// All values that it contains, each with this tag.
    func elements(_ tag: UInt8, _ due: String) throws(MalformedObject) -> [ASN1] {
        var fields = fields
        var elements: [ASN1] = []
        while !fields.isEmpty { elements.append(try fields.take(tag, due)) }
        return elements
    }

    /// The value alone in an explicit tag or an octet string.
    func inner(_ tag: UInt8, _ due: String) throws(MalformedObject) -> ASN1 { try ASN1(content, tag, due) }

    func fault(_ due: String) -> MalformedObject { MalformedObject(due: due, offset: encoded.startIndex) }

    // MARK: Plain values

    /// The bytes of an integer that is not negative, without leading zeros.
    func natural(_ due: String) throws(MalformedObject) -> [UInt8] {
        guard tag == Tag.integer, let first = content.first, first < 0x80 else { throw fault(due) }
        return Array(content.drop { $0 == 0 })
    }

    /// A small integer.
    func number(_ due: String) throws(MalformedObject) -> Int {
        let bytes = try natural(due)
        guard bytes.count <= 4 else { throw fault(due) }
        return bytes.reduce(0) { $0 << 8 | Int($1) }
    }

    func boolean(_ due: String) throws(MalformedObject) -> Bool {
        guard tag == Tag.boolean, content.count == 1 else { throw fault(due) }
        return content.first != 0
    }

    /// The bytes of a bit string of whole bytes.
    func bits(_ due: String) throws(MalformedObject) -> [UInt8] {
        guard tag == Tag.bitString, content.first == 0 else { throw fault(due) }
        return Array(content.dropFirst())
    }

    func identifier(_ due: String) throws(MalformedObject) -> OID {
        guard tag == Tag.objectIdentifier, let oid = OID(content: content) else { throw fault(due) }
        return oid
    }

    /// The value with another tag, as IMPLICIT tags are replaced for a digest.
    func retagged(_ tag: UInt8) -> [UInt8] { [tag] + encoded.dropFirst() }
}

/// Values one after the other, taken in order.
struct ASN1Fields: Sendable {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isEmpty: Bool { rest.isEmpty }
    var nextTag: UInt8? { rest.first }

    func fault(_ due: String) -> MalformedObject { MalformedObject(due: due, offset: rest.startIndex) }

    /// Takes the next value, which has this tag.
    mutating func take(_ tag: UInt8, _ due: String) throws(MalformedObject) -> ASN1 {
        guard rest.first == tag else { throw fault(due) }
        return try take(due)
    }

    /// Takes the next value if it has this tag.
    mutating func takeOptional(_ tag: UInt8, _ due: String) throws(MalformedObject) -> ASN1? {
        rest.first == tag ? try take(due) : nil
    }

    /// Takes the next value, whichever it is.
    mutating func take(_ due: String) throws(MalformedObject) -> ASN1 {
        guard let header = ASN1Header(rest), let length = header.length, length <= rest.count - header.count else {
            throw fault(due)
        }
        let start = rest.startIndex + header.count
        let value = ASN1(tag: header.tag, encoded: rest[..<(start + length)], content: rest[start..<(start + length)])
        rest = rest[(start + length)...]
        return value
    }

    /// Nothing may follow.
    func end(_ due: String) throws(MalformedObject) {
        guard rest.isEmpty else { throw fault("the end of \(due)") }
    }
}

/// Tag and length of a value.
private struct ASN1Header {
    let tag: UInt8
    /// The length of the contents; nil: indefinite.
    let length: Int?
    /// The bytes that the header has.
    let count: Int

    /// - Returns: nil for a tag of several bytes, for a length of more than four, and where the bytes end.
    init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count >= 2, let tag = bytes.first, tag & 0x1F != 0x1F else { return nil }
        self.tag = tag
        let first = bytes[bytes.startIndex + 1]
        let lengthCount = first < 0x80 ? 0 : Int(first & 0x7F)
        guard lengthCount <= 4, bytes.count >= 2 + lengthCount else { return nil }
        count = 2 + lengthCount
        switch first {
        case ..<0x80: length = Int(first)
        case 0x80: length = nil
        default: length = bytes.dropFirst(2).prefix(lengthCount).reduce(0) { $0 << 8 | Int($1) }
        }
    }
}

/// The basic encoding (X.690, 8.1.3.6 and 8.7.3): lengths may be indefinite, and an octet string in parts.
enum BasicEncoding {
    private static let maximumDepth = 32

    /// Returns one value with definite lengths and whole octet strings.  What has them already stays as it is, byte for
    /// byte, so that digests of it hold.
    static func definite(_ bytes: [UInt8], _ due: String) throws(MalformedObject) -> [UInt8] {
        var rest = bytes[...]
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        try copy(&rest, into: &out, depth: 0, due)
        guard rest.isEmpty else { throw MalformedObject(due: "the end of \(due)", offset: rest.startIndex) }
        return out
    }

    private static func copy(
        _ rest: inout ArraySlice<UInt8>, into out: inout [UInt8], depth: Int, _ due: String
    ) throws(MalformedObject) {
        let fault = MalformedObject(due: due, offset: rest.startIndex)
        guard depth < maximumDepth, let header = ASN1Header(rest),
            (header.length ?? 0) <= rest.count - header.count
        else { throw fault }
        let whole = rest
        rest = rest.dropFirst(header.count)
        let isConstructed = header.tag & 0x20 != 0
        guard isConstructed else {
            guard let length = header.length else { throw fault }
            out += whole.prefix(header.count + length)
            rest = rest.dropFirst(length)
            return
        }
        var content: [UInt8] = []
        if let length = header.length {
            var inner = rest.prefix(length)
            let original = inner
            rest = rest.dropFirst(length)
            while !inner.isEmpty { try copy(&inner, into: &content, depth: depth + 1, due) }
            if header.tag != ASN1.Tag.constructedOctetString, content.elementsEqual(original) {
                out += whole.prefix(header.count + length)
                return
            }
        } else {
            while !rest.starts(with: [0x00, 0x00]) { try copy(&rest, into: &content, depth: depth + 1, due) }
            rest = rest.dropFirst(2)
        }
        if header.tag == ASN1.Tag.constructedOctetString {
            var parts = ASN1Fields(content[...])
            var joined: [UInt8] = []
            while !parts.isEmpty { joined += try parts.take(ASN1.Tag.octetString, due).content }
            out += TLVTag(rawValue: UInt32(ASN1.Tag.octetString)).encode(joined)
        } else {
            out += TLVTag(rawValue: UInt32(header.tag)).encode(content)
        }
    }
}
