import EMVContactless
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

@testable import SmartCardTrace

/// What redaction and scan do to the frames that carry APDUs.  The virtual card "visa" has the published test number
/// 4761739001010010.
@Suite(.computing) struct FrameRedactionTests {
    private let redaction = TraceRedaction(key: Array(0..<16))

    /// How APDUs are carried: each in frames of few bytes, so that the account number is in no frame whole.
    enum Carrier: CaseIterable {
        case ccidExtended, ccidT1, air, airTypeB, airWithoutChecksum, chip, acr122Escape, acr122APDU, acr122InCCID

        var layer: TraceEvent.Layer {
            switch self {
            case .ccidExtended, .ccidT1, .acr122InCCID: .ccid
            case .air, .airTypeB: .rf
            case .airWithoutChecksum: .rfPayload
            case .chip: .pn532
            case .acr122Escape: .escape
            case .acr122APDU: .apdu
            }
        }

        /// The frames that an exchange is carried in, `count` bytes of it in each.
        func frames(_ command: [UInt8], _ response: [UInt8], count: Int, _ state: inout Blocks) -> [TraceEvent.What] {
            let (commands, responses) = (parts(command, count), parts(response, count))
            var frames: [TraceEvent.What] = []
            func add(_ sent: [UInt8], _ received: [UInt8]) {
                frames += [.sent(layer, sent), .received(layer, received)]
            }
            switch self {
            case .ccidExtended:
                // wLevelParameter and bChainParameter (CCID 1.10, 6.1.4 and 6.2.1).
                for (index, part) in commands.enumerated() {
                    let isLast = index == commands.count - 1
                    let level: UInt8 = isLast ? index == 0 ? 0 : 2 : index == 0 ? 1 : 3
                    let answer = isLast ? responses[0] : []
                    let chain: UInt8 = isLast ? responses.count > 1 ? 1 : 0 : 0x10
                    add(ccid(0x6F, part, level, &state), ccid(0x80, answer, chain, state))
                }
                for (index, part) in responses.enumerated().dropFirst() {
                    add(ccid(0x6F, [], 0x10, &state), ccid(0x80, part, index == responses.count - 1 ? 2 : 3, state))
                }
            case .ccidT1, .air, .airTypeB, .airWithoutChecksum:
                // Each block but the last is acknowledged, and those of a side are numbered in turn.
                for (index, part) in commands.enumerated() {
                    let isLast = index == commands.count - 1
                    let sent = block(part, isChained: !isLast, number: state.sent, &state)
                    state.sent ^= 1
                    guard isLast else {
                        add(sent, acknowledgment(state.sent, &state, isSent: false))
                        continue
                    }
                    add(sent, block(responses[0], isChained: responses.count > 1, number: state.received, &state, 0x80))
                    state.received ^= 1
                }
                for (index, part) in responses.enumerated().dropFirst() {
                    add(
                        acknowledgment(state.received, &state, isSent: true),
                        block(part, isChained: index < responses.count - 1, number: state.received, &state, 0x80))
                    state.received ^= 1
                }
            case .chip, .acr122Escape, .acr122APDU, .acr122InCCID:
                for (index, part) in commands.enumerated() {
                    let isLast = index == commands.count - 1
                    let more: UInt8 = isLast && responses.count > 1 ? 0x40 : 0
                    let sent = direct([0xD4, 0x40, isLast ? 1 : 0x41] + part, &state)
                    add(sent, answer([0xD5, 0x41, isLast ? more : 0] + (isLast ? responses[0] : []), state))
                }
                for (index, part) in responses.enumerated().dropFirst() {
                    let sent = direct([0xD4, 0x40, 1], &state)
                    add(sent, answer([0xD5, 0x41, index < responses.count - 1 ? 0x40 : 0] + part, state))
                }
            }
            return frames
        }

