/// The tag of a BER-TLV data object (ISO/IEC 7816-4, 6.3): its one to four bytes, most significant first.
///
/// `0x9F02` stands for the bytes `9F 02`.
public struct TLVTag: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral, Comparable {
    public var rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public init(integerLiteral value: UInt32) { rawValue = value }

    /// The number of bytes in the encoded tag, 1 to 4.
    public var length: Int { rawValue > 0xFF_FFFF ? 4 : rawValue > 0xFFFF ? 3 : rawValue > 0xFF ? 2 : 1 }

    /// The encoded tag.
    public var bytes: [UInt8] {
        (0..<length).reversed().map { UInt8(truncatingIfNeeded: rawValue >> (8 * UInt32($0))) }
    }

    /// True if the value field contains further objects: bit 6 of the first byte.
    public var isConstructed: Bool { UInt8(truncatingIfNeeded: rawValue >> (8 * UInt32(length - 1))) & 0x20 != 0 }

    public static func < (a: TLVTag, b: TLVTag) -> Bool { a.rawValue < b.rawValue }
}

extension TLVTag: CustomStringConvertible {
    /// Upper-case hexadecimal: `9F02`.
    public var description: String { bytes.hex }
}

/// Bytes that are not a sequence of BER-TLV data objects.
public struct TLVError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The tag runs past the end.
        case truncatedTag
        /// A tag of more than four bytes.
        case tagTooLong
        /// The length field runs past the end.
        case truncatedLength
        /// A length field of more than five bytes (`85` and above).
        case lengthTooLong
        /// The length byte `80`, which EMV and ISO/IEC 7816-4 do not allow.
        case indefiniteLength
        /// The value of `claimed` bytes runs past the end; only `available` bytes are left.
        case truncatedValue(claimed: Int, available: Int)
        /// Objects nested deeper than ``TLVList/maximumDepth``.
        case tooDeep
        /// More objects than ``TLVList/maximumCount``.
        case tooMany
    }

    public let reason: Reason
    /// The position in the parsed bytes, from zero.
    public let offset: Int

    public init(reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension TLVError: CustomStringConvertible {
    public var description: String {
        let what =
            switch reason {
            case .truncatedTag: "the tag is cut off"
            case .tagTooLong: "the tag has more than 4 bytes"
            case .truncatedLength: "the length field is cut off"
            case .lengthTooLong: "the length field has more than 5 bytes"
            case .indefiniteLength: "indefinite length"
            case .truncatedValue(let claimed, let available):
                "the length claims \(claimed) bytes, \(available) are left"
            case .tooDeep: "objects nested more than \(TLVList.maximumDepth) deep"
            case .tooMany: "more than \(TLVList.maximumCount) objects"
            }
        return "TLV: \(what) (offset \(offset))"
    }
}

/// A sequence of BER-TLV data objects (ISO/IEC 7816-4, 6.3; EMV Book 3, Annex B), and the bytes it was parsed from.
///
/// The initializer parses constructed objects down to their leaves, so all objects of a list are complete.  Objects are
/// views of the bytes: beyond the list itself, reading allocates nothing per object.  Lengths may take more bytes than
/// necessary, as some cards encode them.
public struct TLVList: Sendable {
    /// The greatest depth of nested constructed objects.
    public static let maximumDepth = 16
    /// The greatest number of objects in a list, on all levels together.
    public static let maximumCount = 16_384

    /// Bytes between objects to skip as padding (EMV Book 3, Annex B1).
    public struct Padding: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `00`
        public static let zeros = Padding(rawValue: 1)
        /// `FF`, which hides objects whose tag begins with that byte, such as `FF8105`.
        public static let ones = Padding(rawValue: 2)
        /// Both, as EMV allows.
        public static let emv: Padding = [.zeros, .ones]
    }

    struct Node: Sendable {
        var tag: TLVTag
        var start: Int32
        var valueStart: Int32
        var end: Int32
        /// The index of the node after this one and its descendants.
        var next: Int32
    }

    let bytes: [UInt8]
    let nodes: [Node]
    let range: Range<Int>

    /// Parses all of `bytes`.
    ///
    /// - Throws: ``TLVError`` with the offset at which the bytes are no longer BER-TLV.
    public init(_ bytes: [UInt8], padding: Padding = .emv) throws(TLVError) {
        guard bytes.count <= Int32.max else { throw TLVError(reason: .tooMany, offset: 0) }
        // The first pass validates the bytes and counts objects; this costs less than an array that grows.
        var count = 0
        let failure = bytes.withUnsafeBufferPointer { bytes in
            Self.walk(bytes, padding) { _, _ in
                count &+= 1
            } closed: { _ in
            }
        }
        if let failure { throw failure }
        self.bytes = bytes
        // For zero elements, the standard library writes the count to storage that all empty arrays share.  The thread
        // sanitizer reports that as a race.
        nodes =
            count == 0
            ? []
            : [Node](unsafeUninitializedCapacity: count) { nodes, initialized in
                initialized = count
                bytes.withUnsafeBufferPointer { Self.read($0, padding, into: nodes) }
            }
        range = 0..<nodes.count
    }

    /// Parses all of `bytes`, a part of a larger message.  Offsets in errors count from the beginning of the message.
    public init(_ bytes: ArraySlice<UInt8>, padding: Padding = .emv) throws(TLVError) {
        try self.init(Array(bytes), padding: padding)
    }

    init(bytes: [UInt8], nodes: [Node], range: Range<Int>) {
        self.bytes = bytes
        self.nodes = nodes
        self.range = range
    }

    /// The first object of this level with `tag`.
    public subscript(tag: TLVTag) -> TLV? { first { $0.tag == tag } }

    /// Returns the first object with `tag` on this level or below, in byte order.
    public func firstAnywhere(_ tag: TLVTag) -> TLV? {
        range.first { nodes[$0].tag == tag }.map { TLV(list: self, index: $0) }
    }

    /// All objects of this level and below, in byte order.
    public var flattened: [TLV] { range.map { TLV(list: self, index: $0) } }
}

