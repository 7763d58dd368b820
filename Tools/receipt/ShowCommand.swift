import ArgumentParser
import CardReceipts
import ToolSupport

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows the receipt as it will be printed.")

    @OptionGroup var receipt: ReceiptFile
    @OptionGroup var paper: Paper

    func run() async throws {
        let text = TextRenderer(columns: paper.columns ?? 48).render(try receipt.document())
        Terminal.print(String(text.dropLast()))
    }
}
