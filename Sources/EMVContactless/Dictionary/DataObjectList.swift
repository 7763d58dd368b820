public import SmartCard

/// A data object list (DOL): the tags and lengths of the data that the card requests, without values (EMV Book 3,
/// 5.4).
///
/// PDOL, CDOL1, CDOL2, DDOL, TDOL, UDOL, DRDOL and the log format have this form.
public struct DataObjectList: Hashable, Sendable {
    public struct Entry: Hashable, Sendable {
        public let tag: TLVTag
        /// The requested length of the value in bytes, 0 to 252.
        public let length: Int

        public init(tag: TLVTag, length: Int) {
            self.tag = tag
            self.length = length
        }
    }

    /// The maximum total length of the values of one list, so that they fit a command (EMV Book 3, Annex A).
    public static let maximumLength = 252

    public let entries: [Entry]

    /// Parses all of `bytes`.  The length of an entry is always one byte, even from `80` on.
    ///
    /// - Throws: ``DataObjectListError`` with the offset of the malformed entry.
    public init(_ bytes: some Collection<UInt8>) throws(DataObjectListError) {
        var entries: [Entry] = []
        var total = 0
        var reader = TagReader(bytes)
        while !reader.isAtEnd {
            let start = reader.offset
            let tag = try reader.tag()
            guard let length = reader.byte() else {
                throw DataObjectListError(reason: .truncatedLength, offset: reader.offset)
            }
            total += Int(length)
            guard total <= Self.maximumLength else { throw DataObjectListError(reason: .tooLong, offset: start) }
            entries.append(Entry(tag: tag, length: Int(length)))
        }
        self.entries = entries
    }

    /// Parses a list of tags without lengths, such as the Static Data Authentication Tag List or Tags To Read.
    public static func tags(_ bytes: some Collection<UInt8>) throws(DataObjectListError) -> [TLVTag] {
        var tags: [TLVTag] = []
        var reader = TagReader(bytes)
        while !reader.isAtEnd { tags.append(try reader.tag()) }
        return tags
    }

    /// The total length of the values in bytes.
    public var length: Int { entries.reduce(0) { $0 + $1.length } }

    /// Returns true if the card requests `tag`.
    public func contains(_ tag: TLVTag) -> Bool { entries.contains { $0.tag == tag } }

    /// Returns the requested values, concatenated, each with the length of its entry.
    ///
    /// - Parameters:
    ///   - scope: the scheme that decides the format of a tag with several meanings.
    ///   - source: returns the value of a data element; nil if it is unknown or has none.  It is not called for
    ///     constructed data objects, for which the rules require zeros.
    public func value(scope: DataElement.Scope = .common, from source: (TLVTag) -> [UInt8]?) -> [UInt8] {
        var values: [UInt8] = []
        values.reserveCapacity(length)
        for entry in entries {
            let value = entry.tag.isConstructed ? nil : source(entry.tag)
            let format = value == nil ? nil : DataElement[entry.tag, scope]?.format
            Self.append(value ?? [], of: entry.length, format: format ?? .binary, to: &values)
        }
        return values
    }

    /// Returns `value` with `length` bytes by the rules for its format (EMV Book 3, 5.4): numeric values lose or gain
    /// leading bytes, all others trailing ones; compressed numeric values are padded with `FF`, all others with `00`.
    public static func fit(_ value: [UInt8], to length: Int, format: DataElement.Format) -> [UInt8] {
        var result: [UInt8] = []
        append(value, of: length, format: format, to: &result)
        return result
    }

    private static func append(
        _ value: [UInt8], of length: Int, format: DataElement.Format, to result: inout [UInt8]
    ) {
        let kept = min(value.count, max(0, length))
        let filling = repeatElement(format == .compressedNumeric ? 0xFF : 0x00 as UInt8, count: max(0, length) - kept)
        if format == .numeric {
            result += filling
            result += value[(value.count - kept)...]
        } else {
            result += value[..<kept]
            result += filling
        }
    }
}

/// An error in the bytes of a data object list.
public struct DataObjectListError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// A tag runs past the end.
        case truncatedTag
        /// A tag of more than four bytes.
        case tagTooLong
        /// A tag without a length.
        case truncatedLength
        /// The values exceed ``DataObjectList/maximumLength`` bytes.
        case tooLong
    }

    public let reason: Reason
    /// The offset of the error in the list, from zero.
    public let offset: Int
}

extension DataObjectListError: CustomStringConvertible {
    public var description: String {
        let what =
            switch reason {
            case .truncatedTag: "a tag is cut off"
            case .tagTooLong: "a tag has more than 4 bytes"
            case .truncatedLength: "a tag has no length"
            case .tooLong: "the values would have more than \(DataObjectList.maximumLength) bytes"
            }
        return "data object list: \(what) (offset \(offset))"
    }
}

/// A reader of tags from a sequence of bytes.
private struct TagReader {
    private let bytes: [UInt8]
    private(set) var offset = 0

    init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes) }

    var isAtEnd: Bool { offset >= bytes.count }

    mutating func byte() -> UInt8? {
        guard !isAtEnd else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func tag() throws(DataObjectListError) -> TLVTag {
        let start = offset
        guard let first = byte() else { throw DataObjectListError(reason: .truncatedTag, offset: start) }
        var tag = UInt32(first)
        var more = first & 0x1F == 0x1F
        while more {
            guard let next = byte() else { throw DataObjectListError(reason: .truncatedTag, offset: offset) }
            guard offset - start <= 4 else { throw DataObjectListError(reason: .tagTooLong, offset: start) }
            tag = tag << 8 | UInt32(next)
            more = next & 0x80 != 0
        }
        return TLVTag(rawValue: tag)
    }
}