extension TLVList: Collection {
    /// A position.  The objects of one level do not have consecutive numbers.
    public struct Index: Comparable, Hashable, Sendable {
        let node: Int
        public static func < (a: Index, b: Index) -> Bool { a.node < b.node }
    }

    public var startIndex: Index { Index(node: range.lowerBound) }
    public var endIndex: Index { Index(node: range.upperBound) }
    public func index(after i: Index) -> Index { Index(node: Int(nodes[i.node].next)) }
    public subscript(position: Index) -> TLV { TLV(list: self, index: position.node) }
}

/// One BER-TLV data object: a view of the bytes it was parsed from.
public struct TLV: Sendable {
    let list: TLVList
    let index: Int

    private var node: TLVList.Node { list.nodes[index] }

    public var tag: TLVTag { node.tag }
    /// The object's offset in the parsed bytes.
    public var offset: Int { Int(node.start) }
    /// The object's bytes as parsed: tag, length and value.
    public var encoded: ArraySlice<UInt8> { list.bytes[Int(node.start)..<Int(node.end)] }
    /// The value field.
    public var value: ArraySlice<UInt8> { list.bytes[Int(node.valueStart)..<Int(node.end)] }
    /// The objects in a constructed object; empty for a primitive one.
    public var children: TLVList {
        TLVList(bytes: list.bytes, nodes: list.nodes, range: index + 1..<Int(node.next))
    }
}

extension TLV: Hashable {
    /// Two objects are equal if their bytes are.
    public static func == (a: TLV, b: TLV) -> Bool { a.encoded == b.encoded }
    public func hash(into hasher: inout Hasher) { hasher.combine(encoded) }
}

