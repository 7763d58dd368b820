import ArgumentParser
import SmartCard
import ToolSupport

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the readers and what is on them.")

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        var slots: [(ReaderIdentity, SlotState)] = []
        for reader in try await readerOptions.readers() {
            slots.append((reader.identity, try await reader.currentState()))
        }
        if output.json {
            try Report.print(Report.List(readers: slots.map { Report.Slot($0, $1) }))
        } else {
            for (identity, state) in slots { Terminal.print(Self.line(identity, state)) }
        }
    }

    static func line(_ identity: ReaderIdentity, _ state: SlotState) -> String {
        "\(Terminal.styled(identity.name, .bold))  (\(identity.backend.rawValue))\n  \(state.text)"
    }
}

extension SlotState {
    /// For a person.
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
