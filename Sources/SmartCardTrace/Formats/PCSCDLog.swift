import SmartCard

extension ForeignFormat {
    /// The output of `pcscd --apdu --foreground` on a terminal, in a file, syslog or the journal (pcsc-lite,
    /// src/debuglog.c, src/ifdwrapper.c, src/winscard.c).
    ///
    /// With `--info` or `--debug` it also mentions cards, readers and clients.
    static let pcscd = ForeignFormat(
        "pcscd", "the log of pcscd --apdu", fileExtension: "log", recognizes: PCSCDLogImporter.recognizes,
        importer: { PCSCDLogImporter($0) }, exporter: { PCSCDLogExporter($0) })
}

/// A line of pcscd's log, or of the driver that prints into it.
///
/// It begins with the microseconds since the line before, in eight digits and 99999999 at most, unless it went through
/// syslog; with `--color` the thread follows in brackets.
struct PCSCDLine {
    /// Microseconds since the line before.
    private(set) var delta: Int?
    /// The time of the line itself, as syslog or the journal wrote it.
    private(set) var timeOfDay: Duration?
    private(set) var thread: UInt64?
    private(set) var message: TextLine

    init?(_ line: TextLine) {
        message = line
        var hasOrigin = takeDelta()
        if !hasOrigin, let text = line.after("pcscd["), let text = text.after("]: ") {
            timeOfDay = line.before("pcscd[")?.timeOfDay
            message = text
            hasOrigin = true
            _ = takeDelta()
        }
        guard hasOrigin else { return nil }
        if message.bytes.first == UInt8(ascii: "["), let number = message.before("] "), let text = message.after("] "),
            let thread = TextLine(number.bytes.dropFirst()).decimal
        {
            self.thread = UInt64(thread)
            message = text
        }
    }

    private mutating func takeDelta() -> Bool {
        let bytes = message.bytes
        guard bytes.count > 8, bytes[bytes.startIndex + 8] == 0x20, let delta = TextLine(bytes.prefix(8)).decimal
        else { return false }
        self.delta = delta
        message = TextLine(bytes.dropFirst(9))
        return true
    }
}

/// The time that a log of pcscd has come to.
struct PCSCDClock {
    private(set) var time = Duration.zero
    private var midnights = Midnights()

    mutating func advance(_ line: PCSCDLine) {
        if let delta = line.delta {
            time += .microseconds(delta)
        } else if let timeOfDay = line.timeOfDay {
            time = midnights.time(timeOfDay)
        }
    }
}

private struct PCSCDLogImporter: FormatImporter {
    private var lines: LogReader
    private var clock = PCSCDClock()
    /// By thread, or by the number of the client where the log does not name threads.
    private var clients: [UInt64: Client] = [:]
    /// The client of the last line that named one.
    private var client: UInt64 = 0
    /// The reader that was last spoken of.
    private var reader = ""
    private var atrs: [String: ATR] = [:]

