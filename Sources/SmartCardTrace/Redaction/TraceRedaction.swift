import SmartCard

/// A redaction that removes secrets from traces: account numbers, tracks, names, PINs, keys, transaction logs.
///
///     let redacted = TraceRedaction().redacted(trace)
///
/// Every account number becomes another with the same length, the same first digits and a correct check digit.  The
/// replacement is the same everywhere, and in every trace redacted with the same key.  Numbers are found packed, as
/// text, in groups, in track data, across the parts of a response fetched by GET RESPONSE, and across a chain of
/// commands.  Six first digits are kept of numbers with 16 digits or more, else four, so that the scheme and the issuer
/// range stay the same.  Without the key, the number cannot be computed and a guess cannot be checked.  Five of 16
/// digits depend on the number and the key: of a hundred cards with the same beginning, two become the same number in
/// one redaction of twenty.
///
/// Everything else keeps its length and its place among the data objects.  Letters become `X`, digits and bytes 0.
/// This applies to the name and the discretionary data of a track after a number, in a note or in an unknown object.
/// Overlapping digits that check as more than one number are all removed.
///
/// ICC certificates, from which the account number can be recovered, and the issuer's signature of static data, which
/// can confirm a guess of it, become zeros.  Offline data authentication of a redacted trace therefore fails; the trace
/// indicates it by the item `certificate`.
///
/// Names are learned from the objects and tracks that contain them, and are removed everywhere, in either order of
/// their parts.  Personalization data (STORE DATA, PUT KEY, imported keys) are removed entirely, as are the keys that a
/// SIM returns.
///
/// CCID messages, PN532 frames and ISO/IEC 14443-4 blocks that carry APDUs (``LayerRaiser``) are redacted like the
/// APDUs, across frames and with corrected checksums.  So are the bytes that a PN532 sends to the card directly.
/// Frames that select a card or only maintain the protocol stay, as do commands that concern the PN532 alone; any other
/// frame keeps only its beginning.  Commands for storage cards (PC/SC part 3) lose their keys on every path.  The
/// exchanges of a transparent session become zeros.
public struct TraceRedaction: Sendable {
    private let key: SipHash
    private let includingCryptograms: Bool

    /// - Parameters:
    ///   - key: 16 bytes, to be kept secret; nil for a random key that is never revealed.
    ///   - includingCryptograms: true if application cryptograms and issuer application data become zeros, too.
    public init(key: [UInt8]? = nil, includingCryptograms: Bool = false) {
        self.key = SipHash(key: key ?? (0..<16).map { _ in UInt8.random(in: 0...255) })
        self.includingCryptograms = includingCryptograms
    }

    /// Returns `trace` without secrets, and with an event that lists the items taken out.
    public func redacted(_ trace: Trace) -> Trace {
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return redacted(trace, behind: [], knowing: &secrets, isFirst: true)
    }

    /// Returns a piece of a trace without secrets (``TracePieces``); see ``redacted(_:)``.
    ///
    /// - Parameters:
    ///   - piece: the piece, in the order of the file.
    ///   - secrets: the secrets of all pieces.  The items taken out are added to ``TraceSecrets/items``; the event that
    ///     lists them names all items there.
    ///   - isFirst: true if this piece gets that event.
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

    /// Returns the items that redaction would still take out of `trace`, by event; none if it has been redacted in this
    /// way.
    public func findings(in trace: Trace) -> [Int: Set<TraceEvent.RedactedItem>] {
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return redacted(trace, on: nil, behind: [], knowing: &secrets).found
    }

    /// Returns the items that redaction would still take out of a piece of a trace (``TracePieces``); see
    /// ``findings(in:)``.
    ///
    /// - Parameters:
    ///   - piece: the piece, in the order of the file.
    ///   - secrets: the secrets of all pieces.
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

    /// Returns the events of `trace` with an account number in the clear, in any form.  In a trace that is marked as
    /// redacted, replacements do not count.
    ///
    /// Numbers are recognized by the issuer's first digits and the check digit, and by the data objects that contain
    /// them.  In frames, the APDUs that they carry identify the numbers, which are also found if they are split across
    /// frames.  Random data sometimes contain such digits by chance; certificates and cryptograms are therefore
    /// skipped.
    public static func eventsWithAccountNumbers(in trace: Trace) -> [Int] {
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return eventsWithAccountNumbers(in: trace, knowing: secrets)
    }

    /// Returns the events of a piece of a trace with an account number (``TracePieces``); see
    /// ``eventsWithAccountNumbers(in:)``.
    ///
    /// - Parameters:
    ///   - piece: the piece, in the order of the file.
    ///   - secrets: the secrets of all pieces.
    public static func eventsWithAccountNumbers(
        in piece: TracePieces.Piece, knowing secrets: TraceSecrets
    ) -> [Int] {
        eventsWithAccountNumbers(in: piece.trace, on: piece.lines, behind: piece.open, knowing: secrets)
    }

    /// Returns the events of a trace with an account number, with more secrets known than the trace reveals; see
    /// ``eventsWithAccountNumbers(in:)``.
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

/// The facts about a whole trace that redaction or a search needs before it begins.
///
/// For a trace in pieces, the pieces must be the same each time.
public struct TraceSecrets: Sendable {
    var search = AccountNumbers.Search()
    var names = CardholderNames()
    /// Files that hold the transaction log (EMV Book 3, Annex D): their short identifiers.
    var logFiles: Set<UInt8> = []
    /// The items taken out so far.
    public internal(set) var items: Set<TraceEvent.RedactedItem> = []
    /// The number of account numbers found.
    public var count: Int { search.known.count }
    /// The number of remembered items of all kinds.
    package var size: Int { count + names.count + acrossPieces.count + authenticated.count }
    /// Values of certificates and signatures that hold no account number but a replacement, and may stay.
    package var authenticated: Set<[UInt8]> = []
    /// The places of requested data objects, as far as the pieces have been redacted.
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

    /// Returns the places in `piece` that may contain a number outside any whole message, as parts of its events; bytes
    /// in another piece get the number of no event.
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
