import Foundation
import Glibc
import SmartCard
import SmartCardTrace
import Synchronization
import TestSupport
import Testing

/// Expected lines are written by hand from the grammar in TraceFileFormat.md.
@Suite(.computing) struct TraceFileTests {
    static let atr = ATR([0x3B, 0x80, 0x80, 0x01, 0x01])

    /// One of each kind of event, and its line.
    static let lines: [(line: String, what: TraceEvent.What)] = [
        (
            #"reader pcsc "ACS ACR122U PICC Interface 00 00""#,
            .reader(ReaderIdentity(name: "ACS ACR122U PICC Interface 00 00", backend: .pcsc))
        ),
        (
            #"reader usb "a \"b\" \\ \u{A}\u{202E}ü" vendor "ACS" serial "1""#,
            .reader(
                ReaderIdentity(name: "a \"b\" \\ \n\u{202E}ü", backend: .usb, vendor: "ACS", serialNumber: "1"))
        ),
        (#"reader virtual "" serial "x""#, .reader(ReaderIdentity(name: "", backend: .virtual, serialNumber: "x"))),
        ("slot empty", .slot(.empty)),
        ("slot mute", .slot(.muteCard)),
        ("slot unknown", .slot(.unknown)),
        ("slot card 3B80800101", .slot(.card(atr, exclusivelyHeld: false))),
        ("slot card 3B80800101 held", .slot(.card(atr, exclusivelyHeld: true))),
        ("slot card -", .slot(.card(ATR([]), exclusivelyHeld: false))),
        ("connect T=1 3B80800101", .connected(atr, .t1)),
        ("connect T=0 3B80800101", .connected(atr, .t0)),
        ("connect raw -", .connected(ATR([]), .raw)),
        ("reset", .reset),
        ("disconnect leave", .disconnected(.leave)),
        ("disconnect reset", .disconnected(.reset)),
        ("disconnect power-off", .disconnected(.powerOff)),
        ("field on", .field(isOn: true)),
        ("field off", .field(isOn: false)),
        ("> apdu 00A40400", .sent(.apdu, [0x00, 0xA4, 0x04, 0x00])),
        ("< apdu 9000", .received(.apdu, [0x90, 0x00])),
        ("< escape -", .received(.escape, [])),
        ("> ccid 62", .sent(.ccid, [0x62])),
        ("> pn532 00", .sent(.pn532, [0x00])),
        ("> rf 26", .sent(.rf, [0x26])),
        ("< rf-payload 0400", .received(.rfPayload, [0x04, 0x00])),
        ("! apdu cardRemoved", .failed(.exchange(.apdu), .init(.cardRemoved))),
        ("! escape cancelled", .failed(.exchange(.escape), .init(nil))),
        (#"! connect sharing "by \"x\"""#, .failed(.connect, .init(.sharing, "by \"x\""))),
        ("! reset noAnswer", .failed(.reset, .init(.noAnswer))),
        ("! slot readerGone", .failed(.slot, .init(.readerGone))),
        (#"note "one # two""#, .note("one # two")),
        (#"meta outcome.a-1 "x \"y\"""#, .meta(key: "outcome.a-1", value: "x \"y\"")),
        ("redacted", .redacted([])),
        ("redacted account-number certificate track", .redacted([.track, .accountNumber, .certificate])),
    ]

    @Test("each kind of event is written as its line and read from it", arguments: lines.indices)
    func roundTrip(_ index: Int) throws {
        let (line, what) = Self.lines[index]
        let event = TraceEvent(at: .seconds(12) + .nanoseconds(34_005), what)
        let text = "apdu-trace 1\n12.000034005 \(line)\n"
        #expect(try Trace([event]).text() == text)
        #expect(try Trace(text: text) == Trace([event]))
    }

    /// Rows: what stands in the file, and what is said of it.
    static let malformed: [(text: String, error: String)] = [
        ("", "line 1: not a trace: the first line of one is \"apdu-trace 1\""),
        ("apdu-trace 1", "line 1: not a trace: the first line of one is \"apdu-trace 1\""),
        ("hello\n", "line 1: not a trace: the first line of one is \"apdu-trace 1\""),
        ("apdu-trace 1 \n", "line 1: not a trace: the first line of one is \"apdu-trace 1\""),
        ("apdu-trace 2\n", "line 1: a trace of version 2, which is not known here"),
        ("apdu-trace 1\n\n# x\n1.0 reset\n", "line 4: a time of seconds with nine decimals was due"),
        ("apdu-trace 1\n00000000001.000000000 reset\n", "line 2: a time of seconds with nine decimals was due"),
        ("apdu-trace 1\n-1.000000000 reset\n", "line 2: a time of seconds with nine decimals was due"),
        ("apdu-trace 1\n1.00000000x reset\n", "line 2: a time of seconds with nine decimals was due"),
        ("apdu-trace 1\n1.000000000 reset\n0.999999999 reset\n", "line 3: a time earlier than the previous event's"),
        ("apdu-trace 1\n1.000000000\n", "line 2: an event was due"),
        ("apdu-trace 1\n1.000000000  reset\n", "line 2: an event was due"),
        ("apdu-trace 1\n1.000000000 meta A \"x\"\n", "line 2: a key was due, not \"A\""),
        ("apdu-trace 1\n1.000000000 explode\n", "line 2: no event is called \"explode\""),
        ("apdu-trace 1\n1.000000000 \u{1B}[2J\n", "line 2: no event is called \"[*J\""),
        ("apdu-trace 1\n1.000000000 reset now\n", "line 2: more than the event has"),
        ("apdu-trace 1\n1.000000000 > apdu\n", "line 2: bytes were due"),
        ("apdu-trace 1\n1.000000000 > apdu 0\n", "line 2: bytes of two digits each were due"),
        ("apdu-trace 1\n1.000000000 > apdu 0a\n", "line 2: bytes are the digits 0 to 9 and A to F"),
        ("apdu-trace 1\n1.000000000 > apdu 00 A4\n", "line 2: more than the event has"),
        ("apdu-trace 1\n1.000000000 > tpdu 00\n", "line 2: apdu, escape or another layer was due, not \"tpdu\""),
        ("apdu-trace 1\n1.000000000 ! apdu boom\n", "line 2: a kind of error was due, not \"boom\""),
        ("apdu-trace 1\n1.000000000 note x\n", "line 2: text in quotation marks was due"),
        ("apdu-trace 1\n1.000000000 note \"x\n", "line 2: the text has no end"),
        ("apdu-trace 1\n1.000000000 note \"\t\"\n", "line 2: a control character in a text"),
        ("apdu-trace 1\n1.000000000 note \"\\n\"\n", "line 2: after \\ one of \\ \" u{...} was due"),
        ("apdu-trace 1\n1.000000000 note \"\\u{D800}\"\n", "line 2: after \\ one of \\ \" u{...} was due"),
        ("apdu-trace 1\n1.000000000 note \"\\u{1234567}\"\n", "line 2: after \\ one of \\ \" u{...} was due"),
        ("apdu-trace 1\n1.000000000 redacted all\n", "line 2: what was redacted was due, not \"all\""),
    ]

    @Test("what the grammar does not admit is an error with its line", arguments: malformed.indices)
    func malformedLines(_ index: Int) {
        let (text, error) = Self.malformed[index]
        #expect {
            try Trace(text: text)
        } throws: {
            ($0 as? TraceError)?.description == error
        }
    }

    @Test("text that is not UTF-8 is an error")
    func notUTF8() {
        let bytes = Array("apdu-trace 1\n0.000000000 note \"".utf8) + [0xC3, 0x22, 0x0A]
        #expect(throws: TraceError(.malformed("the text is not UTF-8"), at: .line(2))) {
            try Trace(reading: Self.reader(of: bytes, by: 7))
        }
    }

    /// A reader to which `bytes` come `count` at a time.
    static func reader(of bytes: [UInt8], by count: Int) -> TraceReader {
        var rest = bytes[...]
        return TraceReader {
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
    }

    static let text = """
        apdu-trace 1
        0.000000000 reader virtual "x"
        0.100000000 > apdu 00A4040000
        0.200000000 < apdu 6A82

        """

    @Test("however the bytes come in, the events are the same", arguments: [1, 2, 3, 13, 14, 1000])
    func chunks(_ count: Int) throws {
        let trace = try Trace(reading: Self.reader(of: Array(Self.text.utf8), by: count))
        #expect(trace.events.map(\.time) == [.zero, .milliseconds(100), .milliseconds(200)])
        #expect(trace.events.last?.what == .received(.apdu, [0x6A, 0x82]))
    }

    @Test("a file cut off anywhere gives the events whose lines are whole")
    func cutOff() throws {
        let bytes = Array(Self.text.utf8)
        for end in bytes.indices {
            let lines = bytes[..<end].count { $0 == 0x0A }
            var reader = Self.reader(of: Array(bytes[..<end]), by: 10)
            guard lines > 0 else {
                #expect(throws: TraceError(.notATrace, at: .line(1))) { try reader.next() }
                continue
            }
            var count = 0
            while try reader.next() != nil { count += 1 }
            #expect(count == lines - 1)
            #expect(reader.isCutOff == (bytes[end - 1] != 0x0A))
        }
    }

    @Test("a line without end is refused before it is held in memory")
    func endlessLine() {
        var given = 0
        var reader = TraceReader {
            given += 65_536
            return given < 100_000_000 ? [UInt8](repeating: 0x30, count: 65_536) : []
        }
        #expect(throws: TraceError(.lineTooLong, at: .line(1))) { try reader.next() }
        #expect(given < 1_000_000)
    }

    @Test("a key that is no word is not written; of a key that comes twice the last value counts")
    func keys() throws {
        for key in ["", "A", "a b", "a\nb", "ä", String(repeating: "a", count: 65)] {
            #expect(throws: TraceError.self) { try Trace([TraceEvent(at: .zero, .meta(key: key, value: ""))]).text() }
        }
        let trace = Trace(["1", "2"].map { TraceEvent(at: .zero, .meta(key: "a", value: $0)) })
        #expect(try Trace(text: trace.text()).meta == ["a": "2"])
    }

    @Test("the longest APDU has a line, more is refused and nothing of it written")
    func longest() throws {
        let longest = TraceEvent(at: .zero, .sent(.apdu, [UInt8](repeating: 0xFF, count: 65_544)))
        #expect(try Trace(text: Trace([longest]).text()) == Trace([longest]))
        var written = 0
        var writer = try TraceWriter { written += $0.count }
        let before = written
        #expect(throws: TraceError(.lineTooLong)) {
            try writer.write(TraceEvent(at: .zero, .note(String(repeating: "x", count: 262_144))))
        }
        #expect(written == before)
    }

    @Test("a recorder that is given more leaves a note in its place, and goes on")
    func recordedLongest() throws {
        let text = Mutex<[UInt8]>([])
        let recorder = TraceRecorder(try TraceWriter { line in text.withLock { $0 += line } })
        recorder.record(.note(String(repeating: "x", count: 262_144)))
        recorder.record(.reset)
        #expect(recorder.failure == nil)
        let events = try Trace(text: String(decoding: text.withLock { $0 }, as: UTF8.self)).events.map(\.what)
        #expect(events == [.note("an event is left out: more than 262144 bytes"), .reset])
    }

    @Test("a time that goes back is written as the one before")
    func timeGoesBack() throws {
        let trace = Trace([
            TraceEvent(at: .seconds(2), .reset), TraceEvent(at: .seconds(1), .reset),
            TraceEvent(at: .seconds(-1), .reset),
        ])
        #expect(try Trace(text: trace.text()).events.map(\.time) == [.seconds(2), .seconds(2), .seconds(2)])
    }

    @Test("bytes changed anywhere give events or an error, never a trap")
    func hostile() throws {
        var random = Seed.generator()
        let lines = Self.lines.map { "0.000000000 \($0.line)\n" }.joined()
        let bytes = Array("apdu-trace 1\n\(lines)".utf8)
        for _ in 0..<Tier.rounds(200, thorough: 2_000) {
            var changed = bytes
            for _ in 0..<3 {
                changed[Int.random(in: 13..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            _ = try? Trace(reading: Self.reader(of: changed, by: 500))
        }
    }

    @Test("a file that is there is not overwritten, and only its owner reads a new one")
    func files() throws {
        let path = "/tmp/trace-\(UUID()).apdu"
        defer { unlink(path) }
        var writer = try TraceWriter(path: path)
        try writer.write(TraceEvent(at: .zero, .reset))
        #expect(try Trace(path: path).events == [TraceEvent(at: .zero, .reset)])
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(throws: TraceError.self) { try TraceWriter(path: path) }
        #expect(throws: TraceError(.file("/nonexistent/x: No such file or directory"))) {
            try TraceReader(path: "/nonexistent/x")
        }
    }

    @Test("a file that is replaced is its owner's alone; what is no file keeps its mode")
    func replaced() throws {
        let path = "/tmp/trace-\(UUID()).apdu"
        defer { unlink(path) }
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o644)
        #expect(descriptor >= 0 && fchmod(descriptor, 0o644) == 0 && write(descriptor, "before", 6) == 6)
        close(descriptor)
        var writer = try TraceWriter(path: path, replacing: true)
        try writer.write(TraceEvent(at: .zero, .reset))
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try Trace(path: path).events == [TraceEvent(at: .zero, .reset)])
    }

    @Test(
        "times beyond those that have a place are the last that has, whatever their decimals; what is written can be read"
    )
    func lastTime() throws {
        let seconds: Int64 = 9_999_999_999
        let times: [Duration] = [
            .seconds(seconds), .seconds(seconds + 1) + .milliseconds(900), .seconds(seconds + 2) + .milliseconds(100),
            .seconds(Int64.max) + .seconds(Int64.max),
        ]
        let trace = Trace(times.map { TraceEvent(at: $0, .reset) })
        let read = try Trace(text: trace.text())
        let last = Duration.seconds(seconds) + .nanoseconds(999_999_999)
        #expect(read.events.map(\.time) == [.seconds(seconds), last, last, last])
        for format in ForeignFormat.all where format.canExport {
            var file = try TraceExport(format) { _ in }
            for event in trace.events { try file.write(event) }
            try file.finish()
        }
    }

    @Test("an error shows no digits of what was read")
    func errorsWithoutDigits() {
        #expect(throws: TraceError(.malformed("no event is called \"card****************\""), at: .line(2))) {
            try Trace(text: "apdu-trace 1\n0.000000000 card4761739001010010\n")
        }
    }
}
