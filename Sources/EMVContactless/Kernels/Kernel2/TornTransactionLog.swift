import SmartCard

/// The torn transaction log: transactions whose card left while it generated its cryptogram, and which the card may
/// recover when it returns (EMV Contactless Book C-2, 4.4 and 3.8).
///
/// It contains clear account data: it stays in memory, and prints as a number.
public struct TornTransactionLog: KernelMemory {
    /// The data that Kernel 2 needs again for a transaction: FF8101.
    struct Record: Hashable, Sendable {
        let data: DataRecord
        let time: TerminalTime
    }

    /// The records, the oldest first.
    private var records: [Record] = []

    /// The account and its sequence number; amounts, currency and type.
    private static let identity: [TLVTag] = [0x5A, 0x5F34, 0x9F02, 0x9F03, 0x5F2A, 0x9C]

    public init() {}

    /// The number of transactions in the log.
    public var count: Int { records.count }
    public var isEmpty: Bool { records.isEmpty }

    /// Returns the latest transaction of the same account with the same amounts, currency and type.
    ///
    /// Book C-2 compares the account alone (S456.45), and puts the recovered amounts into the data record.  Here an
    /// amount that is requested is approved as it is, or not at all.
    func record(like data: DataRecord) -> Record? {
        records.last { record in Self.identity.allSatisfy { record.data[$0] == data[$0] } }
    }

    /// Adds a record.
    ///
    /// - Returns: the oldest record, if there was no more room for it.
    mutating func add(_ record: Record, maximum: Int) -> Record? {
        records.append(record)
        return records.count > maximum ? records.removeFirst() : nil
    }

    mutating func remove(_ record: Record) { records.removeAll { $0 == record } }

    /// Removes the records that are older than `seconds` before `now`, or later than `now`, after the clock was set
    /// back.
    mutating func removeAll(olderThan seconds: Int, at now: TerminalTime) {
        records.removeAll { !(0...seconds).contains(now.seconds(since: $0.time)) }
    }
}

extension TornTransactionLog: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The number as text: `2 torn transactions`.
    public var description: String { "\(count) torn transaction\(count == 1 ? "" : "s")" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension TerminalTime {
    fileprivate func seconds(since other: TerminalTime) -> Int { secondsOfEra - other.secondsOfEra }

    private var secondsOfEra: Int {
        // Days since March 1 of the year 0, in a calendar whose leap day is the last day of the year.
        let year = date.month > 2 ? date.year : date.year - 1
        let month = (date.month + 9) % 12
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + date.day - 1
        return days * 86_400 + hour * 3_600 + minute * 60 + second
    }
}
