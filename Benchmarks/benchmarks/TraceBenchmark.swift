import CBaseline
import EMVContactless
import Foundation
import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import SmartCardTrace
import SmartCardUSB
import Synchronization

extension Benchmarks {
    /// Measures the cost of traces: replaying a transaction, recording an APDU, and memory.
    static func trace() async throws {
        try await replay()
        try await recordingTime()
        try await traceMemory()
    }

    // MARK: Replaying

    /// Measures a transaction of twelve APDUs with Kernel 3, replayed from its trace repeatedly in one task.
    private static func replay() async throws {
        let start = TerminalParts(try transactionForTraces([1, 2, 3, 4]))
        let text = Text()
        let recorder = TraceRecorder(try TraceWriter { line in text.bytes.withLock { $0 += line } })
        let device = SoftwareACR122U()
        device.insert(try twelveCommands().makeCard())
        let recorded = try await start.perform(on: recorder.recording(VirtualReader(device)))
        let trace = try Trace(text: String(decoding: text.bytes.withLock { $0 }, as: UTF8.self))
        guard recorded.exchanges.count == 12, recorded.outcome.kind == .onlineRequest else {
            throw CardError(.other, "\(recorded.exchanges.count) APDUs, \(recorded.outcome.reason)")
        }
        // A lenient replay accepts another unpredictable number in the command.
        let other = TerminalParts(try transactionForTraces([5, 6, 7, 8]))
        for (name, comparison, parts) in [
            ("exact", ReplayReader.Comparison.exact, start), ("lenient", .lenient, other),
        ] {
            func play() async throws {
                let reader = ReplayReader(trace, comparison: comparison)
                guard try await parts.perform(on: reader).outcome.kind == .onlineRequest else {
                    throw CardError(.other, "another outcome")
                }
                try reader.checkPlayedThrough()
            }
            let allocations = try await Allocations(rounds: 20, play)
            let rounds = Limit.isGate ? 1 : 2000
            let processor =
                try await processorTime { for _ in 0..<rounds { try await play() } } / Double(rounds)
            print(
                """
                trace: a transaction of 12 APDUs with kernel, replayed \(name): \(microseconds(processor)) of one core, \
                \(Int(1e9 / processor)) a second, \(allocations.verdict(atMost: 1000, unoptimized: 1850))
                """)
        }
    }

