import SmartCard

/// Takes out of traces what must not be shared: account numbers, tracks, names, PINs, keys, transaction logs.
///
///     let redacted = TraceRedaction().redacted(trace)
///
/// Every account number becomes another of the same length, first four digits and a right check digit, the same one
/// wherever it stands and for every trace redacted with the same key: packed, as text, in track data, across the parts
/// of a response fetched by GET RESPONSE.  Without the key neither can the number be computed nor a guess be checked.
/// Everything else keeps its length and its place among the data objects; letters become `X`, digits and bytes 0.
///
/// ICC certificates, from which the account number can be recovered, become zeros: offline data authentication of a
/// redacted trace fails, and the trace says so by the item `certificate`.  What passed below APDUs keeps only the
/// beginning of each frame, and so does what was sent to the card past the reader by its PN532.
public struct TraceRedaction: Sendable {
    private let key: SipHash
    private let includingCryptograms: Bool

    /// - Parameters:
    ///   - key: 16 bytes, to be kept secret; nil for a random one that nobody knows.
    ///   - includingCryptograms: whether application cryptograms and issuer application data become zeros, too.
    public init(key: [UInt8]? = nil, includingCryptograms: Bool = false) {
        self.key = SipHash(key: key ?? (0..<16).map { _ in UInt8.random(in: 0...255) })
        self.includingCryptograms = includingCryptograms
    }

    /// `trace` without what must not be shared, and with an event that says what was taken out.
    public func redacted(_ trace: Trace) -> Trace {
        let messages = Message.all(in: trace)
        var work = Work(key: key, includingCryptograms: includingCryptograms)
        for message in messages { work.collect(message) }
        var events = trace.events
        for message in messages { message.put(work.redacted(message), into: &events) }
        for index in events.indices { events[index].what = work.redacted(rest: events[index].what) }
        return Trace(Self.noting(work.items, in: events))
    }

    /// `events` with one that says that `items` have been taken out, now or before.
    private static func noting(_ items: Set<TraceEvent.RedactedItem>, in events: [TraceEvent]) -> [TraceEvent] {
        var events = events
        for (index, event) in events.enumerated() {
            guard case .redacted(let earlier) = event.what else { continue }
            events[index].what = .redacted(earlier.union(items))
            return events
        }
        let position = events.firstIndex { if case .reader = $0.what { false } else { true } } ?? events.endIndex
        let time = position < events.endIndex ? events[position].time : events.last?.time ?? .zero
        events.insert(TraceEvent(at: time, .redacted(items)), at: position)
        return events
    }

    /// Which events of `trace` hold an account number in the clear, in any form; replacements of redaction are none.
    ///
    /// Numbers are known by the first digits of issuers and the check digit, and by the data objects that hold them.
    /// Random data holds such digits by chance at times; certificates and cryptograms are left out for that.
    public static func eventsWithAccountNumbers(in trace: Trace) -> [Int] {
        var work = Work(key: SipHash(key: []), includingCryptograms: false)
        let messages = Message.all(in: trace)
        for message in messages { work.collect(message) }
        var found: Set<Int> = []
        for message in messages where work.hasAccountNumber(message) { found.formUnion(message.events) }
        for (index, event) in trace.events.enumerated() where work.hasAccountNumber(rest: event.what) {
            found.insert(index)
        }
        return found.sorted()
    }
}

/// A command, or the data of a response, which may have come in parts.
private struct Message {
    enum Kind {
        case command
        case response(to: CommandAPDU?)
    }

    let kind: Kind
    /// The events it is in, and how much of it is in each, from the beginning of their bytes.
    private(set) var parts: [(event: Int, count: Int)]
    private(set) var bytes: [UInt8]

    var events: [Int] { parts.map(\.event) }

