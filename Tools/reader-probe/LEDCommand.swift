import ArgumentParser
import SmartCard
import SmartCardPN532
import ToolSupport

struct LEDCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "led", abstract: "Sets the light of each reader. For ACR122U.",
        discussion: "The reader changes its light by itself when a card comes or goes.")

    enum Light: String, ExpressibleByArgument, CaseIterable {
        case off, red, green, orange
    }

    @Argument(help: "off, red, green, or orange, which is both.")
    var light: Light

    @Option(help: "Blink so many times first, 1 to 20.")
    var blink: Int?

    @OptionGroup var readerOptions: ReaderOptions

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    func validate() throws {
        guard blink.map((1...20).contains) ?? true else { throw ValidationError("--blink takes 1 to 20") }
    }

    func run() async throws {
        let (red, green) = (light == .red || light == .orange, light == .green || light == .orange)
        var control = LightControl.steady(red: red, green: green)
        var blinking: Blinking?
        if let blink {
            if red { control.formUnion([.startRed, .blinkRed]) }
            if green { control.formUnion([.startGreen, .blinkGreen]) }
            blinking = Blinking(on: 2, off: 2, times: UInt8(blink))
        }
        try await readerOptions.onEachReader(json: json) { try await $0.setLights(control, blinking: blinking) }
    }
}
