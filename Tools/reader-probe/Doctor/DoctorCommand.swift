import ArgumentParser
import CardReaders
import Foundation
import SmartCard
import ToolReaders
import ToolSupport

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Finds the reason why cards are not read, and the command that solves it.",
        discussion: """
            Checks the USB device, the kernel's drivers, udev, pcscd and its driver, and reads data from a card. \
            Changes nothing.

            Exits with 0 only if a card was read and there is no problem; with 4 if there is no problem, but no card was \
            there.
            """)

    @Option(
        help: """
            pcsc: read a card through pcscd. usb: ignore pcscd and its driver, and read directly over USB. auto: the \
            readers of pcscd through it, the others over USB.
            """)
    var backend = BackendChoice.auto

    @Option(help: "Wait this many seconds for a card. Default: 10 on a terminal, else 0.")
    var timeout: Double?

    @OptionGroup var format: JSONOption

    @Option(help: .hidden)
    var root = "/"

    func validate() throws {
        if let timeout, !(0...86_400).contains(timeout) {
            throw ValidationError("--timeout takes 0 to 86400 seconds")
        }
    }

    func run() async throws {
        let files = FileTree(root: root)
        var machine = MachineFacts(files, environment: ProcessInfo.processInfo.environment)
        // libpcsclite reads this path on first use.
        if !files.root.isEmpty { setenv("PCSCLITE_CSOCK_NAME", machine.service.socketPath, 1) }
        let limit = timeout.map { Duration.milliseconds(Int($0 * 1000)) }
        let patience = limit ?? (Terminal.errorIsTerminal && !format.json ? .seconds(10) : .zero)
        if backend == .usb {
            machine.isWithoutService = true
        } else {
            await machine.askPrograms(files)
        }
        // The readers of another file tree are only those of its pcscd.
        let backends: Machine.Backends = backend == .usb ? .usb : backend == .pcsc || !files.root.isEmpty ? .pcsc : .all
        await machine.askReaders(of: Machine(backends), patience: patience)
        let diagnosis = Diagnosis(machine)
        if format.json {
            try Report.print(diagnosis)
        } else {
            Terminal.print(diagnosis.text)
        }
        if diagnosis.exitStatus != 0 { throw ExitCode(diagnosis.exitStatus) }
    }
}

/// The results of all checks, as printed by `doctor --json`.
struct Diagnosis: Encodable {
    struct Finding: Encodable {
        let check: String
        /// `ok`, `warning`, `problem`, `skipped`
        let result: String
        @OrNull var reader: String?
        /// A summary for people; may change.
        let summary: String
        /// A shell command.
        @OrNull var command: String?
        @OrNull var advice: String?

        init(_ check: Check, _ verdict: Verdict) {
            self.check = check.id
            result = verdict.result.rawValue
            summary = verdict.summary
            _reader = OrNull(wrappedValue: verdict.subject)
            switch verdict.mending {
            case .command(let command): self.command = command
            case .advice(let advice): self.advice = advice
            case nil: break
            }
        }
    }

    let findings: [Finding]
    let cardWasRead: Bool
    let exitStatus: Int32

    init(_ machine: MachineFacts) {
        let checks = machine.isWithoutService ? Check.withoutService : Check.all
        let verdicts = checks.flatMap { check in check.judge(machine).map { (check, $0) } }
        findings = verdicts.map { Finding($0, $1) }
        cardWasRead = machine.cardWasRead
        exitStatus = verdicts.first { $1.result == .problem }?.1.exitStatus ?? (cardWasRead ? 0 : 4)
    }

    /// One line for each finding, and one for its remedy.
    var text: String {
        var lines: [String] = []
        let width = findings.map(\.check.count).max() ?? 0
        for finding in findings {
            let result = finding.result.padding(toLength: 8, withPad: " ", startingAt: 0)
            let check = finding.check.padding(toLength: width + 2, withPad: " ", startingAt: 0)
            let style: Terminal.Style =
                switch finding.result {
                case "ok", "skipped": .dim
                case "problem": .bold
                default: .warning
                }
            let reader = finding.reader.map { "\($0): " } ?? ""
            lines.append("\(Terminal.styled(result, style))  \(check)\(reader)\(finding.summary)")
            if let mending = finding.command.map({ "$ \($0)" }) ?? finding.advice {
                lines.append("          \(mending)")
            }
        }
        let problems = findings.count { $0.result == "problem" }
        let verdict =
            switch (problems, cardWasRead) {
            case (0, true): "A card was read."
            case (0, false): "There is no problem, but no card to read."
            case (_, true): "A card was read, but not everything is in order."
            case (_, false): "No card can be read. Solve the first problem, and run reader-probe doctor again."
            }
        return (lines + ["", verdict]).joined(separator: "\n")
    }
}
