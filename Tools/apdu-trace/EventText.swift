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
    private(set) var objects: [String]

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
        var texts = plain(trace, reveal: reveal, knowing: secrets)
        for carried in CarriedExchanges.all(in: trace) {
            for (text, carrier) in zip(plain(carried.trace, reveal: reveal, knowing: secrets), carried.carriers) {
                guard let carrier else { continue }
                (texts[carrier.last].text, texts[carrier.last].objects) = (text.text, text.objects)
                if !reveal { for (index, mask) in carrier.masks(text.bytes) { texts[index].hide(mask) } }
            }
        }
        return texts
    }

    /// Hides the bytes for which `mask` has `*`, besides those that are hidden.
    private mutating func hide(_ mask: CarriedExchanges.Mask) {
        guard let bytes, bytes.count == 2 * (length ?? 0) else { return }
        self.bytes = String(zip(bytes, mask.digits(count: bytes.count)).map { $1 == "*" ? "*" : $0 })
    }

    private static func plain(_ trace: Trace, reveal: Bool, knowing secrets: TraceSecrets) -> [EventText] {
        let commands = Dictionary(
            trace.exchanges(on: [.apdu]).compactMap { exchange in
                exchange.answerIndex.map { ($0, exchange.command) }
            }, uniquingKeysWith: { first, _ in first })
        var hidden = reveal ? [] : Set(TraceRedaction.eventsWithAccountNumbers(in: trace, knowing: secrets))
        let redacted = hidden.isEmpty ? [] : TraceRedaction().onePass(over: trace, knowing: secrets)
        var masks: [Int: ObjectMask] = [:]
        hidden = hidden.filter { index in
            guard case .received(.apdu, let answer) = trace.events[index].what,
                case .received(.apdu, let changed) = redacted[index].what,
                let mask = ObjectMask(answer, changed), !mask.showsAccountNumber(knowing: secrets)
            else { return true }
            masks[index] = mask
            return false
        }
        return trace.events.enumerated().map { index, event in
            EventText(
                event, command: commands[index], reveal: reveal, isHidden: hidden.contains(index), mask: masks[index])
        }
    }

    /// - Parameter mask: the mask of an answer with an account number, unless it is hidden.
    private init(_ event: TraceEvent, command: [UInt8]?, reveal: Bool, isHidden: Bool, mask: ObjectMask?) {
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
                let command = command.flatMap { try? CommandAPDU($0) }
                text = response.status.name
                if let mask {
                    self.bytes = mask.hex + [response.status.sw1, response.status.sw2].hex
                    objects = mask.lines
                } else if isHidden {
                    self.bytes =
                        String(repeating: "*", count: 2 * response.data.count)
                        + [response.status.sw1, response.status.sw2].hex
                } else if !reveal, let command {
                    self.bytes =
                        SensitiveData.maskedHex(response.data, answering: command)
                        + [response.status.sw1, response.status.sw2].hex
                }
                if mask == nil, !isHidden, let list = try? TLVList(response.data) {
                    objects =
                        command.flatMap { WalletText.lines(list, answering: $0, reveal: reveal) }
                        ?? list.flatMap { Self.lines(Annotation($0), indent: 0, reveal: reveal) }
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

    fileprivate static func lines(_ annotation: Annotation, indent: Int, reveal: Bool) -> [String] {
        let margin = String(repeating: " ", count: indent)
        let value = annotation.tag.isConstructed ? "" : annotation.hex(reveal: reveal)
        let text = annotation.text(reveal: reveal).map { $0 == value ? "" : "  \($0)" } ?? ""
        return ["\(margin)\(annotation.tag)  \(annotation.name)\(value.isEmpty ? "" : "  \(value)")\(text)"]
            + annotation.children.flatMap { lines($0, indent: indent + 2, reveal: reveal) }
    }
}

/// The data objects of an answer, with `*` for the values that may not be shown: those that are never shown, and those in
/// which redaction changes something.  Tags and lengths are shown.
private struct ObjectMask {
    private let data: [UInt8]
    private let list: TLVList
    private let changed: [UInt8]

    /// - Parameter changed: the answer after redaction.
    /// - Returns: nil for an answer that is no data objects, or of which more than values is changed.
    init?(_ answer: [UInt8], _ changed: [UInt8]) {
        guard let data = (try? ResponseAPDU(answer))?.data, changed.count == answer.count,
            let list = try? TLVList(data), !list.isEmpty
        else { return nil }
        (self.data, self.list, self.changed) = (data, list, changed)
        var values = Set<Int>()
        for object in list.flattened where !object.tag.isConstructed {
            values.formUnion(object.value.startIndex..<object.value.endIndex)
        }
        guard data.indices.allSatisfy({ values.contains($0) || data[$0] == changed[$0] }) else { return nil }
    }

    private func isHidden(_ object: TLV) -> Bool {
        let place = object.value.startIndex..<object.value.endIndex
        return SensitiveData.exposures[object.tag] == nil && data[place] != changed[place]
    }

    private func masked(_ object: TLV) -> String {
        isHidden(object)
            ? String(repeating: "*", count: 2 * object.value.count) : SensitiveData.masked(object.value, of: object.tag)
    }

    /// All data, digit for digit.
    var hex: String {
        var text = ""
        var done = 0
        for object in list.flattened where !object.tag.isConstructed {
            text += data[done..<object.value.startIndex].hex + masked(object)
            done = object.value.endIndex
        }
        return text + data[done...].hex
    }

    /// The objects, one a line.
    var lines: [String] {
        func lines(_ object: TLV, _ indent: Int) -> [String] {
            guard object.tag.isConstructed || isHidden(object) else {
                return EventText.lines(Annotation(object), indent: indent, reveal: false)
            }
            let value = object.tag.isConstructed ? "" : "  \(masked(object))"
            return ["\(String(repeating: " ", count: indent))\(object.tag)  \(Annotation(object).name)\(value)"]
                + (object.tag.isConstructed ? object.children.flatMap { lines($0, indent + 2) } : [])
        }
        return list.flatMap { lines($0, 0) }
    }

    /// Returns true if what is shown has an account number all the same, as across two objects.
    func showsAccountNumber(knowing secrets: TraceSecrets) -> Bool {
        let shown = TraceEvent(at: .zero, .note(hex))
        return !TraceRedaction.eventsWithAccountNumbers(in: Trace([shown]), knowing: secrets).isEmpty
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
        if let name = WalletCommand(command)?.name { return name }
        return switch command.cla {
        case 0xFF: reader[command.ins]
        case 0x80...0x8F: emv[command.ins]
        default: interindustry[command.ins]
        }
    }
}
