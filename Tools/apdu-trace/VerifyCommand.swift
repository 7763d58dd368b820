import ArgumentParser
import SmartCard
import SmartCardTrace
import ToolSupport

struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Checks that traces are complete, can be replayed, and contain nothing that redaction removes.",
        discussion: """
            What redaction would still change is named with its line: account numbers, found by the first digits of issuers \
            and the check digit, packed, as text, as hexadecimal text, in track data, and split across commands, answers and \
            the frames that carry them; names, PINs, keys, logs, and certificates from which the account number can be had, \
            unless a test authority has signed them (apdu-trace redact --reissue). Every call of the trace is made to a \
            replay of it, and must get the answer that the trace has. The exit status is 1 if anything is found. Of several \
            traces, those with findings are named.
            """)

    @Argument(
        help: .init("The traces; - for standard input. See ENVIRONMENT, TMPDIR, in apdu-trace(1).", valueName: "file"))
    var files: [String]

    @Flag(help: "Permit account numbers, names, PINs and keys.")
    var clear = false

    @Flag(help: "Reject application cryptograms and issuer application data, too.")
    var cryptograms = false

    @OptionGroup var format: JSONOption

    private struct Verdict: Encodable {
        let events: Int
        let exchanges: Int
        /// The first ``maximumFindings``.
        let findings: [String]
        let findingCount: Int
    }

    /// The most lines shown.
    private static let maximumFindings = 1_000

    private struct Findings {
        let isPrinted: Bool
        /// Precedes each line; the name of the trace if there are several.
        let prefix: String
        var shown: [String] = []
        var count = 0

        mutating func add(_ finding: String) {
            count += 1
            guard count <= maximumFindings else { return }
            shown.append(finding)
            if isPrinted { Terminal.print(prefix + finding) }
        }
    }

    func run() async throws {
        guard !clear || !cryptograms else {
            throw ToolError.usage("--clear and --cryptograms exclude each other", "Name one of them.")
        }
        guard !format.json || files.count == 1 else {
            throw ToolError.usage("--json is for one trace", "Name one, or omit --json.")
        }
        var hasFindings = false
        for file in files where try await verify(file) > 0 { hasFindings = true }
        if hasFindings { throw ExitCode(1) }
    }

    /// Verifies a trace, and prints what is found.
    ///
    /// - Returns: the number of findings.
    private func verify(_ file: String) async throws -> Int {
        let source = try RereadableTrace(file)
        var secrets = clear ? TraceSecrets() : try await source.secrets()
        if !clear {
            try await source.forEachPiece(holdingTransactions: true) { piece in
                secrets.authenticated.formUnion(TestSignatures.all(in: piece.trace))
                try source.check(secrets)
            }
        }
        let redaction = TraceRedaction(includingCryptograms: cryptograms)
        var findings = Findings(isPrinted: !format.json, prefix: files.count > 1 ? "\(file): " : "")
        var exchangeCount = 0
        var hasFrames = false
        var isClear = false
        let read = try await source.forEachPiece { piece in
            let exchanges = piece.trace.exchanges()
            exchangeCount += exchanges.count
            hasFrames = hasFrames || piece.trace.events.contains { if case .sent = $0.what { true } else { false } }
            let faults = Self.faults(exchanges, piece.lines)
            faults.forEach { findings.add($0) }
            if faults.isEmpty,
                let fault = await ReplayReader.rehearse(piece.trace, connections: piece.connections)
            {
                findings.add("line \(piece.lines[fault.event]): cannot be replayed: \(fault.reason)")
            }
            if !clear {
                for (event, items) in redaction.findings(in: piece, knowing: &secrets).sorted(by: { $0.key < $1.key }) {
                    isClear = true
                    findings.add("line \(piece.lines[event]): \(Self.words(items)) in the clear")
                }
                if piece.isCut, let line = piece.lines.last {
                    findings.add(
                        "behind line \(line): too many events belong together; data across this line was checked only in parts"
                    )
                }
            }
        }
        if read.isCutOff { findings.add("the file ends within a line: the program that wrote it was cut short") }
        if exchangeCount == 0 {
            findings.add(
                hasFrames
                    ? "there is no exchange to replay, but frames: apdu-trace convert --layer apdu takes APDUs out of them"
                    : "there is no exchange to replay")
        }
        if format.json {
            try Report.print(
                Verdict(
                    events: read.eventCount, exchanges: exchangeCount, findings: findings.shown,
                    findingCount: findings.count))
        } else if findings.count == 0 {
            guard files.count == 1 else { return 0 }
            Terminal.print("well-formed: \(plural(read.eventCount, "event")), \(plural(exchangeCount, "exchange"))")
        } else if findings.count > Self.maximumFindings {
            Terminal.print("\(findings.prefix)and \(findings.count - Self.maximumFindings) more")
        }
        if isClear { Terminal.remark("apdu-trace redact takes it out; with --clear it may stay") }
        return findings.count
    }

    private static func words(_ items: Set<TraceEvent.RedactedItem>) -> String {
        let words: [TraceEvent.RedactedItem: String] = [
            .accountNumber: "an account number", .track: "track data, or what may hold it", .name: "a name",
            .pin: "a PIN", .key: "a key", .certificate: "a certificate of an account number",
            .cryptogram: "a cryptogram", .log: "a log of transactions",
            .document: "data of a travel document", .session: "messages of an encrypted session",
            .pass: "a pass of a phone's wallet",
        ]
        return TraceEvent.RedactedItem.allCases.filter(items.contains).compactMap { words[$0] }
            .joined(separator: ", ")
    }

    /// Returns the faults of `exchanges` that prevent any replay.
    private static func faults(_ exchanges: [Trace.Exchange], _ lines: [Int]) -> [String] {
        exchanges.flatMap { exchange -> [String] in
            let line = lines[exchange.commandIndex]
            var faults: [String] = []
            if exchange.layer == .apdu, (try? CommandAPDU(exchange.command)) == nil {
                faults.append("line \(line): not a command APDU; it cannot be replayed")
            }
            switch exchange.answer {
            case nil: faults.append("line \(line): a command without an answer")
            case .bytes(let bytes)? where exchange.layer == .apdu && bytes.count < 2:
                faults.append("line \(lines[exchange.answerIndex ?? 0]): a response without status word")
            default: break
            }
            return faults
        }
    }
}
