import ArgumentParser
import CardReceipts
import Foundation
import ToolSupport

struct RenderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "render", abstract: "Renders the receipt as text, HTML, PDF or bytes for a receipt printer.")

    enum Format: String, CaseIterable, ExpressibleByArgument {
        case text, html, escpos, pdf
    }

    @OptionGroup var receipt: ReceiptFile
    @OptionGroup var paper: Paper
    @OptionGroup var page: Page
    @OptionGroup var press: Press

    @Option(help: "The format of the output.")
    var format = Format.text

    @OptionGroup var file: OutputFile

    func run() async throws {
        try refuseOtherOptions()
        let document = try receipt.document()
        let bytes: [UInt8]
        switch format {
        case .text: bytes = Array(TextRenderer(columns: paper.columns ?? 48).render(document).utf8)
        case .html: bytes = Array(HTMLRenderer(paper: page.page ?? .roll).render(document).utf8)
        case .escpos: bytes = press.renderer(columns: paper.columns).render(document)
        case .pdf: bytes = Array(try await PDFRenderer(paper: page.page ?? .roll).render(document))
        }
        try write(Data(bytes))
    }

    private func refuseOtherOptions() throws {
        let others: [String] =
            switch format {
            case .text: page.given + press.given
            case .html, .pdf: paper.given + press.given
            case .escpos: page.given
            }
        try refuse(
            others, for: "--format \(format.rawValue)",
            "--columns is for text and escpos; --page for html and pdf; --cut, --drawer and --code-page for escpos.")
    }

    private func write(_ data: Data) throws {
        let output = file.output
        do {
            if output == "-" {
                guard isatty(STDOUT_FILENO) == 0 || [.text, .html].contains(format) else {
                    throw ToolError.usage(
                        "\(format.rawValue) is not for a terminal", "Name a file: --output receipt.\(format.rawValue)")
                }
                try FileHandle.standardOutput.write(contentsOf: data)
            } else {
                try data.write(
                    to: URL(fileURLWithPath: output), options: file.force ? .atomic : .withoutOverwriting)
            }
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            throw ToolError.usage("\(output) already exists", "Name another file, or replace it with --force.")
        } catch let error as ToolError {
            throw error
        } catch {
            throw ToolError.usage(
                "\(output) cannot be written",
                "Check that its folder exists and is writable, and that its disk has room.")
        }
    }
}
