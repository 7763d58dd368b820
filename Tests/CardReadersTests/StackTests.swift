import CardReaders
import Logging
import SmartCard
import Synchronization
import TestSupport
import Testing
import Waiting

/// A channel with scripted responses that records commands.
private final class Transport: CardChannel {
    private let answers: Mutex<[[UInt8]]>
    private let sent = Mutex<[String]>([])
    private let pause: Duration

    init(_ answers: String..., after pause: Duration = .zero) {
        self.pause = pause
        self.answers = Mutex(answers.compactMap { try? [UInt8](hex: $0.filter { $0 != " " }) })
    }

    var commands: [String] { sent.withLock { $0 } }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        sent.withLock { $0.append(command.bytes.hex) }
        guard let answer = answers.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
            try await Time.sleep(for: .seconds(600))
            throw CardError(.noAnswer)
        }
        try await Time.sleep(for: pause)
        return try ResponseAPDU(answer)
    }
}

/// A reader that has only a name.
private struct Named: CardReader {
    let identity: ReaderIdentity

    init(_ name: String = "Some Reader 00 00") { identity = ReaderIdentity(name: name, backend: .virtual) }

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        AsyncThrowingStream<SlotState, any Error> { $0.finish() }
    }
    func connect() async throws -> any CardConnection { throw CardError(.cardAbsent) }
    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] { throw CardError(.unsupported) }
}

/// A log handler that records messages.
private struct Lines: LogHandler {
    let lines: Mutexed
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
    func log(event: LogEvent) { lines.all.withLock { $0.append("\(event.message)") } }
}

private final class Mutexed: Sendable {
    let all = Mutex<[String]>([])
}

@Suite(.simulatedTime, .timeLimit(.minutes(2))) struct StackTests {
    private func record(into list: Mutexed) -> RecorderLayer.Record {
        { event in
            switch event {
            case .command(let command): list.all.withLock { $0.append("> \(command.bytes.hex)") }
            case .response(let response): list.all.withLock { $0.append("< \(response.bytes.hex)") }
            case .failure(let error):
                list.all.withLock { $0.append("! \((error as? CardError)?.kind.rawValue ?? "?")") }
            }
        }
    }

    /// 6Cxx first, 61xx in answer to the second try (ISO/IEC 7816-4, 5.1.3 and 5.3.4): log and recorder see one exchange.
    @Test("the rest of a 61xx response is fetched and a wrong length corrected, below the log and the recorder")
    func whole() async throws {
        let transport = Transport("6C 04", "61 04", "70 02 5A 00 90 00")
        let (logged, recorded) = (Mutexed(), Mutexed())
        let logger = Logger(label: "test") { _ in Lines(lines: logged) }
        let channel = Stack(for: Named(), logger: logger, record: record(into: recorded)).over(transport)
        #expect(try await channel.transmit(.readRecord(1, sfi: 1)).data == [0x70, 0x02, 0x5A, 0x00])
        #expect(transport.commands == ["00B2010C00", "00B2010C04", "00C0000004"])
        #expect(recorded.all.withLock { $0 } == ["> 00B2010C00", "< 70025A009000"])
        #expect(logged.all.withLock { $0.count } == 2)
    }

    /// EMV Contactless Book B and Book 1, 9.3.1: both belong to T=0.
    @Test(
        "the kernel receives a contactless card's unmodified responses, and only its own commands are sent",
        arguments: ["61 04", "6C 04"])
    func payment(_ answer: String) async throws {
        let transport = Transport(answer, "70 02 5A 00 90 00")
        let response = try await Stack(.ofEMVContactless, for: Named()).over(transport).transmit(.readRecord(1, sfi: 1))
        #expect([response.status.sw1, response.status.sw2].hex == answer.filter { $0 != " " })
        #expect(transport.commands == ["00B2010C00"])
    }

    @Test("the time limit applies to each exchange at the transport, and its passing is recorded")
    func timeLimit() async throws {
        let recorded = Mutexed()
        let stack = Stack(for: Named(), timeLimit: .milliseconds(20), record: record(into: recorded))
        let start = Time.now
        await #expect { try await stack.over(Transport("61 04")).transmit(.readRecord(1, sfi: 1)) } throws: {
            ($0 as? CardError)?.kind == .readerTimeout
        }
        #expect(Time.now - start == .milliseconds(20))
        #expect(recorded.all.withLock { $0 } == ["> 00B2010C00", "! readerTimeout"])
    }

    @Test("a response in two exchanges has the time limit twice")
    func timeOfEach() async throws {
        let transport = Transport("61 04", "70 02 5A 00 90 00", after: .milliseconds(1200))
        let response = try await Stack(for: Named(), timeLimit: .seconds(2)).over(transport).transmit(
            .readRecord(1, sfi: 1))
        #expect(response.data == [0x70, 0x02, 0x5A, 0x00])
    }

    /// Chaining is below GET RESPONSE: the last part's 61xx is fetched, as any other's (ISO/IEC 7816-4, 5.3.3 and 5.3.4).
    @Test("the reader determines which commands are sent in parts, whoever calls")
    func parts() async throws {
        let command = try CommandAPDU(
            cla: 0x00, ins: 0xDA, p1: 0x01, p2: 0x02, data: [UInt8](repeating: 0xAB, count: 300), ne: 256)
        let (known, unknown) = (Transport("90 00", "61 02", "70 00 90 00"), Transport("90 00"))
        let channel = Stack(for: Named("ACS ACR122U PICC Interface 00 00")).over(known)
        #expect(try await channel.transmit(command).data == [0x70, 0x00])
        #expect(known.commands.map { $0.prefix(10) } == ["10DA0102FF", "00DA01022D", "00C0000002"])
        _ = try await Stack(for: Named()).over(unknown).transmit(command)
        #expect(unknown.commands == [command.bytes.hex])
    }
}
