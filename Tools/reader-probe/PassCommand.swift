import ArgumentParser
import CardReaders
import SmartCard
import ToolReaders
import ToolSupport
import WalletPasses

struct PassCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pass", abstract: "Reads loyalty passes from a phone's wallet, Apple's or Google's.",
        discussion: """
            The configuration has the merchants, in the order in which a phone is asked, and their private keys. What the passes \
            contain is masked. A phone that is locked is asked again until its holder has unlocked it. Nothing is kept.

            The exit status is 0 if a pass was read; 7 if a phone or a card had none, or none that can be accepted.

            reader-probe pass --card phone-google --config merchants.json
            """)

    @Option(
        help: .init(
            "The merchants and their keys, in JSON; see reader-probe(1), WALLET PASSES.", valueName: "file"))
    var config: String

    @Flag(help: "Show what the passes contain. By default, it is masked.")
    var reveal = false

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var format: JSONOption

    func run() async throws {
        let tap = try PassTap(config, mode: .passOnly, patience: readerOptions.patience)
        let logger = readerOptions.logger
        let report = try await readerOptions.withPhoneField(for: .passOnly) { reader, field in
            let stack = Stack(.ofEMVContactless, for: reader, logger: logger)
            let asked = try await tap.read(in: field) { stack.over($0) }
            return Report.Passes(asked.outcome, reader: reader.identity, isRevealed: reveal)
        }
        if format.json { try Report.print(report) } else { Terminal.print(PassText(report).text) }
        if !report.isRead { throw ExitCode(7) }
    }
}
