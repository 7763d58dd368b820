import ArgumentParser
import CardReaders
import SmartCard
import ToolReaders
import ToolSupport

struct ResetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Restores the defaults of each reader, those it has when it is new.",
        discussion: """
            A program that was killed, and some that were not, leave a reader with its automatic polling off. It finds no \
            card then, for anybody; doctor tells. For readers of ACS whose commands for it are known; a default that is not known \
            is left as it is.
            """)

    @OptionGroup var readerOptions: ReaderOptions

    @OptionGroup var format: JSONOption

    func run() async throws {
        try await readerOptions.onEachReader(json: format.json) { try await $0.restoreDefaults() }
    }
}
