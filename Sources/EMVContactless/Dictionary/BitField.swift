public import SmartCard

/// A meaning of a value: a bit that is set, the value of a field, or an error.
public struct BitMeaning: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        /// The bits of the mask have the value with this meaning.
        case known
        /// Bits are set that the specification reserves for future use.
        case reserved
        /// The length or the structure of the value violates the specification.
        case malformed
    }

    public let kind: Kind
    /// The number of the byte, from 1 as in the specifications; 0 for a meaning of the whole value.
    public let byte: Int
    /// The bits of the byte; `FF` for the whole byte, or for several bytes from this one on.
    public let mask: UInt8
    public let meaning: String

    public init(_ meaning: String, byte: Int = 0, mask: UInt8 = 0xFF, kind: Kind = .known) {
        self.kind = kind
        self.byte = byte
        self.mask = mask
        self.meaning = meaning
    }
}

extension BitMeaning: CustomStringConvertible {
    /// The meaning with its place: `byte 1 bit 7: SDA supported`, `byte 1 bits 8-7: ARQC`; without a byte, the meaning
    /// alone.
    public var description: String {
        guard byte > 0 else { return meaning }
        guard mask != 0, mask != 0xFF else { return "byte \(byte): \(meaning)" }
        let high = 8 - mask.leadingZeroBitCount
        let low = mask.trailingZeroBitCount + 1
        return "byte \(byte) bit\(high == low ? " \(high)" : "s \(high)-\(low)"): \(meaning)"
    }
}

/// The meanings of a data element's bytes and bits, as a table: a row for each bit, value of a field, or part.
///
///     1 40 SDA supported              when all bits of the mask are set
///     1 C0=80 ARQC                    when the bits of the mask have this value
///     2 F0=# PIN Try Counter          a number, shown
///     3-5 .. Hold Time                bytes without inner structure, shown
///
/// Bits without a row are reserved.
public struct BitTable: Sendable {
    struct Row: Sendable {
        enum Content: Sendable {
            case bits(mask: UInt8)
            case value(mask: UInt8, UInt8)
            case number(mask: UInt8)
            case bytes
        }

        let bytes: ClosedRange<Int>
        let content: Content
        let meaning: String
    }

    /// The number of bytes of a value.
    let length: ClosedRange<Int>
    let rows: [Row]

    init(length: ClosedRange<Int>, rows: [Row]) {
        self.length = length
        self.rows = rows
    }

    init(length: ClosedRange<Int>, _ text: String) {
        self.init(length: length, rows: text.columns(at: "\n").compactMap { Self.row($0) })
    }

    init(length: Int, _ text: String) { self.init(length: length...length, text) }

    init(length: Int, rows: [Row]) { self.init(length: length...length, rows: rows) }

    static func row(_ line: Substring) -> Row? {
        let parts = line.utf8.split(separator: UInt8(ascii: " "), maxSplits: 2).map { Substring($0) }
        guard parts.count == 3, let content = content(parts[1]) else { return nil }
        let bounds = parts[0].columns(at: "-").compactMap { Int($0) }
        guard let first = bounds.first, let last = bounds.last, first > 0, first <= last else { return nil }
        return Row(bytes: first...last, content: content, meaning: parts[2].trimmingSpaces)
    }

    private static func content(_ text: Substring) -> Row.Content? {
        if text == ".." { return .bytes }
        let parts = text.columns(at: "=")
        guard let mask = parts.first.flatMap({ UInt8($0, radix: 16) }), mask != 0 else { return nil }
        guard parts.count == 2 else { return parts.count == 1 ? .bits(mask: mask) : nil }
        if parts[1] == "#" { return .number(mask: mask) }
        guard let value = UInt8(parts[1], radix: 16), value & ~mask == 0 else { return nil }
        return .value(mask: mask, value)
    }

    /// Decodes `value`, of any length: a meaning for each bit that is set, each field, and all reserved bits that are
    /// set.
    public func decode(_ value: some Collection<UInt8>) -> [BitMeaning] {
        let value = Array(value)
        var lines: [BitMeaning] = []
        if !length.contains(value.count) {
            let expected = length.count == 1 ? "\(length.lowerBound)" : "\(length.lowerBound) to \(length.upperBound)"
            lines.append(BitMeaning("\(value.count) bytes instead of \(expected)", kind: .malformed))
        }
        for (byte, bits) in zip(1..., value.prefix(length.upperBound)) {
            // The bits for which there was a row.
            var explained: UInt8 = 0
            for row in rows where row.bytes.contains(byte) {
                switch row.content {
                case .bits(let mask):
                    explained |= bits & mask == mask ? mask : 0
                    guard bits & mask == mask else { continue }
                    lines.append(BitMeaning(row.meaning, byte: byte, mask: mask))
                case .value(let mask, let expected):
                    guard bits & mask == expected else { continue }
                    explained |= mask
                    lines.append(BitMeaning(row.meaning, byte: byte, mask: mask))
                case .number(let mask):
                    explained |= mask
                    let number = Int(bits & mask) >> mask.trailingZeroBitCount
                    lines.append(BitMeaning("\(row.meaning): \(number)", byte: byte, mask: mask))
                case .bytes:
                    guard explained != 0xFF else { continue }
                    explained = 0xFF
                    guard byte == row.bytes.lowerBound else { continue }
                    let part = value[(byte - 1)...].prefix(row.bytes.count)
                    lines.append(BitMeaning("\(row.meaning): \(part.hex)", byte: byte))
                }
            }
            let reserved = bits & ~explained
            if reserved != 0 {
                lines.append(BitMeaning("reserved for future use", byte: byte, mask: reserved, kind: .reserved))
            }
        }
        return lines
    }
}

