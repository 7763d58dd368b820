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
        try traceMemory()
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
            var times: [Double] = []
            let before = processorTime()
            for _ in 0..<11 {
                times.append(
                    try await time {
                        for _ in 0..<200 {
                            let reader = ReplayReader(trace, comparison: comparison)
                            let report = try await parts.perform(on: reader)
                            guard report.outcome.kind == .onlineRequest else {
                                throw CardError(.other, "another outcome")
                            }
                            try reader.checkPlayedThrough()
                        }
                    } / 200)
            }
            let processor = (processorTime() - before) / Double(200 * times.count)
            print(
                "trace: a transaction of 12 APDUs with kernel, replayed \(name): \(microseconds(median(times))), \(microseconds(processor)) of it of one core: \(Int(1e9 / processor)) a second"
                    + Limit.verdict("5000", isKept: processor <= 1e9 / 5000)
            )
        }
    }

    /// Returns the processor time of this process in nanoseconds, without other programs.
    private static func processorTime() -> Double {
        // In microseconds on Linux.
        Double(clock()) * 1e3
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

    /// Measures recording to a file over the cheapest real transport: SmartCardUSB and libusb to the software reader on
    /// the mock USB bus.
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
        let free = recorder.recording(AnswerChannel(answer: try await card.transmit(command)) as any CardChannel)
        var (plain, with): ([Double], [Double]) = ([], [])
        for _ in 0..<3_000 {
            plain.append(try await time { _ = try await card.transmit(command) })
            with.append(try await time { _ = try await recorded.transmit(command) })
        }
        report(
            (plain, with), per: 1, "SmartCardUSB on the mock bus, an APDU", "the same, recorded to a file", limit: 1.05)
        let alone = try await time { for _ in 0..<20_000 { _ = try await free.transmit(command) } } / 20_000
        print("  recording alone: \(microseconds(alone)) an APDU")
        if let failure = recorder.failure { throw failure }
        await card.disconnect(.leave)
        await reader.close()
    }

    private struct AnswerChannel: CardChannel {
        let answer: ResponseAPDU

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { answer }
    }

    // MARK: Memory

    /// Measures the peak memory while recording this many events to a file and reading them back one by one.
    private static func traceMemory() throws {
        let command = CommandAPDU.readRecord(1, sfi: 1).bytes
        let answer = record + [0x90, 0x00]
        let path = "\(NSTemporaryDirectory())benchmark-\(getpid()).apdu"
        defer { unlink(path) }
        var peaks: [(events: Int, recording: Int, reading: Int)] = []
        for events in [10_000, 1_000_000] {
            let recording = try peakMemory {
                let recorder = TraceRecorder(try TraceWriter(path: path, replacing: true))
                for _ in 0..<events / 2 {
                    recorder.record(.sent(.apdu, command))
                    recorder.record(.received(.apdu, answer))
                }
                if let failure = recorder.failure { throw failure }
            }
            let reading = try peakMemory {
                var reader = try TraceReader(path: path)
                var count = 0
                while try reader.next() != nil { count += 1 }
                guard count == events else { throw CardError(.other, "\(count) events") }
            }
            print("trace: \(events) events: peak RSS \(recording) KiB recording, \(reading) KiB reading")
            peaks.append((events, recording, reading))
        }
        let growth = max(peaks[1].recording - peaks[0].recording, peaks[1].reading - peaks[0].reading, 0)
        let bytes = growth * 1024 / (peaks[1].events - peaks[0].events)
        print("trace: \(bytes) bytes more an event" + Limit.verdict("2048, flat: 0", isKept: bytes <= 16))
        let before = try peakMemory {}
        let held = try peakMemory { try withExtendedLifetime(firstEvents(100_000, of: path)) {} }
        print("trace: 100000 events held as a Trace: \((held - before) * 1024 / 100_000) bytes each")
    }

    private static func firstEvents(_ count: Int, of path: String) throws -> Trace {
        var reader = try TraceReader(path: path)
        var trace = Trace()
        while trace.events.count < count, let event = try reader.next() { trace.events.append(event) }
        return trace
    }

    /// Returns the peak memory of the process in `body`, in KiB: VmHWM, which writing 5 to clear_refs resets (proc(5)).
    private static func peakMemory(_ body: () throws -> Void) throws -> Int {
        try Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
        try body()
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
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
