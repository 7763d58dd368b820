import Glibc
public import SmartCard

/// A transaction: the data that differs from one transaction to the next (EMV Contactless Book A, 5.2 and table 5-6).
public struct Transaction: Hashable, Sendable {
    /// The first two digits of the processing code, tag 9C (Book A, table 5-6).
    public enum Kind: UInt8, Hashable, Sendable, CaseIterable, Codable {
        case purchase = 0x00
        case cash = 0x01
        case purchaseWithCashback = 0x09
        case refund = 0x20
    }

    /// The maximum of 9F02 and 9F03: twelve digits.
    public static let maximumAmount: UInt64 = 999_999_999_999

    public let kind: Kind
    /// The amount, tag 9F02, in the currency's minor unit, including cashback.
    public let amount: UInt64
    /// The cashback, tag 9F03, in the currency's minor unit.
    public let amountOther: UInt64
    public let currency: Currency
    /// The date and time, tags 9A and 9F21, in the terminal's time zone.
    public let time: TerminalTime
    /// The unpredictable number, tag 9F37, 4 bytes, for the first activation of a kernel.  ``EntryPoint`` draws a new
    /// one for each later activation.
    public internal(set) var unpredictableNumber: [UInt8]
    /// Numbers of 4 bytes that ``EntryPoint`` uses, in order, before it draws any: those of
    /// ``ContactlessTerminal/Report/furtherUnpredictableNumbers``, to repeat a transaction.
    public var furtherUnpredictableNumbers: [[UInt8]] = []
    /// The transaction sequence counter, tag 9F41, eight digits.
    public let sequenceCounter: UInt32

    /// Creates a transaction.
    ///
    /// - Returns: nil if an amount has more than twelve digits, the cashback exceeds the amount or the kind is not a
    ///   purchase with cashback, the counter has more than eight digits, or the unpredictable number does not have 4
    ///   bytes.
    public init?(
        _ kind: Kind, amount: UInt64, amountOther: UInt64 = 0, currency: Currency, time: TerminalTime,
        unpredictableNumber: [UInt8], sequenceCounter: UInt32 = 1
    ) {
        guard amount <= Self.maximumAmount, amountOther <= amount, unpredictableNumber.count == 4,
            sequenceCounter <= 99_999_999, amountOther == 0 || kind == .purchaseWithCashback
        else { return nil }
        self.kind = kind
        self.amount = amount
        self.amountOther = amountOther
        self.currency = currency
        self.time = time
        self.unpredictableNumber = unpredictableNumber
        self.sequenceCounter = sequenceCounter
    }

    /// The data objects that a card may request, by tag.
    ///
    /// A card receives the type of a purchase with cashback as 09 (Book A, table 5-6).
    public var dataObjects: [TLVTag: [UInt8]] {
        [
            0x9F02: packed(amount, bytes: 6),
            0x9F03: packed(amountOther, bytes: 6),
            0x5F2A: packed(UInt64(currency.numericCode) ?? 0, bytes: 2),
            0x5F36: [UInt8(currency.exponent ?? 0)],
            0x9A: packed(UInt64(time.date.year % 100 * 10_000 + time.date.month * 100 + time.date.day), bytes: 3),
            0x9F21: time.bytes,
            0x9C: [kind.rawValue],
            0x9F37: unpredictableNumber,
            0x9F41: packed(UInt64(sequenceCounter), bytes: 4),
        ]
    }
}

/// The terminal's date and time at the transaction.
public struct TerminalTime: Hashable, Sendable {
    public let date: CalendarDate
    public let hour: Int
    public let minute: Int
    public let second: Int

    /// Creates a time.
    ///
    /// - Returns: nil unless it is a time of day; 60 seconds are invalid.
    public init?(_ date: CalendarDate, hour: Int = 0, minute: Int = 0, second: Int = 0) {
        guard (0..<24).contains(hour), (0..<60).contains(minute), (0..<60).contains(second) else { return nil }
        (self.date, self.hour, self.minute, self.second) = (date, hour, minute, second)
    }

    /// Creates a time in this machine's time zone; 1 January 2000 if ``CalendarDate`` cannot represent its day.
    ///
    /// - Parameter seconds: seconds since 1 January 1970, UTC.
    public init(secondsSince1970 seconds: Double) {
        var time = time_t(seconds.isFinite ? max(-1e12, min(seconds.rounded(.down), 1e12)) : 0)
        var parts = tm()
        tzset()
        localtime_r(&time, &parts)
        let date = CalendarDate(year: 1900 + Int(parts.tm_year), month: 1 + Int(parts.tm_mon), day: Int(parts.tm_mday))
        // A leap second counts as the one before it.
        let second = min(Int(parts.tm_sec), 59)
        self =
            date.flatMap { TerminalTime($0, hour: Int(parts.tm_hour), minute: Int(parts.tm_min), second: second) }
            ?? .epoch
    }

    private static let epoch: TerminalTime = {
        guard let date = CalendarDate(year: 2000, month: 1, day: 1), let time = TerminalTime(date) else {
            preconditionFailure("a day of the calendar")
        }
        return time
    }()

    /// The time of day, `HHMMSS` in 3 bytes.
    var bytes: [UInt8] { packed(UInt64(hour * 10_000 + minute * 100 + second), bytes: 3) }
}

/// Returns a number in format n: two digits per byte, right-justified.
func packed(_ number: UInt64, bytes count: Int) -> [UInt8] {
    var number = number
    var bytes = [UInt8](repeating: 0, count: count)
    for index in bytes.indices.reversed() {
        bytes[index] = UInt8(number % 10) | UInt8(number / 10 % 10) << 4
        number /= 100
    }
    return bytes
}
