import EMVContactless
import SmartCard
import SmartCardTrace
import ToolSupport

/// An event for a person or a script, card data masked unless it is to be revealed.
struct EventText: Encodable {
    /// In milliseconds, since the trace began.
    let time: Double
    /// The first word of the event's line: `>`, `<`, `!`, `reader`, `slot`, …
    let event: String
    @OrNull var layer: String?
    /// The bytes, masked; null where all of them are.
    @OrNull var bytes: String?
    @OrNull var length: Int?
    /// The name of a command, the meaning of a status word, and everything else that the event says.
    @OrNull var text: String?
    /// The data objects of an answer, one a line.
    let objects: [String]

    var isFailure: Bool { event == "!" }

    /// The event on one line, without its time.
    var line: String {
        [event, layer == "apdu" ? nil : layer, bytes ?? length.map { "(\($0) bytes)" }, text].compactMap(\.self)
            .joined(separator: "  ")
    }

    /// All events of `trace`.
    static func all(of trace: Trace, reveal: Bool) -> [EventText] {
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return all(of: trace, reveal: reveal, knowing: secrets)
    }

    /// All events of `trace`, which may be a piece of one.
    ///
    /// - Parameter secrets: those of the whole.
    static func all(of trace: Trace, reveal: Bool, knowing secrets: TraceSecrets) -> [EventText] {
        let commands = Dictionary(
            trace.exchanges(on: [.apdu]).compactMap { exchange in
                exchange.answerIndex.map { ($0, exchange.command) }
            }, uniquingKeysWith: { first, _ in first })
        var hidden = reveal ? [] : Set(TraceRedaction.eventsWithAccountNumbers(in: trace, knowing: secrets))
        hidden = hidden.filter { index in
            guard case .received(.apdu, let answer) = trace.events[index].what, let command = commands[index] else {
                return true
            }
            return !isMasked(answer, command, knowing: secrets)
        }
        return trace.events.enumerated().map { index, event in
            EventText(event, command: commands[index], reveal: reveal, isHidden: hidden.contains(index))
        }
    }

    /// Returns true if no account number is left in `answer` when its data objects are masked.
    private static func isMasked(_ answer: [UInt8], _ command: [UInt8], knowing secrets: TraceSecrets) -> Bool {
        guard let data = (try? ResponseAPDU(answer))?.data, let list = try? TLVList(data), !list.isEmpty,
            let command = try? CommandAPDU(command)
        else { return false }
        let shown = TraceEvent(at: .zero, .note(SensitiveData.maskedHex(data, answering: command)))
        return TraceRedaction.eventsWithAccountNumbers(in: Trace([shown]), knowing: secrets).isEmpty
    }

    private init(_ event: TraceEvent, command: [UInt8]?, reveal: Bool, isHidden: Bool) {
        time = (event.time / .microseconds(1)).rounded() / 1000
        var objects: [String] = []
        func words(_ text: String) -> String { isHidden ? "(hidden)" : text }
        switch event.what {
        case .sent(let layer, let bytes):
            self.event = ">"
            self.layer = layer.rawValue
            length = bytes.count
            let command = layer == .apdu ? try? CommandAPDU(bytes) : nil
            text = command.flatMap(CommandName.name)
            self.bytes =
                reveal ? bytes.hex : command.map { isHidden ? $0.headerHex : SensitiveData.maskedHex($0) }
        case .received(let layer, let bytes):
            self.event = "<"
            self.layer = layer.rawValue
            length = bytes.count
            self.bytes = reveal ? bytes.hex : nil
            if layer == .apdu, let response = try? ResponseAPDU(bytes) {
                text = response.status.name
                if isHidden {
                    self.bytes =
                        String(repeating: "*", count: 2 * response.data.count)
                        + [response.status.sw1, response.status.sw2].hex
                } else if !reveal, let command = command.flatMap({ try? CommandAPDU($0) }) {
                    self.bytes =
                        SensitiveData.maskedHex(response.data, answering: command)
                        + [response.status.sw1, response.status.sw2].hex
                }
                if !isHidden, let list = try? TLVList(response.data) {
                    objects = list.flatMap { Self.lines(Annotation($0), indent: 0, reveal: reveal) }
                }
            }
        case .failed(let operation, let failure):
            self.event = "!"
            if case .exchange(let layer) = operation { self.layer = layer.rawValue }
            let detail = failure.detail.map { ": \(words($0))" } ?? ""
            text = "\(operation.name)\(failure.kind?.rawValue ?? "cancelled")\(detail)"
        case .reader(let identity):
            self.event = "reader"
            text = "\(words(identity.name))  (\(identity.backend.rawValue))"
        case .slot(let state):
            self.event = "slot"
            text = state.word
        case .connected(let atr, let transmissionProtocol):
            self.event = "connect"
            text = "\(transmissionProtocol.rawValue)  \(atr)"
        case .reset: self.event = "reset"
        case .disconnected(let disposition):
            self.event = "disconnect"
            text = "\(disposition)"
        case .field(let isOn):
            self.event = "field"
            text = isOn ? "on" : "off"
        case .note(let note):
            self.event = "note"
            text = words(note)
        case .meta(let key, let value):
            self.event = "meta"
            text = "\(key)  \(words(value))"
        case .redacted(let items):
            self.event = "redacted"
            text = items.map(\.rawValue).sorted().joined(separator: ", ")
        }
        self.objects = objects
    }

