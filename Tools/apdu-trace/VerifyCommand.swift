import ArgumentParser
import SmartCard
import SmartCardTrace
import ToolSupport

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Checks that a trace is whole, can be replayed, and holds no account number.",
        discussion: """
            Account numbers are looked for by the first digits of issuers and the check digit: packed, as text, as \
            hexadecimal text, in track data, and split across answers. The exit status is 1 if anything is found.
            """)

    @OptionGroup var trace: TraceArgument

    @Flag(help: "Account numbers may be in it.")
    var clear = false

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    private struct Verdict: Encodable {
        let events: Int
        let exchanges: Int
        let findings: [String]
    }

    func run() throws {
        var reader = try TraceReader(path: trace.file)
        var trace = Trace()
        var lines: [Int] = []
        while let event = try reader.next() {
            trace.events.append(event)
            lines.append(reader.lineNumber)
        }
        var findings: [String] = []
        if reader.isCutOff { findings.append("the file ends within a line: the program that wrote it was cut short") }
        let exchanges = trace.exchanges()
        if exchanges.isEmpty { findings.append("there is no exchange to replay") }
        for exchange in exchanges {
            let line = lines[exchange.commandIndex]
            if exchange.layer == .apdu, (try? CommandAPDU(exchange.command)) == nil {
                findings.append("line \(line): not a command APDU; it cannot be replayed")
            }
            switch exchange.answer {
            case nil: findings.append("line \(line): a command without an answer")
            case .bytes(let bytes)? where exchange.layer == .apdu && bytes.count < 2:
                findings.append("line \(lines[exchange.answerIndex ?? 0]): a response without status word")
            default: break
            }
        }
        if !clear {
            findings += TraceRedaction.eventsWithAccountNumbers(in: trace).map {
                "line \(lines[$0]): an account number in the clear"
            }
        }
        if json {
            try Report.print(
                Verdict(events: trace.events.count, exchanges: exchanges.count, findings: findings))
        } else {
            for finding in findings { Terminal.print(finding) }
            if findings.isEmpty {
                Terminal.print("well-formed: \(trace.events.count) events, \(exchanges.count) exchanges")
            }
        }
        if !findings.isEmpty { throw ExitCode(1) }
    }
}