        /// What stands before the exchanges, so that a card is there.
        func selection(_ state: inout Blocks) -> [TraceEvent.What] {
            let listing: [UInt8] = [0xD5, 0x4B, 1, 1, 0x00, 0x04, 0x20, 4, 1, 2, 3, 4, 5, 0x75, 0x77, 0x81, 0x02]
            let ats: [UInt8] = [0x05, 0x78, 0x77, 0x81, 0x02]
            switch self {
            case .ccidExtended, .ccidT1:
                return [
                    .sent(.ccid, ccid(0x62, [], 0, &state)),
                    .received(.ccid, ccid(0x80, [0x3B, 0x81, 0x80, 0x01, 0x80, 0x80], 0, state)),
                ]
            case .air: return [.sent(.rf, sealed([0xE0, 0x80])), .received(.rf, sealed(ats))]
            case .airTypeB:
                let atqb: [UInt8] = [0x50, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0x81, 0xE1]
                return [
                    .sent(.rf, sealed([0x05, 0, 0])), .received(.rf, sealed(atqb)),
                    .sent(.rf, sealed([0x1D, 1, 2, 3, 4, 0, 8, 1, 0])), .received(.rf, sealed([0])),
                ]
            case .airWithoutChecksum: return [.sent(.rfPayload, [0xE0, 0x80]), .received(.rfPayload, ats)]
            case .chip, .acr122Escape, .acr122APDU, .acr122InCCID:
                return [
                    .sent(layer, direct([0xD4, 0x4A, 1, 0], &state)), .received(layer, answer(listing, state)),
                ]
            }
        }

        struct Blocks {
            var sequence: UInt8 = 0
            var sent: UInt8 = 0
            var received: UInt8 = 0
        }

        private func parts(_ bytes: [UInt8], _ count: Int) -> [[UInt8]] {
            stride(from: 0, to: bytes.count, by: count).map { Array(bytes[$0..<min($0 + count, bytes.count)]) }
        }

        private func ccid(_ type: UInt8, _ data: [UInt8], _ parameter: UInt8, _ state: inout Blocks) -> [UInt8] {
            state.sequence &+= 1
            return [type, UInt8(data.count), 0, 0, 0, 0, state.sequence, 0, parameter, 0] + data
        }

        private func ccid(_ type: UInt8, _ data: [UInt8], _ parameter: UInt8, _ state: Blocks) -> [UInt8] {
            [type, UInt8(data.count), 0, 0, 0, 0, state.sequence, 0, 0, parameter] + data
        }

        /// - Parameter type: 80 for an answer.
        private func block(
            _ data: [UInt8], isChained: Bool, number: UInt8, _ state: inout Blocks, _ type: UInt8 = 0x6F
        ) -> [UInt8] {
            guard self == .ccidT1 else {
                let pcb: UInt8 = 0x02 | (isChained ? 0x10 : 0) | number
                return sealed([pcb] + data)
            }
            let body = [0, (isChained ? 0x20 : 0) | number << 6, UInt8(data.count)] + data
            return inCCID(body, type, &state)
        }

        private func acknowledgment(_ number: UInt8, _ state: inout Blocks, isSent: Bool) -> [UInt8] {
            guard self == .ccidT1 else { return sealed([0xA2 | number]) }
            return inCCID([0, 0x80 | number << 4, 0], isSent ? 0x6F : 0x80, &state)
        }

        private func inCCID(_ body: [UInt8], _ type: UInt8, _ state: inout Blocks) -> [UInt8] {
            let whole = body + [body.reduce(0, ^)]
            return type == 0x6F ? ccid(type, whole, 0, &state) : ccid(type, whole, 0, state)
        }

        private func sealed(_ frame: [UInt8]) -> [UInt8] {
            switch self {
            case .air: frame + crcA(frame)
            case .airTypeB: frame + crcB(frame)
            default: frame
            }
        }

        private func direct(_ data: [UInt8], _ state: inout Blocks) -> [UInt8] {
            let command = [0xFF, 0, 0, 0, UInt8(data.count)] + data
            switch self {
            case .chip: return chip(data)
            case .acr122InCCID: return ccid(0x6F, command, 0, &state)
            default: return command
            }
        }

