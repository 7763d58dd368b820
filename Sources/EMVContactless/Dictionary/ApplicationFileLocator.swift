/// The application file locator, tag 94: the files and records of an application (EMV Book 3, 10.2).
public struct ApplicationFileLocator: Hashable, Sendable {
    public struct Entry: Hashable, Sendable {
        /// The short file identifier, 1 to 30.
        public let sfi: UInt8
        /// The numbers of the records to read, from 1.
        public let records: ClosedRange<UInt8>
        /// The number of signed records, starting with the first: the input to offline data authentication.
        public let signedRecords: UInt8

        /// Returns ``records`` one by one, in order.
        var each: [Record] {
            records.map { Record(sfi: sfi, number: $0, isSigned: $0 - records.lowerBound < signedRecords) }
        }
    }

    /// A record of a file.
    struct Record: Hashable, Sendable {
        let sfi: UInt8
        let number: UInt8
        /// True if the record is part of offline data authentication.
        let isSigned: Bool
    }

    /// The maximum number of records to read for one application.  A card that names more is hostile.
    static let maximumRecords = 128

    /// The entries, in the order in which the records are to be read.
    public let entries: [Entry]

    /// Parses groups of four bytes.
    ///
    /// - Throws: ``ApplicationFileLocatorError`` at the first group that violates a rule.
    public init(_ bytes: some Collection<UInt8>) throws(ApplicationFileLocatorError) {
        let bytes = Array(bytes)
        guard bytes.count % 4 == 0 else { throw ApplicationFileLocatorError(reason: .length, offset: bytes.count) }
        guard bytes.count <= 252 else { throw ApplicationFileLocatorError(reason: .length, offset: 252) }
        var entries: [Entry] = []
        for offset in stride(from: 0, to: bytes.count, by: 4) {
            entries.append(try Entry(bytes, at: offset))
        }
        self.entries = entries
    }

    static func bitMeanings(_ value: [UInt8]) -> [BitMeaning] {
        do {
            return try zip(1..., ApplicationFileLocator(value).entries).map { index, entry in
                BitMeaning("\(entry)", byte: index * 4 - 3)
            }
        } catch {
            return [BitMeaning("\(error)", kind: .malformed)]
        }
    }
}

extension ApplicationFileLocator.Entry {
    /// Parses the group of four bytes at `offset`, which must exist.
    init(_ bytes: [UInt8], at offset: Int) throws(ApplicationFileLocatorError) {
        let (sfi, first, last, signed) = (
            bytes[offset] >> 3, bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]
        )
        guard bytes[offset] & 0x07 == 0, (1...30).contains(sfi) else {
            throw ApplicationFileLocatorError(reason: .sfi, offset: offset)
        }
        guard first > 0, last >= first else {
            throw ApplicationFileLocatorError(reason: .records, offset: offset + 1)
        }
        guard Int(signed) <= Int(last) - Int(first) + 1 else {
            throw ApplicationFileLocatorError(reason: .signedRecords, offset: offset + 3)
        }
        self.init(sfi: sfi, records: first...last, signedRecords: signed)
    }
}

extension ApplicationFileLocator.Entry: CustomStringConvertible {
    /// The entry as text: `SFI 2, records 1 to 3, 1 signed`.
    public var description: String {
        let records =
            records.count == 1
            ? "record \(records.lowerBound)" : "records \(records.lowerBound) to \(records.upperBound)"
        return "SFI \(sfi), \(records)" + (signedRecords > 0 ? ", \(signedRecords) signed" : "")
    }
}

/// An error in the bytes of an application file locator.
public struct ApplicationFileLocatorError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Reason: String, Hashable, Sendable {
        case length = "not a multiple of 4 bytes up to 252"
        case sfi = "the short file identifier is not one of 1 to 30"
        case records = "the record numbers do not begin at 1 or later, or end before they begin"
        case signedRecords = "more signed records than records"
    }

    public let reason: Reason
    /// The offset of the error in the bytes, from zero.
    public let offset: Int

    public var description: String { "AFL: \(reason.rawValue) (offset \(offset))" }
}
