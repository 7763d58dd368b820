package import SmartCard

/// A whole command, or the whole data of a response: its parts are joined, and can be split again.
package struct TraceMessage: Sendable {
    package enum Kind: Sendable {
        /// Header, data field, Le.  Nil for bytes that are no command APDU.
        case command(CommandAPDU?)
        /// Data without status word.
        case response(to: CommandAPDU?, StatusWord?)
    }

    /// A piece of the message, as it stands among the bytes of an event.
    package struct Part: Hashable, Sendable {
        package let event: Int
        package let place: Range<Int>
    }

    package let kind: Kind
    package internal(set) var parts: [Part]
    package private(set) var bytes: [UInt8]
    /// The data field of a command, empty at the end if it has none; everything for a response or for bytes that are
    /// not a command.
    package private(set) var data: Range<Int>

    /// The commands that a response answers, and the place of each answer.  One that is fetched by GET RESPONSE belongs to
    /// the command before that.
    private var answered: [(command: CommandAPDU, start: Int)] = []

    package var events: [Int] { parts.map(\.event) }

    /// Returns all commands and responses on the layer `apdu`, in the order in which they begin.
    ///
    /// A message joins the commands of a chain (ISO/IEC 7816-4, 5.3.3), UPDATE BINARY at rising offsets, or the data
    /// that GET RESPONSE, GET ADDITIONAL DATA and READ BINARY at rising offsets fetch, even if blocks of a storage card are opened in
    /// between.
    ///
    /// - Parameter open: the commands that wait for an answer when the trace begins.
    package static func all(in trace: Trace, behind open: [[UInt8]] = []) -> [TraceMessage] {
        var assembly = Assembly(open)
        for (index, event) in trace.events.enumerated() {
            switch event.what {
            case .sent(.apdu, let bytes): assembly.add(command: bytes, event: index)
            case .received(.apdu, let bytes): assembly.add(response: bytes, event: index)
            case .failed(.exchange(.apdu), _): assembly.addFailure()
            case .connected, .reset: assembly.end()
            default: break
            }
        }
        return assembly.messages
    }

    /// The answers that a response joins.
    var answers: [(command: CommandAPDU, place: Range<Int>)] {
        answered.indices.map { index in
            let end = index + 1 < answered.count ? answered[index + 1].start : bytes.count
            return (answered[index].command, answered[index].start..<end)
        }
    }

    /// The number of bytes that READ BINARY has read in a row from the beginning of a file.
    var contiguousCount: Int {
        answered.first { $0.command.position != $0.start }?.start ?? bytes.count
    }

    /// Writes `bytes`, as many as this message has, back to where it came from.
    package func put(_ bytes: [UInt8], into events: inout [TraceEvent]) { parts.put(bytes, into: &events) }

    /// The message with each of its parts where `places`, by event, says that the bytes of the event stand.
    package func standing(in places: [[Part]]) -> TraceMessage {
        var message = self
        message.parts = parts.flatMap { places[$0.event].parts($0.place) }
        return message
    }

    /// The commands and responses that the next one may continue.
    struct Succession: Sendable {
        /// The commands without a response, the oldest first.
        private var open: ArraySlice<CommandAPDU?> = []
        private var lastCommand: CommandAPDU?
        private var lastResponse: (command: CommandAPDU?, status: StatusWord)?

        init(open: [[UInt8]] = []) { self.open = open.map { try? CommandAPDU($0) }[...] }

        /// - Returns: true if it continues the command before it.
        mutating func add(_ command: CommandAPDU?) -> Bool {
            open.append(command)
            guard !Self.opensBlocks(command) else { return false }
            defer { lastCommand = command }
            return continuesCommand(command)
        }

        /// - Returns: the command that is answered, and true if this response continues the one before it.
        mutating func add(_ status: StatusWord?) -> (command: CommandAPDU?, continues: Bool) {
            let command = open.popFirst() ?? nil
            guard !Self.opensBlocks(command), !Self.isRefused(status) else { return (command, false) }
            let continues = continuesResponse(command)
            // GET RESPONSE continues the request before it.
            let request = continues && command?.ins == 0xC0 ? lastResponse?.command : command
            lastResponse = status.map { (request, $0) }
            return (command, continues)
        }

        mutating func addFailure() {
            _ = open.popFirst()
            (lastCommand, lastResponse) = (nil, nil)
        }

        /// Ends the succession when a card starts over: nothing continues, and earlier commands get no answer.
        mutating func end() { self = Succession() }

        /// Returns true if `command`, with all earlier ones answered, or its response would continue an earlier
        /// message.
        func continues(by command: CommandAPDU?) -> Bool {
            Self.opensBlocks(command) ? mayGoOn : continuesCommand(command) || continuesResponse(command)
        }

        /// LOAD KEYS, GENERAL AUTHENTICATE and the AUTHENTICATE before it (PC/SC part 3, 3.2.2.1.4 to 3.2.2.1.6): they stand
        /// between the blocks of a storage card that belong together.
        static func opensBlocks(_ command: CommandAPDU?) -> Bool {
            guard let command, command.cla == 0xFF else { return false }
            return [0x82, 0x86, 0x88].contains(command.ins)
        }

        /// The answer to a command with a wrong Le, which is sent again (ISO/IEC 7816-4, 5.6).
        static func isRefused(_ status: StatusWord?) -> Bool { status?.sw1 == 0x6C }

        /// True if some command would continue an earlier message.
        var mayGoOn: Bool {
            if let lastCommand, Self.isContinued(lastCommand) { return true }
            guard let lastResponse else { return false }
            return Self.hasMore(lastResponse.status, lastResponse.command)
                || lastResponse.command.map { $0.position != nil } ?? false
        }

        private func continuesCommand(_ next: CommandAPDU?) -> Bool {
            guard let command = lastCommand, let next, Self.isContinued(command) else { return false }
            guard command.ins == next.ins, !next.data.isEmpty else { return false }
            if Self.isChained(command), command.cla & 0xEF == next.cla & 0xEF { return true }
            return command.cla == next.cla && (command.ins != 0xD6 || Self.isBehind(command, next))
        }

        private func continuesResponse(_ next: CommandAPDU?) -> Bool {
            guard let (command, status) = lastResponse, let next else { return false }
            if Self.hasMore(status, command) { return next.ins == 0xC0 }
            guard let place = command?.position, let nextPlace = next.position else {
                return false
            }
            return nextPlace > place
        }

        /// 61XX; 9FXX of a SIM (GSM 11.11, 9.4.1); 91XX of GET SMART TAP DATA, which GET ADDITIONAL DATA continues (Google's
        /// APDU reference).
        private static func hasMore(_ status: StatusWord, _ command: CommandAPDU?) -> Bool {
            if case .moreData = status { return true }
            guard let command else { return false }
            return command.cla == 0xA0 && status.sw1 == 0x9F
                || command.cla == 0x90 && command.ins == 0x50 && status.sw1 == 0x91
        }

        /// Returns true if `next` accesses the bytes after those of `command`.  A program that reads the same place
        /// repeatedly starts over each time.
        private static func isBehind(_ command: CommandAPDU, _ next: CommandAPDU) -> Bool {
            next.place > command.place
        }

        private static func isContinued(_ command: CommandAPDU) -> Bool {
            !command.data.isEmpty && (isChained(command) || command.ins == 0xD6)
        }

        /// Bit 5 of an interindustry class, and of EMV's and GlobalPlatform's.
        private static func isChained(_ command: CommandAPDU) -> Bool {
            command.cla & 0x10 != 0 && command.cla != 0xFF
        }
    }

    /// Messages while they are put together.
    private struct Assembly {
        var messages: [TraceMessage] = []
        private var succession: Succession
        /// The messages that the last command and the last response are of.
        private var lastCommand = 0
        private var lastResponse = 0

        init(_ open: [[UInt8]]) { succession = Succession(open: open) }

        mutating func add(command bytes: [UInt8], event: Int) {
            let command = try? CommandAPDU(bytes)
            let start = command.map { $0.data.isEmpty ? bytes.count : $0.lengthCoding == .short ? 5 : 7 } ?? 0
            let data = start..<start + (command?.data.count ?? bytes.count)
            var message = messages.count
            if succession.add(command) {
                message = lastCommand
                // The bytes after the data field of the earlier command are dropped, so that data follow data.
                messages[message].cutBehindData()
                messages[message].append(bytes[data], Part(event: event, place: data))
                messages[message].data = messages[message].data.lowerBound..<messages[message].bytes.count
            } else {
                messages.append(
                    TraceMessage(
                        kind: .command(command), parts: [Part(event: event, place: 0..<bytes.count)], bytes: bytes,
                        data: data))
            }
            if !Succession.opensBlocks(command) { lastCommand = message }
        }

        mutating func add(response bytes: [UInt8], event: Int) {
            let status = (try? ResponseAPDU(bytes))?.status
            let (command, continues) = succession.add(status)
            let end = status == nil ? bytes.count : bytes.count - 2
            let data = min(Self.start(of: bytes, answering: command), end)..<end
            var message = messages.count
            if continues {
                message = lastResponse
                messages[message].append(bytes[data], Part(event: event, place: data))
                messages[message].data = 0..<messages[message].bytes.count
            } else {
                messages.append(
                    TraceMessage(
                        kind: .response(to: command, status), parts: [Part(event: event, place: data)],
                        bytes: Array(bytes[data]), data: 0..<data.count))
            }
            if let command, !continues || command.ins != 0xC0 {
                messages[message].answered.append((command, messages[message].bytes.count - data.count))
            }
            if !Succession.opensBlocks(command), !Succession.isRefused(status) { lastResponse = message }
        }

        /// The beginning of the data in an answer: READ BINARY with an offset in an object gives them in an object 53
        /// (ISO/IEC 7816-4, 11.3.3).
        private static func start(of bytes: [UInt8], answering command: CommandAPDU?) -> Int {
            guard command?.ins == 0xB1, command?.position != nil, bytes.count > 1, bytes[0] == 0x53
            else { return 0 }
            return (0x81...0x84).contains(bytes[1]) ? 2 + Int(bytes[1] & 0x0F) : 2
        }

        mutating func addFailure() { succession.addFailure() }

        mutating func end() { succession.end() }
    }

    private mutating func append(_ more: ArraySlice<UInt8>, _ part: Part) {
        parts.append(part)
        bytes += more
    }

    private mutating func cutBehindData() {
        guard let last = parts.last, data.upperBound < bytes.count else { return }
        let surplus = bytes.count - data.upperBound
        bytes.removeLast(surplus)
        parts[parts.count - 1] = Part(
            event: last.event, place: last.place.lowerBound..<last.place.upperBound - surplus)
    }
}

