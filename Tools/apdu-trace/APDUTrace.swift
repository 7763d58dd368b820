import ArgumentParser
import CardReaders
import SmartCardTrace
import ToolReaders
import ToolSupport

@main
struct APDUTrace: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apdu-trace",
        abstract: "Records, shows, redacts and replays the traffic between a program and a card.",
        discussion: """
            A trace is a text file with one event per line. Without hardware: apdu-trace record --virtual -o FILE

            EXIT STATUS
              0  done
              1  traces differ, a trace fails verification, or a program departs from it
              2  the command line or a trace is invalid, or a file cannot be written
              3  no reader
              4  no card
              5  the card or the reader failed
              6  no permission, or no smart card service
            record and replay with a program exit with the program's status, or with 125 if apdu-trace fails.
            """,
        version: PackageVersion.current,
        subcommands: [
            RecordCommand.self, PayCommand.self, ReplayCommand.self, MergeCommand.self, ShowCommand.self,
            VerifyCommand.self,
            RedactCommand.self, ConvertCommand.self, CardCommand.self, PlotCommand.self, DiffCommand.self,
            StatsCommand.self,
        ])

    static func main() async {
        ProgramExit.takeSignals {
            RecordedFile.finishAll()
            await Machine.giveBack()
        }
        await ProgramExit.whenDone { await run() }
    }

    /// - Returns: the exit status.
    private static func run() async -> Int32 {
        let isProgramRun = CommandLineProgram.isGiven
        do {
            try await parseAndRun(CommandLineProgram.otherArguments)
            return 0
        } catch let error as ExitCode {
            // The command has already reported everything.
            return error.rawValue
        } catch let error as UnreadableTrace {
            let status = Terminal.report(error.toolError, of: self)
            return isProgramRun ? 125 : status
        } catch let error as TraceError {
            let status = Terminal.report(ToolError.usage(error.description, error.hint), of: self)
            return isProgramRun ? 125 : status
        } catch let error as ReplayMismatch {
            return Terminal.report(
                ToolError(
                    status: 1, summary: "\(error)",
                    hint:
                        "Record the trace again if the program is right; --order keyed permits another order of calls."),
                of: self)
        } catch {
            let status = Terminal.report(error, of: self)
            // 126 and 127 are about the program.
            return isProgramRun && status < 125 ? 125 : status
        }
    }
}

/// The program that record and replay run: the words after `--`.  A subcommand that takes any number of files would
/// take these words for files.
enum CommandLineProgram {
    static let (otherArguments, command, isGiven): ([String], [String], Bool) = {
        let arguments = CommandLine.arguments.dropFirst()
        guard ["record", "replay"].contains(arguments.first), let end = arguments.firstIndex(of: "--") else {
            return (Array(arguments), [], false)
        }
        return (Array(arguments[..<end]), Array(arguments[(end + 1)...]), true)
    }()

    /// The first of `options` that the command line has; an option that would be ignored is an error.
    static func option(among options: [String]) -> String? {
        options.first { option in otherArguments.contains { $0 == option || $0.hasPrefix("\(option)=") } }
    }

    /// - Throws: ``ToolError`` if nothing follows `--`, as after an empty shell variable.
    static func check() throws {
        guard isGiven, command.isEmpty else { return }
        throw ToolError.usage("there is no program behind --", "For example: -- opensc-tool --atr")
    }
}