        private func answer(_ data: [UInt8], _ state: Blocks) -> [UInt8] {
            switch self {
            case .chip: chip(data)
            case .acr122InCCID: ccid(0x80, data + [0x90, 0x00], 0, state)
            default: data + [0x90, 0x00]
            }
        }

        /// PN532 user manual, 6.2.1.1.
        private func chip(_ data: [UInt8]) -> [UInt8] {
            let count = UInt8(data.count)
            return [0, 0, 0xFF, count, 0 &- count] + data + [0 &- data.reduce(0, &+), 0]
        }

        /// Whether every checksum of `bytes` is right.
        func isSealed(_ bytes: [UInt8]) -> Bool {
            switch self {
            case .air: crcA(bytes.dropLast(2)) == Array(bytes.suffix(2))
            case .airTypeB: crcB(bytes.dropLast(2)) == Array(bytes.suffix(2))
            case .ccidT1: bytes[6] == 1 || bytes.dropFirst(10).reduce(0, ^) == 0
            case .chip: bytes.dropFirst(5).reduce(0, &+) == 0
            default: true
            }
        }

        /// A trace of `exchanges` carried so.
        func trace(_ exchanges: [(command: [UInt8], response: [UInt8])], count: Int) -> Trace {
            var state = Blocks()
            var whats = selection(&state)
            for exchange in exchanges {
                whats += frames(exchange.command, exchange.response, count: count, &state)
            }
            return Trace(whats.enumerated().map { TraceEvent(at: .milliseconds($0.offset), $0.element) })
        }
    }

    @Test("the checksums of these tests are those of the standard's examples")
    func checksums() {
        // ISO/IEC 14443-3, annex B.
        #expect(crcA([0x00, 0x00]) == [0xA0, 0x1E] && crcA([0x12, 0x34]) == [0x26, 0xCF])
        #expect(crcB([0x00, 0x00, 0x00]) == [0xCC, 0xC6] && crcB([0x0F, 0xAA, 0xFF]) == [0xFC, 0xD1])
    }

    private static let transaction = purchase(amount: 1234, unpredictableNumber: [1, 2, 3, 4])

    /// The exchanges of a payment with the virtual card, and what came of it.
    private static func payment() async throws -> (
        exchanges: [(command: [UInt8], response: [UInt8])], outcome: Outcome
    ) {
        let transaction = try #require(Self.transaction)
        let recording = try Recording()
        let outcome = try await pay(transaction, on: recording.recorder.recording(virtualReader("visa")))
        let exchanges = try recording.trace().exchanges(on: [.apdu]).compactMap { exchange in
            if case .bytes(let response)? = exchange.answer { (exchange.command, response) } else { nil }
        }
        return (exchanges, outcome)
    }

    /// An inspection of it, which reads what no payment does.
    private static let record: (command: [UInt8], response: [UInt8]) = (
        [0x00, 0xB2, 0x01, 0x0C, 0x00],
        [0x70, 0x0A, 0x5A, 0x08, 0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10, 0x90, 0x00]
    )

    /// The exchanges with the card that the frames of `trace` carry.
    private static func exchanges(_ trace: Trace) -> [Trace.Exchange] {
        trace.raised().trace.exchanges(on: [.apdu]).filter { !$0.command.starts(with: [0xFF, 0x00]) }
    }

    private static func bytes(_ event: TraceEvent) -> [UInt8] {
        switch event.what {
        case .sent(_, let bytes), .received(_, let bytes): bytes
        default: []
        }
    }

