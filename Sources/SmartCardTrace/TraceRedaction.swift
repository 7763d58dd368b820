import SmartCard

/// Takes out of traces what must not be shared: account numbers, tracks, names, PINs, keys, transaction logs.
///
///     let redacted = TraceRedaction().redacted(trace)
///
/// Every account number becomes another of the same length, first digits and a right check digit, the same one wherever
/// it stands and for every trace redacted with the same key: packed, as text, in groups, in track data, across the parts
/// of a response fetched by GET RESPONSE and of a chain of commands.  Six digits are kept of numbers of 16 digits or
/// more, else four, so that scheme and range of issuers are the same.  Without the key neither can the number be
/// computed nor a guess be checked.  Of 16 digits five depend on it: of a hundred cards that begin alike, two become the
/// same number in one redaction of twenty.
///
/// Everything else keeps its length and its place among the data objects; letters become `X`, digits and bytes 0.  So it is
/// with the name and the discretionary data of a track that stands behind a number, in a note or in an object nobody
/// knows; of digits that overlap, and check as more than one number, all go.
///
/// ICC certificates, from which the account number can be recovered, and the issuer's signature of static data, by which
/// a guess of it can be checked, become zeros: offline data authentication of a redacted trace fails, and the trace says
/// so by the item `certificate`.
///
/// A name is learnt from the objects and tracks that hold it, and goes wherever it is written again, in either order of its
/// parts.  What personalises a card (STORE DATA, PUT KEY, imported keys) goes whole, and so do the keys that a SIM answers.
///
/// CCID messages, frames of a PN532 and blocks of ISO/IEC 14443-4 that carry APDUs (``LayerRaiser``) are redacted as these
/// are, across frames and with checksums that are right again; so is what was sent to the card past the reader by its
/// PN532.  Frames that select a card or only keep the protocol going stay, and commands of the PN532 that concern nobody
/// but itself; any other keeps only its beginning.  Commands for storage cards (PC/SC part 3) lose their keys wherever they
/// go; of a transparent session what passes between reader and card becomes zeros.
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
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return redacted(trace, behind: [], knowing: &secrets, isFirst: true)
    }

    /// As ``redacted(_:)``, for a trace that is worked on in pieces (``TracePieces``).
    ///
    /// - Parameter secrets: those of all pieces; what is taken out is added to ``TraceSecrets/items``, and the event that
    ///   tells of it names all that is there.
    /// - Parameter isFirst: whether this piece is to have that event.
    public func redacted(
        _ piece: TracePieces.Piece, knowing secrets: inout TraceSecrets, isFirst: Bool = true
    ) -> Trace {
        redacted(piece.trace, on: piece.lines, behind: piece.open, knowing: &secrets, isFirst: isFirst)
    }

    private func redacted(
        _ piece: Trace, on lines: [Int]? = nil, behind open: [[UInt8]], knowing secrets: inout TraceSecrets,
        isFirst: Bool
    ) -> Trace {
        let events = redacted(piece, on: lines, behind: open, knowing: &secrets).events
        return isFirst ? Trace(Self.noting(secrets.items, in: events)) : Trace(events)
    }

    /// What redaction would still take out of `trace`, by event: nothing, where it has been redacted so.
    public func findings(in trace: Trace) -> [Int: Set<TraceEvent.RedactedItem>] {
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return redacted(trace, on: nil, behind: [], knowing: &secrets).found
    }

    /// As ``findings(in:)``, for a trace that is worked on in pieces (``TracePieces``).
    ///
    /// - Parameter secrets: those of all pieces.
    public func findings(
        in piece: TracePieces.Piece, knowing secrets: inout TraceSecrets
    ) -> [Int: Set<TraceEvent.RedactedItem>] {
        redacted(piece.trace, on: piece.lines, behind: piece.open, knowing: &secrets).found
    }

    private func redacted(
        _ piece: Trace, on lines: [Int]?, behind open: [[UInt8]], knowing secrets: inout TraceSecrets
    ) -> (events: [TraceEvent], found: [Int: Set<TraceEvent.RedactedItem>]) {
        let layered = LayeredMessages(piece, behind: open)
        var work = RedactionWork(key: key, includingCryptograms: includingCryptograms, secrets)
        var events = piece.events
        var found: [Int: Set<TraceEvent.RedactedItem>] = [:]
        func note(_ places: some Sequence<Int>) {
            let items = work.takeItems()
            guard !items.isEmpty else { return }
            for event in places { found[event, default: []].formUnion(items) }
        }
        for message in layered.messages {
            message.put(work.redacted(message, on: piece.layer(of: message)), into: &events)
            note(message.events)
        }
        for other in layered.others {
            other.parts.put(work.zeros(for: other.bytes), into: &events)
            note(other.parts.map(\.event))
        }
        for escape in layered.escapes {
            let isControl = layered.isControl(escape.parts)
            escape.parts.put(work.redacted(escape: escape.bytes, isControl: isControl), into: &events)
            note(escape.parts.map(\.event))
        }
        for window in secrets.windows(in: piece, layered, on: lines) {
            work.redact(window, in: &events)
            note(window.parts.map(\.event).filter(events.indices.contains))
        }
        for (first, again) in layered.repetitions {
            switch events[first.event].what {
            case .sent(_, let bytes), .received(_, let bytes):
                [again].put(Array(bytes[first.place]), into: &events)
            default: break
            }
            if let items = found[first.event] { found[again.event, default: []].formUnion(items) }
        }
        for index in events.indices {
            events[index].what = work.redacted(
                rest: events[index].what, was: piece.events[index].what, event: index, layered)
            note([index])
        }
        work.finish(&secrets)
        return (events, found)
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

    /// Which events of `trace` hold an account number in the clear, in any form; replacements are none, in a trace that
    /// says that it has been redacted.
    ///
    /// Numbers are known by the first digits of issuers and the check digit, and by the data objects that hold them; in
    /// frames, by those of the APDUs that the frames carry, and found where they are split across frames.
    /// Random data holds such digits by chance at times; certificates and cryptograms are left out for that.
    public static func eventsWithAccountNumbers(in trace: Trace) -> [Int] {
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return eventsWithAccountNumbers(in: trace, knowing: secrets)
    }

    /// As ``eventsWithAccountNumbers(in:)``, for a trace that is worked on in pieces (``TracePieces``).
    ///
    /// - Parameter secrets: those of all pieces.
    public static func eventsWithAccountNumbers(
        in piece: TracePieces.Piece, knowing secrets: TraceSecrets
    ) -> [Int] {
        eventsWithAccountNumbers(in: piece.trace, on: piece.lines, behind: piece.open, knowing: secrets)
    }

    /// As ``eventsWithAccountNumbers(in:)``, for a trace of whose secrets more is known than it tells.
    public static func eventsWithAccountNumbers(in trace: Trace, knowing secrets: TraceSecrets) -> [Int] {
        eventsWithAccountNumbers(in: trace, behind: [], knowing: secrets)
    }

    private static func eventsWithAccountNumbers(
        in trace: Trace, on lines: [Int]? = nil, behind open: [[UInt8]], knowing secrets: TraceSecrets
    ) -> [Int] {
        let work = RedactionWork(key: SipHash(key: []), includingCryptograms: false, secrets)
        let layered = LayeredMessages(trace, behind: open)
        var found: Set<Int> = []
        for message in layered.messages where work.hasAccountNumber(message) { found.formUnion(message.events) }
        for escape in layered.escapes
        where work.hasAccountNumber(escape: escape.bytes, isGuessing: !layered.isControl(escape.parts)) {
            found.formUnion(escape.parts.map(\.event))
        }
        for window in secrets.windows(in: trace, layered, on: lines) where work.hasAccountNumber(window) {
            found.formUnion(window.parts.map(\.event).filter(trace.events.indices.contains))
        }
        for (first, again) in layered.repetitions where found.contains(first.event) { found.insert(again.event) }
        for (index, event) in trace.events.enumerated() where work.hasAccountNumber(rest: event.what) {
            found.insert(index)
        }
        return found.sorted()
    }
}

