import SmartCard

extension ForeignFormat {
    /// The log of OpenSC with OPENSC_DEBUG=3 or more (OpenSC, src/libopensc/log.c, apdu.c and reader-pcsc.c).
    static let opensc = ForeignFormat(
        "opensc", "a debug log of OpenSC", recognizes: OpenSCLogImporter.recognizes,
        importer: { OpenSCLogImporter($0) })
}

/// A line `Outgoing APDU (12 bytes):` or `Incoming APDU (2 bytes):`, of older versions `Outgoing APDU data [   12 bytes]
/// ====`, and rows of sixteen bytes followed by their characters.
private struct OpenSCLogImporter: FormatImporter {
    private var lines: LogReader
    private var midnights = Midnights()
    private var time = Duration.zero
    private var reader = ""
    private var readers: Set<String> = []
    private var atr = ATR([])
    private var disposition = CardDisposition.leave
    private var dump: Dump?

    private struct Dump {
        let isCommand: Bool
        let count: Int
        var bytes: [UInt8] = []
    }

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        LogReader.lines(start).contains { line in
            line.starts(with: "Outgoing APDU ") || line.contains("] reader-pcsc.c:")
                || line.contains("opensc version: ")
        }
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let line = try lines.next() else {
            if dump != nil { events.omit("last lines that are cut off") }
            return false
        }
        if dump != nil {
            try takeRow(line, &events)
        } else if let text = line.after("going APDU ") ?? line.after("coming APDU ") {
            try begin(text, isCommand: line.contains("Outgoing"))
        } else {
            tell(line, &events)
        }
        return true
    }

    /// - Parameter text: `(12 bytes):` or `data [   12 bytes] ====`
    private mutating func begin(_ text: TextLine, isCommand: Bool) throws {
        guard let inside = text.after("(") ?? text.after("["), let count = inside.before(" bytes")?.trimmed.decimal,
            (1...65_544).contains(count)
        else { throw lines.malformed("the length of an APDU was due") }
        dump = Dump(isCommand: isCommand, count: count)
    }

    private mutating func takeRow(_ line: TextLine, _ events: inout ImportedEvents) throws {
        guard var dump else { return }
        // Another thread's line comes between the rows.
        if line.bytes.dropFirst(2).first != 0x20, line.after("] ")?.after(": ") != nil { return tell(line, &events) }
        self.dump = nil
        let count = min(16, dump.count - dump.bytes.count)
        let digits = TextLine(line.bytes.prefix(3 * count - 1))
        guard let bytes = try lines.bytes(digits, &events) else { return }
        guard bytes.count == count else { throw lines.malformed("\(count) bytes of an APDU were due") }
        dump.bytes += bytes
        guard dump.bytes.count == dump.count else {
            self.dump = dump
            return
        }
        if dump.isCommand {
            events.addNext(.apdu, dump.bytes, at: time, slot: reader)
        } else {
            events.add(.received(.apdu, dump.bytes), at: time, slot: reader)
        }
    }

    private mutating func tell(_ line: TextLine, _ events: inout ImportedEvents) {
        guard let text = line.after("] ")?.after(": ") else {
            // The end of the rows, and an empty line after them.
            if !line.isEmpty, !line.starts(with: "=====") { events.omit("lines that are not of OpenSC") }
            return
        }
        if let timeOfDay = line.before("[")?.timeOfDay { time = midnights.time(timeOfDay) }
        if text.starts(with: "reader '"), let name = text.after("reader '")?.before("'") {
            speak(of: name, &events)
        } else if line.contains("refresh_attributes: "), let name = text.before(" check") {
            speak(of: name, &events)
        } else if line.contains("pcsc_init: "), let action = text.after("disconnect_action=")?.word.word.decimal {
            disposition = .init(pcsc: UInt64(action))
        } else if line.contains("match_atr_table: ATR     : "), let digits = line.after("match_atr_table: ATR     : ") {
            let bytes = digits.bytes.split(separator: UInt8(ascii: ":")).map { TextLine($0).hex ?? [] }
            atr = ATR(bytes.flatMap(\.self))
        } else if line.contains(":pcsc_connect: "), let known = text.after("Final protocol: ") {
            events.add(.connected(atr, .init(known) ?? .raw), at: time, slot: reader)
        } else if text.contains("SCardDisconnect returned: 0x00000000") {
            events.add(.disconnected(disposition), at: time, slot: reader)
        } else if line.contains(":pcsc_reset: ") || line.contains(":pcsc_reconnect: "), text.contains("called") {
            events.add(.reset, at: time, slot: reader)
        } else if let code = text.after("SCardTransmit/Control failed: ") {
            fail(.exchange(.apdu), code, &events)
        } else if let code = text.after("SCardConnect failed: ") {
            fail(.connect, code, &events)
        } else if !line.contains(":pcsc_transmit:") {
            events.omit("lines that are about something else")
        }
    }

    private func fail(_ operation: TraceEvent.Operation, _ code: TextLine, _ events: inout ImportedEvents) {
        let result = PCSCResult(code.word.word) ?? PCSCResult(0x8010_0014)
        if case .exchange(let layer) = operation, !events.isOpen(layer, slot: reader) { return }
        events.add(.failed(operation, result.failure(of: operation)), at: time, slot: reader)
    }

    private mutating func speak(of name: TextLine, _ events: inout ImportedEvents) {
        reader = name.text
        if readers.count >= 1024 { readers = [] }
        if readers.insert(reader).inserted {
            events.add(.reader(ReaderIdentity(name: reader, backend: .pcsc)), at: time, slot: reader)
        }
    }
}
