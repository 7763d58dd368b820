import SmartCard

/// A redaction that removes secrets from traces: account numbers, tracks, names, PINs, keys, transaction logs.
///
///     let redacted = TraceRedaction().redacted(trace)
///
/// Every account number becomes another with the same length, the same first digits and a correct check digit.  The
/// replacement is the same everywhere, and in every trace redacted with the same key.  Numbers that the trace
/// discloses are found however they are written, others packed, as text, in groups and in track data; also across the
/// parts of a response fetched by GET RESPONSE, across a chain of commands and across notes (<doc:Redaction>).  Six
/// first digits are kept of numbers with 16 digits or more, else four, so that the scheme and the issuer range stay the
/// same.  Without the key, the number cannot be computed and a guess cannot be checked.  Five of 16
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
/// Of travel documents, the holder's data, faces and keys are removed from files that were read in the clear, and the
/// contents of encrypted sessions become zeros, as from the cryptograms of Basic Access Control a guess of the machine
/// readable zone can be confirmed.  So do the passes that a phone's wallet hands over, sealed or not.
///
/// CCID messages, PN532 frames and ISO/IEC 14443-4 blocks that carry APDUs (``LayerRaiser``) are redacted like the
/// APDUs, across frames and with corrected checksums.  So are the bytes that a PN532 sends to the card directly.
/// Frames that select a card or only maintain the protocol stay, as do commands that concern the PN532 alone; any other
/// frame keeps only its beginning.  Commands for storage cards (PC/SC part 3) lose their keys on every path.  The
/// exchanges of a transparent session become zeros.
public struct TraceRedaction: Sendable {
    /// The key of the replacements; nil in a search, which shall find the same each time.
    private let key: SipHash?
    private let includingCryptograms: Bool

    private init(searchingFor includingCryptograms: Bool) {
        (key, self.includingCryptograms) = (nil, includingCryptograms)
    }

    /// - Parameters:
    ///   - key: 16 bytes, to be kept secret; nil for a random key that is never revealed.
    ///   - includingCryptograms: true if application cryptograms and issuer application data become zeros, too.
    public init(key: [UInt8]? = nil, includingCryptograms: Bool = false) {
        self.key = SipHash(key: key ?? (0..<16).map { _ in UInt8.random(in: 0...255) })
        self.includingCryptograms = includingCryptograms
    }

    /// Returns `trace` without secrets, and with an event that lists the items taken out.
    ///
    /// Nothing is left that ``findings(in:)`` would find; redacted again, the trace stays the same.  What is left of a
    /// secret may look like another one by chance, so that a trace is redacted until nothing changes: most in one pass
    /// and a second that finds nothing, none in more than ``TraceSecrets/maximumPasses``.
    public func redacted(_ trace: Trace) -> Trace {
        var secrets = TraceSecrets()
        var trace = trace
        repeat {
            secrets.beginPass()
            secrets.learn(from: trace)
            let events = redacted(trace, on: nil, behind: [], knowing: &secrets).events
            trace = Trace(events).noting(secrets.items)
        } while !secrets.isClean
        return trace
    }

    /// Returns a piece of a trace (``TracePieces``) after one pass of redaction.
    ///
    ///     repeat {
    ///         secrets.beginPass()
    ///         for piece in pieces { secrets.learn(from: piece) }
    ///         pieces = pieces of those that this function returns
    ///     } while !secrets.isClean
    ///
    /// - Parameters:
    ///   - piece: the piece, in the order of the file.
    ///   - secrets: the secrets of all pieces.  The items taken out are added to ``TraceSecrets/items``; the event that
    ///     lists them names all items there.
    ///   - isFirst: true if this piece gets that event.
    public func redacted(
        _ piece: TracePieces.Piece, knowing secrets: inout TraceSecrets, isFirst: Bool = true
    ) -> Trace {
        let events = redacted(piece.trace, on: piece.lines, behind: piece.open, knowing: &secrets).events
        return isFirst ? Trace(events).noting(secrets.items) : Trace(events)
    }

    /// Returns the events of a trace after one pass, in their number.
    ///
    /// - Parameter secrets: those of the whole, if this is a piece.
    package func onePass(over trace: Trace, knowing secrets: TraceSecrets) -> [TraceEvent] {
        var secrets = secrets
        return redacted(trace, on: nil, behind: [], knowing: &secrets).events
    }

    /// Returns the items that redaction would still take out of `trace`, by event; none if it has been redacted in this
    /// way.
    public func findings(in trace: Trace) -> [Int: Set<TraceEvent.RedactedItem>] {
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        return search.redacted(trace, on: nil, behind: [], knowing: &secrets).found
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
        search.redacted(piece.trace, on: piece.lines, behind: piece.open, knowing: &secrets).found
    }

