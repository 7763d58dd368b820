import SmartCard

/// Account numbers that begin in the data of one message and end in that of another: in two records that are written, in
/// two objects that are fetched, in blocks that are read with something else in between.
///
/// Only messages of one direction, layer and instruction are looked at together, each with those before it.
struct NumberSeams: Sendable {
    private struct Stream: Hashable {
        let layer: TraceEvent.Layer?
        let isCommand: Bool
        let isStorage: Bool
        let ins: UInt8
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
        fileprivate var isTemplate = false

        /// Returns the numbers that span both sides.
        ///
        /// An unknown number is recognized by its check digit if the two messages contain nothing else, or in memory
        /// that was read in sequence.  Values that change from message to message produce such digits by chance.
        func findings(_ search: AccountNumbers.Search) -> [AccountNumbers.Finding] {
            func spans(_ finding: AccountNumbers.Finding) -> Bool {
                guard let first = finding.places.first, let last = finding.places.last else { return false }
                return finding.form.byte(first) < seam && finding.form.byte(last) >= seam
            }
            let found = search.findings(in: bytes, isGuessing: isContiguous && !isTemplate).filter(spans)
            guard found.isEmpty, !isContiguous, !isTemplate else { return found }
            let both = Array(bytes[earlierSeam...])
            return search.wholeRuns(in: both, movedBy: earlierSeam, isOne: spans)
        }
    }

    /// Longer than any number in any form.
    private static let reach = 64

    private var last: [Stream: Window] = [:]

    init() {}

    /// The window around the place where `message` follows the one before it of its kind; nil if no number can span
    /// both sides.
    mutating func add(_ message: TraceMessage, on layer: TraceEvent.Layer?) -> Window? {
        guard let (stream, place) = Self.stream(of: message, layer) else { return nil }
        let (content, isTemplate) = Self.content(of: message)
        guard !content.isEmpty else { return nil }
        let earlier = last[stream]
        var window = Window()
        if let earlier {
            let tail = max(0, earlier.bytes.count - Self.reach)..<earlier.bytes.count
            window.bytes = Array(earlier.bytes[tail])
            window.parts = earlier.parts.parts(tail)
            window.earlierSeam = max(0, earlier.seam - tail.lowerBound)
        }
        window.seam = window.bytes.count
        window.place = place
        window.isTemplate = isTemplate || earlier?.isTemplate ?? false
        window.isContiguous = [0xB0, 0xD0, 0xD6].contains(stream.ins) && earlier.map { $0.place < place } ?? false
        let found = window.seam
        // The end is remembered; the beginning is searched.
        var remembered = window
        window.append(message, content.prefix(Self.reach))
        remembered.isTemplate = isTemplate
        if content.count <= Self.reach {
            remembered.append(message, content)
        } else {
            remembered = Window()
            remembered.append(message, content.suffix(Self.reach))
            (remembered.place, remembered.isTemplate) = (place, isTemplate)
        }
        last[stream] = remembered
        return found > 0 && window.mayHoldNumber ? window : nil
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
        guard !isCommand || !SensitiveData.showsData(of: command) && SecretCommands.item(of: command) == nil else {
            return nil
        }
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
    fileprivate mutating func append(_ message: TraceMessage, _ place: Range<Int>) {
        bytes += message.bytes[place]
        parts += message.parts.parts(place)
    }

    /// True if there are as many digits around the seam as in a number.
    fileprivate var mayHoldNumber: Bool {
        func isSign(_ byte: UInt8) -> Bool { [0x20, 0x2D, 0x2E, 0x3A].contains(byte) }
        var count = 0
        for byte in bytes[..<seam].reversed() {
            guard !isSign(byte) else { continue }
            guard byte & 0x0F < 10 || byte >> 4 < 10 else { break }
            count += 2
            guard byte & 0x0F < 10 && byte >> 4 < 10 else { break }
        }
        guard count > 0 else { return false }
        let before = count
        for byte in bytes[seam...] {
            guard !isSign(byte) else { continue }
            guard byte & 0x0F < 10 || byte >> 4 < 10 else { break }
            count += 2
            guard byte & 0x0F < 10 && byte >> 4 < 10 else { break }
        }
        return count > before && count >= AccountNumbers.Search.lengths.lowerBound
    }
}

extension TraceMessage {
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
