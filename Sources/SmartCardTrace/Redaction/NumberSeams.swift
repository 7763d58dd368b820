import SmartCard

/// Account numbers that begin in the data of one message and end in that of another: in two records that are written, in
/// two objects that are fetched, in blocks that are read with something else in between.
///
/// Only messages of one direction, layer and instruction are looked at together, each with those before it; and so are
/// texts: notes, meta data, the details of failures.
struct NumberSeams: Sendable {
    private struct Stream: Hashable {
        var layer: TraceEvent.Layer?
        var isCommand = false
        var isStorage = false
        /// The instruction of the command; nil for text.
        var ins: UInt8?
        /// True for all data of messages, false for the values of the objects that they are.
        var isWhole = false
    }

    /// The bytes around the place where two messages meet.
    struct Window: Sendable {
        fileprivate(set) var bytes: [UInt8] = []
        /// The places of these bytes.
        fileprivate(set) var parts: [TraceMessage.Part] = []
        /// The beginning of the last message, and of the one before it.
        fileprivate(set) var seam = 0
        fileprivate var earlierSeam = 0
        /// The file position of the last message, and a flag that it follows the position of the message before.
        fileprivate var place = 0
        fileprivate var isContiguous = false
        /// False for templates, and for values that change from message to message.
        fileprivate var isGuessed = true
        /// True if the bytes are text.
        fileprivate(set) var isText = false

        /// Returns the numbers that span both sides.
        ///
        /// An unknown number is recognized by its check digit if the two messages contain nothing else, or in memory
        /// that was read in sequence.  Values that change from message to message produce such digits by chance, and so do
        /// meta data.
        func findings(_ search: AccountNumbers.Search) -> [AccountNumbers.Finding] {
            let guess: AccountNumbers.Guess = isContiguous && isGuessed ? .everything : .nothing
            let found = search.findings(in: bytes, guessing: guess, isText: isText).filter {
                $0.first < seam && $0.last >= seam
            }
            guard found.isEmpty, !isContiguous, isGuessed, !isText else { return found }
            return search.wholeRuns(in: bytes, from: earlierSeam, isText: isText) {
                $0.first < seam && $0.last >= seam
            }
        }
    }

    /// Longer than any number in any form: in bytes, in text.
    private static let (reach, reachOfText) = (64, 160)

    private var last: [Stream: Window] = [:]

    init() {}

    /// The windows around the place where `message` follows the one before it of its kind; none if no number can span
    /// both sides.
    mutating func add(_ message: TraceMessage, on layer: TraceEvent.Layer?) -> [Window] {
        guard let (stream, place) = Self.stream(of: message, layer) else { return [] }
        let (value, isTemplate) = Self.content(of: message)
        let isGuessed = !isTemplate && !message.isFormat1
        // Data may look like an object by chance.
        let windows = [value, message.data].enumerated().compactMap { index, content in
            var next = Window()
            next.bytes = Array(message.bytes[content])
            next.parts = message.parts.parts(content)
            (next.place, next.isGuessed) = (place, isGuessed)
            var stream = stream
            stream.isWhole = index == 1
            return add(next, to: stream)
        }
        return windows.count == 2 && windows[0].parts == windows[1].parts ? [windows[0]] : windows
    }

    /// The window around the place where the text of event `event` follows the text before it; nil if no number can span
    /// both sides.
    mutating func add(_ text: String, of event: Int) -> Window? {
        var next = Window()
        next.bytes = Array(text.utf8)
        next.parts = [TraceMessage.Part(event: event, place: next.bytes.indices)]
        next.isText = true
        return add(next, to: Stream())
    }

    private mutating func add(_ next: Window, to stream: Stream) -> Window? {
        guard !next.bytes.isEmpty else { return nil }
        let reach = next.isText ? Self.reachOfText : Self.reach
        // The end is remembered; the beginning is searched.
        guard let earlier = last[stream] else {
            last[stream] = next.suffix(reach)
            return nil
        }
        var window = earlier.suffix(reach)
        window.seam = window.bytes.count
        (window.place, window.isGuessed) = (next.place, next.isGuessed && earlier.isGuessed)
        let isInPlaces = stream.ins.map { [0xB0, 0xD0, 0xD6].contains($0) } ?? false
        window.isContiguous = isInPlaces && earlier.place < next.place
        var remembered = window
        window.append(next, next.bytes.indices.prefix(reach))
        remembered.isGuessed = next.isGuessed
        if next.bytes.count <= reach {
            remembered.append(next, next.bytes.indices)
        } else {
            remembered = next.suffix(reach)
        }
        last[stream] = remembered
        return window.mayHoldNumber ? window : nil
    }

