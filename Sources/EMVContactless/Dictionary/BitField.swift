public import SmartCard

/// One line of what a value says: a bit that is set, a field's value, or something out of place.
public struct BitMeaning: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        /// The bits of the mask have the value that stands for the meaning.
        case known
        /// Bits are set that the document reserves for future use.
        case reserved
        /// The value does not have the length that the document gives it; byte and mask are 0.
        case wrongLength
    }

    public let kind: Kind
    /// Which byte, counted from 1 as the documents do.
    public let byte: Int
    /// The bits concerned.
    public let mask: UInt8
    /// What stands in those bits.
    public let value: UInt8
    public let meaning: String

    public init(_ meaning: String, byte: Int = 0, mask: UInt8 = 0, value: UInt8 = 0, kind: Kind = .known) {
        self.kind = kind
        self.byte = byte
        self.mask = mask
        self.value = value
        self.meaning = meaning
    }
}

extension BitMeaning: CustomStringConvertible {
    /// `byte 1 bit 7: SDA supported`, `byte 1 bits 8-7: ARQC`, or the meaning alone where no bits are concerned.
    public var description: String {
        guard mask != 0 else { return byte == 0 ? meaning : "byte \(byte): \(meaning)" }
        guard mask != 0xFF else { return "byte \(byte): \(meaning)" }
        let high = 8 - mask.leadingZeroBitCount
        let low = mask.trailingZeroBitCount + 1
        return "byte \(byte) bit\(high == low ? " \(high)" : "s \(high)-\(low)"): \(meaning)"
    }
}

/// What the bits of one data element stand for, as data: a row for each bit or value of a field.
///
/// A row is `byte mask meaning` for bits that mean something when all are set, or `byte mask=value meaning` for one
/// value of a field.  Bits that no row speaks of are reserved.
public struct BitTable: Sendable {
    struct Row: Sendable {
        let byte: Int
        let mask: UInt8
        let value: UInt8
        let meaning: String
        let isField: Bool
    }

    /// How many bytes a value has.
    let length: ClosedRange<Int>
    let rows: [Row]

    init(length: ClosedRange<Int>, _ text: String) {
        self.length = length
        rows = text.split(separator: "\n").compactMap { Self.row($0) }
    }

    init(length: Int, _ text: String) { self.init(length: length...length, text) }

    static func row(_ line: Substring) -> Row? {
        let parts = line.split(separator: " ", maxSplits: 2)
        guard parts.count == 3, let byte = Int(parts[0]), byte > 0 else { return nil }
        let bits = parts[1].split(separator: "=").compactMap { UInt8($0, radix: 16) }
        guard let mask = bits.first, let value = bits.last, value & ~mask == 0, bits.count <= 2 else { return nil }
        return Row(
            byte: byte, mask: mask, value: value, meaning: parts[2].trimmingSpaces, isField: bits.count == 2)
    }

    /// Reads `value`, which may have any length: a line for each bit that is set, each field, and what is reserved.
    public func decode(_ value: some Collection<UInt8>) -> [BitMeaning] {
        var lines: [BitMeaning] = []
        if !length.contains(value.count) {
            let expected = length.count == 1 ? "\(length.lowerBound)" : "\(length.lowerBound) to \(length.upperBound)"
            lines.append(BitMeaning("\(value.count) bytes instead of \(expected)", kind: .wrongLength))
        }
        for (byte, bits) in zip(1..., value.prefix(length.upperBound)) {
            let rows = rows.filter { $0.byte == byte }
            // What is spoken for: bits by their rows; fields by the rows that match, for another value is reserved.
            var spoken: UInt8 = 0
            for row in rows where bits & row.mask == row.value {
                spoken |= row.mask
                lines.append(BitMeaning(row.meaning, byte: byte, mask: row.mask, value: row.value))
            }
            let reserved = bits & ~spoken & ~rows.reduce(0) { $0 | ($1.isField ? 0 : $1.mask) }
            if reserved != 0 {
                lines.append(
                    BitMeaning("reserved for future use", byte: byte, mask: reserved, value: reserved, kind: .reserved))
            }
        }
        return lines
    }
}

extension BitTable {
    /// The table for `tag`, or nil if its bits have no meaning of their own or none that is public.
    public static subscript(tag: TLVTag, scope: DataElement.Scope = .common) -> BitTable? {
        tables[scope]?[tag] ?? tables[.common]?[tag]
    }
}
