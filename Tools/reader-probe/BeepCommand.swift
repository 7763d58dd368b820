import ArgumentParser
import CardReaders
import SmartCard
import ToolReaders
import ToolSupport

struct BeepCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "beep", abstract: "Makes each reader beep, and names it.",
        discussion: "For readers of ACS whose command is known. For other readers, an error says so.")

    @Option(help: "The number of beeps, 1 to 20.")
    var times = 2

    @OptionGroup var readerOptions: ReaderOptions

    @OptionGroup var format: JSONOption

    func validate() throws {
        guard (1...20).contains(times) else { throw ValidationError("--times takes 1 to 20") }
    }

    func run() async throws {
        try await readerOptions.onEachReader(json: format.json) { try await $0.beep(times: times) }
    }
}

extension ReaderOptions {
    /// Runs `body` on each reader in turn and prints the reader's name.  Changes to a reader stay.
    ///
    /// - Throws: the last error, after all readers had their turn.
    func onEachReader(json: Bool, _ body: (ReaderCommands) async throws -> Void) async throws {
        var failure: (any Error)?
        var deeds: [Report.Deed] = []
        // Lights belong to the reader's contactless slot; its other slots are skipped.
        for reader in try await readers() where [nil, .contactless].contains(reader.slot) {
            if !json { Terminal.print(Terminal.styled(reader.identity.name, .bold)) }
            do {
                let driver = (reader as? MachineReader)?.driver ?? reader
                try await driver.withLink { try await body(ReaderCommands(of: reader, over: $0)) }
                deeds.append(Report.Deed(reader: Report.Reader(reader.identity)))
            } catch {
                deeds.append(Report.Deed(reader: Report.Reader(reader.identity), error: "\(error)"))
                failure = error
            }
        }
        if json { try Report.print(["readers": deeds]) }
        if let failure { throw failure }
    }
}

extension Report {
    /// The result of `beep`, `led` or `reset` on a reader.
    struct Deed: Encodable {
        let reader: Reader
        /// The reason for a failure; null on success.
        @OrNull var error: String?

        init(reader: Reader, error: String? = nil) {
            self.reader = reader
            self.error = error
        }
    }
}