    private struct Client {
        /// Empty until the log tells.
        var reader = ""
        var atr: (ATR, time: Duration)?
        var isInserted = false
        var openCommands = 0
        /// An empty response, which the next line confirms or refutes.
        var emptyResponse: Duration?
    }

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        LogReader.lines(start).contains { line in
            guard let message = PCSCDLine(line)?.message else { return false }
            return message.starts(with: "APDU: ") || message.starts(with: "SW: ") || message.starts(with: "Card ATR: ")
                || message.contains("winscard") || message.contains("readerfactory.c:")
                || message.contains("pcscdaemon.c:")
        }
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let text = try lines.next() else {
            for number in clients.keys.sorted() { settle(number, &events) }
            clients = [:]
            return false
        }
        guard let line = PCSCDLine(text) else {
            if !text.isEmpty { events.omit("lines that are not of pcscd") }
            return true
        }
        clock.advance(line)
        let message = line.message
        if let number = message.after("from client ")?.word.word.decimal {
            client = UInt64(number)
        }
        let number = line.thread ?? client
        if clients[number] == nil {
            // Clients without state are forgotten, regardless of their number.
            if clients.count >= 1024 {
                for number in clients.keys.sorted() { settle(number, &events) }
                clients = clients.filter { $0.value.openCommands > 0 }
            }
            guard clients.count < 1024 else { throw lines.malformed("fewer than 1024 clients at a time were due") }
            clients[number] = Client()
        }
        if let command = message.dropping("APDU: ") {
            try add(command: command, of: number, &events)
        } else if let response = message.dropping("SW: ") {
            try add(response: response, of: number, hasThread: line.thread != nil, &events)
        } else if let atr = message.dropping("Card ATR: ") {
            guard let bytes = try lines.bytes(atr, &events) else { return true }
            add(atr: ATR(bytes), of: number, &events)
        } else {
            tell(message, of: number, &events)
        }
        return true
    }

    private func slot(_ number: UInt64) -> String {
        let known = clients[number]?.reader ?? ""
        return known.isEmpty ? reader : known
    }

    private mutating func add(command: TextLine, of number: UInt64, _ events: inout ImportedEvents) throws {
        guard let bytes = try lines.bytes(command, &events) else { return }
        settle(number, &events)
        if clients[number]?.openCommands ?? 0 > 0 { events.omit("hints which command an answer belongs to") }
        clients[number]?.openCommands += 1
        events.add(.sent(.apdu, bytes), at: clock.time, slot: slot(number))
    }

    private mutating func add(
        response: TextLine, of number: UInt64, hasThread: Bool, _ events: inout ImportedEvents
    ) throws {
        guard let bytes = try lines.bytes(response, &events) else { return }
        var number = number
        if !hasThread, clients[number]?.openCommands == 0,
            let other = clients.filter({ $0.value.openCommands > 0 }).min(by: { $0.key < $1.key })
        {
            number = other.key
        }
        if let open = clients[number]?.openCommands, open > 0 { clients[number]?.openCommands = open - 1 }
        if bytes.isEmpty {
            clients[number]?.emptyResponse = clock.time
        } else {
            events.add(.received(.apdu, bytes), at: clock.time, slot: slot(number))
        }
    }

    private mutating func add(atr: ATR, of number: UInt64, _ events: inout ImportedEvents) {
        settle(number, &events)
        if clients[number]?.isInserted == true {
            clients[number]?.isInserted = false
            events.add(.slot(.card(atr, exclusivelyHeld: false)), at: clock.time, slot: slot(number))
        } else {
            clients[number]?.atr = (atr, clock.time)
        }
        if atrs.count >= 1024 { atrs = [:] }
        atrs[slot(number)] = atr
    }

    /// Confirms the interpretation that waited for the next line of `number`.
    private mutating func settle(_ number: UInt64, _ events: inout ImportedEvents) {
        guard let client = clients[number] else { return }
        if let time = client.emptyResponse { events.add(.received(.apdu, []), at: time, slot: slot(number)) }
        // Without --debug nothing but the ATR tells of a connection.
        if let (atr, time) = client.atr {
            events.add(.connected(atr, atr.pickedProtocol), at: time, slot: slot(number))
        }
        clients[number]?.emptyResponse = nil
        clients[number]?.atr = nil
    }

    /// Interprets the lines of `--debug` and `--info`.
    private mutating func tell(_ message: TextLine, of number: UInt64, _ events: inout ImportedEvents) {
        let time = clock.time
        if message.contains("IFDTransmit() Card not transacted: ") || message.contains("SCardTransmit() Card not trans")
        {
            guard clients[number]?.emptyResponse != nil else { return }
            clients[number]?.emptyResponse = nil
            let result = message.after("rv=").flatMap(PCSCResult.init) ?? PCSCResult(0x8010_0016)
            events.add(.failed(.exchange(.apdu), result.failure()), at: time, slot: slot(number))
        } else if let name = message.after("() Card inserted into ") {
            speak(of: name.text, number, time, &events)
            clients[number]?.isInserted = true
        } else if let name = message.after("() Card Removed From ") {
            speak(of: name.text, number, time, &events)
            events.add(.slot(.empty), at: time, slot: slot(number))
        } else if let name = message.after("SCardConnect() Attempting Connect to ")?.before(" using protocol: ") {
            settle(number, &events)
            speak(of: name.text, number, time, &events)
        } else if let name = message.after("SCardConnect() Active Protocol: "), let known = TransmissionProtocol(name) {
            let (atr, powered) = clients[number]?.atr ?? (atrs[slot(number)] ?? ATR([]), time)
            clients[number]?.atr = nil
            events.add(.connected(atr, known), at: powered, slot: slot(number))
        } else if message.contains("SCardReconnect() Active Protocol: ") {
            clients[number]?.atr = nil
        } else if message.contains("SCardReconnect() Reset complete.") {
            settle(number, &events)
            events.add(.reset, at: time, slot: slot(number))
        } else if let disposition = message.after("SCardDisconnect() dwDisposition: ")?.decimal {
            settle(number, &events)
            let disposition = CardDisposition(pcsc: UInt64(disposition))
            events.add(.disconnected(disposition), at: time, slot: slot(number))
        } else if let result = message.after(", rv=") ?? message.after(" rv=")?.word.word,
            message.contains("CONNECT"), !message.contains("DISCONNECT"), let result = PCSCResult(result),
            !result.isSuccess
        {
            settle(number, &events)
            let operation: TraceEvent.Operation = message.contains("RECONNECT") ? .reset : .connect
            events.add(.failed(operation, result.failure(of: operation)), at: time, slot: slot(number))
        } else {
            events.omit("lines of pcscd that are about something else")
        }
    }

    private mutating func speak(of name: String, _ number: UInt64, _ time: Duration, _ events: inout ImportedEvents) {
        if clients[number]?.reader != name {
            let isNew = atrs[name] == nil
            clients[number]?.reader = name
            if isNew {
                events.add(.reader(ReaderIdentity(name: name, backend: .pcsc)), at: time, slot: name)
                atrs[name] = ATR([])
            }
        }
        reader = name
    }
}

