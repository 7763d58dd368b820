import ArgumentParser
import CardReaders
import SmartCard
import ToolReaders
import ToolSupport

struct LEDCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "led", abstract: "Sets the light of each reader.",
        discussion: """
            The reader changes its light by itself when a card comes or goes. For readers of ACS whose command is \
            known. For other readers, and for readers without such a light, an error says so.
            """)

    enum Light: String, ExpressibleByArgument, CaseIterable {
        case off, red, green, orange, blue
    }

    @Argument(help: "off, red, green, blue, or orange, which is red and green.")
    var light: Light

    @Option(help: "Blink this many times first, 1 to 20.")
    var blink: Int?

    @OptionGroup var readerOptions: ReaderOptions

    @OptionGroup var format: JSONOption

    func validate() throws {
        guard blink.map((1...20).contains) ?? true else { throw ValidationError("--blink takes 1 to 20") }
    }

    func run() async throws {
        let lights: Set<Model.Light> =
            switch light {
            case .off: []
            case .red: [.red]
            case .green: [.green]
            case .orange: [.red, .green]
            case .blue: [.blue]
            }
        try await readerOptions.onEachReader(json: format.json) { try await $0.setLights(lights, blinking: blink ?? 0) }
    }
}
