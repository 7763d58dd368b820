import SmartCard

extension ForeignFormat {
    /// Scripts for scriptor and gscriptor, and the output of both programs (pcsc-tools, scriptor and gscriptor).
    static let scriptor = ForeignFormat(
        "scriptor", "a script for scriptor or gscriptor, or what it prints", fileExtension: "script",
        recognizes: ScriptorImporter.recognizes,
        importer: { ScriptorImporter($0) }, exporter: { ScriptorExporter($0) })
}

/// An importer of scripts and of the programs' output.
///
/// Each line of a script is `reset` or a command, whose digits may continue after a `\`.  scriptor prints that line,
/// then the command after `> ` and the answer after `< ` in rows of sixteen bytes, with its meaning after ` : `.
/// gscriptor prints `Sending: ` and `Received: `, and the meaning on a separate line.
private struct ScriptorImporter: FormatImporter {
    private var lines: LogReader
    /// The bytes of a command in a script, so far.
    private var part: [UInt8] = []
    /// A line of a script, until the next one tells that it is no echo.
    private var echo: Line?
    private var isTranscript = false
    private var isEnded = false
    private var isFinished = false
    /// The bytes of the answer whose rows are being read.
    private var answer: [UInt8]?
    private var command: [UInt8]?
    private var isResetting = false
    private var isConnected = false
    private var transmissionProtocol: TransmissionProtocol?

    private enum Line {
        case command([UInt8])
        case reset
    }

