/// An NDEF message (NFC Forum, NFC Data Exchange Format 1.0): a sequence of records, possibly empty.
///
/// Parsing joins the chunks of a chunked record.  Encoding writes each record in one piece, as a short record if its
/// payload has fewer than 256 bytes.
public struct NDEFMessage: Hashable, Sendable {
    public var records: [NDEFRecord]

    public init(_ records: [NDEFRecord] = []) { self.records = records }

    /// Parses a complete message; no bytes are a message without records.
    ///
    /// - Throws: ``NDEFError`` with the offset of the fault.
    public init(_ bytes: some Collection<UInt8>) throws(NDEFError) {
        var reader = NDEFReader(bytes: Array(bytes))
        records = try reader.message()
    }

    /// The encoded message.
    public var bytes: [UInt8] {
        records.enumerated().flatMap { index, record in
            record.encoded(isFirst: index == 0, isLast: index == records.count - 1)
        }
    }
}

/// A record of an NDEF message (NDEF 1.0, 3.2).
public struct NDEFRecord: Hashable, Sendable {
    /// The meaning of the type field: TNF (NDEF 1.0, 3.2.6).
    public enum TypeNameFormat: UInt8, Hashable, Sendable, CaseIterable {
        case empty = 0x00
        /// NFC Forum well-known type: `U`, `T`, `Sp`, … .
        case wellKnown = 0x01
        /// Media type (RFC 2046): `text/plain`.
        case media = 0x02
        /// Absolute URI (RFC 3986), stored in the type, not in the payload.
        case absoluteURI = 0x03
        /// NFC Forum external type: `example.com:type`.
        case external = 0x04
        /// A payload of unknown type; the reserved format 07 is parsed as this.
        case unknown = 0x05
    }

    public let format: TypeNameFormat
    /// The type, up to 255 bytes; empty if `format` is `empty` or `unknown`.
    public let type: [UInt8]
    /// The identifier, up to 255 bytes; empty if there is none.
    public let id: [UInt8]
    public let payload: [UInt8]

    /// - Throws: ``NDEFError`` if a field is too long for NDEF, or present although `format` excludes it.
    public init(
        format: TypeNameFormat, type: [UInt8] = [], id: [UInt8] = [], payload: [UInt8] = []
    ) throws(NDEFError) {
        if let reason = Self.fault(format, type, id, payload) { throw NDEFError(offset: 0, reason: reason) }
        self.init(unchecked: format, type, id, payload)
    }

    package init(unchecked format: TypeNameFormat, _ type: [UInt8], _ id: [UInt8] = [], _ payload: [UInt8]) {
        self.format = format
        self.type = type
        self.id = id
        self.payload = payload
    }

    /// `D0 00 00`: the content of some empty tags.
    public static let empty = NDEFRecord(unchecked: .empty, [], [], [])

    static func fault(_ format: TypeNameFormat, _ type: [UInt8], _ id: [UInt8], _ payload: [UInt8]) -> String? {
        if type.count > 255 || id.count > 255 || UInt64(payload.count) > UInt64(UInt32.max) {
            return "a field is too long"
        }
        switch format {
        case .empty: return type.isEmpty && id.isEmpty && payload.isEmpty ? nil : "an empty record that is not empty"
        case .unknown: return type.isEmpty ? nil : "a type where none is known"
        case .wellKnown, .media, .absoluteURI, .external: return type.isEmpty ? "a record without its type" : nil
        }
    }

    fileprivate func encoded(isFirst: Bool, isLast: Bool) -> [UInt8] {
        let isShort = payload.count < 256
        var header = format.rawValue
        if isFirst { header |= NDEFReader.Flag.messageBegin }
        if isLast { header |= NDEFReader.Flag.messageEnd }
        if isShort { header |= NDEFReader.Flag.shortRecord }
        if !id.isEmpty { header |= NDEFReader.Flag.idLength }
        var out = [header, UInt8(truncatingIfNeeded: type.count)]
        let length = UInt32(truncatingIfNeeded: payload.count)
        out += (isShort ? [0] : [24, 16, 8, 0]).map { UInt8(truncatingIfNeeded: length >> $0) }
        if !id.isEmpty { out.append(UInt8(truncatingIfNeeded: id.count)) }
        return out + type + id + payload
    }
}

