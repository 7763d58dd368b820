import ArgumentParser
import CardReaders
import SmartCard
import ToolReaders
import ToolSupport

struct ResetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Restores the defaults of each reader, those of a new one.",
        discussion: """
            A killed program, and some programs in any case, leave a reader's automatic polling off. No program then finds \
            a card on it; doctor detects this. For readers of ACS whose commands are known. An unknown default \
            stays as it is.
            """)

    @OptionGroup var readerOptions: ReaderOptions

    @OptionGroup var format: JSONOption

    func run() async throws {
        try await readerOptions.onEachReader(json: format.json) { try await $0.restoreDefaults() }
    }
}