/// What has to be known of a whole trace before any of it is redacted or scanned.
///
/// Of a trace that is worked on in pieces, these are the same pieces each time.
public struct TraceSecrets: Sendable {
    var search = AccountNumbers.Search()
    var names = CardholderNames()
    /// Files that hold the transaction log (EMV Book 3, Annex D): their short identifiers.
    var logFiles: Set<UInt8> = []
    /// What has been taken out so far.
    public internal(set) var items: Set<TraceEvent.RedactedItem> = []
    /// How many account numbers were found.
    public var count: Int { search.known.count }
    /// How much is remembered, of whatever kind.
    package var size: Int { count + names.count + acrossPieces.count + authenticated.count }
    /// Values of certificates and signatures that hold no account number but a replacement, and may stay.
    package var authenticated: Set<[UInt8]> = []
    /// Where the application finds what it has asked for, as far as the pieces have been redacted.
    var places: [TraceEvent.Layer?: DataObjectPlaces] = [:]
    /// Places where a number may stand that begins in one piece and ends in another, by the lines of the file.
    private var acrossPieces: [NumberSeams.Window] = []
    private var windowsByLine: [Int: [Int]] = [:]
    private var seams = NumberSeams()

    public init() {}

    public mutating func learn(from trace: Trace) { learn(from: trace, on: nil, behind: []) }

