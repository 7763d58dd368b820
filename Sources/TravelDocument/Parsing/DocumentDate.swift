/// A date on a travel document, of which parts may be unknown (ICAO 9303-3, 3.8 and 4.8; 9303-10, 4.7.11.1).
public struct DocumentDate: Hashable, Sendable {
    /// 1 to 9999; nil if unknown.
    public let year: Int?
    /// 1 to 12; nil if unknown.
    public let month: Int?
    /// 1 to 31; nil if unknown.
    public let day: Int?

    /// - Returns: nil if no calendar has the date, such as 30 February, or 29 February 2023.
    public init?(year: Int?, month: Int?, day: Int?) {
        guard (1...9999).contains(year ?? 1), (1...12).contains(month ?? 1),
            (1...Self.days(year: year, month: month)).contains(day ?? 1)
        else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// The days of a month in the Gregorian calendar; the most that there can be if the month or the year is unknown.
    private static func days(year: Int?, month: Int?) -> Int {
        switch month {
        case 2:
            guard let year else { return 29 }
            return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: return 30
        default: return 31
        }
    }

    /// Tells whether the date is after another one, as far as the known parts tell.
    func isCertainlyAfter(_ other: DocumentDate) -> Bool {
        for (part, otherPart) in [(year, other.year), (month, other.month), (day, other.day)] {
            guard let part, let otherPart else { return false }
            if part != otherPart { return part > otherPart }
        }
        return false
    }
}

extension DocumentDate: PersonalData {
    /// The word `date`: the date itself may be that of somebody's birth.
    public var description: String { "date" }
}

/// A date in a machine readable zone: two characters each for year, month and day (ICAO 9303-3, 4.8).
///
/// Fillers stand for an unknown part, and some issuers have `00` instead.  A part that is not a number, or that no calendar
/// has, is unknown, too.  Of six zeros the year is as unknown as the rest, and not 2000.
public struct TwoDigitDate: Hashable, Sendable {
    /// The six characters.
    let characters: String

    init(_ characters: String) { self.characters = characters }

    /// The last two digits of the year, 0 to 99; nil if unknown.
    public var yearOfCentury: Int? { characters == "000000" ? nil : number(at: 0, in: 0...99) }
    /// 1 to 12; nil if unknown.
    public var month: Int? { number(at: 2, in: 1...12) }
    /// 1 to 31; nil if unknown.
    public var day: Int? { number(at: 4, in: 1...31) }

    private func number(at index: Int, in range: ClosedRange<Int>) -> Int? {
        let part = Array(characters.utf8).dropFirst(index).prefix(2)
        guard part.count == 2, part.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        let number = part.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return range.contains(number) ? number : nil
    }

    /// Returns the date of a birth: the latest one with these digits that is not after `reference`.
    ///
    /// The standard names no century; this rule takes nobody to be 100 years old.
    ///
    /// - Parameter reference: the day of reading, or the day of issue.
    /// - Returns: nil if the reference has no year, or if no calendar has the date.
    public func birth(notAfter reference: DocumentDate) -> DocumentDate? {
        guard let yearOfCentury else { return DocumentDate(year: nil, month: month, day: day) }
        guard let year = reference.year else { return nil }
        let latest = year - ((year - yearOfCentury) % 100 + 100) % 100
        return [latest, latest - 100].lazy
            .compactMap { DocumentDate(year: $0, month: month, day: day) }
            .first { !$0.isCertainlyAfter(reference) }
    }

    /// Returns the date of an expiry: the one with these digits from 50 years before `reference` to 49 years after it.
    ///
    /// The standard names no century; documents are valid for ten years or less, and some without end.
    ///
    /// - Parameter reference: the day of reading.
    /// - Returns: nil if the reference has no year, or if no calendar has the date.
    public func expiry(near reference: DocumentDate) -> DocumentDate? {
        guard let yearOfCentury else { return DocumentDate(year: nil, month: month, day: day) }
        guard let year = reference.year else { return nil }
        let first = year - 50
        return DocumentDate(year: first + ((yearOfCentury - first) % 100 + 100) % 100, month: month, day: day)
    }
}

extension TwoDigitDate: PersonalData {
    /// The word `date`: the date itself may be that of somebody's birth.
    public var description: String { "date" }
}

/// A date with a time of the day, without a time zone (ICAO 9303-10, 4.7.12, object 5F55).
public struct DocumentTime: Hashable, Sendable {
    public let date: DocumentDate
    /// 0 to 23.
    public let hour: Int
    /// 0 to 59.
    public let minute: Int
    /// 0 to 59.
    public let second: Int

    /// - Returns: nil if no clock has the time.
    public init?(date: DocumentDate, hour: Int, minute: Int, second: Int) {
        guard (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second) else { return nil }
        (self.date, self.hour, self.minute, self.second) = (date, hour, minute, second)
    }
}