    /// All commands, and all responses without their status words.  What GET RESPONSE and consecutive READ BINARY fetch is
    /// one.
    static func all(in trace: Trace) -> [Message] {
        var messages: [Message] = []
        var pending: [CommandAPDU?] = []
        var lastResponse: (message: Int, command: CommandAPDU?, status: StatusWord)?
        for (index, event) in trace.events.enumerated() {
            switch event.what {
            case .sent(.apdu, let bytes):
                messages.append(Message(kind: .command, parts: [(index, bytes.count)], bytes: bytes))
                pending.append(try? CommandAPDU(bytes))
            case .received(.apdu, let bytes):
                let command = pending.isEmpty ? nil : pending.removeFirst()
                let data = bytes.count >= 2 ? Array(bytes.dropLast(2)) : bytes
                var end = messages.count
                if let last = lastResponse, Self.continues(last.command, last.status, by: command) {
                    messages[last.message].parts.append((index, data.count))
                    messages[last.message].bytes += data
                    end = last.message
                } else {
                    messages.append(
                        Message(kind: .response(to: command), parts: [(index, data.count)], bytes: data))
                }
                lastResponse = (try? ResponseAPDU(bytes)).map { (end, command, $0.status) }
            case .failed(.exchange(.apdu), _):
                if !pending.isEmpty { pending.removeFirst() }
                lastResponse = nil
            default: break
            }
        }
        return messages
    }

    private static func continues(_ command: CommandAPDU?, _ status: StatusWord, by next: CommandAPDU?) -> Bool {
        guard let next else { return false }
        if case .moreData = status { return next.ins == 0xC0 }
        return command?.ins == 0xB0 && next.ins == 0xB0
    }

    /// Writes `bytes`, as many as this message has, back to where it came from.
    func put(_ bytes: [UInt8], into events: inout [TraceEvent]) {
        var rest = bytes[...]
        for (event, count) in parts {
            let part = rest.prefix(count)
            rest = rest.dropFirst(count)
            switch events[event].what {
            case .sent(let layer, let old): events[event].what = .sent(layer, Array(part + old[count...]))
            case .received(let layer, let old): events[event].what = .received(layer, Array(part + old[count...]))
            default: break
            }
        }
    }
}

/// One trace's redaction: the account numbers that have been seen in it, and what has been taken out.
private struct Work {
    let key: SipHash
    let includingCryptograms: Bool
    var known: Set<[UInt8]> = []
    /// Files that hold the transaction log (EMV Book 3, Annex D): their short identifiers.
    var logFiles: Set<UInt8> = []
    var items: Set<TraceEvent.RedactedItem> = []

    private static let tracks: Set<TLVTag> = [
        0x56, 0x57, 0x9F6B, 0x9F1F, 0x9F20, 0x58, 0x5F21, 0x5F22, 0x5F23, 0xDF812A, 0xDF812B,
    ]
    private static let names: Set<TLVTag> = [0x5F20, 0x9F0B, 0x5B]
    private static let certificates: Set<TLVTag> = [0x9F46, 0x9F2D]
    private static let cryptograms: Set<TLVTag> = [0x9F26, 0x9F10, 0x9F4B]

    // MARK: What there is

    mutating func collect(_ message: Message) {
        guard case .response = message.kind, let list = try? TLVList(message.bytes) else { return }
        for object in list.flattened where !object.tag.isConstructed {
            switch object.tag {
            case 0x5A, 0x57, 0x9F6B:
                let nibbles = object.value.flatMap { [$0 >> 4, $0 & 0x0F] }
                learn(Array(nibbles.prefix { $0 < 10 }))
            case 0x56:
                let digits = object.value.drop { !(0x30...0x39).contains($0) }.prefix { (0x30...0x39).contains($0) }
                learn(digits.map { $0 - 0x30 })
            case 0x9F4D, 0xDF60: object.value.first.map { _ = logFiles.insert($0 & 0x1F) }
            default: break
            }
        }
    }

    private mutating func learn(_ digits: [UInt8]) {
        // Shorter ones would be found in everything.
        guard (10...19).contains(digits.count), !AccountNumbers.Replacement.hasForm(digits[...]) else { return }
        known.insert(digits)
    }

    // MARK: What is taken out

    mutating func redacted(_ message: Message) -> [UInt8] {
        var bytes = message.bytes
        switch message.kind {
        case .command: redact(command: &bytes)
        case .response(let command): redact(response: &bytes, to: command)
        }
        replaceNumbers(in: &bytes, isGuessing: false)
        return bytes
    }

