import ArgumentParser
import EMVContactless
import SmartCard
import SmartCardTrace
import ToolSupport

struct TraceOutput: ParsableArguments {
    @Option(name: .shortAndLong, help: .init("Where the trace goes; - for standard output.", valueName: "file"))
    var output: String

    @Flag(help: "Replace the file if it is there.")
    var force = false

    func writer() throws -> sending TraceWriter {
        do {
            return try TraceWriter(path: output, replacing: force)
        } catch let error as TraceError where !force && "\(error)".hasSuffix("File exists") {
            throw ToolError.usage("\(output) is there already", "Name another file, or replace it by --force.")
        }
    }
}

struct RecordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Reads each card that is presented, and records it.",
        discussion: """
            Ends when interrupted; the file holds all that happened up to then. It holds card data in the clear, and only \
            its owner may read it: see apdu-trace redact.
            """)

    @OptionGroup var output: TraceOutput
    @OptionGroup var readerOptions: ReaderOptions

    @Option(help: "End after so many cards. Default: no limit; with --virtual: 1.")
    var count: Int?

    func run() async throws {
        guard count ?? 1 >= 1 else { throw ToolError.usage("--count takes 1 or more", "For example: --count 1") }
        var left = count ?? (readerOptions.isVirtual ? 1 : Int.max)
        guard let base = try await readerOptions.readers().first else { throw CardError(.noReader) }
        let recorder = TraceRecorder(try output.writer())
        let reader = recorder.recording(base)
        while left > 0 {
            left -= 1
            let found = try await readerOptions.waitForCard(on: [reader])
            do {
                let card = try await found.connect()
                _ = try await CardInspector(unpredictableNumber: random(4), date: TerminalTime.now.packedDate)
                    .inspect(card.layered())
                await card.disconnect(.leave)
            } catch let error as CardError {
                // It is in the trace; the next card may do better.
                if left == 0 { throw error }
            }
            if left > 0 { try await reader.waitForRemoval() }
            if let failure = recorder.failure { throw failure }
        }
        if let failure = recorder.failure { throw failure }
    }
}

/// `count` bytes that nobody foresees.
private func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

extension TerminalTime {
    /// `YYMMDD` in 3 bytes, as tag 9A has it.
    fileprivate var packedDate: [UInt8] {
        [date.year % 100, date.month, date.day].map { UInt8($0 / 10 << 4 | $0 % 10) }
    }
}
