import SmartCard

/// The year and month in which a card expires: it is valid through the last day of the month.
public struct ExpirationDate: Hashable, Sendable {
    public let year: Int
    /// The month, 1 to 12.
    public let month: Int

    /// Parses `YYMM`.  Years 00 to 49 belong to this century, 50 to 99 to the last (EMV Book 4, 6.7.3).
    ///
    /// - Returns: nil unless there are four digits with a valid month.
    public init?(yymm: some StringProtocol) {
        guard yymm.utf8.count == 4, yymm.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let year = Int(yymm.prefix(2)), let month = Int(yymm.suffix(2)), (1...12).contains(month)
        else { return nil }
        self.year = year + (year < 50 ? 2000 : 1900)
        self.month = month
    }

    /// Parses the first two bytes of format n, as in tag 5F24: `YYMMDD` or `YYMM`.
    public init?(packed bytes: some Collection<UInt8>) {
        guard (2...3).contains(bytes.count) else { return nil }
        self.init(yymm: bytes.prefix(2).hex)
    }

    /// Returns true if the last day of the month is before `date`.
    public func isOver(on date: CalendarDate) -> Bool { (year, month) < (date.year, date.month) }
}

extension ExpirationDate: CustomStringConvertible {
    /// The month as `2031-12`.
    public var description: String { "\(year)-\(month < 10 ? "0" : "")\(month)" }
}

/// The contents of track 1 of a card, structure code B (ISO/IEC 7813).
public struct Track1: Hashable, Sendable {
    public let pan: PAN
    /// The name as coded: surname, `/`, first name; possibly with trailing spaces.
    public var name: String { String(decoding: nameCharacters, as: UTF8.self) }
    /// The expiration date; nil if the track has a separator in its place.
    public let expiration: ExpirationDate?
    /// The service code, three digits; nil if the track has a separator in its place.
    public let serviceCode: String?
    public var discretionaryData: String { String(decoding: discretionaryCharacters, as: UTF8.self) }

    // No short strings, as in PAN.
    private let nameCharacters: [UInt8]
    private let discretionaryCharacters: [UInt8]

    /// Parses tag 56: characters, from the format code to the end of the discretionary data, without sentinels.
    ///
    /// - Throws: ``TrackError`` with the offset of the error in characters.
    public init(_ bytes: some Collection<UInt8>) throws(TrackError) {
        if let bad = bytes.enumerated().first(where: { !(0x20...0x7E).contains($0.element) }) {
            throw TrackError(reason: .character, offset: bad.offset)
        }
        var reader = TrackReader(bytes, separator: UInt8(ascii: "^"))
        guard reader.take(1) == [UInt8(ascii: "B")] else { throw TrackError(reason: .formatCode, offset: 0) }
        pan = try reader.accountNumber()
        let start = reader.offset
        let name = reader.field()
        guard reader.skipSeparator(), (2...26).contains(name.count) else {
            throw TrackError(reason: .name, offset: start)
        }
        nameCharacters = Array(name)
        expiration = try reader.expiration()
        serviceCode = try reader.serviceCode()
        discretionaryCharacters = Array(reader.rest())
    }
}

/// The contents of track 2 of a card (ISO/IEC 7813).
public struct Track2: Hashable, Sendable {
    public let pan: PAN
    /// The expiration date; nil if the track has a separator in its place.
    public let expiration: ExpirationDate?
    /// The service code, three digits; nil if the track has a separator in its place.
    public let serviceCode: String?
    /// The discretionary data: digits.
    public var discretionaryData: String { String(decoding: discretionaryDigits, as: UTF8.self) }

    // No short string, as in PAN.
    private let discretionaryDigits: [UInt8]

    /// Parses tag 57 or 9F6B: two digits per byte, `D` between the fields, padded with trailing `F`.
    ///
    /// - Throws: ``TrackError`` with the offset of the error in digits.
    public init(_ bytes: some Collection<UInt8>) throws(TrackError) {
        let filled = bytes.hex.utf8
        let filling = filled.reversed().prefix { $0 == UInt8(ascii: "F") }.count
        var reader = TrackReader(filled.dropLast(filling), separator: UInt8(ascii: "D"))
        pan = try reader.accountNumber()
        expiration = try reader.expiration()
        serviceCode = try reader.serviceCode()
        let offset = reader.offset
        discretionaryDigits = Array(reader.rest())
        if let bad = discretionaryDigits.enumerated().first(where: { !(0x30...0x39).contains($0.element) }) {
            throw TrackError(reason: .discretionaryData, offset: offset + bad.offset)
        }
    }
}

/// An error in the bytes of a track.
public struct TrackError: Error, Hashable, Sendable {
    public enum Reason: String, Hashable, Sendable {
        case character = "not a printable character"
        case formatCode = "the format code is not B"
        case accountNumber = "no account number of 8 to 19 digits before a separator"
        case name = "no name of 2 to 26 characters before a separator"
        case expiration = "the expiry is no year and month"
        case serviceCode = "the service code is not three digits"
        case discretionaryData = "the discretionary data are not digits"
    }

    public let reason: Reason
    /// The offset of the error in characters or digits, from zero.
    public let offset: Int
}

extension TrackError: CustomStringConvertible {
    public var description: String { "track: \(reason.rawValue) (offset \(offset))" }
}

extension Track1: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The masked account number, and nothing else.
    public var description: String { "track 1 of \(pan.masked)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["pan": pan.masked]) }
}

extension Track2: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The masked account number, and nothing else.
    public var description: String { "track 2 of \(pan.masked)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["pan": pan.masked]) }
}

/// A reader of the fields that both tracks have, from ASCII characters.
private struct TrackReader {
    private let text: [UInt8]
    private let separator: UInt8
    private(set) var offset = 0

    init(_ text: some Collection<UInt8>, separator: UInt8) {
        self.text = Array(text)
        self.separator = separator
    }

    mutating func take(_ count: Int) -> ArraySlice<UInt8> {
        let taken = text[offset...].prefix(count)
        offset += taken.count
        return taken
    }

    mutating func rest() -> ArraySlice<UInt8> { take(text.count) }

    /// Returns the characters up to the next separator, or up to the end.
    mutating func field() -> ArraySlice<UInt8> { take(text[offset...].prefix { $0 != separator }.count) }

    mutating func skipSeparator() -> Bool {
        guard offset < text.count, text[offset] == separator else { return false }
        offset += 1
        return true
    }

    mutating func accountNumber() throws(TrackError) -> PAN {
        let start = offset
        guard let pan = PAN(ascii: field()), skipSeparator() else {
            throw TrackError(reason: .accountNumber, offset: start)
        }
        return pan
    }

    mutating func expiration() throws(TrackError) -> ExpirationDate? {
        guard !skipSeparator() else { return nil }
        let start = offset
        guard let date = ExpirationDate(yymm: String(decoding: take(4), as: UTF8.self)) else {
            throw TrackError(reason: .expiration, offset: start)
        }
        return date
    }

    mutating func serviceCode() throws(TrackError) -> String? {
        guard !skipSeparator() else { return nil }
        let start = offset
        let code = take(3)
        guard code.count == 3, code.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw TrackError(reason: .serviceCode, offset: start)
        }
        return String(decoding: code, as: UTF8.self)
    }
}