extension [TraceMessage.Part] {
    /// Returns the places of the bytes at `place` within these parts.
    func parts(_ place: Range<Int>) -> [TraceMessage.Part] {
        var start = 0
        var parts: [TraceMessage.Part] = []
        for part in self {
            let common = place.clamped(to: start..<start + part.place.count)
            if !common.isEmpty {
                let lower = part.place.lowerBound + common.lowerBound - start
                parts.append(TraceMessage.Part(event: part.event, place: lower..<lower + common.count))
            }
            start += part.place.count
        }
        return parts
    }

    /// Writes `bytes` there.
    func put(_ bytes: [UInt8], into events: inout [TraceEvent]) {
        var rest = bytes[...]
        for part in self {
            let piece = rest.prefix(part.place.count)
            rest = rest.dropFirst(part.place.count)
            guard piece.count == part.place.count else { return }
            switch events[part.event].what {
            case .sent(let layer, var old):
                old.replaceSubrange(part.place, with: piece)
                events[part.event].what = .sent(layer, old)
            case .received(let layer, var old):
                old.replaceSubrange(part.place, with: piece)
                events[part.event].what = .received(layer, old)
            case let what:
                guard let text = what.text else { break }
                var old = [UInt8](text.utf8)
                old.replaceSubrange(part.place, with: piece)
                events[part.event].what = what.replacing(text: String(decoding: old, as: UTF8.self))
            }
        }
    }
}

