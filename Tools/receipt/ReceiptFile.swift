public import ArgumentParser
public import CardReaderAdapter
import Foundation
import ToolSupport

/// The receipt that a subcommand is about, and the language that it is in.
struct ReceiptFile: ParsableArguments {
    @Argument(help: "The receipt, in JSON; - for standard input.")
    var file: String

    @Option(help: .init("The receipt's language: en, de, fr or es.", valueName: "code"))
    var language = ReceiptLanguage.english

    func content() throws -> ReceiptContent {
        let data: Data
        do {
            data =
                file == "-"
                ? FileHandle.standardInput.readDataToEndOfFile() : try Data(contentsOf: URL(fileURLWithPath: file))
        } catch {
            throw ToolError.usage("\(file) cannot be read", "Check its name and permissions.")
        }
        do {
            return try JSONDecoder().decode(ReceiptContent.self, from: data)
        } catch let error as DecodingError {
            throw ToolError.usage("\(file) is no receipt: \(error.place)", "See receipt(1) for what a receipt has.")
        }
    }

    func document() throws -> ReceiptDocument { ReceiptDocument(try content(), language: language) }
}

extension ReceiptLanguage: ExpressibleByArgument {}

extension DecodingError {
    /// Where and what, without the values.
    fileprivate var place: String {
        let (context, problem): (Context, String) =
            switch self {
            case .keyNotFound(let key, let context): (context, "has no \(key.stringValue)")
            case .valueNotFound(_, let context): (context, "is null")
            case .typeMismatch(_, let context): (context, "is of another type")
            case .dataCorrupted(let context): (context, "is not what it should be")
            @unknown default: (Context(codingPath: [], debugDescription: ""), "cannot be read")
            }
        let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
        return (path.isEmpty ? "it" : String(path.drop { $0 == "." })) + " " + problem
    }
}

/// How many characters a line of paper has.
struct Paper: ParsableArguments {
    @Option(help: "Characters a line: 32, 42, 48, or what the printer has.")
    var columns = 48

    func validate() throws {
        guard (16...255).contains(columns) else { throw ValidationError("--columns: 16 to 255.") }
    }
}