    private static func lines(_ annotation: Annotation, indent: Int, reveal: Bool) -> [String] {
        let margin = String(repeating: " ", count: indent)
        let value = annotation.tag.isConstructed ? "" : annotation.hex(reveal: reveal)
        let text = annotation.text(reveal: reveal).map { $0 == value ? "" : "  \($0)" } ?? ""
        return ["\(margin)\(annotation.tag)  \(annotation.name)\(value.isEmpty ? "" : "  \(value)")\(text)"]
            + annotation.children.flatMap { lines($0, indent: indent + 2, reveal: reveal) }
    }
}

extension SlotState {
    fileprivate var word: String {
        switch self {
        case .empty: "empty"
        case .card(let atr, let held): "card \(atr)\(held ? ", held by another program" : "")"
        case .muteCard: "a card that does not answer"
        case .unknown: "unknown"
        }
    }
}

extension TraceEvent.Operation {
    fileprivate var name: String {
        switch self {
        case .connect: "connect: "
        case .reset: "reset: "
        case .slot: "slot: "
        case .exchange: ""
        }
    }
}

/// The names of commands (ISO/IEC 7816-4, table 4; EMV Book 3, table 8; EMV Contactless Book C-2, 5; PC/SC part 3).
enum CommandName {
    private static let interindustry: [UInt8: String] = [
        0x0E: "ERASE BINARY", 0x20: "VERIFY", 0x22: "MANAGE SECURITY ENVIRONMENT", 0x24: "CHANGE REFERENCE DATA",
        0x2A: "PERFORM SECURITY OPERATION", 0x2C: "RESET RETRY COUNTER", 0x70: "MANAGE CHANNEL",
        0x82: "EXTERNAL AUTHENTICATE", 0x84: "GET CHALLENGE", 0x86: "GENERAL AUTHENTICATE",
        0x87: "GENERAL AUTHENTICATE", 0x88: "INTERNAL AUTHENTICATE", 0xA4: "SELECT", 0xB0: "READ BINARY",
        0xB2: "READ RECORD", 0xC0: "GET RESPONSE", 0xCA: "GET DATA", 0xD6: "UPDATE BINARY", 0xDA: "PUT DATA",
        0xDC: "UPDATE RECORD", 0xE2: "APPEND RECORD",
    ]
    private static let emv: [UInt8: String] = [
        0x18: "APPLICATION UNBLOCK", 0x16: "CARD BLOCK", 0x1E: "APPLICATION BLOCK", 0x24: "PIN CHANGE/UNBLOCK",
        0x2A: "COMPUTE CRYPTOGRAPHIC CHECKSUM", 0xA8: "GET PROCESSING OPTIONS", 0xAE: "GENERATE AC",
        0xCA: "GET DATA", 0xDA: "PUT DATA", 0xEA: "EXCHANGE RELAY RESISTANCE DATA",
    ]
    private static let reader: [UInt8: String] = [
        0x82: "LOAD KEYS", 0x86: "GENERAL AUTHENTICATE", 0xB0: "READ BINARY", 0xCA: "GET DATA",
        0xD6: "UPDATE BINARY",
    ]

    static func name(_ command: CommandAPDU) -> String? {
        switch command.cla {
        case 0xFF: reader[command.ins]
        case 0x80...0x8F: emv[command.ins]
        default: interindustry[command.ins]
        }
    }
}
