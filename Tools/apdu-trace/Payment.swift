import ArgumentParser
import EMVContactless
import Foundation
import SmartCard
import SmartCardTrace
import ToolReaders
import ToolSupport

struct PayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pay", abstract: "Performs a contactless transaction, and records it.",
        discussion: """
            Account numbers, tracks, names and certificates are redacted as by apdu-trace redact, and only the file's owner \
            can read it. With --clear they stay, for apdu-trace redact --reissue and apdu-trace card.
            """)

    @OptionGroup var output: RecordingOutput
    @OptionGroup var payment: PaymentOptions
    @OptionGroup var readerOptions: ReaderOptions

    @OptionGroup var format: JSONOption

    func run() async throws {
        let run = try PaymentRun(payment)
        try NewFile.checkWritable(output.file.output, replacing: output.file.force)
        if let refused = run.refusal {
            throw ToolError.usage("\(refused.outcome.reason)", "Name another amount, or another type.")
        }
        let base = try await readerOptions.waitForCard(on: try await readerOptions.readers())
        let file = output.recorded()
        let recorder = TraceRecorder(try file.writer())
        for event in RecordedTransaction.events(run.transaction, configuration: payment.config) {
            recorder.record(event)
        }
        let report = try await run.perform(on: recorder.recording(base), patience: readerOptions.patience)
        for event in RecordedTransaction.drawn(report) + RecordedTransaction.events(report.final) {
            recorder.record(event)
        }
        if let failure = recorder.failure { throw failure }
        try file.finish()
        guard output.file.output != "-" else { return }
        try OutcomeReport(report).print(json: format.json)
    }
}

struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Performs transactions, or runs a program, with the cards of traces, and compares the results.",
        usage: """
            apdu-trace replay <file> ... [<options>]
            apdu-trace replay <file> [--order <order>] [--exact] [--timing <factor>] -- <program> [<argument> ...]
            """,
        discussion: """
            Each trace's own transaction is performed; its outcome must be the recorded one. In folders and their \
            subfolders, all files named *.apdu are replayed. With --amount, one trace is replayed with the transaction \
            of the command line, and its outcome is printed.

            With a program: runs it with the card in a reader of vsmartcard's vpcd, behind a private pcscd; if that is \
            not permitted, in the machine's own vpcd. The exit status is the program's if the calls were those of the \
            trace. Resets and commands to the reader itself are not compared.

            Commands must equal those of the trace, except amounts, date, time, unpredictable number and transaction \
            counter where the card requests them. Any other difference is shown next to the recording, and the exit \
            status is 1.
            """)

    enum Order: String, ExpressibleByArgument, CaseIterable {
        case strict, keyed
    }

    @Argument(help: .init("Traces, and folders with traces.", valueName: "file"))
    var files: [String]

    @OptionGroup var batch: BatchOptions
    @OptionGroup var payment: PaymentOptions

    @Option(help: "strict: require the same commands in the same order. keyed: look up each command in the trace.")
    var order = Order.strict

    @Flag(help: "Require equal amounts, date, time and random numbers, and the same reason of the outcome.")
    var exact = false

    @Option(
        help: .init(
            "Multiply the recorded durations of answers by this factor. By default, answers take no time.",
            valueName: "factor"))
    var timing: Double?

    @OptionGroup var format: JSONOption

    private static let transactionOptions = [
        "--amount", "--cashback", "--currency", "--type", "--unpredictable-number",
    ]
    private static let terminalOptions = ["--config", "--ca-keys", "--exception-file"]

    func run() async throws {
        if let timing, !(0...1_000).contains(timing) {
            throw ToolError.usage("--timing takes 0 to 1000", "1 keeps the recorded timing: --timing 1")
        }
        let order: ReplayReader.Order = order == .strict ? .strict : .keyed
        let comparison: ReplayReader.Comparison = exact ? .exact : .lenient
        let timing = timing.map { ReplayReader.Timing.recorded(scale: $0) } ?? .none
        try CommandLineProgram.check()
        guard !CommandLineProgram.isGiven else {
            if let option = CommandLineProgram.option(
                among: Self.transactionOptions + Self.terminalOptions + ["--json"])
            {
                throw ToolError.usage(
                    "\(option) is for transactions that apdu-trace performs itself", "Omit it with a program.")
            }
            guard files.count == 1, let file = files.first, batch.isUnused else {
                throw ToolError.usage(
                    "a program is run with one trace", "For example: apdu-trace replay FILE -- opensc-tool --atr")
            }
            return try await replayProgram(try Trace(named: file), order, comparison, timing)
        }
        guard payment.amount != nil else {
            if let option = CommandLineProgram.option(among: Self.transactionOptions) {
                throw ToolError.usage(
                    "\(option) requires --amount", "Without it each trace's own transaction is performed.")
            }
            guard batch.kernel == nil || payment.config == nil else {
                throw ToolError.usage("--kernel and --config exclude each other", "Name one of them.")
            }
            guard batch.cache == nil || !batch.update else {
                throw ToolError.usage("--cache and --update exclude each other", "Omit one of them.")
            }
            let configuration = batch.kernel ?? payment.config
            let terminal = ContactlessTerminal(try payment.entryPoint(configuration: configuration))
            return try await ReplayBatch(
                options: batch, order: order, comparison: comparison, timing: timing, terminal: terminal,
                configuration: configuration, configurationDigest: try digest(configuration), json: format.json
            ).run(files)
        }
        guard files.count == 1, let file = files.first, batch.isUnused else {
            throw ToolError.usage(
                "--amount is for one trace", "Without it each trace's own transaction is performed, and compared.")
        }
        let run = try PaymentRun(payment)
        let reader = ReplayReader(try Trace(named: file), order: order, comparison: comparison, timing: timing)
        try OutcomeReport(try await run.perform(on: reader, patience: nil)).print(json: format.json)
        try reader.checkPlayedThrough()
    }

    /// Returns SHA-256 of the options and files that decide what comes of a trace; of files, the contents count.
    private func digest(_ configuration: String?) throws -> String {
        let files = [configuration == "test" ? nil : configuration, payment.caKeys, payment.exceptionFile]
        let contents = try files.map { try $0.map { try PaymentOptions.contents(of: $0).digest } ?? "-" }
        let options = [order.rawValue, exact ? "exact" : "lenient", timing.map { "\($0)" } ?? "-"]
        return Data((contents + options).joined(separator: " ").utf8).digest
    }
}

