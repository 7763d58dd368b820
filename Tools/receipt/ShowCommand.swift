import ArgumentParser
import CardReceipts
import Foundation
import ToolSupport

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows the receipt as it will be printed.",
        discussion: """
            With --json it is the receipt to be kept, which every subcommand takes in place of a transaction file.
            """)

    @OptionGroup var receipt: ReceiptFile
    @OptionGroup var paper: Paper
    @OptionGroup var format: JSONOption

    func run() async throws {
        guard !format.json else { return Terminal.print(try JSONEncoder.ofReceipts.text(of: try receipt.content())) }
        let text = TextRenderer(columns: paper.columns ?? 48).render(try receipt.document())
        Terminal.print(String(text.dropLast()))
    }
}