    /// The longest APDU, extended (ISO/IEC 7816-4, 5.2).
    private static let maximumLength = 65_544

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        var hasCommand = false
        var hasOther = false
        for line in LogReader.lines(start) {
            if let command = line.dropping("> ") ?? line.dropping("Sending: ") {
                if command.starts(with: "RESET") || command.hexPrefix.hex?.count ?? 0 >= 4 { return true }
            }
            let text = line.bytes.count <= 80 ? line.text.lowercased() : ""
            if line.trimmed.isEmpty || line.starts(with: "#") || text.contains("reset") || text.contains("exit") {
                continue
            }
            let digits = TextLine(line.bytes.last == UInt8(ascii: "\\") ? line.bytes.dropLast() : line.bytes)
            if digits.hex == nil { hasOther = true } else { hasCommand = true }
        }
        return hasCommand && !hasOther
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard !isFinished else { return false }
        guard !isEnded, let line = try lines.next() else {
            // Process the retained line before the end.
            finish(&events)
            isFinished = true
            return true
        }
        if let command = line.dropping("> ") ?? line.dropping("Sending: ") {
            finishAnswer(&events)
            echo = nil
            isTranscript = true
            if command.starts(with: "RESET") {
                isResetting = true
            } else if let bytes = try row(command, after: [], &events) {
                // gscriptor continues in rows of sixteen bytes.
                self.command = line.starts(with: "Sending: ") && bytes.count == 16 ? bytes : nil
                if self.command == nil { events.addNext(.apdu, bytes, at: .zero) }
            }
        } else if line.starts(with: "< ") || line.starts(with: "Received: ") {
            finishAnswer(&events)
            isTranscript = true
            if isResetting {
                reset(line, &events)
            } else {
                let text = line.dropping("< ") ?? line.dropping("Received: ") ?? line
                answer = []
                try takeRow(text, &events)
            }
        } else if answer != nil || command != nil, !line.isEmpty {
            try takeRow(line, &events)
        } else if line.starts(with: "[Reset]") {
            finishAnswer(&events)
            (isResetting, isTranscript) = (true, true)
        } else if let atr = line.dropping("ATR: "), isResetting {
            add(ATR(atr.hex ?? []), &events)
        } else {
            try takeScript(line, &events)
        }
        return true
    }

    private mutating func finish(_ events: inout ImportedEvents) {
        finishAnswer(&events)
        takeEcho(&events)
        if !part.isEmpty { events.omit("commands that are cut off") }
        part = []
    }

    // MARK: Transcripts

    private func row(_ text: TextLine, after: [UInt8], _ events: inout ImportedEvents) throws -> [UInt8]? {
        guard let bytes = try lines.bytes(text, &events) else { return nil }
        guard after.count + bytes.count <= Self.maximumLength else {
            throw lines.malformed("no longer an APDU was due")
        }
        return after + bytes
    }

    private mutating func takeRow(_ line: TextLine, _ events: inout ImportedEvents) throws {
        if let meaning = line.before(" : ") {
            answer = try row(meaning, after: answer ?? [], &events)
            finishAnswer(&events)
        } else if let bytes = line.hex {
            if let command {
                self.command = nil
                guard command.count + bytes.count <= Self.maximumLength else {
                    throw lines.malformed("no longer an APDU was due")
                }
                if bytes.count == 16 {
                    self.command = command + bytes
                } else {
                    events.addNext(.apdu, command + bytes, at: .zero)
                }
            } else {
                answer = try row(line, after: answer ?? [], &events)
            }
        } else {
            finishAnswer(&events)
            try takeScript(line, &events)
        }
    }

    private mutating func finishAnswer(_ events: inout ImportedEvents) {
        if let command { events.addNext(.apdu, command, at: .zero) }
        if let answer { events.add(.received(.apdu, answer), at: .zero) }
        (command, answer) = (nil, nil)
    }

    /// - Parameter line: `< OK: 3B …` or `< KO: …`
    private mutating func reset(_ line: TextLine, _ events: inout ImportedEvents) {
        if let atr = line.after("OK: ")?.hex {
            add(ATR(atr), &events)
        } else {
            isResetting = false
            events.add(.failed(.reset, .init(.other, line.after("KO: ")?.text)), at: .zero)
        }
    }

    private mutating func add(_ atr: ATR, _ events: inout ImportedEvents) {
        isResetting = false
        if !isConnected {
            isConnected = true
            events.add(.connected(atr, transmissionProtocol ?? atr.pickedProtocol), at: .zero)
        }
        events.add(.reset, at: .zero)
    }

    // MARK: Scripts

    private mutating func takeScript(_ line: TextLine, _ events: inout ImportedEvents) throws {
        if let name = line.dropping("Using given card reader: ") ?? line.after("No reader given: using ") {
            return events.add(.reader(ReaderIdentity(name: name.text, backend: .pcsc)), at: .zero)
        }
        if let name = line.dropping("Using ").flatMap(TransmissionProtocol.init) {
            transmissionProtocol = name
            return
        }
        let reason = line.after("Can't get info: ") ?? line.after("Errors During Script Execution: ")
        if let reason {
            guard events.isOpen(.apdu) else { return }
            let kind = reason.starts(with: "Transaction failed") ? CardError.Kind.notTransacted : .other
            return events.add(.failed(.exchange(.apdu), .init(kind, reason.text)), at: .zero)
        }
        takeEcho(&events)
        if line.starts(with: "#") { return events.omit("comments") }
        guard !line.trimmed.isEmpty else { return }
        let text = line.bytes.count <= 80 ? line.text.lowercased() : ""
        if text.contains("exit"), !isTranscript {
            isEnded = true
        } else if text.trimmingPrefix(while: \.isWhitespace).hasPrefix("reset") {
            echo = .reset
        } else if isTranscript {
            // Meanings of status words, echoes, and messages of the programs.
            if line.hex == nil { events.omit("lines without APDU") }
        } else if line.starts(with: "Using ") || line.starts(with: "Reading ") || line.contains(" execution...") {
            events.omit("lines without APDU")
        } else {
            let goesOn = line.bytes.last == UInt8(ascii: "\\")
            let digits = TextLine(goesOn ? line.bytes.dropLast() : line.bytes)
            guard let bytes = try row(digits, after: part, &events) else { return }
            part = goesOn ? bytes : []
            if !goesOn { echo = .command(bytes) }
        }
    }

    private mutating func takeEcho(_ events: inout ImportedEvents) {
        switch isTranscript ? nil : echo {
        case .command(let bytes): events.add(.sent(.apdu, bytes), at: .zero)
        case .reset: events.add(.reset, at: .zero)
        case nil: break
        }
        echo = nil
    }
}

private struct ScriptorExporter: FormatExporter {
    private let sink: TraceSink
    private(set) var omissions = Omissions()

    init(_ sink: @escaping TraceSink) { self.sink = sink }

    mutating func write(_ event: TraceEvent) throws {
        switch event.what {
        case .sent(.apdu, let command): try sink(Array("\(command.hex(separator: " "))\n".utf8))
        case .reset: try sink(Array("reset\n".utf8))
        case .received(.apdu, _), .failed(.exchange(.apdu), _): omissions.add("answers")
        default: omissions.add("events other than commands and resets")
        }
        if event.time > .zero { omissions.add("times") }
    }

    mutating func finish() throws {}
}
