package import ArgumentParser
import Foundation
package import SmartCard

/// The tool's output: results on standard output; progress and errors on standard error, with one line for the error
/// and one for the remedy.  Colors and progress appear only on terminals.
package enum Terminal {
    /// The name by which this program was called.
    package static let program = CommandLine.arguments.first.map { URL(fileURLWithPath: $0).lastPathComponent } ?? ""

    package static let outputIsTerminal = isatty(STDOUT_FILENO) == 1
    package static let errorIsTerminal = isatty(STDERR_FILENO) == 1

    private static let hasColor =
        ProcessInfo.processInfo.environment["NO_COLOR", default: ""].isEmpty
        && ProcessInfo.processInfo.environment["TERM"] != "dumb"

    package enum Style: String {
        case bold = "1"
        case dim = "2"
        case warning = "33"
    }

    /// Returns `text` for standard output, in `style` if that is a terminal.
    package static func styled(_ text: String, _ style: Style) -> String {
        outputIsTerminal && hasColor && !text.isEmpty ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    package static func print(_ text: String) {
        // Card data may contain anything; control characters must not reach a terminal.
        write(printable(text) + "\n")
    }

    private static func write(_ text: String) { write(Array(text.utf8)) }

    /// Writes to standard output.  Ends the program if that fails: a full disk, a closed pipe.
    package static func write(_ bytes: [UInt8]) {
        guard !ProgramExit.isUnderWay else { return }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            guard count < 0 else {
                rest = rest.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                var output = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
                poll(&output, 1, -1)
                continue
            // The reader of a closed pipe closed it itself and needs no report.
            case EPIPE: ProgramExit.begin(Pager.isRunning ? .status(0) : .signal(SIGPIPE))
            default:
                complain("the output cannot be written", "Check that standard output is open and its disk has room.")
                ProgramExit.begin(.status(2))
            }
            return
        }
    }

    private static func complain(_ summary: String, _ hint: String) {
        guard !ProgramExit.isUnderWay else { return }
        // A failure to write to standard error cannot be reported anywhere.
        try? FileHandle.standardError.write(contentsOf: Data("\(program): \(summary)\n  \(hint)\n".utf8))
    }

    /// Prints a remark on standard error.
    package static func remark(_ text: String) {
        guard !ProgramExit.isUnderWay else { return }
        try? FileHandle.standardError.write(contentsOf: Data("\(program): \(printable(text))\n".utf8))
    }

    /// Prints a line that the next one overwrites; only on terminals.
    package static func progress(_ text: String) {
        guard errorIsTerminal else { return }
        try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K\(text)".utf8))
    }

    package static func endProgress() { progress("") }

    /// Returns the text without control characters from cards, except line ends and our own colors.
    private static func printable(_ text: String) -> String {
        let own: Set<String> = ["1", "2", "33", "0"]
        var result = String.UnicodeScalarView()
        var rest = Substring(text).unicodeScalars
        while let scalar = rest.popFirst() {
            if scalar == "\u{1B}", rest.first == "[", let end = rest.firstIndex(of: "m"),
                own.contains(String(rest[rest.index(after: rest.startIndex)..<end]))
            {
                result.append(scalar)
            } else if scalar == "\n" || scalar.value >= 0x20 && !(0x7F...0x9F).contains(scalar.value) {
                result.append(scalar)
            } else {
                result.append("\u{FFFD}")
            }
        }
        return String(result)
    }

    /// Returns the subcommand on the command line; empty if there is none.
    private static func subcommand(of command: any ParsableCommand.Type) -> String {
        let names = command.configuration.subcommands.compactMap { $0.configuration.commandName }
        return CommandLine.arguments.dropFirst().first { names.contains($0) } ?? ""
    }

    /// Reports an error and its remedy, and returns its exit status.
    package static func report(_ error: any Error, of command: any ParsableCommand.Type) -> Int32 {
        endProgress()
        let (status, summary, hint): (Int32, String, String)
        switch error {
        // The command has already reported everything.
        case let code as ExitCode: return code.rawValue
        case let error as ToolError:
            (status, summary, hint) = (error.status, error.summary, error.hint)
        case let error as CardError:
            (status, summary, hint) = (error.exitStatus, error.description, error.hint)
        case is CancellationError:
            (status, summary, hint) = (5, "interrupted", "Run it again.")
        default:
            // Help and version go to standard output and are successes; the rest is a usage error.
            guard command.exitCode(for: error) != .success else {
                write(command.fullMessage(for: error) + "\n")
                return 0
            }
            let name = subcommand(of: command)
            (status, summary) = (2, command.message(for: error))
            hint =
                if !name.isEmpty {
                    "See \(program) \(name) --help."
                } else if command.configuration.subcommands.isEmpty {
                    "See \(program) --help."
                } else {
                    "See \(program) --help; a subcommand stands before its options."
                }
        }
        complain(printable(summary), printable(hint))
        return status
    }
}

/// An error of this tool itself.
package struct ToolError: Error {
    package let status: Int32
    package let summary: String
    package let hint: String

    package init(status: Int32, summary: String, hint: String) {
        (self.status, self.summary, self.hint) = (status, summary, hint)
    }

    package static func usage(_ summary: String, _ hint: String) -> ToolError {
        ToolError(status: 2, summary: summary, hint: hint)
    }
}

extension CardError {
    /// The exit status, as listed in `--help`.
    package var exitStatus: Int32 {
        switch kind {
        case .noReader, .readerGone: 3
        case .cardAbsent: 4
        case .noService, .versionMismatch, .permissionDenied: 6
        default: 5
        }
    }
}
