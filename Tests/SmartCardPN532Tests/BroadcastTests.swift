import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import Synchronization
import TestSupport
import Testing
import Waiting

@testable import SmartCardPN532

/// What was told about the frames sent.
private final class Log: Sendable {
    private let broadcasts = Mutex<[Broadcast]>([])

    var all: [Broadcast] { broadcasts.withLock { $0 } }
    func add(_ broadcast: Broadcast) { broadcasts.withLock { $0.append(broadcast) } }

    /// As `A 6A…: silence`.
    var lines: [String] {
        all.map { broadcast in
            let outcome =
                switch broadcast.outcome {
                case .silence: "silence"
                case .answer(let bytes): "answer \(bytes.hex)"
                case .failure(let error): "\(error.kind.rawValue)"
                }
            return "\(broadcast.technology == .typeA ? "A" : "B") \(broadcast.frame.hex): \(outcome)"
        }
    }
}

/// Frames between polls, as proxmark3 has sniffed them and as drivers send them with a PN532.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct BroadcastTests {
    private static func passOnly() throws -> BroadcastFrame { try #require(BroadcastFrame(bytes("6A 01 00 00 02"))) }

    /// The published frames; those of passes alone and of Transport for London with CRC_A are sniffed (proxmark3), the
    /// others were computed with `binascii.crc_hqx` of Python over reversed bits.
    @Test(arguments: [
        ("6A 01 00 00 00", "F6 F1", "D7 3E"), ("6A 01 00 00 01", "7F E0", "5E 2F"),
        ("6A 01 00 00 02", "E4 D2", "C5 1D"), ("6A 01 00 00 03", "6D C3", "4C 0C"),
        ("6A 01 CF 00 00", "AB B1", "8A 7E"), ("6A 01 C3 00 00", "08 14", "29 DB"),
        ("6A 02 81 03 00 00", "35 51", "09 91"), ("6A 02 C8 01 00 03 00 02 79 00 00 00 00", "C2 D8", "11 34"),
        // ISO/IEC 14443-3, annex B: two examples of CRC_A, three of CRC_B.
        ("00 00", "A0 1E", "47 0F"), ("12 34", "26 CF", "C1 DE"), ("00 00 00", "14 A5", "CC C6"),
        ("0F AA FF", "24 B2", "FC D1"), ("0A 12 34 56", "F2 5C", "2C F6"),
    ])
    func checksums(_ frame: String, _ crcA: String, _ crcB: String) throws {
        let frame = try #require(BroadcastFrame(bytes(frame)))
        #expect(frame.framed(for: .typeA) == frame.bytes + bytes(crcA))
        #expect(frame.framed(for: .typeB) == frame.bytes + bytes(crcB))
        #expect(frame.framed(for: .felica212) == nil && frame.framed(for: .felica424) == nil)
    }

    @Test func lengths() {
        #expect(BroadcastFrame([]) == nil && BroadcastFrame([UInt8](repeating: 0, count: 251)) == nil)
        #expect(BroadcastFrame([UInt8](repeating: 0, count: 250))?.framed(for: .typeA)?.count == 252)
    }

    // MARK: The commands

    /// What the first round without a card sends, up to its first frame, which precedes the polls.
    private static let start: KeyValuePairs<String, String> = [
        "FF 00 00 00 04 D4 32 01 00": "D5 33 90 00",  // field off: no card stays selected
        "FF 00 00 00 04 D4 32 01 01": "D5 33 90 00",  // field on
        "FF 00 00 00 03 D4 44 00": "D5 45 27 90 00",  // no earlier card to be deselected
        "FF 00 00 00 06 D4 32 02 00 0B 04": "D5 33 90 00",  // InCommunicateThru waits 0.8 ms
        "FF 00 00 00 06 D4 32 05 01 01 00": "D5 33 90 00",  // one request for each poll
        "FF 00 00 00 06 D4 06 63 05 63 0D": "D5 07 03 10 90 00",  // CIU_TxAuto, CIU_ManualRCV
        // CIU_TxMode, CIU_RxMode: type A without checksums; Force100ASK; parity; CIU_BitFraming: whole bytes.
        "FF 00 00 00 11 D4 08 63 02 00 63 03 00 63 05 43 63 0D 00 63 3D 00": "D5 09 90 00",
    ]
    /// After it.
    private static let typeA: KeyValuePairs<String, String> = [
        "FF 00 00 00 04 D4 4A 02 00": "D5 4B 00 90 00"  // REQA: nothing
    ]
    /// The rest of a round, after the frame of type A.
    private static let typeB: KeyValuePairs<String, String> = [
        "FF 00 00 00 05 D4 4A 02 03 00": "D5 4B 00 90 00",  // REQB: nothing
        "FF 00 00 00 06 D4 06 63 02 63 03": "D5 07 83 83 90 00",  // CIU_TxMode, CIU_RxMode: type B, with checksums
        "FF 00 00 00 08 D4 08 63 02 03 63 03 03": "D5 09 90 00",  // type B, without
        "FF 00 00 00 09 D4 42 6A 01 00 00 02 C5 1D": "D5 43 01 90 00",  // the frame with CRC_B: sent
        "FF 00 00 00 08 D4 08 63 02 83 63 03 83": "D5 09 90 00",  // as before
    ]
    private static let end: KeyValuePairs<String, String> = [
        "FF 00 00 00 06 D4 32 02 00 0B 0A": "D5 33 90 00",  // 51.2 ms, as after a reset
        "FF 00 00 00 06 D4 32 05 01 01 01": "D5 33 90 00",  // two requests for each poll
        "FF 00 00 00 04 D4 32 01 00": "D5 33 90 00",  // field off
    ]

    private static func script(
        _ parts: KeyValuePairs<String, String>...
    ) -> (reader: ScriptedReader, commands: [String]) {
        let all = parts.flatMap { $0.map { ($0.key, $0.value) } }
        return (ScriptedReader(exchanges: all), all.map(\.0))
    }

    @Test func aRound() async throws {
        let (reader, commands) = Self.script(
            Self.start, ["FF 00 00 00 09 D4 42 6A 01 00 00 02 E4 D2": "D5 43 01 90 00"], Self.typeA, Self.typeB,
            Self.end)
        let log = Log()
        let event = try await ACR122U(over: reader).chip.poll(
            [.typeA, .typeB], within: .zero, broadcast: Self.passOnly(), onBroadcast: log.add)
        #expect(event == nil && reader.history() == commands)
        #expect(log.lines == ["A 6A01000002E4D2: silence", "B 6A01000002C51D: silence"])
    }

    /// Whatever follows a frame, cards are looked for further; a reader that does not pass it on gets no second one.
    @Test(arguments: [
        ("D5 43 01 90 00", "silence", true),
        ("63 01", "silence", true),  // the reader gave up on its chip
        ("D5 43 00 44 00 90 00", "answer 4400", true),
        ("D5 43 02 90 00", "notTransacted", true),  // something answered without a whole checksum
        ("63 00", "notTransacted", true),
        ("63 7F", "unsupported", false),  // the chip does not know the command
    ])
    func outcomes(_ answer: String, _ outcome: String, _ goesOn: Bool) async throws {
        let frame: KeyValuePairs = ["FF 00 00 00 09 D4 42 6A 01 00 00 02 E4 D2": answer]
        let (reader, commands) =
            goesOn
            ? Self.script(Self.start, frame, Self.typeA, Self.typeB, Self.end)
            : Self.script(Self.start, frame, Self.typeA, ["FF 00 00 00 05 D4 4A 02 03 00": "D5 4B 00 90 00"], Self.end)
        let log = Log()
        _ = try await ACR122U(over: reader).chip.poll(
            [.typeA, .typeB], within: .zero, broadcast: Self.passOnly(), onBroadcast: log.add)
        #expect(reader.history() == commands)
        #expect(log.lines == ["A 6A01000002E4D2: \(outcome)"] + (goesOn ? ["B 6A01000002C51D: silence"] : []))
    }

    /// A link that fails in the middle is an error; what can be restored is.
    @Test func aLinkThatFails() async throws {
        let (reader, commands) = Self.script(
            Self.start, ["FF 00 00 00 09 D4 42 6A 01 00 00 02 E4 D2": "D5 43 90 00"], Self.end)
        let error = await failure {
            try await ACR122U(over: reader).chip.poll([.typeA, .typeB], within: .zero, broadcast: Self.passOnly())
        }
        #expect(error == "malformedAnswer" && reader.history() == commands)
    }

    /// FeliCa has no such frame, and without a frame the polls are as ever.
    @Test func withoutAFrame() async throws {
        let felica: KeyValuePairs = ["FF 00 00 00 09 D4 4A 02 01 00 FF FF 01 03": "D5 4B 00 90 00"]
        let start: KeyValuePairs = [
            "FF 00 00 00 04 D4 32 01 01": "D5 33 90 00", "FF 00 00 00 03 D4 44 00": "D5 45 27 90 00",
        ]
        let off: KeyValuePairs = ["FF 00 00 00 04 D4 32 01 00": "D5 33 90 00"]
        let (reader, commands) = Self.script(off, start, felica, off)
        _ = try await ACR122U(over: reader).chip.poll([.felica212], within: .zero, broadcast: Self.passOnly())
        #expect(reader.history() == commands)
    }

    // MARK: On the air

    /// What the software chip has sent, as `A`, `B` or `F` for a poll, in small letters for the frame; `on`, `off`,
    /// `deselect`.
    private static func letters(_ records: [RadioRecord]) -> [String] {
        records.map { record in
            switch record.event {
            case .field(let isOn): isOn ? "on" : "off"
            case .deselect: "deselect"
            case .noFrame(_, let reason): reason
            case .frame(let frame, _):
                switch frame.modulation {
                case .typeA: frame.isRequest ? "A" : "a"
                case .typeB: frame.isRequest ? "B" : "b"
                case .felica: "F"
                }
            }
        }
    }

    /// One frame of each kind a loop and one poll, whatever the machine; nothing is damaged; and the guard time.
    @Test func aLoopHasOneFrameOfEachKind() async throws {
        let reader = virtualReader()
        let log = Log()
        let frame = try Self.passOnly()
        try await ACR122U(over: reader).withChip { chip in
            reader.device.radioRecords = []
            let rounds = Task {
                for try await _ in chip.polling(
                    [.typeA, .typeB, .felica212], every: .milliseconds(10), broadcast: frame, onBroadcast: log.add)
                {}
            }
            try await wait(for: "five loops") { log.all.count > 10 }
            rounds.cancel()
            try await rounds.value
        }
        let records = reader.device.radioRecords
        var letters = Self.letters(records)
        // The first frame precedes the polls.
        #expect(letters.prefix(7) == ["off", "on", "a", "A", "B", "b", "F"])
        letters.removeFirst(7)
        // The last loop may be cut off.
        letters = Array(letters.prefix { $0 != "off" })
        #expect(letters.count > 20 && letters == (0..<letters.count).map { ["A", "a", "B", "b", "F"][$0 % 5] })
        #expect(log.all.count - 2 == letters.count { $0 == "a" || $0 == "b" })
        for (one, next) in zip(records, records.dropFirst()) {
            // The field goes off at once when the task is canceled.
            guard case .frame(let frame, _) = one.event, !frame.isRequest, case .frame = next.event else { continue }
            #expect(next.instant - one.instant >= .milliseconds(5))
        }
    }

    /// No frame while a card lies there, nor when two do; again once it has left.
    @Test func onlyWithoutACard() async throws {
        let reader = virtualReader()
        let card = try #require(VirtualCards.named("visa"))
        try await ACR122U(over: reader).withChip { chip in
            var events = chip.polling([.typeA, .typeB], every: .zero, broadcast: try Self.passOnly())
                .makeAsyncIterator()
            reader.device.insert(card)
            _ = try await events.next()
            reader.device.radioRecords = []
            let second = Task {
                try await Time.sleep(for: .milliseconds(150))
                if let card = VirtualCards.named("type-b") { reader.device.insert(card) }
            }
            guard case .collision? = try await events.next() else { throw CardError(.other, "no collision") }
            try await second.value
            let letters = Self.letters(reader.device.radioRecords)
            #expect(letters.contains("A") && !letters.contains("a") && !letters.contains("b"), "\(letters)")
            reader.device.remove()
            guard case .lost? = try await events.next() else { throw CardError(.other, "not lost") }
            reader.device.radioRecords = []
            let third = Task {
                try await Time.sleep(for: .milliseconds(100))
                reader.device.insert(card)
            }
            _ = try await events.next()
            try await third.value
            #expect(Self.letters(reader.device.radioRecords).contains("a"))
        }
    }

    /// Nor in the rest of the round that finds a card, nor before the poll for a card that is known.
    @Test(arguments: [("visa", "A"), ("type-b", "B")])
    func notBesideACard(_ name: String, _ poll: String) async throws {
        let reader = virtualReader(VirtualCards.named(name))
        let frame = try Self.passOnly()
        let log = Log()
        try await ACR122U(over: reader).withChip { chip in
            let rounds = Task {
                for try await _ in chip.polling(
                    [.typeA, .typeB], every: .zero, broadcast: frame, onBroadcast: log.add)
                {}
            }
            try await wait(for: "rounds") { Self.letters(reader.device.radioRecords).count { $0 == poll } > 8 }
            rounds.cancel()
            try await rounds.value
        }
        // What precedes the polls.
        #expect(log.lines == ["A 6A01000002E4D2: silence"])
    }

    /// A task that is canceled, and can send nothing more itself, leaves the chip as it was all the same.
    @Test func canceled() async throws {
        let sent = SentCommands(virtualReader())
        let frame = try Self.passOnly()
        let polling = Task {
            try await ACR122U(over: sent).chip.poll(
                [.typeA, .typeB], within: .seconds(3600), every: .zero, broadcast: frame)
        }
        try await wait(for: "a frame of type B") { sent.all.contains { $0.contains("D4 42 6A 01 00 00 02 C5 1D") } }
        polling.cancel()
        await #expect(throws: CancellationError.self) { try await polling.value }
        #expect(sent.all.suffix(3) == Self.end.map(\.key))
        // Each time that the chip's own checksum was switched off, it was switched on again.
        let off = sent.all.count { $0.hasSuffix("D4 08 63 02 03 63 03 03") }
        #expect(off > 0 && sent.all.count { $0.hasSuffix("D4 08 63 02 83 63 03 83") } == off)
    }

    /// After frames, cards of each technology can be used by commands that depend on registers and time limits.
    @Test(arguments: [
        ("visa", "00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00", "6F 34 84"),
        ("type-b", "00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00", "6A 82"),
        ("felica", "10 06 02 FE 00 01 02 03 04 05 01 0B 00 01 80 00", "1D 07 02 FE 00 01 02 03 04 05 00 00 01 10 04"),
        ("ntag213", "30 04", "03 0E D1 01"),
    ])
    func cardsAfterFrames(_ name: String, _ command: String, _ answer: String) async throws {
        let reader = virtualReader()
        let frame = try Self.passOnly()
        let log = Log()
        let card = try #require(VirtualCards.named(name))
        try await ACR122U(over: reader).withChip { chip in
            let insert = Task {
                try await wait(for: "six frames") { log.all.count >= 6 }
                reader.device.insert(card)
            }
            let event = try await chip.poll(
                PollingTechnology.allCases, within: .seconds(60), every: .zero, broadcast: frame, onBroadcast: log.add)
            try await insert.value
            guard case .found(let target, _)? = event else { throw CardError(.other, "\(String(describing: event))") }
            #expect(try await chip.exchange(bytes(command), with: target.number).starts(with: bytes(answer)))
            if name == "ntag213" {
                // GET_VERSION by InCommunicateThru.
                #expect(try await chip.communicateThrough([0x60]).starts(with: bytes("00 04 04 02 01 00")))
            }
        }
    }

    /// The reader and its chip are as they were, after a card, after none, and for a task that was canceled.
    @Test func restored() async throws {
        let reader = virtualReader()
        let sent = SentCommands(reader)
        let frame = try Self.passOnly()
        let timings = "FF 00 00 00 06 D4 32 02 00 0B 0A"
        let polling = Task {
            try await ACR122U(over: sent).withChip { chip in
                try await chip.poll([.typeA, .typeB], within: .seconds(3600), every: .zero, broadcast: frame)
            }
        }
        try await wait(for: "a frame of type B") { sent.all.contains { $0.contains("D4 42 6A 01 00 00 02 C5 1D") } }
        polling.cancel()
        await #expect(throws: CancellationError.self) { try await polling.value }
        #expect(
            sent.all.suffix(6) == [
                timings, "FF 00 00 00 03 D4 52 00", "FF 00 00 00 06 D4 32 05 FF 01 FF", "FF 00 00 00 03 D4 12 14",
                "FF 00 00 00 04 D4 32 01 01", "FF 00 51 FF 00",
            ])
        // What was changed for type B has been put back.
        #expect(
            try await ACR122U(over: reader).chip.readRegisters([0x6302, 0x6303]).allSatisfy { $0 != 0x03 })

        reader.device.insert(try #require(VirtualCards.named("type-b")))
        sent.clear()
        try await ACR122U(over: sent).withChip { chip in
            _ = try await chip.poll([.typeA, .typeB], within: .seconds(60), broadcast: frame)
            // Before the card is handed out.
            #expect(sent.all.suffix(2) == [timings, "FF 00 00 00 06 D4 32 05 01 01 01"])
        }
        #expect(try await reader.transmitToReader(bytes("FF 00 50 00 00")) == [0x90, 0xFF])
    }
}

