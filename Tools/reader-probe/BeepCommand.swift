import ArgumentParser
import CardReaders
import SmartCard
import SmartCardPN532
import ToolSupport

struct BeepCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "beep", abstract: "Lets each reader beep and says which it is. For ACR122U.")

    @Option(help: "How many times, 1 to 20.")
    var times = 2

    @OptionGroup var readerOptions: ReaderOptions

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    func validate() throws {
        guard (1...20).contains(times) else { throw ValidationError("--times takes 1 to 20") }
    }

    func run() async throws {
        let blinking = Blinking(on: 1, off: 1, times: UInt8(times), buzzer: .whileOn)
        try await readerOptions.onEachReader(json: json) { try await $0.setLights([], blinking: blinking) }
    }
}

extension ReaderOptions {
    /// Does something with one ACR122U after the other, and names each as it does.
    ///
    /// - Throws: what the last one threw that would not; the others are seen to first.
    func onEachReader(json: Bool, _ body: (ACR122U) async throws -> Void) async throws {
        var failure: (any Error)?
        var deeds: [Report.Deed] = []
        for reader in try await readers() {
            if !json { Terminal.print(Terminal.styled(reader.identity.name, .bold)) }
            do {
                guard reader.model?.commands == .pseudoAPDUs else {
                    throw CardError(.unsupported, "\(reader.identity.name) takes no commands of an ACR122U")
                }
                try await reader.withLink { try await body(ACR122U(over: $0)) }
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