    private mutating func redact(command bytes: inout [UInt8]) {
        guard let command = try? CommandAPDU(bytes), !command.data.isEmpty else { return }
        let start = command.lengthCoding == .short ? 5 : 7
        let data = start..<start + command.data.count
        switch (command.cla, command.ins) {
        // VERIFY, CHANGE REFERENCE DATA, RESET RETRY COUNTER (ISO/IEC 7816-4, 11.6).
        case (_, 0x20), (_, 0x24), (_, 0x2C): blank(&bytes, data, .pin)
        // LOAD KEYS (PC/SC part 3, 3.2.2.1.4).
        case (0xFF, 0x82): blank(&bytes, data, .key)
        default:
            guard !SensitiveData.showsData(of: command) else { return }
            var part = Array(bytes[data])
            replaceNumbers(in: &part, isGuessing: true)
            bytes.replaceSubrange(data, with: part)
        }
    }

    private mutating func redact(response bytes: inout [UInt8], to command: CommandAPDU?) {
        let isRecord = command?.cla != 0xFF && command?.ins == 0xB2
        if isRecord, let command, logFiles.contains(command.p2 >> 3) { return blank(&bytes, bytes.indices, .log) }
        guard let list = try? TLVList(bytes), !list.isEmpty else {
            // A record that is no data object is one of a log, or anything.
            if isRecord { blank(&bytes, bytes.indices, .log) } else { replaceNumbers(in: &bytes, isGuessing: true) }
            return
        }
        for object in list.flattened where !object.tag.isConstructed {
            let place = object.value.startIndex..<object.value.endIndex
            var value = Array(object.value)
            redact(&value, of: object.tag)
            bytes.replaceSubrange(place, with: value)
        }
    }

    private mutating func redact(_ value: inout [UInt8], of tag: TLVTag) {
        switch tag {
        case 0x5A: replaceNumbers(in: &value, isGuessing: true)
        case 0x57, 0x9F6B:
            replaceNumbers(in: &value, isGuessing: true)
            // Behind the separator, four digits of the expiry and three of the service code stay (ISO/IEC 7813).
            let nibbles = value.flatMap { [$0 >> 4, $0 & 0x0F] }
            guard let separator = nibbles.firstIndex(of: 0x0D) else { return }
            for index in nibbles.indices.dropFirst(separator + 8) where (1..<10).contains(nibbles[index]) {
                AccountNumbers.Form.packed.put(0, at: index, in: &value)
                items.insert(.track)
            }
        case 0x56:
            replaceNumbers(in: &value, isGuessing: true)
            let separators = value.indices.filter { value[$0] == UInt8(ascii: "^") }
            if separators.count == 2 {
                cover(&value, separators[0]..<separators[1], .name)
                cover(&value, min(separators[1] + 8, value.count)..<value.count, .track)
            }
        case _ where Self.tracks.contains(tag):
            cover(&value, value.indices, .track)
        case _ where Self.names.contains(tag):
            cover(&value, value.indices, .name)
        case 0x99: blank(&value, value.indices, .pin)
        case _ where Self.certificates.contains(tag): blank(&value, value.indices, .certificate)
        case _ where Self.cryptograms.contains(tag):
            if includingCryptograms { blank(&value, value.indices, .cryptogram) }
        case _ where SensitiveData.exposures[tag] != nil:
            cover(&value, value.indices, .accountNumber)
        case _ where SensitiveData.isRandom(tag): break
        default: replaceNumbers(in: &value, isGuessing: true)
        }
    }

    /// Everything but commands and responses.
    mutating func redacted(rest what: TraceEvent.What) -> TraceEvent.What {
        switch what {
        case .sent(let layer, let bytes) where layer != .apdu: .sent(layer, frame(layer, bytes))
        case .received(let layer, let bytes) where layer != .apdu: .received(layer, frame(layer, bytes))
        case .note(let text): .note(redacted(text))
        case .failed(let operation, var failure):
            {
                failure.detail = failure.detail.map { redacted($0) }
                return .failed(operation, failure)
            }()
        default: what
        }
    }

    /// A frame of which only the beginning is kept, where it may carry what is for the card.
    private mutating func frame(_ layer: TraceEvent.Layer, _ bytes: [UInt8]) -> [UInt8] {
        let kept = Self.kept(layer, bytes)
        guard kept < bytes.count, bytes.dropFirst(kept).contains(where: { $0 != 0 }) else { return bytes }
        items.insert(.track)
        return bytes.prefix(kept) + [UInt8](repeating: 0, count: bytes.count - kept)
    }

