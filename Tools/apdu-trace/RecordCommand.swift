import ArgumentParser
import CardReaders
import EMVContactless
import SmartCard
import SmartCardTrace
import Synchronization
import ToolReaders
import ToolSupport

extension OutputFile {
    /// Writes to `path` once there is more to write than the reader and the transaction.  Until then an existing file
    /// stays unchanged.  From then on the file holds every event up to the last.
    func writer(to path: String) throws -> sending TraceWriter {
        try NewFile.check(path, replacing: force)
        let replacing = force
        var file: NewFile?
        var start: [UInt8] = []
        return try TraceWriter { line in
            if let file { return try file.write(line) }
            start += line
            guard !Self.isPreamble(line) else { return }
            let new = try NewFile(path, replacing: replacing)
            try new.write(start)
            try new.finish()
            (file, start) = (new, [])
        }
    }

    /// Returns true for the first line of a trace, and for a line about the reader or the transaction.
    private static func isPreamble(_ line: [UInt8]) -> Bool {
        if line.starts(with: TraceFormat.header.utf8) { return true }
        let word = line.split(separator: UInt8(ascii: " "), maxSplits: 2).dropFirst().first ?? []
        return ["reader", "meta"].contains { word.elementsEqual($0.utf8) }
    }
}

struct RecordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Records the traffic between a program and a card.",
        usage: """
            apdu-trace record [-o <file>] [<reader options>] [--count <count>]
            apdu-trace record -o <file> -- <program> [<argument> ...]
            """,
        discussion: """
            With a program: runs it, and records its PC/SC calls and those of the programs that it starts, in any \
            language. The terminal, the signals and the exit status are the program's; 125 means that apdu-trace failed, \
            126 that the program cannot be executed, 127 that it was not found. Each reader that it connects to gets a \
            separate trace: the first in FILE.apdu, the others in FILE-2.apdu, FILE-3.apdu and so on, except for names \
            already in use. Programs without dynamic linking, and programs that run with another user's rights, cannot \
            be recorded.

            Without a program: waits for a card on every reader, then reads each card presented to the reader with the \
            first card, until interrupted.

            The file contains every event up to the end, even after a failure. Account numbers, tracks, names, PINs and \
            keys are redacted as by apdu-trace redact when the recording ends. With --clear they stay, and the file \
            contains every event at any time. Only its owner can read it.
            """)

    @OptionGroup var output: RecordingOutput
    @OptionGroup var readerOptions: ReaderOptions

    @Option(help: "Exit after this number of cards, including those that fail. Default: no limit; with --virtual: 1.")
    var count: Int?

    func run() async throws {
        try CommandLineProgram.check()
        guard !CommandLineProgram.isGiven else { return try await recordProgram() }
        guard count ?? 1 >= 1 else { throw ToolError.usage("--count takes 1 or more", "For example: --count 1") }
        var left = count ?? (readerOptions.isVirtual ? 1 : Int.max)
        let readers = try await readerOptions.readers()
        // There is no file before there is a card, so that an early exit leaves none behind.
        try NewFile.checkWritable(output.file.output, replacing: output.file.force)
        // A trace is about one reader: the one that gets the first card.
        let base = try await readerOptions.waitForCard(on: readers)
        let file = output.recorded()
        let recorder = TraceRecorder(try file.writer())
        let reader = recorder.recording(base)
        let exchanges = Mutex(0)
        while left > 0 {
            left -= 1
            exchanges.withLock { $0 = 0 }
            let found = try await readerOptions.waitForCard(on: [reader])
            do {
                let card = try await found.connect()
                _ = try await CardInspector.withSystemValues
                    .inspect(
                        Stack(for: base) { event in
                            if case .command = event { exchanges.withLock { $0 += 1 } }
                        }.over(card))
                await card.disconnect(.leave)
                if Terminal.errorIsTerminal {
                    Terminal.remark(
                        "recorded, \(plural(exchanges.withLock { $0 }, "exchange"))"
                            + (left > 0 ? "; next card, or Ctrl-C" : ""))
                }
            } catch let error as CardError {
                // It is in the trace; the next card may do better.
                if left == 0 { throw error }
                Terminal.remark("this card failed: \(error)")
            }
            if left > 0 { try await reader.waitForRemoval() }
            if let failure = recorder.failure { throw failure }
        }
        if let failure = recorder.failure { throw failure }
        try file.finish()
    }

    private func recordProgram() async throws {
        guard count == nil, readerOptions.areUnused else {
            throw ToolError.usage(
                "--count and the options for readers are for cards that apdu-trace reads itself",
                "With a program there is -o, and --force.")
        }
        guard output.file.output != "-" else {
            throw ToolError.usage("standard output is the program's", "Name a file: -o FILE")
        }
        let output = output
        let status = try await onOwnThread { try ProgramRun(CommandLineProgram.command).record(to: output) }
        throw ExitCode(status)
    }
}