extension TLV: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Tag and value, masked by ``SensitiveData``: `5A:476173******0010`.
    public var description: String { SensitiveData.maskedTLV(Array(encoded)) ?? "\(tag), \(value.count) bytes" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension TLVList: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The objects, masked by ``SensitiveData``: `70[ 5A:476173******0010 ]`.
    public var description: String { map(\.description).joined(separator: " ") }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension TLVList {
    /// Calls `body` with each object of `bytes` and each object inside them, in byte order.  Allocates nothing.
    ///
    /// - Parameters:
    ///   - bytes: concatenated BER-TLV objects.
    ///   - padding: the bytes to skip between objects.
    ///   - body: receives the tag, the range of the value in `bytes`, and the depth of the object.
    /// - Throws: ``TLVError`` as a list of the same bytes does; `body` has been called for the objects before the
    ///   fault.
    public static func walk(
        _ bytes: [UInt8], padding: Padding = .emv, _ body: (_ tag: TLVTag, _ value: Range<Int>, _ depth: Int) -> Void
    ) throws(TLVError) {
        let failure = bytes.withUnsafeBufferPointer { bytes in
            walk(bytes, padding) { object, depth in
                body(object.tag, Range(uncheckedBounds: (object.valueStart, object.end)), depth)
            } closed: { _ in
            }
        }
        if let failure { throw failure }
    }

    /// - Parameter nodes: a buffer with room for all objects in `bytes`, which are valid.
    private static func read(
        _ bytes: UnsafeBufferPointer<UInt8>, _ padding: Padding, into nodes: UnsafeMutableBufferPointer<Node>
    ) {
        // The open constructed objects, by depth.
        withUnsafeTemporaryAllocation(of: Int.self, capacity: maximumDepth) { open in
            var next = 0
            _ = walk(bytes, padding) { object, depth in
                if object.isConstructed { open[depth] = next }
                nodes.initializeElement(
                    at: next,
                    to: Node(
                        tag: object.tag, start: Int32(truncatingIfNeeded: object.start),
                        valueStart: Int32(truncatingIfNeeded: object.valueStart),
                        end: Int32(truncatingIfNeeded: object.end), next: Int32(truncatingIfNeeded: next &+ 1)))
                next &+= 1
            } closed: { depth in
                nodes[open[depth]].next = Int32(truncatingIfNeeded: next)
            }
        }
    }

    private struct Object {
        let tag: TLVTag
        let isConstructed: Bool
        let start: Int
        let valueStart: Int
        let end: Int
    }

    /// Parses without recursion, so that no input can exhaust the stack.  Positions stay within the bytes, so none
    /// overflows.
    ///
    /// - Parameters:
    ///   - found: called for each object, with its depth.
    ///   - closed: called with the depth of a constructed object after its last child.
    @inline(__always)
    private static func walk(
        _ bytes: UnsafeBufferPointer<UInt8>, _ padding: Padding, found: (Object, _ depth: Int) -> Void,
        closed: (_ depth: Int) -> Void
    ) -> TLVError? {
        // The ends of the enclosing objects, by depth.
        withUnsafeTemporaryAllocation(of: Int.self, capacity: maximumDepth) { ends in
            let (skipsZeros, skipsOnes) = (padding.contains(.zeros), padding.contains(.ones))
            var (depth, count) = (0, 0)
            var end = bytes.count
            var i = 0
            while true {
                while i == end {
                    guard depth > 0 else { return nil }
                    depth &-= 1
                    closed(depth)
                    end = ends[depth]
                }
                let first = bytes[i]
                if first == 0x00 && skipsZeros || first == 0xFF && skipsOnes {
                    i &+= 1
                    continue
                }

                let start = i
                var tag = UInt32(first)
                i &+= 1
                if first & 0x1F == 0x1F {
                    var more = true
                    while more {
                        guard i < end else { return TLVError(reason: .truncatedTag, offset: i) }
                        guard i &- start < 4 else { return TLVError(reason: .tagTooLong, offset: start) }
                        tag = tag << 8 | UInt32(bytes[i])
                        more = bytes[i] & 0x80 != 0
                        i &+= 1
                    }
                }

                let lengthStart = i
                guard i < end else { return TLVError(reason: .truncatedLength, offset: i) }
                var length = Int(bytes[i])
                i &+= 1
                if length >= 0x80 {
                    let count = length & 0x7F
                    guard count > 0 else { return TLVError(reason: .indefiniteLength, offset: lengthStart) }
                    guard count <= 4 else { return TLVError(reason: .lengthTooLong, offset: lengthStart) }
                    guard end &- i >= count else { return TLVError(reason: .truncatedLength, offset: end) }
                    length = 0
                    for _ in 0..<count {
                        length = length << 8 | Int(bytes[i])
                        i &+= 1
                    }
                }
                guard length <= end &- i else {
                    return TLVError(reason: .truncatedValue(claimed: length, available: end &- i), offset: lengthStart)
                }
                guard count < maximumCount else { return TLVError(reason: .tooMany, offset: start) }
                let isConstructed = first & 0x20 != 0
                guard !isConstructed || depth < maximumDepth else { return TLVError(reason: .tooDeep, offset: start) }

                count &+= 1
                found(
                    Object(
                        tag: TLVTag(rawValue: tag), isConstructed: isConstructed, start: start, valueStart: i,
                        end: i &+ length), depth)
                if isConstructed {
                    ends[depth] = end
                    depth &+= 1
                    end = i &+ length
                } else {
                    i &+= length
                }
            }
        }
    }
}

extension TLVTag {
    /// Returns an encoded data object: this tag, the shortest length field, and `value`.
    public func encode(_ value: some Collection<UInt8>) -> [UInt8] {
        bytes + TLVTag.encodeLength(value.count) + value
    }

    /// Returns an encoded constructed object that contains the encoded `objects`.
    public func encode(objects: [UInt8]...) -> [UInt8] { encode(objects.joined()) }

    /// Returns the shortest length field for `count` bytes.
    static func encodeLength(_ count: Int) -> [UInt8] {
        guard count > 0x7F else { return [UInt8(truncatingIfNeeded: count)] }
        let bytes = (0..<8).reversed().map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }.drop { $0 == 0 }
        return [0x80 | UInt8(truncatingIfNeeded: bytes.count)] + bytes
    }
}