    private static func kept(_ layer: TraceEvent.Layer, _ bytes: [UInt8]) -> Int {
        switch layer {
        case .apdu: bytes.count
        case .ccid: 10  // the header (CCID 1.10, 6)
        case .pn532: 7  // to the command code (PN532 user manual, 6.2.1)
        case .rf, .rfPayload: 1
        case .escape:
            // InDataExchange and InCommunicateThru of the PN532, and their answers (NXP UM0701-02, 7.3.8 and 7.3.9).
            if bytes.starts(with: [0xFF, 0x00, 0x00, 0x00]), [0xD440, 0xD442].contains(Self.word(bytes, at: 5)) {
                7
            } else if [0xD541, 0xD543].contains(Self.word(bytes, at: 0)) {
                3
            } else {
                bytes.count
            }
        }
    }

    private static func word(_ bytes: [UInt8], at index: Int) -> Int {
        bytes.count > index + 1 ? Int(bytes[index]) << 8 | Int(bytes[index + 1]) : 0
    }

    private mutating func redacted(_ text: String) -> String {
        var bytes = Array(text.utf8)
        replaceNumbers(in: &bytes, forms: [.text], isGuessing: true)
        // Only digits have been changed.
        return String(decoding: bytes, as: UTF8.self)
    }

    private mutating func replaceNumbers(
        in bytes: inout [UInt8], forms: [AccountNumbers.Form]? = nil, isGuessing: Bool
    ) {
        for form in forms ?? Self.forms(bytes, isGuessing) {
            let symbols = form.symbols(bytes)
            let places = AccountNumbers.places(in: symbols, known: known, isGuessing: isGuessing)
            for place in places where !place.isReplacement {
                let digits = symbols[place.range].compactMap(\.self)
                let replacement = AccountNumbers.Replacement.digits(for: digits, key: key)
                for (index, digit) in zip(place.range, replacement) { form.put(digit, at: index, in: &bytes) }
                items.insert(.accountNumber)
            }
            // What is one form is none of the others, whose digits it has by chance.
            if !places.isEmpty { return }
        }
    }

    /// Letters taken for packed digits make account numbers by chance.
    private static func forms(_ bytes: [UInt8], _ isGuessing: Bool) -> [AccountNumbers.Form] {
        isGuessing && bytes.allSatisfy { (0x20...0x7E).contains($0) }
            ? [.evenHexText, .oddHexText, .text] : AccountNumbers.Form.allCases
    }

    private mutating func blank(_ bytes: inout [UInt8], _ place: Range<Int>, _ item: TraceEvent.RedactedItem) {
        guard bytes[place].contains(where: { $0 != 0 }) else { return }
        for index in place { bytes[index] = 0 }
        items.insert(item)
    }

    /// Letters become `X`, digits `0`, other characters stay; bytes that are no text become zeros.
    private mutating func cover(_ value: inout [UInt8], _ place: Range<Int>, _ item: TraceEvent.RedactedItem) {
        let old = value
        defer { if value != old { items.insert(item) } }
        let isText = value.allSatisfy { (0x20...0x7E).contains($0) }
        for index in place {
            switch value[index] {
            case _ where !isText: value[index] = 0
            case 0x30...0x39: value[index] = 0x30
            case 0x41...0x5A, 0x61...0x7A: value[index] = UInt8(ascii: "X")
            default: break
            }
        }
    }

    // MARK: What is left

    func hasAccountNumber(_ message: Message) -> Bool {
        var left = Work(key: key, includingCryptograms: false)
        (left.known, left.logFiles) = (known, logFiles)
        _ = left.redacted(message)
        return left.items.contains(.accountNumber)
    }

    func hasAccountNumber(rest what: TraceEvent.What) -> Bool {
        switch what {
        case .sent(let layer, let bytes) where layer != .apdu, .received(let layer, let bytes) where layer != .apdu:
            // Frames of lower layers are random throughout: only numbers that are known count.
            return AccountNumbers.Form.allCases.contains {
                AccountNumbers.places(in: $0.symbols(bytes), known: known, isGuessing: false)
                    .contains { !$0.isReplacement }
            }
        case .note, .failed:
            var left = Work(key: key, includingCryptograms: false)
            left.known = known
            _ = left.redacted(rest: what)
            return left.items.contains(.accountNumber)
        default: return false
        }
    }
}