    private var search: TraceRedaction { TraceRedaction(searchingFor: includingCryptograms) }

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
            let layer = piece.layer(of: message)
            work.follow(message, on: layer)
            message.put(work.redacted(message, on: layer), into: &events)
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
        let windows = secrets.windows(in: piece, layered, on: lines)
        for window in windows where !window.isText {
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
        for window in windows where window.isText {
            work.redact(window, in: &events)
            note(window.parts.map(\.event).filter(events.indices.contains))
        }
        work.finish(&secrets)
        // What two events hold together may have been taken for something else in each.
        found = found.filter { events[$0.key] != piece.events[$0.key] }
        if !found.isEmpty || secrets.pass == TraceSecrets.maximumPasses {
            secrets.isClean = secrets.pass == TraceSecrets.maximumPasses
            for index in events.indices where secrets.blanks(found[index]) {
                events[index].what = piece.events[index].what.blank
            }
        }
        return (events, found)
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
        var work = RedactionWork(key: nil, includingCryptograms: false, secrets)
        let layered = LayeredMessages(trace, behind: open)
        var found: Set<Int> = []
        let messages = layered.messages.filter { message in
            let layer = trace.layer(of: message)
            work.follow(message, on: layer)
            return work.hasAccountNumber(message, on: layer)
        }
        if !messages.isEmpty {
            var known = secrets
            let events = TraceRedaction(searchingFor: false).redacted(trace, on: lines, behind: open, knowing: &known)
                .events
            // What two messages hold together may be taken for something else in each.
            for message in messages where message.events.contains(where: { events[$0] != trace.events[$0] }) {
                found.formUnion(message.events)
            }
        }
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

/// The meta data of a trace that was recorded with card data on purpose: `meta card-data "clear"`.
///
/// Redaction makes it `redacted`.
package enum CardDataMark {
    package static let key = "card-data"
    package static let clear = "clear"
    static let redacted = "redacted"
}

/// The facts about a whole trace that redaction or a search needs before it begins.
///
/// For a trace in pieces, the pieces must be the same each time.
public struct TraceSecrets: Sendable {
    var search = AccountNumbers.Search()
    var names = CardholderNames()
    var values = DocumentValues()
    /// Files that hold the transaction log (EMV Book 3, Annex D): their short identifiers.
    var logFiles: Set<UInt8> = []
    /// The items taken out so far.
    public internal(set) var items: Set<TraceEvent.RedactedItem> = []
    /// The number of account numbers found.
    public var count: Int { search.known.count }
    /// The number of remembered items of all kinds.
    package var size: Int { count + names.count + values.count + acrossPieces.count + authenticated.count }
    /// Values of certificates and signatures that hold no account number but a replacement, and may stay.
    package var authenticated: Set<[UInt8]> = []
    /// The places of requested data objects, as far as the pieces have been redacted.
    var places: [TraceEvent.Layer?: DataObjectPlaces] = [:]
    /// The layers with a travel document, as far as the pieces have been redacted.
    var documents: Set<TraceEvent.Layer?> = []
    /// Places where a number may stand that begins in one piece and ends in another, by the lines of the file.
    private var acrossPieces: [NumberSeams.Window] = []
    private var windowsByLine: [Int: [Int]] = [:]
    private var seams = NumberSeams()

    /// The number of the pass over the trace, from one; zero for a search.
    private(set) var pass = 0
    /// True if this pass has found nothing to take out, or was the last.
    public internal(set) var isClean = true

    public init() {}

    /// After these passes, events in which something is found anew each time become blank …
    private static let thoroughPasses = 3
    /// … and after these, all events.  A blank event has no digits and no names, so that nothing is left to find.
    public static let maximumPasses = 8

    /// Begins a pass over the whole trace: only the items taken out so far are remembered.
    public mutating func beginPass() {
        var next = TraceSecrets()
        (next.items, next.pass, next.authenticated) = (items, pass + 1, authenticated)
        next.search.sparesReplacements = items.contains(.accountNumber)
        self = next
    }

    /// Returns true if an event in which a pass has found `items` becomes blank.
    fileprivate func blanks(_ items: Set<TraceEvent.RedactedItem>?) -> Bool {
        pass == Self.maximumPasses || pass > Self.thoroughPasses && items != nil
    }

    public mutating func learn(from trace: Trace) { learn(from: trace, on: nil, behind: []) }

    public mutating func learn(from piece: TracePieces.Piece) {
        learn(from: piece.trace, on: piece.lines, behind: piece.open)
    }

    private mutating func learn(from piece: Trace, on lines: [Int]?, behind open: [[UInt8]]) {
        for event in piece.events {
            guard case .redacted(let items) = event.what else { continue }
            search.sparesReplacements = search.sparesReplacements || items.contains(.accountNumber)
        }
        var work = RedactionWork(key: nil, includingCryptograms: false, self)
        for message in LayeredMessages(piece, behind: open).messages {
            work.collect(message)
            guard let lines, let first = lines.first else { continue }
            let layer = piece.layer(of: message)
            for window in seams.add(message.standing(on: lines), on: layer)
            where window.parts.contains(where: { $0.event < first }) { remember(window) }
        }
        for (index, event) in piece.events.enumerated() {
            guard let lines, let first = lines.first, let text = event.what.text,
                let window = seams.add(text, of: lines[index]), window.parts.contains(where: { $0.event < first })
            else { continue }
            remember(window)
        }
        (search, names, logFiles, values) = (work.search, work.names, work.logFiles, work.values)
    }

    private mutating func remember(_ window: NumberSeams.Window) {
        for line in Set(window.parts.map(\.event)) { windowsByLine[line, default: []].append(acrossPieces.count) }
        acrossPieces.append(window)
    }

    /// Returns the places in `piece` that may contain a number outside any whole message, as parts of its events; bytes
    /// in another piece get the number of no event.
    func windows(in piece: Trace, _ layered: LayeredMessages, on lines: [Int]?) -> [NumberSeams.Window] {
        var seams = NumberSeams()
        var windows = layered.messages.flatMap { seams.add($0, on: piece.layer(of: $0)) }
        windows += piece.events.enumerated().compactMap { index, event in
            event.what.text.flatMap { seams.add($0, of: index) }
        }
        guard let lines, !acrossPieces.isEmpty else { return windows }
        let events = Dictionary(
            lines.enumerated().map { ($0.element, $0.offset) }, uniquingKeysWith: { first, _ in first })
        let numbers = Set(lines.flatMap { windowsByLine[$0] ?? [] })
        windows += numbers.sorted().map { acrossPieces[$0].standing(in: events) }
        return windows
    }
}

extension Trace {
    /// Returns the trace with an event that says that `items` have been taken out, now or before.
    package func noting(_ items: Set<TraceEvent.RedactedItem>) -> Trace {
        var events = events
        for (index, event) in events.enumerated() {
            guard case .redacted(let earlier) = event.what else { continue }
            events[index].what = .redacted(earlier.union(items))
            return Trace(events)
        }
        let position = events.firstIndex { if case .reader = $0.what { false } else { true } } ?? events.endIndex
        let time = position < events.endIndex ? events[position].time : events.last?.time ?? .zero
        events.insert(TraceEvent(at: time, .redacted(items)), at: position)
        return Trace(events)
    }

    /// The layer that the frames of `message` are on.
    fileprivate func layer(of message: TraceMessage) -> TraceEvent.Layer? {
        guard let event = message.parts.first?.event else { return nil }
        switch events[event].what {
        case .sent(let layer, _), .received(let layer, _): return layer == .rfPayload ? .rf : layer
        default: return nil
        }
    }
}

extension TraceEvent.What {
    /// An event of the same kind and lengths in which nothing can be found: bytes are zero, text is `X`.
    var blank: TraceEvent.What {
        func blank(_ text: String) -> String { String(repeating: "X", count: text.utf8.count) }
        func blank(_ atr: ATR) -> ATR { ATR(atr.bytes.prefix(1) + atr.bytes.dropFirst().map { _ in 0 }) }
        switch self {
        case .sent(let layer, let bytes): return .sent(layer, bytes.map { _ in 0 })
        case .received(let layer, let bytes): return .received(layer, bytes.map { _ in 0 })
        case .note(let text): return .note(blank(text))
        case .meta(let key, let value): return .meta(key: blank(key).lowercased(), value: blank(value))
        case .slot(.card(let atr, let isHeld)): return .slot(.card(blank(atr), exclusivelyHeld: isHeld))
        case .connected(let atr, let transmissionProtocol): return .connected(blank(atr), transmissionProtocol)
        case .failed(let operation, var failure):
            failure.detail = failure.detail.map { blank($0) }
            return .failed(operation, failure)
        case .reader(var identity):
            identity.name = blank(identity.name)
            identity.vendor = identity.vendor.map { blank($0) }
            identity.serialNumber = identity.serialNumber.map { blank($0) }
            return .reader(identity)
        default: return self
        }
    }
}
