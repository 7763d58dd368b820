public import ArgumentParser
public import CardReceipts
import Foundation
import ToolSupport

/// The receipt that a subcommand is about, and the language that it is in.
struct ReceiptFile: ParsableArguments {
    @Argument(help: "A transaction file, or a stored receipt, in JSON; - for standard input.")
    var file: String

    @Option(help: .init("The receipt's language.", valueName: "code"))
    var language = ReceiptLanguage.english

    func content() throws -> ReceiptContent {
        let data: Data
        do {
            data =
                file == "-"
                ? FileHandle.standardInput.readDataToEndOfFile() : try Data(contentsOf: URL(fileURLWithPath: file))
        } catch {
            throw ToolError.usage("\(name) cannot be read", "Check its name and permissions.")
        }
        do {
            return try TransactionFile.content(of: data)
        } catch let error as DecodingError {
            throw ToolError.usage(
                "\(name) is no transaction: \(error.place)",
                "See receipt(1) for its fields, or begin with a valid one: receipt example")
        }
    }

    private var name: String { file == "-" ? "standard input" : file }

    func document() throws -> ReceiptDocument { ReceiptDocument(try content(), language: language) }
}

extension ReceiptLanguage: ExpressibleByArgument {}

/// The width of the paper, in characters per line.
struct Paper: ParsableArguments {
    @Option(help: .init("Characters per line: 32, 42, 48, or the printer's width. (default: 48)", valueName: "count"))
    var columns: Int?

    func validate() throws {
        guard (16...255).contains(columns ?? 48) else { throw ValidationError("--columns: 16 to 255.") }
    }

    var given: [String] { columns == nil ? [] : ["--columns"] }
}

/// The page of forms that have pages.
struct Page: ParsableArguments {
    @Option(
        help: .init("The page of HTML, PDF and IPP printers. (default: roll)", valueName: "paper")
    )
    var page: HTMLRenderer.Paper?

    var given: [String] { page == nil ? [] : ["--page"] }
}

extension HTMLRenderer.Paper: ExpressibleByArgument {}

/// The capabilities and actions of a receipt printer besides printing.
struct Press: ParsableArguments {
    enum CutOption: String, CaseIterable, ExpressibleByArgument {
        case partial, full, none
    }

    @Option(help: "The cut of a receipt printer. (default: partial)")
    var cut: CutOption?

    @Flag(help: "Open the cash drawer of the receipt printer, by pin 2 of its connector.")
    var drawer = false

    @Option(
        help: .init(
            """
            A code page that the receipt printer has, with its number there if that is not Epson's: cp858 or cp858=19. Once for \
            each page; of \(CodePage.all.map { $0.name.lowercased() }.joined(separator: ", ")).
            """, valueName: "page"))
    var codePage: [CodePage] = []

    var given: [String] {
        [cut.map { _ in "--cut" }, drawer ? "--drawer" : nil, codePage.isEmpty ? nil : "--code-page"]
            .compactMap(\.self)
    }

    func renderer(columns: Int?) -> ESCPOSRenderer {
        let cut: ESCPOSRenderer.Cut? =
            switch cut ?? .partial {
            case .partial: .partial
            case .full: .full
            case .none: nil
            }
        return ESCPOSRenderer(
            columns: columns ?? 48, codePages: codePage.isEmpty ? ESCPOSRenderer.epson : codePage, cut: cut,
            drawer: drawer ? .pin2 : nil)
    }
}

extension CodePage: ExpressibleByArgument {
    public init?(argument: String) {
        let parts = argument.split(separator: "=", omittingEmptySubsequences: false)
        guard let page = Self.all.first(where: { $0.name.lowercased() == parts[0].lowercased() }) else { return nil }
        switch parts.count {
        case 1: self = page
        case 2:
            guard let number = UInt8(parts[1]) else { return nil }
            self = page.numbered(number)
        default: return nil
        }
    }

    public var defaultValueDescription: String { name.lowercased() }
}

/// Refuses options without an effect on `what`, rather than ignore them.
func refuse(_ options: [String], for what: String, _ hint: String) throws {
    guard let first = options.first else { return }
    throw ToolError.usage("\(first) has no effect on \(what)", hint)
}