extension BitTable {
    /// Returns the table for `tag`; nil if its bits have no meaning, or no public one.
    ///
    /// A scheme's table has precedence over the common one.
    public static subscript(tag: TLVTag, scope: DataElement.Scope = .common) -> BitTable? {
        tables[scope]?[tag] ?? tables[.common]?[tag]
    }
}

extension DataElement {
    /// Returns the meanings of a value's bits in order; empty for an element without inner structure.
    ///
    /// Covers the tables of ``BitTable``, and lists: CVM List, Application File Locator, data object and tag lists,
    /// Issuer Application Data, Third Party Data.  Accepts any value; a malformed one yields a meaning that says so.
    public static func bitMeanings(
        of tag: TLVTag, value: some Collection<UInt8>, scope: Scope = .common
    ) -> [BitMeaning] {
        let value = Array(value)
        switch tag {
        case 0x8E: return CVMList.bitMeanings(value)
        case 0x94: return ApplicationFileLocator.bitMeanings(value)
        case 0x8C, 0x8D, 0x97, 0x9F38, 0x9F49, 0x9F4F: return DataObjectList.bitMeanings(value, scope: scope)
        case 0x9F69 where scope == .mastercard, 0x9F51 where scope == .mastercard, 0x9F5B where scope == .mastercard,
            0xDF811A where scope == .mastercard:
            return DataObjectList.bitMeanings(value, scope: scope)
        case 0x9F4A, 0x5C: return DataObjectList.tagMeanings(value, scope: scope)
        case 0xDF8106 where scope == .mastercard, 0xDF8112 where scope == .mastercard:
            return DataObjectList.tagMeanings(value, scope: scope)
        case 0x9F62 where scope == .mastercard, 0x9F63 where scope == .mastercard:
            return trackPositions(value, length: 6)
        case 0x9F65 where scope == .mastercard, 0x9F66 where scope == .mastercard:
            return trackPositions(value, length: 2)
        case 0x9F10: return IssuerApplicationData(value, scope: scope).bitMeanings
        case 0x9F6E where scope == .mastercard: return thirdPartyData(value)
        default: return BitTable[tag, scope]?.decode(value) ?? []
        }
    }

    /// PCVC3 and PUNATC (EMV Contactless Book C-2, A.1): each bit that is set is a position in the discretionary data
    /// of the track; bit 1 of the last byte is the position at its end.
    private static func trackPositions(_ value: [UInt8], length: Int) -> [BitMeaning] {
        guard value.count == length else {
            return [BitMeaning("\(value.count) bytes instead of \(length)", kind: .malformed)]
        }
        let positions = (0..<length * 8).filter { value[length - 1 - $0 / 8] & 1 << ($0 % 8) != 0 }
        return [BitMeaning("positions from the end: " + positions.map { "\($0 + 1)" }.joined(separator: ", "))]
    }

    private static func thirdPartyData(_ value: [UInt8]) -> [BitMeaning] {
        let deviceType = ThirdPartyData(value).deviceType
        let table = deviceType == nil ? BitTable.thirdPartyData : BitTable.thirdPartyDataWithDeviceType
        var lines = table.decode(value)
        if let deviceType, let name = BitTable.deviceTypes[String(decoding: deviceType, as: UTF8.self)] {
            lines.append(BitMeaning(name, byte: 5))
        }
        return lines
    }
}

extension DataObjectList {
    static func bitMeanings(_ value: [UInt8], scope: DataElement.Scope) -> [BitMeaning] {
        do {
            var byte = 1
            return try DataObjectList(value).entries.map { entry in
                defer { byte += entry.tag.length + 1 }
                let name = DataElement[entry.tag, scope]?.name ?? "unknown"
                return BitMeaning("\(entry.tag) \(name), length \(entry.length)", byte: byte)
            }
        } catch {
            return [BitMeaning("\(error)", kind: .malformed)]
        }
    }

    static func tagMeanings(_ value: [UInt8], scope: DataElement.Scope) -> [BitMeaning] {
        do {
            var byte = 1
            return try tags(value).map { tag in
                defer { byte += tag.length }
                return BitMeaning("\(tag) \(DataElement[tag, scope]?.name ?? "unknown")", byte: byte)
            }
        } catch {
            return [BitMeaning("\(error)", kind: .malformed)]
        }
    }
}
