import SmartCard

/// A converter that finds the APDUs in lower layers: CCID messages, the ACR122U's commands to its PN532, T=1 blocks,
/// and ISO/IEC 14443-4 blocks.
///
///     var raiser = LayerRaiser()
///     while let event = try capture.next() {
///         for event in raiser.raise(event) { … }
///     }
///     raiser.finish()
///
/// A raised event replaces the original.  Commands to the reader become events of the layer
/// ``TraceEvent/Layer/escape``, unless they carry a command to the card.  A card that is powered or selected becomes
/// ``TraceEvent/What/connected(_:_:)``, with the ATR that a PC/SC reader constructs for it (PC/SC part 3, 3.1.3.2.3).
/// Events without a layer pass through.  Anything without an equivalent is counted among the omissions.
public struct LayerRaiser: Sendable {
    /// The items that could not be raised so far.
    public var omissions: Omissions { found.omissions }

    private var found = RaisedEvents()
    private var ccid = CCIDRaiser()
    private var pn532 = PN532Raiser()
    private var isoDEP = ISODEPRaiser()
    private var last = Duration.zero

    public init() {}

    /// The events that `event` completes.  A command or an answer that came in parts has the time of its first part, but
    /// no time before that of the events given before it.
    public mutating func raise(_ event: TraceEvent) -> [TraceEvent] {
        raise(event, number: 0).events.map(\.event)
    }

    /// Raises an event, and reports the origin of the bytes.
    ///
    /// - Parameter number: the number of the event in the parts of raised events.
    package mutating func raise(_ event: TraceEvent, number: Int) -> Raised {
        let count =
            switch event.what {
            case .sent(_, let bytes), .received(_, let bytes): bytes.count
            default: 0
            }
        found.begin([TraceMessage.Part(event: number, place: 0..<count)])
        ccid.raise(event, into: &found)
        for raised in found.take() {
            found.source = raised.parts
            pn532.raise(raised.event, into: &found)
        }
        for raised in found.take() {
            found.source = raised.parts
            isoDEP.raise(raised.event, into: &found)
        }
        var events = found.take()
        for index in events.indices {
            last = max(last, events[index].event.time)
            events[index].event.time = last
        }
        return Raised(events: events, isControl: found.isControl, repetitions: found.repetitions)
    }

    /// True if a command waits for its answer, or a part of either for the rest.
    package var isWithinExchange: Bool {
        ccid.isWithinExchange || pn532.isWithinExchange || isoDEP.isWithinExchange
    }

    /// Counts incomplete exchanges.
    public mutating func finish() {
        ccid.finish(into: &found)
        isoDEP.finish(into: &found)
    }
}

extension Trace {
    /// Returns the trace with the APDUs that its lower layers carry, and the items that could not be raised; see
    /// ``LayerRaiser``.
    public func raised() -> (trace: Trace, omissions: Omissions) {
        var raiser = LayerRaiser()
        let trace = Trace(events.flatMap { raiser.raise($0) })
        raiser.finish()
        return (trace, raiser.omissions)
    }
}

/// The result of raising an event.
package struct Raised: Sendable {
    package struct Event: Sendable {
        package fileprivate(set) var event: TraceEvent
        /// The places of its bytes in the events that carry them, in order.
        package let parts: [TraceMessage.Part]
    }

    package let events: [Event]
    /// True if it was understood, and carries nothing of an exchange with the card.
    package let isControl: Bool
    /// The bytes that it repeats, and their first place.
    package let repetitions: [(first: TraceMessage.Part, again: TraceMessage.Part)]
}

/// The events that a raiser has found.
struct RaisedEvents: Sendable {
    private(set) var omissions = Omissions()
    private(set) var isControl = false
    private(set) var repetitions: [(first: TraceMessage.Part, again: TraceMessage.Part)] = []
    /// The places of the bytes of the event that is being raised.
    var source: [TraceMessage.Part] = []
    private var events: [Raised.Event] = []

    mutating func begin(_ source: [TraceMessage.Part]) {
        (self.source, isControl, repetitions) = (source, false, [])
    }

    /// - Parameter parts: the places of the bytes of `what`; nil for the whole event that is being raised.
    mutating func add(_ what: TraceEvent.What, _ parts: [TraceMessage.Part]? = nil, at time: Duration) {
        events.append(Raised.Event(event: TraceEvent(at: time, what), parts: parts ?? source))
    }

    mutating func omit(_ what: StaticString) { omissions.add(what) }

    /// Notes that the event was understood and belongs to no exchange.
    mutating func omitControl(_ what: StaticString) {
        omissions.add(what)
        isControl = true
    }

    mutating func markControl() { isControl = true }

    mutating func addRepetition(of first: [TraceMessage.Part], _ again: [TraceMessage.Part]) {
        guard first.map(\.place.count) == again.map(\.place.count) else { return }
        repetitions += zip(first, again).map { ($0, $1) }
    }

    /// Returns the places of `bytes`, a slice of the event that is being raised.
    func parts(of bytes: ArraySlice<UInt8>) -> [TraceMessage.Part] {
        source.parts(bytes.startIndex..<bytes.endIndex)
    }

