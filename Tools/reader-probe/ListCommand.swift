import ArgumentParser
import SmartCard
import ToolReaders
import ToolSupport

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the readers and their cards.")

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let readers = await SeenReader.look(at: try await readerOptions.readers())
        if output.json {
            try Report.print(Report.List(readers: readers.map(Report.Slot.init)))
        } else {
            for reader in readers { Terminal.print(reader.text) }
        }
        // Facts about one reader matter more than the failure of another.
        if readers.allSatisfy({ $0.error != nil }), let error = readers.lazy.compactMap(\.error).first { throw error }
    }
}

/// A reader with its card, or the reason why the card is unknown.
struct SeenReader: Sendable {
    let identity: ReaderIdentity
    let state: SlotState
    var error: (any Error)?

    /// Looks at all readers at the same time.
    static func look(at readers: [any CardReader]) async -> [SeenReader] {
        await withTaskGroup(of: (Int, SeenReader).self) { group in
            for (index, reader) in readers.enumerated() {
                group.addTask {
                    do {
                        return (index, SeenReader(identity: reader.identity, state: try await reader.currentState()))
                    } catch {
                        return (index, SeenReader(identity: reader.identity, state: .unknown, error: error))
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    var text: String {
        let state = error.map { Terminal.styled("! \($0)", .warning) } ?? state.text
        return "\(Terminal.styled(identity.name, .bold))  (\(identity.backend.rawValue))\n  \(state)"
    }
}

extension SlotState {
    /// The reader as text for people.
    var text: String {
        switch self {
        case .empty: "no card"
        case .card(let atr, let held):
            "\(atr.technology)\(held ? ", held by another program" : "")\n  ATR \(atr)"
        case .muteCard: "a card that does not answer"
        case .unknown: "unknown"
        }
    }
}
