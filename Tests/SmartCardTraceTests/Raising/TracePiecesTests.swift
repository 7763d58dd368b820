import SmartCard
import TestSupport
import Testing

@testable import SmartCardTrace

/// The oracle is the whole trace: what is found out in pieces is what is found out at once.
@Suite(.computing) struct TracePiecesTests {
    /// Records with the published test number 4761739001010010, each in two parts that GET RESPONSE fetches, so that the
    /// number is in neither; then a reset of the card.
    private static func trace(records: Int) throws -> Trace {
        let record = [
            "> apdu 00B2010C00", "< apdu 700A5A08476173906106", "note \"x\"", "> apdu 00C0000006",
            "< apdu 010100109000",
        ]
        let lines =
            ["connect T=1 3B80800101"] + (0..<records).flatMap { _ in record } + ["disconnect leave"]
        return try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
    }

    private func pieces(_ trace: Trace, limit: Int = .max) throws -> [TracePieces.Piece] {
        var pieces = TracePieces(TraceReader(text: try trace.text()), limit: limit)
        var all: [TracePieces.Piece] = []
        while let piece = try pieces.next() { all.append(piece) }
        #expect(pieces.eventCount == all.reduce(0) { $0 + $1.trace.events.count })
        return all
    }

    @Test("pieces are small, whole, and begin with the card that is connected")
    func cuts() throws {
        let trace = try Self.trace(records: 1_000)
        let pieces = try pieces(trace)
        #expect(pieces.count > 10)
        #expect(pieces.flatMap(\.trace.events) == trace.events)
        #expect(pieces.flatMap(\.lines) == Array(2..<trace.events.count + 2))
        for (index, piece) in pieces.enumerated() {
            #expect(piece.trace.events.count < 300)
            #expect(piece.connections.isEmpty == (index == 0))
            guard index > 0, case .sent(.apdu, let bytes)? = piece.trace.events.first?.what else { continue }
            #expect(bytes[1] == 0xB2)
        }
        #expect(try self.pieces(trace, limit: 700).flatMap(\.trace.events).count == 700)
    }

    /// The number in two commands, of which the second would be the first of a piece.
    @Test(
        "a chain of commands and consecutive UPDATE BINARY are not cut",
        arguments: [("10DA00000447617390", "00DA00000401010010"), ("00D600000447617390", "00D600040401010010")])
    func chains(_ first: String, _ second: String) throws {
        let other = ["> apdu 00A40000023F00", "< apdu 9000"]
        let lines =
            ["connect T=1 3B80800101", "note \"x\""] + [[String]](repeating: other, count: 126).flatMap { $0 }
            + ["> apdu \(first)", "< apdu 9000", "> apdu \(second)", "< apdu 9000"] + other + other
        let trace = try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
        let pieces = try pieces(trace)
        #expect(pieces.map { $0.trace.events.count } == [258, 4])
        var secrets = TraceSecrets()
        for piece in pieces { secrets.learn(from: piece) }
        let found = TraceRedaction.eventsWithAccountNumbers(in: try #require(pieces.first), knowing: secrets)
        #expect(found == [254, 256])
        let redacted = TraceRedaction().redacted(try #require(pieces.first), knowing: &secrets)
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted).isEmpty)
    }