/// A transaction that is ready to be performed.
struct PaymentRun {
    let transaction: Transaction
    private let terminal: ContactlessTerminal

    init(_ transaction: Transaction, _ terminal: ContactlessTerminal) {
        (self.transaction, self.terminal) = (transaction, terminal)
    }

    init(_ options: PaymentOptions) throws {
        self.init(try options.transaction(), ContactlessTerminal(try options.entryPoint()))
    }

    /// The report of a transaction that pre-processing refuses, before there is a card.
    var refusal: ContactlessTerminal.Report? { terminal.refusal(of: transaction) }

    func perform(on reader: any CardReader, patience: Duration?) async throws -> ContactlessTerminal.Report {
        let field = CardReaderField(reader, patience: patience)
        do {
            let report = try await terminal.perform(transaction, in: field) { _ in }
            await field.release(.leave)
            return report
        } catch {
            await field.release(.leave)
            throw error
        }
    }
}

/// The result of a transaction, for scripts that compare it.
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
        // The bytes that the card appends to the reader's AID are arbitrary.
        aid = report.final.name.map { SensitiveData.masked($0, of: 0x84) }
        kernel = report.final.kernel.map { Int($0.rawValue) }
        cvm = report.outcome.cvm?.rawValue
        exchanges = report.exchanges.count
        notes = report.notes
    }

    func print(json: Bool) throws {
        if json { return try Report.print(self) }
        var lines = ["outcome    \(Terminal.styled(outcome.words, .bold))", "because    \(reason)"]
        if let aid { lines.append("aid        \(aid)") }
        if let kernel { lines.append("kernel     \(kernel)") }
        if let cvm { lines.append("cvm        \(cvm.words)") }
        lines.append("exchanges  \(exchanges)")
        Terminal.print((lines + notes.map { "! \($0)" }).joined(separator: "\n"))
    }
}
