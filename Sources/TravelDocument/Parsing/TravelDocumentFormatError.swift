public import SmartCard

/// A file that is not as its standard has it: the place, and what was due there.  It never contains what the file does.
public struct TravelDocumentFormatError: Error, Hashable, Sendable {
    /// The thing that was due.
    public enum Due: Hashable, Sendable {
        /// A file of at most this many bytes.
        case size(Int)
        /// Data objects in BER-TLV; the bytes are none for this reason.
        case dataObjects(TLVError.Reason)
        /// An object with this tag.
        case object(TLVTag)
        /// No further object with this tag: there may be one only.
        case singleObject(TLVTag)
        /// The end of the file, or of the object that the offset is in.
        case end
        /// This many bytes of a record; it has fewer.
        case bytes(Int)
        /// A value with a number of bytes from this range.
        case length(ClosedRange<Int>)
        /// A number from this range.
        case number(ClosedRange<Int>)
        case element(Element)
        /// A value of ASN.1, by its name in the standard.
        case value(String)
    }

    /// A part of a file with a form of its own.
    public enum Element: String, Hashable, Sendable {
        case digits = "digits"
        case tagList = "a list of tags"
        case date = "a date, year, month and day, in 8 characters or 4 bytes of packed digits"
        case time = "a date and a time in 14 characters or 7 bytes of packed digits"
        case zoneCharacter = "a character from A to Z, 0 to 9 or <"
        case faceRecord = "a face record: 46 41 43 00 30 31 30 00"
        case image = "an image"
        case integer = "a small positive integer"
    }

    public let file: ElementaryFile
    /// The position in the file, from zero.
    public let offset: Int
    public let due: Due

    public init(file: ElementaryFile, offset: Int, due: Due) {
        (self.file, self.offset, self.due) = (file, offset, due)
    }
}

extension TravelDocumentFormatError: CustomStringConvertible {
    public var description: String { "\(file), byte \(offset): \(due)" }
}

extension TravelDocumentFormatError.Due: CustomStringConvertible {
    public var description: String {
        switch self {
        case .size(let limit): "at most \(limit) bytes were due"
        case .dataObjects(let reason): "data objects were due; \(Self.text(reason))"
        case .object(let tag): "an object \(tag) was due"
        case .singleObject(let tag): "there may be one object \(tag) only"
        case .end: "the end was due"
        case .bytes(let count): "\(count) more bytes were due"
        case .length(let range): "a value of \(Self.text(range)) bytes was due"
        case .number(let range): "a number was due: \(Self.text(range))"
        case .element(let element): "\(element.rawValue) was due"
        case .value(let name): "\(name) was due"
        }
    }

    private static func text(_ range: ClosedRange<Int>) -> String {
        range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
    }

    private static func text(_ reason: TLVError.Reason) -> String {
        switch reason {
        case .truncatedTag: "the tag is cut off"
        case .tagTooLong: "the tag has more than 4 bytes"
        case .truncatedLength: "the length field is cut off"
        case .lengthTooLong: "the length field has more than 5 bytes"
        case .indefiniteLength: "the length is indefinite"
        case .truncatedValue(let claimed, let available): "the length claims \(claimed) bytes, \(available) are left"
        case .tooDeep: "they are nested too deep"
        case .tooMany: "there are too many"
        }
    }
}
