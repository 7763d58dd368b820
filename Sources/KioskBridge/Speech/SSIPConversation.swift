/// The client's part of the Speech Synthesis Interface Protocol (SSIP, of speech-dispatcher), without I/O.
///
/// One text is said at a time: a new one cancels the one before.  Commands wait for the complete reply to the one before
/// them (chapter 3, General Rules); notices of the server may come between any two replies.
struct SSIPConversation {
    enum Action: Hashable, Sendable {
        case send([UInt8])
        /// The end of a text, by the number that ``say(_:number:in:)`` gave it.
        case end(Int, End)
    }

    /// The end of a text.
    enum End: Hashable, Sendable {
        case said
        case canceled
        /// The reply code of the server.
        case refused(code: Int)
    }

    private enum Command {
        /// A setting, and whether nothing works without it.
        case set(String, isNeeded: Bool)
        /// The announcement of a text, and the text itself.
        case speak(Int), text(Int)
        case cancel
    }

    private struct Utterance {
        let number: Int
        let text: String
        /// The server's name for it, after it was queued there.
        var id: String?
    }

    /// Reply codes that mean something (chapter 5, Return Codes; section 4.7, Message Events Notification).
    private enum Code {
        static let success = 200...299
        static let queued = 225
        static let receivingData = 230
        static let notices = 700...799
        static let end = 702
        static let canceled = 703
    }

    /// Lines of one reply or notice.
    private static let replyLines = 64
    /// Notices about a text whose name is not known yet.
    private static let earlyNotices = 16

    private var lines = SSIPLines()
    /// The command whose reply is due.
    private var awaited: Command?
    private var waiting: [Command]
    private var reply: [SSIPLine] = []
    private var notice: [SSIPLine] = []
    private var current: Utterance?
    private var early: [String: End] = [:]
    private var language: String?
    private var volume: Int?

    init() {
        // Section 4.5.  Punctuation is not named, and markup is not looked for: texts are what people say.
        waiting = [
            .set("CLIENT_NAME kiosk:kiosk-host:page", isNeeded: true), .set("NOTIFICATION END on", isNeeded: true),
            .set("NOTIFICATION CANCEL on", isNeeded: true), .set("SSML_MODE off", isNeeded: false),
            .set("PUNCTUATION none", isNeeded: false), .set("PRIORITY message", isNeeded: false),
        ]
    }

    // MARK: Texts

    /// Says a text in place of the one before.
    ///
    /// - Parameters:
    ///   - language: of two or three letters.
    ///   - volume: in percent; nil for that of the text before, or the server's own.
    mutating func say(_ text: String, number: Int, in language: String, volume: Int? = nil) -> [Action] {
        var actions = cancel()
        current = Utterance(number: number, text: text)
        if language != self.language { waiting.append(.set("LANGUAGE \(language)", isNeeded: false)) }
        self.language = language
        // Section 4.5: from -100 to 100.
        if let volume, volume != self.volume {
            waiting.append(.set("VOLUME \(2 * volume - 100)", isNeeded: false))
            self.volume = volume
        }
        waiting += [.speak(number)]
        actions += next()
        return actions
    }

    /// Ends the text that is being said, if there is one.
    mutating func cancel() -> [Action] {
        guard let canceled = current else { return [] }
        current = nil
        early = [:]
        let isUntold = waiting.contains { if case .speak(canceled.number) = $0 { true } else { false } }
        if isUntold {
            waiting.removeAll { if case .speak = $0 { true } else { false } }
        } else {
            // Section 4.2: CANCEL stops the present message and those that wait.
            waiting.append(.cancel)
        }
        return [.end(canceled.number, .canceled)] + next()
    }

    // MARK: Commands

    private mutating func next() -> [Action] {
        guard awaited == nil, !waiting.isEmpty else { return [] }
        let command = waiting.removeFirst()
        awaited = command
        switch command {
        case .set(let setting, _): return [.send(Self.line("SET SELF \(setting)"))]
        case .speak: return [.send(Self.line("SPEAK"))]
        case .cancel: return [.send(Self.line("CANCEL SELF"))]
        case .text(let number):
            // A text that was canceled in the meantime is due nevertheless, and empty.
            let text = current?.number == number ? current?.text ?? "" : ""
            return [.send(Self.data(text))]
        }
    }

    private static func line(_ text: String) -> [UInt8] { Array((text + "\r\n").utf8) }

    /// A text as data (section 4.1): one line here; an extra dot before the first of a line; then a dot alone.
    static func data(_ text: String) -> [UInt8] {
        let scalars = text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : String($0) }
        let text = scalars.joined()
        return line((text.utf8.first == UInt8(ascii: ".") ? "." : "") + text + (text.isEmpty ? "" : "\r\n") + ".")
    }

    // MARK: Replies

    /// Takes the server's bytes as they come.
    ///
    /// - Throws: `violation` for what is not this protocol, `refused` if the server lacks what is needed.
    mutating func receive(_ bytes: some Sequence<UInt8>) throws(SpeechError) -> [Action] {
        var actions: [Action] = []
        for line in try lines.receive(bytes) {
            if Code.notices.contains(line.code) {
                try Self.gather(line, in: &notice)
                guard line.isLast else { continue }
                actions += takeNotice()
            } else {
                guard awaited != nil else { throw .violation(offset: line.offset, due: "no reply without a command") }
                try Self.gather(line, in: &reply)
                guard line.isLast else { continue }
                actions += try takeReply(line)
            }
        }
        return actions
    }

    private static func gather(_ line: SSIPLine, in gathered: inout [SSIPLine]) throws(SpeechError) {
        guard gathered.count < replyLines else {
            throw .violation(offset: line.offset, due: "the last line of a reply")
        }
        gathered.append(line)
    }

    private mutating func takeReply(_ last: SSIPLine) throws(SpeechError) -> [Action] {
        let code = last.code
        let lines = reply
        let command = awaited
        reply = []
        awaited = nil
        var actions: [Action] = []
        switch command {
        case .set(_, isNeeded: true) where !Code.success.contains(code): throw .refused(code: code)
        case .speak(let number) where code == Code.receivingData: waiting.insert(.text(number), at: 0)
        case .speak(let number): actions = refuse(number, code)
        case .text(let number) where code == Code.queued:
            guard let id = lines.first(where: { !$0.isLast })?.text, 1...20 ~= id.utf8.count else {
                throw .violation(offset: last.offset, due: "the message's number")
            }
            guard current?.number == number else { break }
            current?.id = id
            if let end = early[id] { actions = finish(end) }
        case .text(let number): actions = refuse(number, code)
        case .set, .cancel, nil: break
        }
        return actions + next()
    }

    private mutating func refuse(_ number: Int, _ code: Int) -> [Action] {
        current?.number == number ? finish(.refused(code: code)) : []
    }

    /// A notice has the message's number, the client's, and the event's name.
    private mutating func takeNotice() -> [Action] {
        let ends: [Int: End] = [Code.end: .said, Code.canceled: .canceled]
        let id = notice.first?.text
        let end = notice.last.flatMap { ends[$0.code] }
        notice = []
        guard let id, let end, let current else { return [] }
        if current.id == id { return finish(end) }
        // It may be about a text that the server has queued and not yet replied to.
        if current.id == nil, early.count < Self.earlyNotices { early[id] = end }
        return []
    }

    private mutating func finish(_ end: End) -> [Action] {
        guard let number = current?.number else { return [] }
        current = nil
        early = [:]
        return [.end(number, end)]
    }
}