    /// The parts needed to perform a transaction.
    private struct TerminalParts {
        let transaction: Transaction
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: .test, keys: .published))

        init(_ transaction: Transaction) { self.transaction = transaction }

        func perform(on reader: any CardReader) async throws -> ContactlessTerminal.Report {
            let field = CardReaderField(reader)
            let report = try await terminal.perform(transaction, in: field) { _ in }
            await field.release(.leave)
            return report
        }
    }

    private static func transactionForTraces(_ unpredictableNumber: [UInt8]) throws -> Transaction {
        guard let date = CalendarDate(year: 2026, month: 11, day: 21), let time = TerminalTime(date),
            let currency = Currency["EUR"],
            let transaction = Transaction(
                .purchase, amount: 1234, currency: currency, time: time, unpredictableNumber: unpredictableNumber)
        else { throw CardError(.other, "no transaction") }
        return transaction
    }

    private final class Text: Sendable {
        let bytes = Mutex<[UInt8]>([])
    }

    // MARK: Recording

    /// Measures recording to a file, against C that writes the same lines to one; and what it adds to the cheapest real transport,
    /// SmartCardUSB and libusb to the software reader on the mock USB bus.
    private static func recordingTime() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = SoftwareACR122U()
        if let card = VirtualCards.named("visa") { device.insert(card) }
        try host.plug(device)
        guard let reader = try await USBReaders().readers().first else { throw CardError(.noReader) }
        let command = CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8))
        let card = try await reader.connect()
        let path = "\(NSTemporaryDirectory())benchmark-\(getpid()).apdu"
        defer { unlink(path) }
        let recorder = TraceRecorder(try TraceWriter(path: path, replacing: true))
        let recorded = recorder.recording(card as any CardChannel)
        let answer = try await card.transmit(command)
        let bare = AnswerChannel(answer: answer)
        let free = recorder.recording(bare as any CardChannel)

        let own = try await Allocations(rounds: 1000) { _ = try await free.transmit(command) }
        let others = try await Allocations(rounds: 1000) { _ = try await bare.transmit(command) }
        let before = io("syscw")
        for _ in 0..<1000 { _ = try await free.transmit(command) }
        let lines = (io("syscw") - before + 500) / 1000
        let more = own.count - others.count
        print(
            """
            trace: recording an APDU takes \(more) allocations\(Limit.verdict(atMost: 10, unoptimized: 17, more)) and \
            \(lines) writes\(Limit.verdict(atMost: 2, lines))
            """)
        if !Limit.isGate {
            let other = open(path + ".c", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            defer {
                close(other)
                unlink(path + ".c")
            }
            let (sent, received, rounds) = (command.bytes, answer.bytes, 500)
            let recording = try await Comparison(.processorTime, limit: recordingLimit) {
                await processorTime {
                    for _ in 0..<rounds { baseline_record(other, 0, sent, sent.count, received, received.count) }
                }
            } _: {
                try await processorTime { for _ in 0..<rounds { _ = try await free.transmit(command) } }
            }
            report(recording, per: Double(rounds), "C, two lines to a file", "TraceRecorder", limit: recordingLimit)
            let whole = try await Comparison(.time) {
                try await time { for _ in 0..<50 { _ = try await card.transmit(command) } }
            } _: {
                try await time { for _ in 0..<50 { _ = try await recorded.transmit(command) } }
            }
            report(whole, per: 50, "SmartCardUSB on the mock bus, an APDU", "the same, recorded to a file", limit: nil)
        }
        if let failure = recorder.failure { throw failure }
        await card.disconnect(.leave)
        await reader.close()
    }

    private static let recordingLimit = 2.0

    private struct AnswerChannel: CardChannel {
        let answer: ResponseAPDU

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { answer }
    }

    // MARK: Memory

    /// Measures the peak memory while recording this many events to a file and reading them back one by one.
    private static func traceMemory() async throws {
        let command = CommandAPDU.readRecord(1, sfi: 1).bytes
        let answer = record + [0x90, 0x00]
        let path = "\(NSTemporaryDirectory())benchmark-\(getpid()).apdu"
        defer { unlink(path) }
        var peaks: [(recording: Int, reading: Int)] = []
        let counts = Limit.isGate ? [1_000, 10_000] : [10_000, 1_000_000]
        for events in counts {
            let recording = try await peakGrowth {
                let recorder = TraceRecorder(try TraceWriter(path: path, replacing: true))
                for _ in 0..<events / 2 {
                    recorder.record(.sent(.apdu, command))
                    recorder.record(.received(.apdu, answer))
                }
                if let failure = recorder.failure { throw failure }
            }
            let reading = try await peakGrowth {
                var reader = try TraceReader(path: path)
                var count = 0
                while try reader.next() != nil { count += 1 }
                guard count == events else { throw CardError(.other, "\(count) events") }
            }
            print(
                "trace: \(events) events: \(recording) KiB more at most while recording, \(reading) KiB while reading")
            peaks.append((recording, reading))
        }
        // Buffers and what the system rounds to are of one size, whatever the events: a page for a hundred events is no more.
        let growth = max(peaks[1].recording - peaks[0].recording, peaks[1].reading - peaks[0].reading, 0)
        let bytes = growth * 1024 / (counts[1] - counts[0])
        print("trace: \(bytes) bytes more an event" + Limit.verdict(atMost: 16, unoptimized: 64, bytes))
        guard !Limit.isGate else { return }
        let held = try await peakGrowth { try withExtendedLifetime(firstEvents(100_000, of: path)) {} }
        print("trace: 100000 events held as a Trace: \(held * 1024 / 100_000) bytes each")
    }

    private static func firstEvents(_ count: Int, of path: String) throws -> Trace {
        var reader = try TraceReader(path: path)
        var trace = Trace()
        while trace.events.count < count, let event = try reader.next() { trace.events.append(event) }
        return trace
    }

    /// Returns the card visa with eight more records of 100 bytes, each with an object that the kernel reads but does
    /// not know.
    private static func twelveCommands() throws -> CardFile {
        guard let visa = FileManager.default.contents(atPath: "Sources/SmartCardSimulator/Cards/visa.card") else {
            throw CardError(.other, "Run the benchmarks in the package's folder.")
        }
        let records = (2...9).map { number in
            "record 1 \(number) {\n70 {\nDF1\(number) \([UInt8](repeating: UInt8(number), count: 95).hex)\n}\n}\n"
        }
        let text = String(decoding: visa, as: UTF8.self).replacing(
            "record 1 1", with: records.joined() + "record 1 1", maxReplacements: 1)
        return try CardFile(parsing: Array(text.utf8))
    }
}
