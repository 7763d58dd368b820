import EMVContactless
import SmartCard
import ToolSupport

extension Report {
    /// The report of `pay`.
    struct Payment: Encodable {
        struct Message: Encodable {
            /// Two hexadecimal digits (EMV Contactless Book A, table 9-3); null if there is no text.
            @OrNull var identifier: String?
            let text: String
            /// `readyToRead`, `processingError`, …
            let status: String
            let holdTime: Int
            let languages: [String]
            @OrNull var value: Value?
        }

        /// An amount displayed with a message.
        struct Value: Encodable {
            /// `amount`, or `balance`: the amount that the card may still spend offline.
            let kind: String
            /// The amount in the currency's minor unit.
            let amount: UInt64
            let currency: String
        }

        struct Exchange: Encodable {
            /// CLA, INS, P1, P2
            let command: String
            @OrNull var status: String?
            /// The duration in milliseconds.
            let duration: Double
        }

        /// The reader; null if the transaction was refused before a card was requested.
        @OrNull var reader: Reader?
        let amount: Int
        let currency: String
        let type: String
        /// `approved`, `declined`, `onlineRequest`, `tryAnotherInterface`, `endApplication`
        let outcome: String
        let reason: String
        @OrNull var aid: String?
        @OrNull var kernel: Int?
        @OrNull var cvm: String?
        @OrNull var start: String?
        @OrNull var onlineResponseData: String?
        /// The message when the card must be presented again.
        @OrNull var messageOnRestart: Message?
        @OrNull var alternateInterface: String?
        let receipt: Bool
        @OrNull var fieldOff: Int?
        let removalTimeout: Int
        let messages: [Message]
        let dataRecord: [Element]
        let discretionaryData: [Element]
        let exchanges: [Exchange]
        let notes: [String]
        /// The passes that were read in the same tap, as `pass` prints them; null if none were asked for.
        @OrNull var passes: Passes?

        /// - Parameters:
        ///   - answer: the issuer's answer to an online request.
        ///   - passes: those read in the same tap; nil if none were asked for.
        init(
            reader: ReaderIdentity?, transaction: Transaction, messages: [UserInterfaceRequest],
            result: ContactlessTerminal.Report, answer: OnlineResponse?, passes: Passes?, reveal: Bool
        ) {
            let outcome = result.outcome
            self.reader = reader.map { Reader($0) }
            amount = Int(transaction.amount)
            currency = transaction.currency.code
            type = "\(transaction.kind)"
            self.outcome = outcome.kind.rawValue
            reason = outcome.reason
            // The card's bytes behind the reader's AID may be anything.
            aid = result.final.name.map { reveal ? $0.hex : SensitiveData.masked($0, of: 0x84) }
            kernel = result.final.kernel.map { Int($0.rawValue) }
            cvm = (outcome.cvm ?? result.onlineRequest?.outcome.cvm)?.rawValue
            start = outcome.start?.rawValue
            onlineResponseData = outcome.onlineResponseData?.rawValue
            alternateInterface = outcome.alternateInterfacePreference?.rawValue
            receipt = outcome.receipt
            fieldOff = outcome.fieldOff
            removalTimeout = outcome.removalTimeout
            messageOnRestart = outcome.userInterfaceRequestOnRestart.map { Message($0) }
            self.messages = messages.map { Message($0) }
            let scope = result.final.kernel.map { DataElement.Scope(kernel: $0) } ?? .common
            func elements(_ record: DataRecord?) -> [Element] {
                (record?.elements ?? []).map {
                    Element(Annotation(tag: $0.tag, value: $0.value, scope: scope), reveal: reveal)
                }
            }
            dataRecord = elements(outcome.dataRecord ?? result.onlineRequest?.outcome.dataRecord)
            discretionaryData = elements(outcome.discretionaryData)
            exchanges = result.exchanges.map {
                Exchange(
                    command: $0.header.hex, status: $0.status.map { [$0.sw1, $0.sw2].hex },
                    duration: ($0.duration / .microseconds(1)).rounded() / 1000)
            }
            var notes = result.notes
            if let answer, outcome.kind == .onlineRequest, !outcome.isRestarted(by: answer) {
                notes.append(
                    answer.hasDataForCard
                        ? "the issuer's answer is not for this card: it or the reader has no issuer update processing"
                        : "the issuer's answer holds nothing for the card")
            }
            self.notes = notes
            _passes = OrNull(wrappedValue: passes)
        }
    }
}