/// Bytes that are not an NDEF message.
public struct NDEFError: Error, Hashable, Sendable {
    /// The position in the message, from zero.
    public let offset: Int
    public let reason: String
}

extension NDEFError: CustomStringConvertible {
    /// `the payload is cut off, at offset 3`
    public var description: String { "\(reason), at offset \(offset)" }
}

/// Parses consecutive records.
private struct NDEFReader {
    /// The bits above TNF (NDEF 1.0, 3.2).
    enum Flag {
        static let messageBegin: UInt8 = 0x80
        static let messageEnd: UInt8 = 0x40
        static let chunk: UInt8 = 0x20
        static let shortRecord: UInt8 = 0x10
        static let idLength: UInt8 = 0x08
    }

    /// The TNF of all chunks except the first.
    private static let unchanged: UInt8 = 0x06

    let bytes: [UInt8]
    private var offset = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    private struct Piece {
        let offset: Int
        let header: UInt8
        let type: [UInt8]
        let id: [UInt8]
        let payload: [UInt8]

        var format: UInt8 { header & 0x07 }
        func has(_ flag: UInt8) -> Bool { header & flag != 0 }
    }

    mutating func message() throws(NDEFError) -> [NDEFRecord] {
        guard !bytes.isEmpty else { return [] }
        var records: [NDEFRecord] = []
        while true {
            let first = try piece()
            guard first.has(Flag.messageBegin) == records.isEmpty else {
                throw NDEFError(offset: first.offset, reason: "the message-begin flag does not fit")
            }
            guard first.format != Self.unchanged else {
                throw NDEFError(offset: first.offset, reason: "a chunk without a record that it continues")
            }
            let (payload, isLast) = try payload(from: first)
            // 07 is reserved and treated as unknown; its type field has no meaning (3.2.6).
            let format = NDEFRecord.TypeNameFormat(rawValue: first.format) ?? .unknown
            let type = first.format == 0x07 ? [] : first.type
            if let reason = NDEFRecord.fault(format, type, first.id, payload) {
                throw NDEFError(offset: first.offset, reason: reason)
            }
            records.append(NDEFRecord(unchecked: format, type, first.id, payload))
            if isLast { break }
        }
        guard offset == bytes.count else { throw NDEFError(offset: offset, reason: "bytes behind the last record") }
        return records
    }

    /// Returns a record's payload with all its chunks (2.3.3); `isLast` is true if the record ends the message.
    private mutating func payload(from first: Piece) throws(NDEFError) -> ([UInt8], isLast: Bool) {
        var payload = first.payload
        var piece = first
        while piece.has(Flag.chunk) {
            guard !piece.has(Flag.messageEnd) else {
                throw NDEFError(offset: piece.offset, reason: "the message ends inside a chunked record")
            }
            piece = try self.piece()
            guard piece.format == Self.unchanged, piece.type.isEmpty, !piece.has(Flag.idLength),
                !piece.has(Flag.messageBegin)
            else { throw NDEFError(offset: piece.offset, reason: "not the next chunk of the record before") }
            payload += piece.payload
        }
        return (payload, piece.has(Flag.messageEnd))
    }

    private mutating func piece() throws(NDEFError) -> Piece {
        let start = offset
        let header = try take(1, "the record header")[0]
        let typeLength = Int(try take(1, "the type length")[0])
        let lengthBytes = try take(header & Flag.shortRecord != 0 ? 1 : 4, "the payload length")
        let length = lengthBytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let idLength = header & Flag.idLength != 0 ? Int(try take(1, "the ID length")[0]) : 0
        let type = try take(typeLength, "the type")
        let id = try take(idLength, "the ID")
        guard let count = Int(exactly: length) else {
            throw NDEFError(offset: offset, reason: "the payload is cut off")
        }
        let payload = try take(count, "the payload")
        return Piece(offset: start, header: header, type: type, id: id, payload: payload)
    }

    private mutating func take(_ count: Int, _ what: String) throws(NDEFError) -> [UInt8] {
        guard count <= bytes.count - offset else { throw NDEFError(offset: offset, reason: "\(what) is cut off") }
        defer { offset += count }
        return Array(bytes[offset..<(offset + count)])
    }
}
