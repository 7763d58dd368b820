extension NDEFRecord {
    // MARK: URI (NFC Forum, URI Record Type Definition 1.0)

    /// Returns a URI record, with an abbreviated prefix if the definition has a code for it.
    ///
    /// - Returns: nil for a URI that does not fit into a record.
    public static func uri(_ uri: String) -> NDEFRecord? {
        let code =
            uriPrefixes.indices.dropFirst().filter { uri.hasPrefix(uriPrefixes[$0]) }
            .max { uriPrefixes[$0].utf8.count < uriPrefixes[$1].utf8.count } ?? 0
        let rest = uri.utf8.dropFirst(uriPrefixes[code].utf8.count)
        return try? NDEFRecord(
            format: .wellKnown, type: Array("U".utf8), payload: [UInt8(truncatingIfNeeded: code)] + rest)
    }

    /// The URI of a URI record, or of a record of absolute URI format; nil for other records, and for a URI that is not
    /// UTF-8.  Reserved abbreviations expand to nothing.
    public var uri: String? {
        if format == .absoluteURI { return String(validating: type) }
        guard format == .wellKnown, type == Array("U".utf8), let code = payload.first else { return nil }
        let prefix = Int(code) < Self.uriPrefixes.count ? Self.uriPrefixes[Int(code)] : ""
        return String(validating: payload.dropFirst()).map { prefix + $0 }
    }

    /// The prefixes, by URI identifier code.
    private static let uriPrefixes = [
        "", "http://www.", "https://www.", "http://", "https://", "tel:", "mailto:", "ftp://anonymous:anonymous@",
        "ftp://ftp.", "ftps://", "sftp://", "smb://", "nfs://", "ftp://", "dav://", "news:", "telnet://", "imap:",
        "rtsp://", "urn:", "pop:", "sip:", "sips:", "tftp:", "btspp://", "btl2cap://", "btgoep://", "tcpobex://",
        "irdaobex://", "file://", "urn:epc:id:", "urn:epc:tag:", "urn:epc:pat:", "urn:epc:raw:", "urn:epc:", "urn:nfc:",
    ]

    // MARK: Text (NFC Forum, Text Record Type Definition 1.0)

    /// A text and its language.
    public struct Text: Hashable, Sendable {
        public var text: String
        /// A language tag (RFC 5646): `en`, `fi`, `en-US`.
        public var language: String

        public init(_ text: String, language: String) {
            self.text = text
            self.language = language
        }
    }

    /// Returns a text record in UTF-8.
    ///
    /// - Returns: nil if the language tag is not ASCII, or has more than 63 characters.
    public static func text(_ text: String, language: String) -> NDEFRecord? {
        let tag = Array(language.utf8)
        guard tag.count <= 63, tag.allSatisfy({ $0 < 0x80 }) else { return nil }
        return try? NDEFRecord(
            format: .wellKnown, type: Array("T".utf8),
            payload: [UInt8(truncatingIfNeeded: tag.count)] + tag + Array(text.utf8))
    }

    /// The content of a text record; nil for other records, and for text that is invalid in its declared encoding.
    ///
    /// UTF-16 without a byte order mark is big-endian.
    public var text: Text? {
        guard format == .wellKnown, type == Array("T".utf8), let status = payload.first else { return nil }
        let languageLength = Int(status & 0x3F)
        guard payload.count > languageLength, let language = String(validating: payload[1..<(1 + languageLength)])
        else {
            return nil
        }
        let rest = payload.dropFirst(1 + languageLength)
        let text = status & 0x80 == 0 ? String(validating: rest) : String(utf16Bytes: Array(rest))
        return text.map { Text($0, language: language) }
    }

    // MARK: Media

    /// Returns a record of a media type, such as `application/json`.
    ///
    /// - Returns: nil for a type that is empty or longer than 255 bytes.
    public static func media(_ type: String, _ payload: [UInt8]) -> NDEFRecord? {
        try? NDEFRecord(format: .media, type: Array(type.utf8), payload: payload)
    }
}

extension String {
    /// Returns nil for bytes that are not UTF-8.
    fileprivate init?(validating bytes: some Collection<UInt8>) {
        self.init(validating: bytes, as: UTF8.self)
    }

    fileprivate init?(utf16Bytes bytes: [UInt8]) {
        guard bytes.count.isMultiple(of: 2) else { return nil }
        let isLittleEndian = bytes.starts(with: [0xFF, 0xFE])
        let start = isLittleEndian || bytes.starts(with: [0xFE, 0xFF]) ? 2 : 0
        let units = stride(from: start, to: bytes.count, by: 2).map { i -> UInt16 in
            let (high, low) = isLittleEndian ? (bytes[i + 1], bytes[i]) : (bytes[i], bytes[i + 1])
            return UInt16(high) << 8 | UInt16(low)
        }
        self.init(validating: units, as: UTF16.self)
    }
}
