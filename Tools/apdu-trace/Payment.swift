import ArgumentParser
import EMVContactless
import SmartCard
import SmartCardTrace
import ToolSupport

struct PayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pay", abstract: "Performs a contactless transaction, and records it.",
        discussion: "The file holds card data in the clear, and only its owner may read it: see apdu-trace redact.")

    @OptionGroup var output: TraceOutput
    @OptionGroup var payment: PaymentOptions
    @OptionGroup var readerOptions: ReaderOptions

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    func run() async throws {
        let transaction = try PaymentRun(payment)
        let base = try await readerOptions.waitForCard(on: try await readerOptions.readers())
        let recorder = TraceRecorder(try output.writer())
        let report = try await transaction.perform(on: recorder.recording(base), patience: readerOptions.patience)
        if let failure = recorder.failure { throw failure }
        try report.print(json: json || output.output == "-", quiet: output.output == "-")
    }
}

struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay", abstract: "Performs a transaction with the card of a trace.",
        discussion: """
            What the terminal sends must be what the trace has, but for amounts, date, time, unpredictable number and \
            transaction counter where the card has asked for them. Anything else is shown beside what was recorded, and \
            the exit status is 1.
            """)

    enum Order: String, ExpressibleByArgument, CaseIterable {
        case strict, keyed
    }

    @OptionGroup var trace: TraceArgument
    @OptionGroup var payment: PaymentOptions

    @Option(help: "strict: the same commands in the same order. keyed: each command is looked up in the trace.")
    var order = Order.strict

    @Flag(help: "Amounts, date, time and random numbers must agree, too.")
    var exact = false

    @Option(
        help: .init("How long answers take: times as long as when recorded. Default: no time.", valueName: "factor"))
    var timing: Double?

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    func run() async throws {
        if let timing, !(0...1_000).contains(timing) {
            throw ToolError.usage("--timing takes 0 to 1000", "1 is as it was: --timing 1")
        }
        let transaction = try PaymentRun(payment)
        let reader = ReplayReader(
            try trace.trace(), order: order == .strict ? .strict : .keyed, comparison: exact ? .exact : .lenient,
            timing: timing.map { .recorded(scale: $0) } ?? .none)
        let report = try await transaction.perform(on: reader, patience: nil)
        try report.print(json: json)
        try reader.checkPlayedThrough()
    }
}

/// A transaction that is ready to be performed.
private struct PaymentRun {
    let transaction: Transaction
    let terminal: ContactlessTerminal

    init(_ options: PaymentOptions) throws {
        transaction = try options.transaction()
        terminal = ContactlessTerminal(
            EntryPoint(configuration: try options.configuration(), kernels: Kernels.all, keys: try options.keys()))
    }

    func perform(on reader: any CardReader, patience: Duration?) async throws -> OutcomeReport {
        let field = CardReaderField(reader, patience: patience)
        do {
            let report = try await terminal.perform(transaction, in: field) { _ in }
            await field.release(.leave)
            return OutcomeReport(report)
        } catch {
            await field.release(.leave)
            throw error
        }
    }
}

/// What came of a transaction, for scripts that compare it.
private struct OutcomeReport: Encodable {
    /// `approved`, `declined`, `onlineRequest`, `tryAnotherInterface`, `endApplication`
    let outcome: String
    let reason: String
    @OrNull var aid: String?
    @OrNull var kernel: Int?
    @OrNull var cvm: String?
    let exchanges: Int
    let notes: [String]

    init(_ report: ContactlessTerminal.Report) {
        outcome = report.outcome.kind.rawValue
        reason = report.outcome.reason
        aid = report.final.name?.hex
        kernel = report.final.kernel.map { Int($0.rawValue) }
        cvm = report.outcome.cvm?.rawValue
        exchanges = report.exchanges.count
        notes = report.notes
    }

    func print(json: Bool, quiet: Bool = false) throws {
        if quiet { return }
        if json { return try Report.print(self) }
        var lines = ["outcome    \(Terminal.styled(outcome, .bold))", "because    \(reason)"]
        if let aid { lines.append("aid        \(aid)") }
        if let kernel { lines.append("kernel     \(kernel)") }
        if let cvm { lines.append("cvm        \(cvm)") }
        lines.append("exchanges  \(exchanges)")
        Terminal.print((lines + notes.map { "! \($0)" }).joined(separator: "\n"))
    }
}
