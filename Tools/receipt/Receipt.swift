import ArgumentParser
import CardReceipts
import Glibc
import ToolSupport

@main
struct Receipt: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receipt",
        abstract: "Shows, renders and prints the receipt of a card payment.",
        discussion: """
            It takes a transaction file: JSON with the merchant, the order and the payment intent; receipt(1) lists its \
            fields. To try it: receipt example > transaction.json && receipt show transaction.json

            EXIT STATUS
              0  done
              2  the command line or the receipt is invalid, or a file cannot be written
              3  no printer
              4  the printer needs attention: paper, cover, a jam
              5  the printer is busy or does not answer, or the printer or a program failed
              6  no permission
            """,
        version: PackageVersion.current,
        subcommands: [
            ShowCommand.self, RenderCommand.self, PrintCommand.self, StatusCommand.self, ExampleCommand.self,
        ])

    static func main() async {
        ProgramExit.takeSignals()
        var status: Int32 = 0
        do {
            try await parseAndRun()
        } catch let error as ReceiptError {
            status = Terminal.report(ToolError.usage("\(error)", error.hint), of: self)
        } catch let error as ExternalProgramError {
            status = Terminal.report(ToolError(status: 5, summary: "\(error)", hint: error.hint), of: self)
        } catch {
            status = Terminal.report(error, of: self)
        }
        Glibc.exit(status)
    }
}
