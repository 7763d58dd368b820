import SmartCard

extension ForeignFormat {
    /// The log of nfcpy's transports at the level DEBUG (nfcpy, src/nfc/clf/transport.py).
    static let nfcpy = ForeignFormat(
        "nfcpy", "a log of nfcpy", recognizes: NFCPyLogImporter.recognizes, importer: { NFCPyLogImporter($0) })
}

/// An importer of lines of Python's logging, whose prefix varies: `DEBUG:nfc.clf.transport:>>> 6f05…`,
/// `[nfc.clf.transport] <<< 80…`, with `--reltime` after milliseconds.
private struct NFCPyLogImporter: FormatImporter {
    private var lines: LogReader
    private var midnights = Midnights()

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        LogReader.lines(start).contains { $0.contains("nfc.clf") || $0.contains("nfc.dev.transport") }
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let line = try lines.next() else { return false }
        let time = time(line)
        guard let text = line.after(".transport") else {
            if let reader = line.after("nfc.clf")?.after("using ")?.before(" at ") {
                events.add(.reader(ReaderIdentity(name: reader.text, backend: .usb)), at: time)
            } else if !line.isEmpty {
                events.omit("lines without frames")
            }
            return true
        }
        let command = text.after(">>> ")
        guard let digits = command ?? text.after("<<< ") else {
            events.omit("lines without frames")
            return true
        }
        guard let bytes = try lines.bytes(digits, &events) else { return true }
        add(bytes, isCommand: command != nil, at: time, &events)
        return true
    }

    private mutating func time(_ line: TextLine) -> Duration {
        if let milliseconds = line.before(" ms [")?.trimmed.decimal { return .milliseconds(milliseconds) }
        return line.before("nfc.")?.timeOfDay.map { midnights.time($0) } ?? .zero
    }

    private func add(_ bytes: [UInt8], isCommand: Bool, at time: Duration, _ events: inout ImportedEvents) {
        if bytes.starts(with: [0x00, 0x00, 0xFF, 0xFF, 0xFF]), bytes.count > 8, bytes[8] & 0xFE == 0xD6 {
            // Its length has the low byte first.
            events.omit("frames of an RC-S380")
        } else if bytes.starts(with: [0x00, 0x00, 0xFF]) {
            var stream = PN532Stream()
            stream.append(bytes)
            while let piece = stream.next() { events.add(piece, isCommand: isCommand, at: time) }
            stream.finish(into: &events)
        } else if bytes.count >= 10 {
            isCommand
                ? events.addNext(.ccid, bytes, at: time) : events.add(.received(.ccid, bytes), at: time)
        } else {
            events.omit("frames that are not known")
        }
    }
}
