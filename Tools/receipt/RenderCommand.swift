public import ArgumentParser
public import CardReaderAdapter
import Foundation
import ToolSupport

struct RenderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "render", abstract: "Makes text, HTML, PDF or bytes for a receipt printer of the receipt.")

    enum Format: String, CaseIterable, ExpressibleByArgument {
        case text, html, escpos, pdf
    }

    @OptionGroup var receipt: ReceiptFile
    @OptionGroup var paper: Paper
    @OptionGroup var press: Press

    @Option(help: "text, html, escpos or pdf.")
    var format = Format.text

    @Option(help: .init("The page of HTML and PDF: roll, label or a4.", valueName: "paper"))
    var page = HTMLRenderer.Paper.roll

    @Option(name: .shortAndLong, help: .init("Where it goes; - for standard output.", valueName: "file"))
    var output = "-"

    @Flag(help: "Replace the file if it is there.")
    var force = false

    func run() async throws {
        let document = try receipt.document()
        let bytes: [UInt8]
        switch format {
        case .text: bytes = Array(TextRenderer(columns: paper.columns).render(document).utf8)
        case .html: bytes = Array(HTMLRenderer(paper: page).render(document).utf8)
        case .escpos: bytes = press.renderer(columns: paper.columns).render(document)
        case .pdf: bytes = Array(try await PDFRenderer(paper: page).render(document))
        }
        try write(Data(bytes))
    }

    private func write(_ data: Data) throws {
        do {
            if output == "-" {
                guard isatty(STDOUT_FILENO) == 0 || [.text, .html].contains(format) else {
                    throw ToolError.usage(
                        "\(format.rawValue) is not for a terminal", "Name a file: --output receipt.\(format.rawValue)")
                }
                try FileHandle.standardOutput.write(contentsOf: data)
            } else {
                try data.write(
                    to: URL(fileURLWithPath: output), options: force ? .atomic : .withoutOverwriting)
            }
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            throw ToolError.usage("\(output) is there already", "Name another file, or replace it by --force.")
        } catch let error as ToolError {
            throw error
        } catch {
            throw ToolError.usage(
                "\(output) cannot be written",
                "Check that its folder is there and may be written to, and its disk has room.")
        }
    }
}

extension HTMLRenderer.Paper: ExpressibleByArgument {}

/// What a receipt printer does beside printing.
struct Press: ParsableArguments {
    enum CutOption: String, CaseIterable, ExpressibleByArgument {
        case partial, full, none
    }

    @Option(help: "How a receipt printer cuts the paper: partial, full or none.")
    var cut = CutOption.partial

    @Flag(help: "Open the cash drawer at the receipt printer, by pin 2 of its connector.")
    var drawer = false

    func renderer(columns: Int) -> ESCPOSRenderer {
        let cut: ESCPOSRenderer.Cut? =
            switch cut {
            case .partial: .partial
            case .full: .full
            case .none: nil
            }
        return ESCPOSRenderer(columns: columns, cut: cut, drawer: drawer ? .pin2 : nil)
    }
}
