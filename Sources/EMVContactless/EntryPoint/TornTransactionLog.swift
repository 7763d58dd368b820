import SmartCard
import Synchronization

/// Transactions whose card left while it made its cryptogram, and which it may recover when it comes back (EMV Contactless
/// Book C-2, 4.4 and 3.8: the torn transaction log).
///
/// It holds account data in the clear: it stays in memory, and prints as a number.
public struct TornTransactionLog: Hashable, Sendable {
    /// What Kernel 2 has to know again of a transaction: FF8101.
    struct Record: Hashable, Sendable {
        let data: DataRecord
        let time: TerminalTime
    }

    /// The oldest first.
    private var records: [Record] = []

    /// The account and its sequence number; amounts, currency and type.
    private static let identity: [TLVTag] = [0x5A, 0x5F34, 0x9F02, 0x9F03, 0x5F2A, 0x9C]

    public init() {}

    /// How many transactions there are in it.
    public var count: Int { records.count }
    public var isEmpty: Bool { records.isEmpty }

    /// The latest transaction of the same account, for the same amounts, currency and type.
    ///
    /// Book C-2 compares the account alone (S456.45), and has the recovered amounts in the data record.  Who asks for an
    /// amount here gets that amount approved, or none.
    func record(like data: DataRecord) -> Record? {
        records.last { record in Self.identity.allSatisfy { record.data[$0] == data[$0] } }
    }

    /// - Returns: the oldest one, if there was no room for it any more.
    mutating func add(_ record: Record, maximum: Int) -> Record? {
        records.append(record)
        return records.count > maximum ? records.removeFirst() : nil
    }

    mutating func remove(_ record: Record) { records.removeAll { $0 == record } }

    /// Removes what is not of the last `seconds` before `now`, also what the clock has been set back behind.
    mutating func removeAll(olderThan seconds: Int, at now: TerminalTime) {
        records.removeAll { !(0...seconds).contains(now.seconds(since: $0.time)) }
    }
}

extension TornTransactionLog: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `2 torn transactions`
    public var description: String { "\(count) torn transaction\(count == 1 ? "" : "s")" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// The log of a terminal, which goes from one transaction to the next.
public final class TornTransactions: Sendable {
    private let log = Mutex(TornTransactionLog())

    public init() {}

    /// What is in it now.
    public var current: TornTransactionLog { log.withLock { $0 } }

    func replace(with new: TornTransactionLog) { log.withLock { $0 = new } }
}

extension TerminalTime {
    fileprivate func seconds(since other: TerminalTime) -> Int { secondsOfEra - other.secondsOfEra }

    private var secondsOfEra: Int {
        // Days since March 1st of the year 0, of a calendar whose leap day is the last of the year.
        let year = date.month > 2 ? date.year : date.year - 1
        let month = (date.month + 9) % 12
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + date.day - 1
        return days * 86_400 + hour * 3_600 + minute * 60 + second
    }
}