    @Test(
        "a payment in frames: found before redaction, split or whole; clean, well sealed and replayable after it",
        arguments: Carrier.allCases, [7, 200])
    func payment(_ carrier: Carrier, _ count: Int) async throws {
        let (exchanges, outcome) = try await Self.payment()
        let trace = carrier.trace(exchanges, count: count)
        #expect(trace.events.map(Self.bytes).allSatisfy(carrier.isSealed))
        #expect(Self.exchanges(trace).map(\.command) == exchanges.map(\.command))
        #expect(!TraceRedaction.eventsWithAccountNumbers(in: trace).isEmpty)
        let redacted = redaction.redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        let events = redacted.events.filter { if case .redacted = $0.what { false } else { true } }
        #expect(events.map { Self.bytes($0).count } == trace.events.map { Self.bytes($0).count })
        #expect(events.map(Self.bytes).allSatisfy(carrier.isSealed))
        // As the APDUs themselves are redacted.
        let apdus = Trace(
            exchanges.flatMap { exchange in
                [.sent(.apdu, exchange.command), .received(.apdu, exchange.response)].map { TraceEvent(at: .zero, $0) }
            })
        let raised = redacted.raised().trace
        #expect(Self.exchanges(redacted).map(\.answer) == redaction.redacted(apdus).exchanges().map(\.answer))
        #expect(redaction.redacted(redacted) == redacted)
        let replayed = try await pay(
            #require(Self.transaction), on: ReplayReader(raised, order: .keyed, comparison: .lenient))
        #expect(replayed.kind == outcome.kind)
    }

    @Test("findings are the frames of the response, not those around them", arguments: Carrier.allCases)
    func findings(_ carrier: Carrier) throws {
        let select: (command: [UInt8], response: [UInt8]) = ([0x00, 0xA4, 0x04, 0x00, 0x00], [0x90, 0x00])
        let trace = carrier.trace([select, Self.record, select], count: 7)
        let answers = trace.events.indices.filter { index in
            let text = Self.bytes(trace.events[index]).hex
            guard case .received = trace.events[index].what else { return false }
            return text.contains("700A5A08476173") || text.contains("90010100109000")
        }
        #expect(answers.count == 2)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == answers)
    }

    @Test("a block that comes again is as it was the first time", arguments: [Carrier.air, .airWithoutChecksum])
    func repeated(_ carrier: Carrier) throws {
        var trace = carrier.trace([Self.record], count: 200)
        trace.events.append(try #require(trace.events.last))
        let last = trace.events.count - 1
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [last - 1, last])
        let redacted = redaction.redacted(trace)
        #expect(redacted.events.suffix(2).map(Self.bytes).first == redacted.events.last.map(Self.bytes))
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        #expect(Self.exchanges(redacted).count == 1)
    }

    @Test(
        "a number that GET RESPONSE and READ BINARY fetch in parts, each in frames of its own",
        arguments: Carrier.allCases)
    func acrossAPDUs(_ carrier: Carrier) throws {
        for (first, second) in [("00B2010C00", "00C0000006"), ("00B0000004", "00B0000406")] {
            let status = second.hasPrefix("00C0") ? "6106" : "9000"
            let exchanges = try [
                ([UInt8](hex: first), [UInt8](hex: "700A5A08476173" + status)),
                ([UInt8](hex: second), [UInt8](hex: "90010100109000")),
            ].map { (command: $0.0, response: $0.1) }
            let trace = carrier.trace(exchanges, count: 200)
            #expect(TraceRedaction.eventsWithAccountNumbers(in: trace).count == 2)
            let redacted = redaction.redacted(trace)
            #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
            #expect(redacted.events.map(Self.bytes).allSatisfy { !$0.hex.contains("9001010010") })
        }
    }

    @Test(
        "a trace that has an exchange on two layers has it redacted on both, alike",
        arguments: Carrier.allCases.filter { $0.layer != .apdu })
    func layers(_ carrier: Carrier) throws {
        let exchanges = try [
            ("00B2010C00", "700A5A084761736106"), ("00C0000006", "90010100109000"),
        ].map { (command: try [UInt8](hex: $0.0), response: try [UInt8](hex: $0.1)) }
        var trace = carrier.trace(exchanges, count: 200)
        // The program's calls stand around the frames of its reader, two for each.
        let count = trace.events.count
        for (end, exchange) in zip([count, count - 2], exchanges.reversed()) {
            let time = trace.events[end - 1].time
            trace.events.insert(TraceEvent(at: time, .received(.apdu, exchange.response)), at: end)
            trace.events.insert(TraceEvent(at: time, .sent(.apdu, exchange.command)), at: end - 2)
        }
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace).count == 4)
        let redacted = redaction.redacted(trace)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
        var (calls, frames) = (redacted, redacted)
        calls.events.removeAll { !Self.isCall($0) }
        frames.events.removeAll(where: Self.isCall)
        #expect(calls.exchanges().map(\.command) == exchanges.map(\.command))
        #expect(calls.exchanges().allSatisfy { $0.answer != nil })
        #expect(Self.exchanges(frames).map(\.answer) == calls.exchanges().map(\.answer))
    }

    private static func isCall(_ event: TraceEvent) -> Bool {
        switch event.what {
        case .sent(.apdu, _), .received(.apdu, _): true
        default: false
        }
    }

    @Test(
        "pieces of a trace of frames separate no chain, and give what the whole gives",
        arguments: Tier.few([Carrier.acr122APDU, .ccidExtended, .air, .chip], 1))
    func pieces(_ carrier: Carrier) throws {
        let exchanges = (0..<1_200).map { _ in Self.record }
        let trace = carrier.trace(exchanges, count: 7)
        var pieces = TracePieces(TraceReader(text: try trace.text()))
        var all: [TracePieces.Piece] = []
        while let piece = try pieces.next() { all.append(piece) }
        #expect(all.count > 1 && all.allSatisfy { $0.trace.events.count < 8_192 })
        #expect(all.reduce(0) { $0 + Self.exchanges($1.trace).count } == 1_200)
        var secrets = TraceSecrets()
        for piece in all { secrets.learn(from: piece) }
        #expect(secrets.count == 1)
        let found = all.map { TraceRedaction.eventsWithAccountNumbers(in: $0, knowing: secrets).count }.reduce(0, +)
        #expect(found == 2_400)
        for piece in all { _ = redaction.redacted(piece, knowing: &secrets, isFirst: false) }
        var events: [TraceEvent] = []
        for piece in all { events += redaction.redacted(piece, knowing: &secrets, isFirst: events.isEmpty).events }
        #expect(Trace(events) == redaction.redacted(trace))
    }

    @Test("what cannot be raised keeps its beginning only; what stands behind an APDU does not stay")
    func notRaised() throws {
        // A block without the chain that it ends, a chip's command to a MIFARE card, a block that ends nothing.
        let whats: [TraceEvent.What] = try [
            .received(.rf, [UInt8](hex: "024761739001010010")),
            .sent(.escape, [UInt8](hex: "FF0000000AD44001A0044761739001")),
            .sent(.escape, [UInt8](hex: "FF0000000AD4400100B2010C004761739001010010")),
        ]
        let redacted = redaction.redacted(Trace(whats.map { TraceEvent(at: .zero, $0) }))
        let bytes = redacted.events.map { Self.bytes($0).hex }.filter { !$0.isEmpty }
        #expect(bytes[0] == "020000000000000000")
        #expect(bytes.dropFirst().allSatisfy { !$0.contains("4761739001") })
    }
}

/// Bit by bit, as ISO/IEC 14443-3, annex B, gives it.
private func crc(_ bytes: some Sequence<UInt8>, _ start: UInt16) -> UInt16 {
    var crc = start
    for byte in bytes {
        for bit in 0..<8 {
            let isSet = (crc ^ UInt16(byte >> bit)) & 1 == 1
            crc = crc >> 1 ^ (isSet ? 0x8408 : 0)
        }
    }
    return crc
}

private func crcA(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let crc = crc(bytes, 0x6363)
    return [UInt8(crc & 0xFF), UInt8(crc >> 8)]
}

private func crcB(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let crc = ~crc(bytes, 0xFFFF)
    return [UInt8(crc & 0xFF), UInt8(crc >> 8)]
}
