import ArgumentParser
import CardReaders
import SmartCard
import ToolReaders
import ToolSupport

struct BeepCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "beep", abstract: "Lets each reader beep and says which it is.",
        discussion: "For readers of ACS whose command for it is known; of another it says so.")

    @Option(help: "How many times, 1 to 20.")
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
    /// Does something with one reader after the other, and names each as it does.  What that changes of a reader stays.
    ///
    /// - Throws: what the last one threw that would not; the others are seen to first.
    func onEachReader(json: Bool, _ body: (ReaderCommands) async throws -> Void) async throws {
        var failure: (any Error)?
        var deeds: [Report.Deed] = []
        // The other slots of a reader are not told what to do with its lights.
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
    /// What `beep`, `led` and `reset` have done to a reader.
    struct Deed: Encodable {
        let reader: Reader
        /// Why it was not done; null if it was.
        @OrNull var error: String?

        init(reader: Reader, error: String? = nil) {
            self.reader = reader
            self.error = error
        }
    }
}
