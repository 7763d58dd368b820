public import ArgumentParser
public import CardReceipts
import Foundation
import ToolSupport

struct PrintCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "print", abstract: "Prints the receipt, once.",
        discussion: """
            It never retries by itself. A failure reports the number of bytes sent: check the paper before you print again.
            """)

    @OptionGroup var receipt: ReceiptFile
    @OptionGroup var paper: Paper
    @OptionGroup var page: Page
    @OptionGroup var press: Press
    @OptionGroup var printer: PrinterOptions

    func run() async throws {
        let service = try printer.service(
            press.renderer(columns: paper.columns), page: page.page ?? .roll, language: receipt.language,
            ofESCPOS: paper.given + press.given, ofIPP: page.given)
        let content = try receipt.content()
        switch await service.printReceipt(content: content) {
        case .success: return
        case .cancel(let progress):
            throw ToolError(
                status: 5, summary: "canceled when \(progress.sent) of \(progress.total) bytes had gone out",
                hint: "Print it again.")
        case .failure(let failure):
            throw ToolError(
                status: failure.condition.exitStatus, summary: "\(failure)", hint: failure.hint)
        }
    }
}

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Asks a printer if it can print.")

    @OptionGroup var printer: PrinterOptions
    @OptionGroup var format: JSONOption

    private struct Status: Encodable {
        let printer: String
        let isReady: Bool
        /// The condition that prevents printing; null if there is none.
        @OrNull var condition: String?
    }

    func run() async throws {
        let service = try printer.service()
        let condition = await service.condition()
        if format.json {
            try Report.print(
                Status(
                    printer: printer.printer, isReady: condition == nil, condition: condition.map { "\($0)" }))
        }
        if let condition {
            throw ToolError(status: condition.exitStatus, summary: "\(condition)", hint: condition.hint)
        }
        if !format.json { Terminal.print("ready") }
    }
}

/// The options that select the printer.
struct PrinterOptions: ParsableArguments {
    @Option(
        help: .init(
            "The printer: ipp://HOST/ipp/print, tcp://HOST:9100, /dev/usb/lp0, usb: or usb:VVVV:PPPP.",
            valueName: "address"))
    var printer: String

    @Option(help: "The answers of a receipt printer. (default: all)")
    var answers: ESCPOSPrinter.Answers?

    /// - Parameter ofESCPOS: the options given that are for receipt printers alone; `ofIPP`: for printers of IPP alone.
    func service(
        _ renderer: ESCPOSRenderer = ESCPOSRenderer(), page: HTMLRenderer.Paper = .roll,
        language: ReceiptLanguage = .english, ofESCPOS: [String] = [], ofIPP: [String] = []
    ) throws -> any ReceiptPrinterService {
        if let ipp = IPPPrinter(printer, language: language, paper: page) {
            try refuse(
                ofESCPOS + (answers == nil ? [] : ["--answers"]), for: "an IPP printer",
                "It is for receipt printers: tcp:, /dev/usb/lp0 or usb:. An IPP printer takes --page.")
            return ipp
        }
        guard let address = ESCPOSPrinter.Address(printer) else {
            throw ToolError.usage(
                "“\(printer)” is no printer's address",
                "Give --printer ipp://HOST/ipp/print, tcp://HOST:9100, /dev/usb/lp0, usb: or usb:VVVV:PPPP.")
        }
        try refuse(
            ofIPP, for: "a receipt printer",
            "It is for IPP printers; set the width of the paper with --columns, 32 on 58 mm and 48 on 80 mm.")
        return ESCPOSPrinter(address, renderer: renderer, language: language, answers: answers ?? .all)
    }
}

extension ESCPOSPrinter.Answers: ExpressibleByArgument {}

extension PrinterCondition {
    /// The exit statuses of `--help`.
    fileprivate var exitStatus: Int32 {
        switch self {
        case .absent: 3
        case .paperOut, .coverOpen, .jam, .offline: 4
        case .permissionDenied: 6
        case .busy, .disconnected, .silent, .formatUnsupported, .failed: 5
        }
    }
}
