import ArgumentParser
import CardReaders
import ContactlessMetrics
import CoreMetrics
import EMVContactless
import Foundation
import KioskBridge
import KioskBridgeServer
import KioskKit
import KioskPage
import Logging
import ProximityReader
import SandboxClient
import SmartCardSimulator
import ToolReaders
import ToolSupport
import TravelDocument

@main
struct KioskHost: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kiosk-host",
        abstract: "Serves a kiosk's web page, and connects it with the kiosk's reader, camera and printer.",
        discussion: """
            The page talks with this program over a WebSocket on the loopback address, and nobody else can. It reads travel \
            documents, takes payments and reads loyalty passes; amounts come from the order that this program knows.

            EXAMPLES
              kiosk-host --virtual            a software reader, a virtual passport and phone, and a payment sandbox
              kiosk-host --virtual --browser  the same with Chromium in front of it
              kiosk-host --virtual --checkout --card-entry
                                              the page at its checkout, which takes cards typed by hand
              kiosk-host                      the reader that is attached; travel documents only
              kiosk-host --service http://127.0.0.1:8790
                                              the same with payments

            EXIT STATUS
              0  the browser was closed
              2  the command line is invalid, or the port or the socket is in use
              5  the virtual kiosk or the browser failed at the start
            """,
        version: PackageVersion.current)

    @Flag(help: "Use a software reader, on which virtual documents and phones are put, and a payment sandbox.")
    var virtual = false

    @Option(help: .init("The virtual document. (default: \(VirtualCustomer.document))", valueName: "name"))
    var document: String?

    @Option(help: .init("The virtual card or phone. (default: \(VirtualCustomer.card))", valueName: "name"))
    var card: String?

    @Option(
        help: .init(
            "The time after which the virtual customer puts down what is asked for, in milliseconds; with 0 the reader notices it at once, too. (default: \(VirtualCustomer.pause))",
            valueName: "milliseconds"))
    var pause: Int?

    @Flag(
        name: .customLong("by-hand"),
        help: """
            Put cards on the virtual reader as lines on standard input say: insert CARD, remove, fault NAME [ARG], fault none. \
            Each is answered by "ok" or "error: …" when it is done.
            """)
    var byHand = false

    @Option(help: .init("A fault of the virtual reader, as virtual-reader names them. Repeatable.", valueName: "fault"))
    var fault: [String] = []

    @Option(help: .init("The port; 0 for any that is free.", valueName: "number"))
    var port = 8780

    @Flag(help: "Start Chromium in kiosk mode with the page, and end with it.")
    var browser = false

    @Option(
        name: .customLong("browser-argument"), parsing: .unconditionalSingleValue,
        help: .init("Start Chromium with this argument, too. Repeatable.", valueName: "argument"))
    var browserArguments: [String] = []

    @Option(help: .init("Serve the files of this folder in place of the example page.", valueName: "folder"))
    var page: String?

    @Option(help: .init("The payment service, with the protocol of psp-sandbox.", valueName: "address"))
    var service: String?

    @Flag(
        name: .customLong("card-entry"),
        help: "Let the checkout take cards typed by hand, which brings the kiosk into the scope of PCI DSS.")
    var cardEntry = false

    @Flag(help: "Open the page at its checkout, for the first customer.")
    var checkout = false

    @Option(
        help: .init(
            """
            The receipt printer: ipp://HOST/ipp/print, tcp://HOST:9100, /dev/usb/lp0, usb: or usb:VVVV:PPPP. Without one, \
            receipts are written to standard error.
            """, valueName: "address"))
    var printer: String?

    @Option(help: .init("The merchant on receipts: JSON as in receipt(1).", valueName: "file"))
    var merchant: String?

    @Option(help: .init("The price of the order, in the currency's major unit.", valueName: "amount"))
    var amount = "12.34"

    @Option(help: "The currency, of ISO 4217.")
    var currency = "EUR"

    @Option(
        help: .init(
            "The language of the kiosk, such as de or fr-FR: amounts are written, and texts said, in it.",
            valueName: "tag"))
    var language: String?

    @Flag(
        name: .customLong("speak-aloud"),
        help: "Say the page's texts at all times, not only to headphones: for a kiosk with a handset.")
    var speakAloud = false

    @Option(
        help: .init(
            "Also trust the authorities for travel documents in this file or folder. Repeatable.",
            valueName: "file|folder"))
    var trust: [String] = []

    @Option(
        name: .customLong("metrics-socket"),
        help: .init("Answer GET /metrics on this Unix socket, in the text format of Prometheus.", valueName: "path"))
    var metricsSocket: String?

    @Option(
        name: .customLong("metrics-file"),
        help: .init(
            "Write the metrics to this file at each interval, for the textfile collector of node_exporter.",
            valueName: "file"))
    var metricsFile: String?

    @Option(
        name: .customLong("metrics-interval"),
        help: .init("The interval at which the metrics are written to the file.", valueName: "seconds"))
    var metricsInterval = 60

    @Flag(name: .shortAndLong, help: "Write what pages ask to standard error, without their data.")
    var verbose = false

    static func main() async {
        ProgramExit.takeSignals {
            ServiceManager.tellStopping()
            Browser.close()
            await MetricsPlaces.end()
            await Machine.giveBack()
        }
        await ProgramExit.whenDone {
            do {
                try await parseAndRun()
                return 0
            } catch {
                return Terminal.report(error, of: self)
            }
        }
    }

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port takes 0 to 65535") }
        guard let known = Currency[currency] else { throw ValidationError("“\(currency)” is no currency: EUR is one.") }
        guard let decimals = known.exponent else {
            throw ValidationError("“\(currency)” is no currency that anything costs: EUR is one.")
        }
        guard let price = Decimal(string: amount, locale: Locale(identifier: "en_US_POSIX")), price > 0,
            price < 1_000_000, -price.exponent <= decimals
        else {
            throw ValidationError(
                "“\(amount)” is no amount in \(currency): \(decimals == 0 ? "1234" : "12.34") is one.")
        }
        guard service != nil || virtual || !(checkout || cardEntry) else {
            throw ValidationError("--checkout and --card-entry go with --service or --virtual.")
        }
        guard virtual || fault.isEmpty && !byHand else {
            throw ValidationError("--fault and --by-hand go with --virtual.")
        }
        guard virtual && !byHand || document == nil && card == nil && pause == nil else {
            throw ValidationError("--document, --card and --pause go with --virtual, and not with --by-hand.")
        }
        guard browser || browserArguments.isEmpty else {
            throw ValidationError("--browser-argument goes with --browser.")
        }
        guard service.map({ URL(string: $0)?.host != nil }) ?? true else {
            throw ValidationError("--service: an address such as http://127.0.0.1:8790.")
        }
        guard language.map({ Locale.Language(identifier: $0).languageCode?.isISOLanguage == true }) ?? true else {
            throw ValidationError("--language: a language tag such as de or fr-FR.")
        }
        for name in virtual ? [document, card].compactMap(\.self) : [] where Demonstration.card(name) == nil {
            throw ValidationError("no card “\(name)”: virtual-reader --list-cards shows them")
        }
        guard (1...86_400).contains(metricsInterval) else {
            throw ValidationError("--metrics-interval takes 1 to 86400")
        }
        guard pause.map((0...60_000).contains) ?? true else { throw ValidationError("--pause takes 0 to 60000") }
        do { _ = try faults } catch { throw ValidationError("\(error): virtual-reader --list-faults shows them") }
    }

    /// The faults of the virtual reader.
    private var faults: [SoftwareReaderFault] { get throws { try fault.map { try SoftwareReaderFault($0) } } }

    /// The virtual reader; nil without one.
    func reader() throws -> VirtualReader? {
        guard virtual else { return nil }
        var profile = ACR122UProfile.firmware216
        if pause == 0 { profile.detectionDelay = .zero }
        return VirtualReader(SoftwareACR122U(profile: profile, faults: try faults))
    }

    @MainActor func run() async throws {
        LoggingSystem.bootstrap { [verbose] label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = verbose ? .debug : .warning
            return handler
        }
        let exposition = Exposition()
        if (metricsSocket ?? metricsFile) != nil { MetricsSystem.bootstrap(exposition) }
        let files = try files()
        let kiosk = try await Kiosk(self, texts: files["/strings.js"]?.bytes)
        let server = BridgeServer(
            kiosk.host, BridgeServer.Configuration(port: port, files: files, admitsOwnPages: true))
        do { try await server.start() } catch {
            throw ToolError.usage("no server", error.description)
        }
        try await MetricsPlaces.open(self, exposition)
        var address = await server.address
        if checkout { address.append(queryItems: [URLQueryItem(name: "checkout", value: nil)]) }
        Terminal.print(address.absoluteString)
        for line in kiosk.introduction { Terminal.print("  \(line)") }
        kiosk.beginByHand()
        let memory = Task {
            try await Task.sleep(for: StartCode.pause)
            StartCode.release()
        }
        defer { memory.cancel() }
        let report = ReaderReport(isVirtual: virtual)
        await report.update()
        ServiceManager.tellReady()
        let watch = Task { await report.keepAlive() }
        defer { watch.cancel() }
        let (endings, end) = AsyncStream<Bool>.makeStream()
        if browser { _ = try Browser(address, browserArguments) { end.yield($0) } }
        for await wasInUse in endings {
            Browser.close()
            await server.stop()
            await MetricsPlaces.end()
            guard wasInUse else {
                throw ToolError(
                    status: 5, summary: "the browser ended at once",
                    hint: "It needs a display, and another user than root.")
            }
            return
        }
    }

    private func files() throws -> [String: BridgeServer.File] {
        guard let page else { return KioskPage.files.mapValues { .init(contentType: $0.contentType, bytes: $0.bytes) } }
        do { return try BridgeServer.File.all(in: URL(filePath: page)) } catch let error as BridgeServer.File.Unservable
        {
            throw ToolError.usage(error.description, "Name a folder with the page's files.")
        }
    }
}