extension Report.Payment.Message {
    init(_ request: UserInterfaceRequest) {
        self.init(
            identifier: request.message.map { [$0.rawValue].hex }, text: request.text, status: "\(request.status)",
            holdTime: request.holdTime, languages: request.languagePreference,
            value: request.value.map { .init($0) })
    }

    /// `Present card  ready to read`
    fileprivate var line: String {
        "\(text.isEmpty ? "(no message)" : text)  \(Terminal.styled(status.words, .dim))"
    }
}

extension Report.Payment.Value {
    init(_ value: UserInterfaceRequest.Value) {
        switch value {
        case .amount(let units, let currency): self.init(kind: "amount", amount: units, currency: currency.code)
        case .balance(let units, let currency): self.init(kind: "balance", amount: units, currency: currency.code)
        }
    }
}

extension Redactor {
    init(hiding result: ContactlessTerminal.Report) {
        let outcomes = [result.outcome, result.onlineRequest?.outcome].compactMap(\.self)
        self.init(
            hiding: outcomes.flatMap { [$0.dataRecord, $0.discretionaryData] }.flatMap { $0?.elements ?? [] }
                .map { ($0.tag, $0.value) })
    }
}

/// The outcome of a transaction as text for people.
struct PaymentText {
    private let report: Report.Payment

    init(_ report: Report.Payment) { self.report = report }

    var text: String {
        let amount = Currency[report.currency]?.format("\(report.amount)") ?? ""
        var lines = report.reader.map { [field("Reader", "\($0.name)  (\($0.backend))")] } ?? []
        if let passes = report.passes { lines += PassText(passes).lines + [""] }
        lines.append(field("Transaction", "\(report.type.words), \(amount)"))
        if let aid = report.aid { lines.append(field("Application", aid)) }
        if let kernel = report.kernel { lines.append(field("Kernel", "\(KernelIdentifier(rawValue: UInt32(kernel)))")) }
        lines.append(field("Outcome", Terminal.styled(report.outcome.words, .bold)))
        lines.append(field("Because", report.reason))
        let parameters: [(String, String?)] = [
            ("CVM", report.cvm?.words), ("Start", report.start),
            ("Online data", report.onlineResponseData?.words), ("On restart", report.messageOnRestart?.line),
            ("Instead", report.alternateInterface?.words),
            ("Receipt", report.receipt ? "yes" : nil), ("Field off", report.fieldOff.map { "\($0) ms" }),
            ("Removal", report.removalTimeout > 0 ? "within \(report.removalTimeout) ms" : nil),
        ]
        lines += parameters.compactMap { name, value in value.map { field(name, $0) } }
        for (index, message) in collapsed(report.messages.map(\.line)).enumerated() {
            lines.append(field(index == 0 ? "Messages" : "", message))
        }
        let time = report.exchanges.reduce(0) { $0 + $1.duration }
        lines.append(field("Exchanges", "\(report.exchanges.count), \((time * 10).rounded() / 10) ms"))
        lines += exchanges.map { field("", $0) }
        lines += collapsed(report.notes).map { "   " + Terminal.styled("! \($0)", .warning) }
        for (title, elements) in [
            ("data record", report.dataRecord), ("discretionary data", report.discretionaryData),
        ] where !elements.isEmpty {
            lines.append("   " + Terminal.styled(title, .dim))
            lines += elements.flatMap { ElementText.lines($0, indent: 5) }
        }
        return lines.joined(separator: "\n")
    }

    /// The exchanges.  Identical consecutive ones become one line with their total time.
    private var exchanges: [String] {
        var runs: [(text: String, count: Int, duration: Double)] = []
        for exchange in report.exchanges {
            let text = "\(exchange.command)  \(exchange.status ?? "no response")"
            if let last = runs.last, last.text == text {
                runs[runs.count - 1] = (text, last.count + 1, last.duration + exchange.duration)
            } else {
                runs.append((text, 1, exchange.duration))
            }
        }
        return runs.map { run in
            let time = "\((run.duration * 1000).rounded() / 1000) ms"
            return "\(run.text)  \(time)" + (run.count == 1 ? "" : "  (\(run.count) times)")
        }
    }

    private func field(_ name: String, _ value: String) -> String { CardText.field(name, value) }

    /// Collapses lines that repeat, alone or alternating with one other line, into one line with a count.
    private func collapsed(_ lines: [String]) -> [String] {
        var counts: [(line: String, count: Int)] = []
        for line in lines {
            if let index = counts.lastIndex(where: { $0.line == line }), index >= counts.count - 2 {
                counts[index].count += 1
            } else {
                counts.append((line, 1))
            }
        }
        return counts.map { $0.count == 1 ? $0.line : "\($0.line)  (\($0.count) times)" }
    }
}