    mutating func take() -> [Raised.Event] {
        defer { events = [] }
        return events
    }
}

/// The current exchange on the layer that a raiser raises to.
///
/// Each command gets an answer, so that answers stay with their commands.  A missing answer means that the program gave
/// up.
struct RaisedExchange: Sendable {
    private(set) var layer: TraceEvent.Layer?

    mutating func begin(
        _ layer: TraceEvent.Layer, _ command: PartedMessage, at time: Duration, into found: inout RaisedEvents
    ) {
        let start = command.start ?? time
        end(.init(nil), at: start, into: &found)
        self.layer = layer
        found.add(.sent(layer, command.bytes), command.parts, at: start)
    }

    /// Does nothing where no exchange is under way.
    mutating func end(_ answer: PartedMessage, at time: Duration, into found: inout RaisedEvents) {
        guard let layer else { return }
        self.layer = nil
        found.add(.received(layer, answer.bytes), answer.parts, at: answer.start ?? time)
    }

    /// Does nothing where no exchange is under way.
    mutating func end(_ failure: TraceEvent.Failure, at time: Duration, into found: inout RaisedEvents) {
        guard let layer else { return }
        self.layer = nil
        found.add(.failed(.exchange(layer), failure), at: time)
    }
}

/// A command or an answer that comes in parts.
struct PartedMessage: Sendable {
    /// More than an APDU of either kind has (ISO/IEC 7816-3, 12.1).
    static let maximumCount = 65_546

    private(set) var bytes: [UInt8] = []
    /// The places of the bytes in the events that carry them.
    private(set) var parts: [TraceMessage.Part] = []
    /// The time of the first part; nil without one.
    private(set) var start: Duration?

    init() {}

    /// One that has come whole.
    init(_ bytes: ArraySlice<UInt8>, of found: RaisedEvents, at time: Duration) {
        (self.bytes, parts, start) = (Array(bytes), found.parts(of: bytes), time)
    }

    /// - Returns: false, and holds nothing any more, where it has become longer than an APDU can be.
    mutating func add(_ part: ArraySlice<UInt8>, of found: RaisedEvents, at time: Duration) -> Bool {
        guard bytes.count + part.count <= Self.maximumCount else {
            self = PartedMessage()
            return false
        }
        start = start ?? time
        bytes += part
        // Parts without bytes could be added without end.
        if !part.isEmpty { parts += found.parts(of: part) }
        return true
    }

    /// The message, of which there is nothing left then.
    mutating func take() -> PartedMessage {
        defer { self = PartedMessage() }
        return self
    }
}

/// The reassembly of block protocols: T=1 (ISO/IEC 7816-3, 11) and ISO/IEC 14443-4 (7).
struct BlockExchange: Sendable {
    /// An I-block.
    struct Block: Hashable, Sendable {
        var number: UInt8
        var isChained: Bool
        var data: ArraySlice<UInt8>
    }

    private var exchange = RaisedExchange()
    private var command = PartedMessage()
    private var response = PartedMessage()
    /// The last block of each side, which may be repeated until the other side continues.
    private var lastSent: Block?
    private var lastReceived: Block?
    /// The places of the data of the last block.
    private var lastParts: [TraceMessage.Part] = []

    /// A command of which parts are there, or an answer.
    var isWithinChain: Bool { command.start != nil || response.start != nil }
    var isWithinExchange: Bool { isWithinChain || exchange.layer != nil }

    mutating func sent(_ block: Block, at time: Duration, into found: inout RaisedEvents) {
        guard block != lastSent else { return omitRepeated(block, from: &found) }
        (lastSent, lastReceived, response) = (block, nil, PartedMessage())
        lastParts = found.parts(of: block.data)
        guard command.add(block.data, of: found, at: time) else { return found.omit("commands without end") }
        guard !block.isChained else { return }
        exchange.begin(.apdu, command.take(), at: time, into: &found)
    }

    mutating func received(_ block: Block, at time: Duration, into found: inout RaisedEvents) {
        guard block != lastReceived else { return omitRepeated(block, from: &found) }
        (lastReceived, lastSent, command) = (block, nil, PartedMessage())
        lastParts = found.parts(of: block.data)
        guard exchange.layer != nil else { return found.omit("answers to no command") }
        guard response.add(block.data, of: found, at: time) else {
            found.omit("answers without end")
            return fail(.init(.malformedAnswer, "an answer without end"), at: time, into: &found)
        }
        guard !block.isChained else { return }
        exchange.end(response.take(), at: time, into: &found)
    }

    private func omitRepeated(_ block: Block, from found: inout RaisedEvents) {
        found.addRepetition(of: lastParts, found.parts(of: block.data))
        found.omit("blocks that were sent again")
    }

    /// Fails the current exchange, if any.
    mutating func fail(_ failure: TraceEvent.Failure, at time: Duration, into found: inout RaisedEvents) {
        (command, response, lastSent, lastReceived) = (PartedMessage(), PartedMessage(), nil, nil)
        exchange.end(failure, at: time, into: &found)
    }
}