    public mutating func learn(from piece: TracePieces.Piece) {
        learn(from: piece.trace, on: piece.lines, behind: piece.open)
    }

    private mutating func learn(from piece: Trace, on lines: [Int]?, behind open: [[UInt8]]) {
        for event in piece.events {
            guard case .redacted(let items) = event.what else { continue }
            search.sparesReplacements = search.sparesReplacements || items.contains(.accountNumber)
        }
        var work = RedactionWork(key: SipHash(key: []), includingCryptograms: false, self)
        for message in LayeredMessages(piece, behind: open).messages {
            work.collect(message)
            guard let lines, let first = lines.first else { continue }
            let layer = piece.layer(of: message)
            guard let window = seams.add(message.standing(on: lines), on: layer) else { continue }
            if window.parts.contains(where: { $0.event < first }) { remember(window) }
        }
        (search, names, logFiles) = (work.search, work.names, work.logFiles)
    }

    private mutating func remember(_ window: NumberSeams.Window) {
        for line in Set(window.parts.map(\.event)) { windowsByLine[line, default: []].append(acrossPieces.count) }
        acrossPieces.append(window)
    }

    /// The places in `piece` where a number may stand that is in no message whole, as parts of its events; what stands in
    /// another piece has the number of no event.
    func windows(in piece: Trace, _ layered: LayeredMessages, on lines: [Int]?) -> [NumberSeams.Window] {
        var seams = NumberSeams()
        var windows = layered.messages.compactMap { seams.add($0, on: piece.layer(of: $0)) }
        guard let lines, !acrossPieces.isEmpty else { return windows }
        let events = Dictionary(
            lines.enumerated().map { ($0.element, $0.offset) }, uniquingKeysWith: { first, _ in first })
        let numbers = Set(lines.flatMap { windowsByLine[$0] ?? [] })
        windows += numbers.sorted().map { acrossPieces[$0].standing(in: events) }
        return windows
    }
}

extension Trace {
    /// The layer that the frames of `message` are on.
    fileprivate func layer(of message: TraceMessage) -> TraceEvent.Layer? {
        guard let event = message.parts.first?.event else { return nil }
        switch events[event].what {
        case .sent(let layer, _), .received(let layer, _): return layer == .rfPayload ? .rf : layer
        default: return nil
        }
    }
}