    private static func stream(
        of message: TraceMessage, _ layer: TraceEvent.Layer?
    ) -> (stream: Stream, place: Int)? {
        let (command, isCommand): (CommandAPDU, Bool)
        switch message.kind {
        case .command(let sent?): (command, isCommand) = (sent, true)
        case .response(let sent?, _): (command, isCommand) = (sent, false)
        default: return nil
        }
        guard !command.isProtected else { return nil }
        guard !isCommand || !SensitiveData.showsData(of: command) && SecretCommands.item(of: command) == nil,
            !isCommand || command.position == nil
        else { return nil }
        return (
            Stream(layer: layer, isCommand: isCommand, isStorage: command.cla == 0xFF, ins: command.ins),
            Int(command.p1) << 8 | Int(command.p2)
        )
    }

    /// Returns the value of the primitive object that `message` contains, or all its data, and a flag that these begin
    /// as a template.
    private static func content(of message: TraceMessage) -> (place: Range<Int>, isTemplate: Bool) {
        let (bytes, place) = (message.bytes, message.data)
        guard place.count > 2 else { return (place, false) }
        let first = bytes[place.lowerBound]
        let tagCount = first & 0x1F == 0x1F ? 2 : 1
        let length = bytes[place.lowerBound + tagCount]
        let lengthCount = length < 0x80 ? 1 : length == 0x81 ? 2 : 3
        let start = place.lowerBound + tagCount + lengthCount
        guard start <= place.upperBound else { return (place, false) }
        let count =
            length < 0x80
            ? Int(length) : bytes[start - lengthCount + 1..<start].reduce(0) { $0 << 8 | Int($1) }
        guard count == place.upperBound - start else { return (place, false) }
        return first & 0x20 == 0 ? (start..<place.upperBound, false) : (place, true)
    }
}

extension NumberSeams.Window {
    fileprivate mutating func append(_ other: NumberSeams.Window, _ place: Range<Int>) {
        bytes += other.bytes[place]
        parts += other.parts.parts(place)
    }

    /// The last bytes.
    fileprivate func suffix(_ count: Int) -> NumberSeams.Window {
        let tail = max(0, bytes.count - count)..<bytes.count
        var window = self
        window.bytes = Array(bytes[tail])
        window.parts = parts.parts(tail)
        window.earlierSeam = max(0, seam - tail.lowerBound)
        return window
    }

    /// True if there are as many half bytes on both sides of the seam that may be digits as in a number.
    fileprivate var mayHoldNumber: Bool {
        func count(_ bytes: some Sequence<UInt8>) -> Int {
            guard !isText else { return bytes.count { (0x30...0x39).contains($0) || $0 >= 0x80 } }
            return bytes.prefix { $0 & 0x0F < 10 || $0 >> 4 < 10 }
                .reduce(0) { $0 + ($1 & 0x0F < 10 ? 1 : 0) + ($1 >> 4 < 10 ? 1 : 0) }
        }
        let (before, behind) = (count(bytes[..<seam].reversed()), count(bytes[seam...]))
        return before > 0 && behind > 0 && before + behind >= AccountNumbers.Search.lengths.lowerBound
    }
}

extension TraceMessage {
    /// True for the response to a payment command that has values without tags.
    fileprivate var isFormat1: Bool {
        guard case .response(let command?, _) = kind else { return false }
        return command.isFormat1(bytes)
    }

    /// Returns the message in a file in which the event N is on line `lines[N]`.
    func standing(on lines: [Int]) -> TraceMessage {
        var message = self
        message.parts = parts.map { Part(event: lines[$0.event], place: $0.place) }
        return message
    }
}

extension NumberSeams.Window {
    /// Returns the window in the events on these lines; bytes on other lines get the number of no event.
    func standing(in events: [Int: Int]) -> NumberSeams.Window {
        var window = self
        window.parts = parts.map { TraceMessage.Part(event: events[$0.event] ?? -1, place: $0.place) }
        return window
    }
}