/// An exporter of the output that `pcscd --debug --apdu` would produce, as far as the trace contains it.
private struct PCSCDLogExporter: FormatExporter {
    private let sink: TraceSink
    private var last: Duration?
    private var reader: String?
    /// True if a line has named it.
    private var isNamed = true
    private(set) var omissions = Omissions()

    /// The PC/SC result that represents a failure on import.
    private static let notTransacted = PCSCResult(0x8010_0016)

    init(_ sink: @escaping TraceSink) { self.sink = sink }

    mutating func write(_ event: TraceEvent) throws {
        let lines: [String]
        switch event.what {
        case .sent(.apdu, let bytes): lines = ["APDU: \(Self.spaced(bytes))"]
        case .received(.apdu, let bytes): lines = ["SW: \(Self.spaced(bytes))"]
        case .failed(.exchange(.apdu), let failure):
            if failure != Self.notTransacted.failure() { omissions.add("reasons why exchanges failed") }
            lines = ["SW: ", "ifdwrapper.c:543:IFDTransmit() Card not transacted: 612"]
        case .reader(let identity):
            if identity.vendor != nil || identity.serialNumber != nil {
                omissions.add("vendors and serial numbers of readers")
            }
            if !isNamed { omissions.add("names of readers") }
            isNamed = false
            reader = String(identity.name.unicodeScalars.map { $0.value < 0x20 ? " " : Character($0) })
            return
        case .slot(.empty):
            guard let reader else { return omissions.add("slots of a reader without name") }
            lines = ["eventhandler.c:358:EHStatusHandlerThread() Card Removed From \(reader)"]
        case .slot(.card(let atr, _)):
            guard let reader else { return omissions.add("slots of a reader without name") }
            lines = [
                "eventhandler.c:423:EHStatusHandlerThread() Card inserted into \(reader)",
                "Card ATR: \(Self.spaced(atr.bytes))",
            ]
        case .connected(let atr, let transmissionProtocol):
            let attempt = reader.map { "winscard.c:258:SCardConnect() Attempting Connect to \($0) using protocol: 3" }
            lines =
                (attempt.map { [$0] } ?? []) + [
                    "Card ATR: \(Self.spaced(atr.bytes))",
                    "winscard.c:430:SCardConnect() Active Protocol: \(transmissionProtocol.rawValue.uppercased())",
                ]
        case .reset: lines = ["winscard.c:609:SCardReconnect() Reset complete."]
        case .disconnected(let disposition):
            let number =
                switch disposition {
                case .leave: 0
                case .reset: 1
                case .powerOff: 2
                }
            lines = ["winscard.c:883:SCardDisconnect() dwDisposition: \(number)"]
        default: return omissions.add("events other than APDUs, ATRs, connections and resets")
        }
        if let reader, !isNamed { isNamed = lines.contains { $0.contains(reader) } }
        var delta = (event.time - (last ?? event.time)) / .microseconds(1)
        if delta > 99_999_999 { omissions.add("times of more than 99.999999 seconds between lines") }
        for line in lines {
            let digits = "\(Int(min(99_999_999, max(0, delta))))"
            try sink(Array("\(String(repeating: "0", count: 8 - digits.count))\(digits) \(line)\n".utf8))
            delta = 0
        }
        last = event.time
    }

    mutating func finish() throws {
        if !isNamed { omissions.add("names of readers") }
        isNamed = true
    }

    /// Each byte with a space after it, including the last one.
    private static func spaced(_ bytes: [UInt8]) -> String { bytes.map { "\([$0].hex) " }.joined() }
}
