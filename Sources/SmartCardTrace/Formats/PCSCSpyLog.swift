import SmartCard

extension ForeignFormat {
    /// The raw output of libpcscspy in ~/pcsc-spy, before pcsc-spy formats it (pcsc-lite, src/spy/libpcscspy.c).
    static let pcscSpy = ForeignFormat(
        "pcsc-spy", "what libpcscspy writes to ~/pcsc-spy", recognizes: PCSCSpyLogImporter.recognizes,
        importer: { PCSCSpyLogImporter($0) })
}

/// Each line begins with the number of a thread and `@`.  A call is `>|seconds|microseconds|function`, the arguments that
/// go in, those that come out, one a line, and `<|seconds|microseconds|function|…|result`.
private struct PCSCSpyLogImporter: FormatImporter {
    private var lines: LogReader
    private var calls: [UInt64: Call] = [:]
    private var cards: [UInt64: Card] = [:]
    private var slots: [String: ATR] = [:]

    private enum Function {
        case transmit, control, connect, reconnect, disconnect, endTransaction, status, getStatusChange, other
    }

    private struct Call {
        let function: Function
        let time: Duration
        /// The number of arguments received.
        var count = 0
        /// A handle of a card, which most calls begin with.
        var handle: UInt64 = 0
        /// The numbers among the arguments that matter here.
        var number: UInt64 = 0
        var length: UInt64 = 0
        var name = ""
        var answer: [UInt8] = []
        /// True if the command of an exchange has been found.
        var isSent = false

        var layer: TraceEvent.Layer { function == .control ? .escape : .apdu }
    }

    private struct Card {
        let reader: String
        let transmissionProtocol: TransmissionProtocol
        /// When it was connected to, until its ATR is known.
        var connection: Duration?
    }

