public import SmartCard

/// What the terminal wants done, and when: the transaction's own data, which differ from one to the next
/// (EMV Contactless Book A, 5.2 and table 5-6).
public struct Transaction: Hashable, Sendable {
    /// The first two digits of the processing code, tag 9C (Book A, table 5-6).
    public enum Kind: UInt8, Hashable, Sendable, CaseIterable, Codable {
        case purchase = 0x00
        case cash = 0x01
        case purchaseWithCashback = 0x09
        case refund = 0x20
    }

    /// The most that 9F02 and 9F03 can hold: twelve digits.
    public static let maximumAmount: UInt64 = 999_999_999_999

    public let kind: Kind
    /// Tag 9F02, in the currency's minor unit, cashback included.
    public let amount: UInt64
    /// Tag 9F03, in the currency's minor unit: the cashback.
    public let amountOther: UInt64
    public let currency: Currency
    /// Tags 9A and 9F21, in the terminal's time zone.
    public let time: TerminalTime
    /// Tag 9F37, 4 bytes, when a kernel is activated for the first time.  Each activation after that has one that
    /// ``EntryPoint`` draws.
    public internal(set) var unpredictableNumber: [UInt8]
    /// Those of 4 bytes that ``EntryPoint`` takes before it draws any, in their order: what
    /// ``ContactlessTerminal/Report/furtherUnpredictableNumbers`` told of a transaction that is to be repeated.
    public var furtherUnpredictableNumbers: [[UInt8]] = []
    /// Tag 9F41, eight digits.
    public let sequenceCounter: UInt32

    /// - Returns: nil if an amount has more than twelve digits, there is cashback in what is no purchase with cashback
    ///   or more than the whole, the counter has more than eight digits, or the unpredictable number not 4 bytes.
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

    /// The data objects that a card may ask for, by tag.
    ///
    /// The transaction type of a purchase with cashback goes to the card as 09 (Book A, table 5-6).
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

/// The terminal's clock at the transaction.
public struct TerminalTime: Hashable, Sendable {
    public let date: CalendarDate
    public let hour: Int
    public let minute: Int
    public let second: Int

    /// - Returns: nil unless it is a time of day; 60 seconds are none.
    public init?(_ date: CalendarDate, hour: Int = 0, minute: Int = 0, second: Int = 0) {
        guard (0..<24).contains(hour), (0..<60).contains(minute), (0..<60).contains(second) else { return nil }
        (self.date, self.hour, self.minute, self.second) = (date, hour, minute, second)
    }

    /// `HHMMSS` in 3 bytes.
    var bytes: [UInt8] { packed(UInt64(hour * 10_000 + minute * 100 + second), bytes: 3) }
}

/// Format n: two digits a byte, right-justified.
func packed(_ number: UInt64, bytes count: Int) -> [UInt8] {
    var number = number
    var bytes = [UInt8](repeating: 0, count: count)
    for index in bytes.indices.reversed() {
        bytes[index] = UInt8(number % 10) | UInt8(number / 10 % 10) << 4
        number /= 100
    }
    return bytes
}