extension TraceEvent {
    /// Returns the event's bytes at `place`, of text those of UTF-8; nil for an event without either.
    func bytes(_ place: Range<Int>) -> [UInt8]? {
        switch what {
        case .sent(_, let bytes), .received(_, let bytes): Array(bytes[place])
        default: what.text.map { [UInt8]([UInt8]($0.utf8)[place]) }
        }
    }
}

extension TraceEvent.What {
    /// The words of a note, of meta data or of a failure.
    var text: String? {
        switch self {
        case .note(let text), .meta(_, let text): text
        case .failed(_, let failure): failure.detail
        default: nil
        }
    }

    /// The same with other words.
    fileprivate func replacing(text: String) -> TraceEvent.What {
        switch self {
        case .note: return .note(text)
        case .meta(let key, _): return .meta(key: key, value: text)
        case .failed(let operation, var failure):
            failure.detail = text
            return .failed(operation, failure)
        default: return self
        }
    }
}

extension CommandAPDU {
    /// The place that READ BINARY reads from, with an offset in P1 and P2 or in an object 54 (ISO/IEC 7816-4, 11.3.3);
    /// nil for other commands, and where the offset is encrypted.
    var position: Int? {
        switch ins {
        case 0xB0: return place
        case 0xB1:
            guard data.first == 0x54, (3...6).contains(data.count), Int(data[1]) == data.count - 2 else { return nil }
            return data.dropFirst(2).reduce(0) { $0 << 8 | Int($1) }
        default: return nil
        }
    }

    /// An offset in P1 and P2, or the number of a block (ISO/IEC 7816-4, 11.3.2; PC/SC part 3, 3.2.2.1.8).
    fileprivate var place: Int {
        // With bit 8 P1 names the file.
        let high = cla != 0xFF && p1 & 0x80 != 0 ? 0 : Int(p1)
        return high << 8 | Int(p2)
    }
}
