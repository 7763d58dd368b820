import ArgumentParser
import Glibc
import SmartCardTrace
import ToolSupport

@main
struct APDUTrace: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apdu-trace",
        abstract: "Records what passes between a program and a card, shows it, takes card data out of it, plays it.",
        discussion: """
            A trace is a text file of one event a line. Without hardware: apdu-trace record --virtual -o FILE

            EXIT STATUS
              0  done
              1  traces differ, a trace does not stand verification, or a program departs from it
              2  the command line or a trace is wrong, or something cannot be written
              3  no reader
              4  no card
              5  the card or the reader failed
              6  no permission, or no smart card service
            """,
        version: "0.1.0",
        subcommands: [
            RecordCommand.self, PayCommand.self, ReplayCommand.self, ShowCommand.self, VerifyCommand.self,
            RedactCommand.self, DiffCommand.self, StatsCommand.self,
        ])

    static func main() async {
        var status: Int32 = 0
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as TraceError {
            status = Terminal.report(error.toolError, of: self)
        } catch let error as ReplayMismatch {
            status = Terminal.report(
                ToolError(
                    status: 1, summary: "\(error)",
                    hint: "Record the trace again if the program is right; --order keyed lets calls change places."),
                of: self)
        } catch {
            status = Terminal.report(error, of: self)
        }
        await DirectReaders.giveBack()
        Glibc.exit(status)
    }
}

extension TraceError {
    fileprivate var toolError: ToolError {
        let hint =
            switch reason {
            case .notATrace: "apdu-trace record makes a trace."
            case .unknownVersion: "Use the apdu-trace that wrote it, or a newer one."
            case .file: "Check that the file is there and may be read, or that its folder may be written to."
            case .lineTooLong, .malformed, .timeGoesBack: "Mend that line, or take it out."
            }
        return .usage(description, hint)
    }
}

struct TraceArgument: ParsableArguments {
    @Argument(help: .init("The trace; - for standard input.", valueName: "file"))
    var file: String

    func trace() throws -> Trace { try Trace(path: file) }
}
