import EMVContactless
import SmartCard
import SmartCardTrace
import ToolSupport

/// The transaction in a trace and its result, under the keys of TraceFileFormat.md.
enum RecordedTransaction {
    private static let kinds: [(word: String, kind: Transaction.Kind)] = [
        ("purchase", .purchase), ("cash", .cash), ("cashback", .purchaseWithCashback), ("refund", .refund),
    ]

    /// The lines for `transaction`, on a reader that the file called `configuration` has configured; nil: the built-in.
    static func events(_ transaction: Transaction, configuration: String?) -> [TraceEvent.What] {
        let time = transaction.time
        let clock = [time.hour, time.minute, time.second].map { $0 < 10 ? "0\($0)" : "\($0)" }
        let values = [
            ("type", kinds.first { $0.kind == transaction.kind }?.word ?? ""),
            ("amount", "\(transaction.amount)"),
            ("amount-other", "\(transaction.amountOther)"),
            ("currency", transaction.currency.code),
            ("time", "\(time.date)T\(clock.joined(separator: ":"))"),
            ("number", transaction.unpredictableNumber.hex),
            ("counter", "\(transaction.sequenceCounter)"),
        ]
        return values.map { .meta(key: "transaction.\($0)", value: $1) }
            + [Self.configuration(configuration)].map { .meta(key: $0.key, value: $0.value) }
    }

    /// Returns the note that the file at `path` has configured the reader; nil: the built-in configuration.
    static func configuration(_ path: String?) -> (key: String, value: String) {
        ("transaction.configuration", path?.split(separator: "/").last.map(String.init) ?? "test")
    }

    /// Returns the transaction in `meta`.  The defaults are a purchase, no cashback, and the number 0.
    ///
    /// - Throws: ``ToolError`` that names the key.
    static func transaction(_ meta: [String: String]) throws -> Transaction {
        func value<Value>(_ key: String, default absent: Value? = nil, _ read: (String) -> Value?) throws -> Value {
            guard let text = meta["transaction.\(key)"] else {
                if let absent { return absent }
                throw ToolError.usage(
                    "the trace does not contain its transaction: there is no “meta transaction.\(key)”",
                    "apdu-trace pay writes it; with --amount, the transaction is that of the command line.")
            }
            guard let value = read(text) else {
                throw ToolError.usage("transaction.\(key) is not one", "See TraceFileFormat.md.")
            }
            return value
        }
        var transaction = Transaction(
            try value("type", default: .purchase) { word in kinds.first { $0.word == word }?.kind },
            amount: try value("amount") { UInt64($0) },
            amountOther: try value("amount-other", default: 0) { UInt64($0) },
            currency: try value("currency") { Currency[$0] },
            time: try value("time", time(_:)),
            unpredictableNumber: try value("number", default: [0, 0, 0, 0]) { try? [UInt8](hex: $0) },
            sequenceCounter: try value("counter", default: 1) { UInt32($0) })
        transaction?.furtherUnpredictableNumbers = try value("further-numbers", default: []) { text in
            try? text.split(separator: " ").map { try [UInt8](hex: String($0)) }
        }
        guard let transaction else {
            throw ToolError.usage("the trace contains no valid transaction", "Check its amounts, number and counter.")
        }
        return transaction
    }

    /// `2026-11-21T18:05:09`
    private static func time(_ text: String) -> TerminalTime? {
        let pattern = Array("dddd-dd-ddTdd:dd:dd".utf8)
        let isOne =
            text.utf8.count == pattern.count
            && zip(text.utf8, pattern).allSatisfy { character, due in
                due == UInt8(ascii: "d") ? (0x30...0x39).contains(character) : character == due
            }
        let numbers = text.split { "-T:".contains($0) }.compactMap { Int($0) }
        guard isOne, numbers.count == 6, let date = CalendarDate(year: numbers[0], month: numbers[1], day: numbers[2])
        else { return nil }
        return TerminalTime(date, hour: numbers[3], minute: numbers[4], second: numbers[5])
    }

    /// Returns the line for the values drawn during the transaction.
    static func drawn(_ report: ContactlessTerminal.Report) -> [TraceEvent.What] {
        let numbers = report.furtherUnpredictableNumbers.map(\.hex).joined(separator: " ")
        return numbers.isEmpty ? [] : [.meta(key: "transaction.further-numbers", value: numbers)]
    }

    /// Returns the lines for the result.  They contain neither account data nor values that a card computes.
    static func events(_ final: FinalOutcome) -> [TraceEvent.What] {
        let outcome = final.outcome
        let data = [outcome.dataRecord, outcome.discretionaryData].flatMap { $0?.elements ?? [] }.filter {
            SensitiveData.exposure(of: $0.value, in: $0.tag) == nil && !SensitiveData.isRandom($0.tag)
        }
        let values: [(String, String?)] = [
            ("kind", outcome.kind.rawValue),
            ("aid", final.name?.hex),
            ("kernel", final.kernel.map { "\($0.rawValue)" }),
            ("cvm", outcome.cvm?.rawValue),
            ("start", outcome.start?.rawValue),
            ("interface", outcome.alternateInterfacePreference?.rawValue),
            ("data", data.isEmpty ? nil : data.map { "\($0.tag)=\($0.value.hex)" }.joined(separator: " ")),
            ("reason", outcome.reason),
        ]
        return values.compactMap { key, value in value.map { .meta(key: "outcome.\(key)", value: $0) } }
    }

    static func isOutcome(key: String) -> Bool { key.hasPrefix("outcome.") }

    /// Returns the differences between `recorded` and `replayed`, one line each, card data masked; a reason counts only
    /// if `exact`.
    static func differences(
        recorded: [String: String], replayed: [String: String], exact: Bool
    ) -> [String] {
        Set(recorded.keys).union(replayed.keys).filter(isOutcome).sorted().flatMap { key -> [String] in
            let (old, new) = (recorded[key], replayed[key])
            guard old != new, exact || key != "outcome.reason" else { return [] }
            guard key == "outcome.data" else {
                return ["! \(key)  \(old.map { shown($0, key) } ?? "-") | \(new.map { shown($0, key) } ?? "-")"]
            }
            // A long list shows only the differences.
            let objects = [old, new].map { ($0 ?? "").split(separator: " ").map(String.init) }
            let lines = objects[1].difference(from: objects[0]).map { change in
                switch change {
                case .remove(_, let object, _): "! \(key)  \(shown(object, key)) | -"
                case .insert(_, let object, _): "! \(key)  - | \(shown(object, key))"
                }
            }
            return lines.isEmpty ? ["! \(key)  spaces"] : lines
        }
    }

    /// `value`, or one object of it, for people.  The file's author may have put card data there.
    private static func shown(_ value: String, _ key: String) -> String {
        switch key {
        case "outcome.aid": return (try? [UInt8](hex: value)).map { SensitiveData.masked($0, of: 0x84) } ?? "(hidden)"
        case "outcome.data":
            let parts = value.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, let tag = UInt32(parts[0], radix: 16).map(TLVTag.init(rawValue:)),
                let bytes = try? [UInt8](hex: String(parts[1]))
            else { return "(hidden)" }
            return "\(tag)=\(SensitiveData.masked(bytes, of: tag))"
        default:
            let trace = Trace([TraceEvent(at: .zero, .meta(key: key, value: value))])
            return TraceRedaction.eventsWithAccountNumbers(in: trace).isEmpty ? value : "(hidden)"
        }
    }
}