    /// The maximum number of calls, cards and readers tracked at a time.
    private static let limit = 1024

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        LogReader.lines(start).contains { line in
            guard let thread = line.before("@>|"), thread.hexNumber != nil else { return false }
            return line.contains("|SCard")
        }
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let line = try lines.next() else {
            for handle in cards.keys.sorted() { settle(handle, &events) }
            cards = [:]
            return false
        }
        guard let number = line.before("@"), let thread = number.hexNumber, let text = line.after("@") else {
            if !line.isEmpty { events.omit("lines that are not of libpcscspy") }
            return true
        }
        if text.starts(with: ">|") {
            try begin(text, thread, &events)
        } else if text.starts(with: "<|") {
            if let call = calls.removeValue(forKey: thread) { try end(call, text, &events) }
        } else if var call = calls[thread] {
            // Taken out while it changes, so that it is not copied.
            calls[thread] = nil
            try take(text, &call, &events)
            calls[thread] = call
        } else {
            events.omit("arguments of no call")
        }
        return true
    }

    private mutating func begin(_ text: TextLine, _ thread: UInt64, _ events: inout ImportedEvents) throws {
        guard let (time, rest) = Self.time(text) else { throw lines.malformed("a call with its time was due") }
        let function: Function
        switch rest.text {
        case "SCardTransmit": function = .transmit
        case "SCardControl", "SCardControl132": function = .control
        case "SCardConnect": function = .connect
        case "SCardReconnect": function = .reconnect
        case "SCardDisconnect": function = .disconnect
        case "SCardEndTransaction": function = .endTransaction
        case "SCardStatus": function = .status
        case "SCardGetStatusChange": function = .getStatusChange
        default: function = .other
        }
        if let call = calls.removeValue(forKey: thread), call.isSent {
            let failed = TraceEvent.Failure(nil, "the call does not return")
            events.add(.failed(.exchange(call.layer), failed), at: time, slot: slot(call.handle))
        }
        guard calls.count < Self.limit else { throw lines.malformed("no more than 1024 calls at a time were due") }
        calls[thread] = Call(function: function, time: time)
    }

    /// Splits `>|seconds|microseconds|…` into the time and the rest.
    private static func time(_ text: TextLine) -> (Duration, TextLine)? {
        let text = TextLine(text.bytes.dropFirst(2))
        guard let seconds = text.before("|")?.decimal, let text = text.after("|"),
            let microseconds = text.before("|")?.decimal, let rest = text.after("|")
        else { return nil }
        return (.seconds(seconds) + .microseconds(microseconds), rest)
    }

    private func slot(_ handle: UInt64) -> String { cards[handle]?.reader ?? "" }

    // MARK: Arguments

    private mutating func take(_ text: TextLine, _ call: inout Call, _ events: inout ImportedEvents) throws {
        let index = call.count
        call.count = min(index + 1, 1_000_000)
        switch (call.function, index) {
        case (.connect, 1), (.status, 3): call.name = text.text
        case (.connect, 0), (.getStatusChange, 0), (.other, _): break
        case (_, 0): call.handle = text.hexNumber ?? 0

        // hCard, protocol and length of the PCI, length, command; protocol and length, length, response.
        case (.transmit, 3), (.transmit, 7), (.control, 2), (.control, 4): call.length = text.hexNumber ?? 0
        case (.transmit, 4): try send(.apdu, text, &call, &events)
        case (.transmit, 8): try receive(text, &call, &events)
        // hCard, code, length, command; length, answer.
        case (.control, 1): call.number = text.hexNumber ?? 0
        case (.control, 3):
            if PCSCControl.escapeCodes.contains(call.number) {
                try send(.escape, text, &call, &events)
            } else {
                events.omit("control codes other than those of escape commands")
            }
        case (.control, 5): try receive(text, &call, &events)

        // hContext, reader, mode, protocols, hCard, protocol; hCard, protocol.
        case (.connect, 6): call.handle = text.hexNumber ?? 0
        case (.connect, 7): call.number = text.hexNumber ?? 0
        // hCard, mode, protocols, initialization; protocol.
        case (.reconnect, 3), (.disconnect, 1), (.endTransaction, 1): call.number = text.hexNumber ?? 0
        // hCard, lengths of name and ATR; length of the name, name, state, protocol, length of the ATR, ATR.
        case (.status, 8): try receive(text, &call, &events)
        // hContext, timeout, count; then for each reader, first as it goes in, name, two states, length and ATR.
        case (.getStatusChange, 2): call.length = text.hexNumber ?? 0
        case (.getStatusChange, 3...): try takeState(index - 3, text, &call, &events)
        default: break
        }
    }

    private mutating func send(
        _ layer: TraceEvent.Layer, _ text: TextLine, _ call: inout Call, _ events: inout ImportedEvents
    ) throws {
        guard let bytes = try buffer(text, call, &events) else { return }
        settle(call.handle, &events)
        call.isSent = true
        events.add(.sent(layer, bytes), at: call.time, slot: slot(call.handle))
    }

    private func receive(_ text: TextLine, _ call: inout Call, _ events: inout ImportedEvents) throws {
        call.answer = try buffer(text, call, &events) ?? []
    }

    private func buffer(_ text: TextLine, _ call: Call, _ events: inout ImportedEvents) throws -> [UInt8]? {
        guard !text.starts(with: "NULL") else { return [] }
        let bytes = try lines.bytes(text, &events)
        if call.function != .status, let bytes, UInt64(bytes.count) != call.length {
            events.omit("lengths that their buffers do not have")
        }
        return bytes
    }

    private mutating func takeState(
        _ index: Int, _ text: TextLine, _ call: inout Call, _ events: inout ImportedEvents
    ) throws {
        let isOut = UInt64(index / 5) >= call.length
        switch index % 5 {
        case 0: call.name = text.text
        case 2: call.number = text.hexNumber ?? 0
        case 4 where isOut:
            guard let bytes = try lines.bytes(text, &events) else { return }
            guard let state = SlotState(pcsc: call.number, atr: bytes), !call.name.hasPrefix("\\\\?PnP?") else {
                return
            }
            let atr = ATR(bytes)
            guard meet(call.name, call.time, &events) || slots[call.name] != atr else { return }
            slots[call.name] = atr
            events.add(.slot(state), at: call.time, slot: call.name)
        default: break
        }
    }

    /// Records a mention of the reader; returns true for the first one.
    private mutating func meet(_ reader: String, _ time: Duration, _ events: inout ImportedEvents) -> Bool {
        guard slots[reader] == nil else { return false }
        if slots.count >= Self.limit { slots = [:] }
        slots[reader] = ATR([])
        events.add(.reader(ReaderIdentity(name: reader, backend: .pcsc)), at: time, slot: reader)
        return true
    }

    // MARK: Results

    private mutating func end(_ call: Call, _ text: TextLine, _ events: inout ImportedEvents) throws {
        guard let (time, _) = Self.time(text), let result = text.afterLast(UInt8(ascii: "|")).flatMap(PCSCResult.init)
        else { throw lines.malformed("a result with its time was due") }
        let slot = slot(call.handle)
        switch call.function {
        case .transmit, .control:
            guard call.isSent else { return }
            events.add(
                result.isSuccess
                    ? .received(call.layer, call.answer) : .failed(.exchange(call.layer), result.failure()),
                at: time, slot: slot)
        case .connect:
            _ = meet(call.name, call.time, &events)
            guard result.isSuccess else {
                return events.add(.failed(.connect, result.failure(of: .connect)), at: time, slot: call.name)
            }
            if cards.count >= Self.limit {
                for handle in cards.keys.sorted() { settle(handle, &events) }
                cards = [:]
            }
            cards[call.handle] = Card(
                reader: call.name, transmissionProtocol: .init(pcsc: call.number), connection: time)
            if let atr = slots[call.name], !atr.bytes.isEmpty { settle(call.handle, &events) }
        case .status:
            guard result.isSuccess, let reader = cards[call.handle]?.reader, !call.answer.isEmpty else { return }
            slots[reader] = ATR(call.answer)
            settle(call.handle, &events)
        case .reconnect:
            settle(call.handle, &events)
            if !result.isSuccess {
                events.add(.failed(.reset, result.failure(of: .reset)), at: time, slot: slot)
            } else if call.number != 0 {
                events.add(.reset, at: time, slot: slot)
            }
        case .disconnect:
            settle(call.handle, &events)
            guard result.isSuccess else { return events.omit("calls that failed and that a trace does not know") }
            events.add(.disconnected(.init(pcsc: call.number)), at: time, slot: slot)
            cards[call.handle] = nil
        case .endTransaction:
            settle(call.handle, &events)
            if result.isSuccess, call.number != 0 { events.add(.reset, at: time, slot: slot) }
        case .getStatusChange: break
        case .other: events.omit("calls that a trace does not know")
        }
    }

    /// Adds the connection of `handle`, if it has waited for an ATR.
    private mutating func settle(_ handle: UInt64, _ events: inout ImportedEvents) {
        guard let card = cards[handle], let time = card.connection else { return }
        cards[handle]?.connection = nil
        let atr = slots[card.reader] ?? ATR([])
        events.add(.connected(atr, card.transmissionProtocol), at: time, slot: card.reader)
    }
}