    @Test("an answer behind a hard cut is that of its command before it")
    func openCommand() throws {
        let record = Array("2 APRIL 30.00 DOE".utf8)
        let notes = (0..<8_191).map { _ in TraceEvent(at: .zero, .note("x")) }
        let trace = Trace(
            [TraceEvent(at: .zero, .sent(.apdu, [0x00, 0xB2, 0x01, 0x5C, 0x00]))] + notes
                + [TraceEvent(at: .zero, .received(.apdu, record + [0x90, 0x00]))])
        let pieces = try pieces(trace)
        #expect(pieces.map(\.trace.events.count) == [8_192, 1])
        var secrets = TraceSecrets()
        let redacted = TraceRedaction().redacted(try #require(pieces.last), knowing: &secrets, isFirst: false)
        #expect(redacted.events.map(\.what) == [.received(.apdu, [UInt8](repeating: 0, count: 17) + [0x90, 0x00])])
    }

    @Test("on request no payment is cut, unless it is longer than any piece; that is told")
    func payments() throws {
        let select = ["> apdu 00A404000E325041592E5359532E444446303100", "< apdu 9000"]
        let read = ["> apdu 00B2010C00", "< apdu 7000", "> apdu 00B2020C00", "< apdu 9000"]
        func pieces(_ lines: [String]) throws -> [TracePieces.Piece] {
            let text = "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined()
            var pieces = TracePieces(TraceReader(text: text), holdingTransactions: true)
            var all: [TracePieces.Piece] = []
            while let piece = try pieces.next() { all.append(piece) }
            return all
        }
        let payment = select + [[String]](repeating: read, count: 50).flatMap { $0 }
        let whole = try pieces([[String]](repeating: payment, count: 5).flatMap { $0 })
        #expect(whole.map { $0.trace.events.count } == [404, 404, 202] && !whole.contains(where: \.isCut))
        let long = try pieces(select + [[String]](repeating: read, count: 2_100).flatMap { $0 } + payment)
        #expect(long.map { $0.trace.events.count } == [8_192, 412] && long.map(\.isCut) == [true, false])
    }

    @Test("commands that are never answered do not make a piece grow without end")
    func neverAnswered() throws {
        let count = Tier.rounds(9_000, thorough: 20_000)
        let events = (0..<count).map { _ in TraceEvent(at: .zero, .sent(.apdu, [0x00, 0xB2, 0x01, 0x0C, 0x00])) }
        let pieces = try pieces(Trace(events))
        #expect(pieces.count == count / 8_192 + 1 && pieces.allSatisfy { $0.trace.events.count <= 8_192 })
        let long = (0..<60).map { _ in TraceEvent(at: .zero, .note(String(repeating: "x", count: 100_000))) }
        #expect(try self.pieces(Trace(long)).allSatisfy { $0.trace.events.count <= 42 })
    }

    @Test("redaction and scan in pieces give what they give at once")
    func redaction() throws {
        var trace = try Self.trace(records: 150)
        // In the first piece, and in what is taken for an application's name: known from the records alone.
        let select = try [UInt8](hex: "00A40400084761739001010010")
        trace.events.insert(
            contentsOf: [.sent(.apdu, select), .received(.apdu, [0x6A, 0x82])].map { TraceEvent(at: .zero, $0) }, at: 1)
        let redaction = TraceRedaction(key: Array(0..<16))
        var secrets = TraceSecrets()
        let pieces = try pieces(trace)
        for piece in pieces { secrets.learn(from: piece) }
        #expect(secrets.count == 1)
        var found: [Int] = []
        var first = 0
        for piece in pieces {
            found += TraceRedaction.eventsWithAccountNumbers(in: piece, knowing: secrets).map { $0 + first }
            first += piece.trace.events.count
        }
        #expect(found == TraceRedaction.eventsWithAccountNumbers(in: trace))
        #expect(found.first == 1 && found.count == 2 * 150 + 1)
        for piece in pieces { _ = redaction.redacted(piece, knowing: &secrets, isFirst: false) }
        var events: [TraceEvent] = []
        for (index, piece) in pieces.enumerated() {
            events += redaction.redacted(piece, knowing: &secrets, isFirst: index == 0).events
        }
        #expect(Trace(events) == redaction.redacted(trace))
    }

    private func rehearse(_ lines: [String], connected: Bool = false) async throws -> String? {
        let trace = try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
        let cards: [(atr: ATR, transmissionProtocol: TransmissionProtocol)] = connected ? [(ATR([]), .t1)] : []
        return await ReplayReader.rehearse(trace, connections: cards).map { "\($0.event): \($0.reason)" }
    }

    @Test("a trace's own calls get their answers, errors and resets, whole or in pieces")
    func rehearsal() async throws {
        let lines = [
            "reader usb \"x\"", "slot card 3B80800101", "! connect sharing", "connect T=1 3B80800101",
            "> escape FF00480000", "< escape 41", "> apdu 00A4040000", "< apdu 9000", "reset", "! reset noAnswer",
            "> apdu 00B0000000", "! apdu cardRemoved", "disconnect leave", "slot empty", "! slot readerGone",
        ]
        #expect(try await rehearse(lines) == nil)
        // A reader that was unplugged, twice, and is there again.
        let gone = ["! slot readerGone", "! slot readerGone", "slot empty", "slot card 3B80800101"]
        #expect(try await rehearse(Array(lines[...7] + lines[12...12] + gone + lines[3...7])) == nil)
        // A bare channel.
        #expect(try await rehearse(Array(lines[6...8])) == nil)
        // A piece of a trace.
        #expect(try await rehearse(Array(lines[6...8] + lines[12...] + lines[3...3]), connected: true) == nil)
        for piece in try pieces(Self.trace(records: 300)) {
            #expect(await ReplayReader.rehearse(piece.trace, connections: piece.connections) == nil)
        }
    }

    @Test("two connections at once are played, and one is left when the other is given back")
    func twoConnections() async throws {
        let connect = "connect T=1 3B80800101"
        let exchange = ["> apdu 00A4040000", "< apdu 9000"]
        #expect(try await rehearse([connect, connect, "disconnect leave"] + exchange + ["disconnect leave"]) == nil)
        #expect(
            try await rehearse([connect, connect, "disconnect leave", "disconnect leave"] + exchange)
                == "4: there is no connection to the card")
        let many = [[String]](repeating: exchange, count: 400).flatMap { $0 }
        let text = ([connect, connect] + many + ["disconnect leave"] + many).map { "0.000000000 \($0)\n" }.joined()
        let pieces = try pieces(Trace(text: "apdu-trace 1\n" + text))
        #expect(pieces.count > 4 && pieces.last?.connections.count == 1)
        for piece in pieces {
            #expect(await ReplayReader.rehearse(piece.trace, connections: piece.connections) == nil)
        }
    }

    @Test("what cannot be played is told with its event")
    func notPlayable() async throws {
        let connect = "connect T=1 3B80800101"
        let exchange = ["> apdu 00A4040000", "< apdu 9000"]
        #expect(try await rehearse(exchange + [connect]) == "0: there is no connection to the card")
        #expect(
            try await rehearse([connect] + exchange + ["disconnect leave"] + exchange)
                == "4: there is no connection to the card")
        #expect(try await rehearse([connect, "> apdu 00A4040000"]) == "1: there is no answer")
        #expect(try await rehearse([connect, "> apdu 00A4", "< apdu 9000"])?.hasPrefix("1: ") == true)
        #expect(try await rehearse([connect, "> apdu 00A4040000", "< apdu 90"])?.hasPrefix("1: ") == true)
    }
}
