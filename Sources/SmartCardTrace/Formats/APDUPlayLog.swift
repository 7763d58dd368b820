import SmartCard

extension ForeignFormat {
    /// The log winscard_log.txt of APDUPlay (APDUPlay, README.md).
    static let apduPlay = ForeignFormat(
        "apduplay", "winscard_log.txt of APDUPlay", recognizes: APDUPlayLogImporter.recognizes,
        importer: { APDUPlayLogImporter($0) })
}

/// An importer of exchanges that take a few lines of `name:value`, most with `#` at the end.  Times are durations.
private struct APDUPlayLogImporter: FormatImporter {
    private var lines: LogReader
    private var time = Duration.zero
    private var handle = ""
    private var hasFailed = false

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        LogReader.lines(start).contains { $0.starts(with: "transmitted:") || $0.starts(with: "totalBytesINCounter:") }
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let line = try lines.next() else { return false }
        if let command = line.dropping("transmitted:") {
            guard let bytes = try lines.bytes(command.withoutMark, &events) else { return true }
            hasFailed = false
            events.addNext(.apdu, bytes, at: time, slot: handle)
        } else if let response = line.dropping("received:") {
            guard let bytes = try lines.bytes(response.withoutMark, &events) else { return true }
            // After a failure the log contains old bytes of the buffer.
            if !hasFailed { events.add(.received(.apdu, bytes), at: time, slot: handle) }
        } else if let milliseconds = line.dropping("responseTime:")?.withoutMark.decimal {
            // A duration of more than eleven days is not a duration.
            time += .milliseconds(min(milliseconds, 999_999_999))
        } else if let result = line.dropping("SCardTransmit result:").flatMap({ PCSCResult($0.withoutMark) }) {
            hasFailed = !result.isSuccess
            if hasFailed { events.add(.failed(.exchange(.apdu), result.failure()), at: time, slot: handle) }
        } else if let handle = line.dropping("SCardTransmit (handle ")?.before(")") {
            self.handle = handle.text
        } else if !line.isEmpty, !Self.furniture.contains(where: { line.starts(with: $0) }) {
            events.omit("lines that are about something else")
        }
        return true
    }

    private static let furniture: [StaticString] = ["[begin]", "apduCounter:", "totalBytesINCounter:"]
}

extension TextLine {
    /// The line without the `#` at its end.
    fileprivate var withoutMark: TextLine {
        let text = trimmed
        return text.bytes.last == UInt8(ascii: "#") ? TextLine(text.bytes.dropLast()) : text
    }
}