/// A PN532 board on a pseudo-terminal polls by the same frames.
@Suite(.timeLimit(.minutes(5))) struct BoardBroadcastTests {
    @Test func aPhoneIsWoken() async throws {
        let board = SoftwarePN532Board()
        // The slot's own polls would find a phone that shows its card.
        let phone = try CardFile(parsing: "variant phone-apple {\nscreen closed\n}").makeCard()
        board.insert(phone)
        let host = try PseudoTerminalHost(board)
        defer { host.close() }
        let reader = try await PN532Reader.open(host.path)
        let frame = try #require(BroadcastFrame(bytes("6A 01 00 00 01")))
        let log = Log()
        try await reader.withChip { chip in
            let field = PN532Field(chip, patience: .seconds(60), broadcast: frame, onBroadcast: log.add)
            guard case .card(let channel) = try await field.activate() else { throw CardError(.cardAbsent) }
            for name in ["OSE.VAS.01", "2PAY.SYS.DDF01"] {
                #expect(try await channel.transmit(.select(Array(name.utf8))).status == .success)
            }
            try await field.release()
        }
        #expect((phone as? WalletPhone)?.isDone == true)
        #expect(log.all.count >= 4)
        #expect(Set(log.lines) == ["A 6A010000017FE0: silence", "B 6A010000015E2F: silence"])
        let records = board.radioRecords.map(\.event)
        #expect(!records.contains { if case .noFrame = $0 { true } else { false } })
        // The slot's own search goes on.
        board.remove()
        board.insert(try #require(VirtualCards.named("visa")))
        #expect(try await reader.connect().transmit(.select(Array("2PAY.SYS.DDF01".utf8))).status == .success)
        await reader.close()
    }
}
