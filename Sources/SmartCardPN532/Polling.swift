import SmartCard
import Waiting

extension ACR122U {
    /// Stops the reader's firmware from using the PN532 while `body` uses it, and restores the reader afterwards:
    /// operating parameter, retries, the chip's parameters, the field.
    ///
    ///     let card = try await reader.withChip { chip in
    ///         try await chip.poll([.typeA, .typeB], within: .seconds(10))
    ///     }
    ///
    /// Meanwhile automatic polling is off, listing cards fails at once if there is none, and RATS is sent to type A
    /// cards.  Targets are released and settings restored in all cases, even if `body` throws or the task is cancelled.
    /// The chip does not report its retries and parameters: they return to their reset values, automatic RATS to the
    /// operating parameter's.
    ///
    /// If automatic polling was already off, the reader gets its defaults instead: an earlier program left it so, and
    /// no program would find a card.
    ///
    /// Tasks that share the reader must call this one after the other.
    ///
    /// - Throws: the error of `body`; else `CardError` if the reader cannot be reserved or restored.
    public func withChip<R: Sendable>(_ body: (PN532) async throws -> R) async throws -> R {
        let link = RestoringLink(over: self.link, Self.settings)
        let reader = ACR122U(over: link)
        let before = try await reader.operatingParameter()
        let result: Result<R, any Error>
        do {
            try await link.prepare(for: Self.commandsOfChipUse)
            try await reader.setOperatingParameter(before.subtracting(.automaticPolling))
            try await reader.chip.setParameters(.initial)
            // Two attempts for each card; after that, there is none.
            try await reader.chip.configure(.retries(atr: 0x01, psl: 0x01, passiveActivation: 0x01))
            try await reader.chip.configure(.field(isOn: true))
            result = .success(try await body(reader.chip))
        } catch {
            result = .failure(error)
        }
        let end = await Result { try await link.end() }
        let value = try result.get()
        try end.get()
        return value
    }

    /// Restores the reader's state after plugging in: operating parameter, retries, timings, the chip's parameters, the
    /// field.
    ///
    /// - Throws: the first `CardError`; the remaining settings are restored nevertheless.
    public func restoreDefaults() async throws {
        var first: (any Error)?
        for setting in Self.settings {
            do {
                try await toTheEnd { try await setting.putBack(nil, over: link) }
            } catch {
                first = first ?? error
            }
        }
        if let first { throw first }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

/// An event of polling.
public enum PollingEvent: Hashable, Sendable {
    /// One card is present and selected.
    case found(PN532Target, PollingTechnology)
    /// Two cards or more are present, none of them selected: the person must remove all but one.
    case collision([PN532Target])
    /// Cards that were found, or took part in a collision, have left.
    case lost([PN532Target])
}

extension PN532 {
    /// Reports cards that arrive and leave, while the sequence is read.
    ///
    ///     try await reader.withChip { chip in
    ///         for try await event in chip.polling([.typeA, .typeB, .felica212]) {
    ///             guard case .found(let target, _) = event else { continue }
    ///             …  // the card is selected
    ///         }
    ///     }
    ///
    /// Each round queries every technology in order, so it notices a second card of any kind.  A single card is then
    /// selected, from a cold start if another technology was queried after it.  A card is lost if it answers neither
    /// directly nor from a cold start.  When a collision ends, `lost` is followed by `found` for the remaining card.
    ///
    /// The chip is used only during a call for the next event; between calls, a found card stays selected.  Waiting
    /// consists of the reader's answers, which arrive with or without a card, and of sleeping in between: nothing
    /// blocks a thread.  Only within ``ACR122U/withChip(_:)`` does a round without a card end by itself.
    ///
    /// The sequence ends when the task is cancelled, after the current round at the latest, or throws `CardError`; the
    /// field is then off.  Leaving the loop early keeps the field and the card.
    ///
    /// With a `broadcast` frame, each round without a card sends it once after the poll of each technology that has such
    /// frames: types A and B.  In the first round, and after a card that answers but cannot be selected, that of type A
    /// precedes all polls, so that no phone answers before it has heard the frame.  It is not sent while a card is known.
    /// Meanwhile the chip polls once each time, and does not wait for answers to frames; before an event is reported it
    /// gets the settings of ``ACR122U/withChip(_:)`` back, and the reset values of its time limits.
    ///
    /// - Parameters:
    ///   - technologies: the technologies to poll for, in this order.
    ///   - interval: the time from the end of a round to the next, at least 10 ms.
    ///   - broadcast: the frame to send between the polls; nil for none.
    ///   - onBroadcast: called for every frame sent.
    public func polling(
        _ technologies: [PollingTechnology], every interval: Duration = .milliseconds(100),
        broadcast: BroadcastFrame? = nil, onBroadcast: (@Sendable (Broadcast) -> Void)? = nil
    ) -> PollingEvents {
        PollingEvents {
            PollingRounds(
                chip: self, technologies: technologies, interval: interval,
                broadcaster: broadcast.map { Broadcaster(self, $0, onBroadcast) })
        }
    }

    /// Returns the first event of ``polling(_:every:broadcast:onBroadcast:)``: a card, or a collision.
    ///
    /// - Parameters:
    ///   - technologies: the technologies to poll for, in this order.
    ///   - time: the time to look; at least one round is made.
    ///   - interval: the time from the end of a round to the next, at least 10 ms.
    ///   - broadcast: the frame to send between the polls; nil for none.
    ///   - onBroadcast: called for every frame sent.
    /// - Returns: nil if no card came in time; the field is then off.
    /// - Throws: `CardError`; `CancellationError` when the task is cancelled.  The field is then off.
    public func poll(
        _ technologies: [PollingTechnology], within time: Duration, every interval: Duration = .milliseconds(100),
        broadcast: BroadcastFrame? = nil, onBroadcast: (@Sendable (Broadcast) -> Void)? = nil
    ) async throws -> PollingEvent? {
        var rounds = PollingRounds(
            chip: self, technologies: technologies, interval: interval,
            broadcaster: broadcast.map { Broadcaster(self, $0, onBroadcast) })
        return try await rounds.next(until: Time.now + time)
    }
}

/// The events of ``PN532/polling(_:every:broadcast:onBroadcast:)``.  Each iterator polls independently, so use one at a time.
public struct PollingEvents: AsyncSequence, Sendable {
    fileprivate let makeRounds: @Sendable () -> PollingRounds

    public func makeAsyncIterator() -> Iterator { Iterator(rounds: makeRounds()) }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var rounds: PollingRounds

        /// - Returns: nil when the task is canceled, and always after the end.
        public mutating func next() async throws -> PollingEvent? {
            do {
                return try await rounds.next(until: nil)
            } catch is CancellationError {
                return nil
            }
        }
    }
}

/// Polls in rounds and finds the changes between two rounds.
private struct PollingRounds {
    private struct Finding {
        let target: PN532Target
        let technology: PollingTechnology

        func isSame(_ other: Finding) -> Bool {
            technology == other.technology && target.identifier == other.target.identifier
        }
    }

    private let chip: PN532
    private let technologies: [PollingTechnology]
    private let interval: Duration
    private var broadcaster: Broadcaster?
    /// The reported cards that are not lost; `isSettled` is true once their number was reported.
    private var known: [Finding] = []
    private var isSettled = true
    private var isFieldOn = false
    /// True if phones may not have heard the frame, or have forgotten it: it precedes the next poll.
    private var isFrameDue = true
    /// The time of the next round; nil for at once.
    private var due: Time.Instant?
    private var isOver = false

    init(chip: PN532, technologies: [PollingTechnology], interval: Duration, broadcaster: Broadcaster?) {
        self.chip = chip
        self.broadcaster = broadcaster
        self.technologies = technologies
        self.interval = max(interval, .milliseconds(10))
    }

    /// - Returns: nil when `deadline` has passed, and always after the end.
    mutating func next(until deadline: Time.Instant?) async throws -> PollingEvent? {
        guard !isOver else { return nil }
        do {
            while true {
                if let due {
                    try await Time.sleep(until: min(due, deadline ?? due))
                    if let deadline, deadline < due {
                        await end()
                        return nil
                    }
                }
                try Task.checkCancellation()
                let event = try await round()
                due = Time.now + interval
                if let event { return event }
            }
        } catch {
            await end()
            throw error
        }
    }

    private mutating func end() async {
        isOver = true
        try? await broadcaster?.end()
        let chip = chip
        try? await toTheEnd { try await chip.configure(.field(isOn: false)) }
    }

    private mutating func round() async throws -> PollingEvent? {
        if !isFieldOn {
            try await begin()
            isFieldOn = true
        }
        let found = try await survey()
        guard known.allSatisfy({ card in found.contains { $0.isSame(card) } }) else { return try await loss() }
        // All known cards are among the found ones.
        guard found.count > known.count || !isSettled else { return nil }
        guard found.count == 1 else {
            (known, isSettled) = (found, true)
            return .collision(found.map(\.target))
        }
        guard let card = try await select(found[0]) else { return nil }
        (known, isSettled) = ([card], true)
        return .found(card.target, card.technology)
    }

    /// Switches the field on.
    private func begin() async throws {
        // A phone that the reader has selected by itself hears no frames until it is started anew.
        guard broadcaster == nil else { return try await coldStart() }
        try await chip.configure(.field(isOn: true))
        try await warmUp()
    }

    /// Queries again from a cold start.
    ///
    /// - Returns: nil if every known card answers.
    private mutating func loss() async throws -> PollingEvent? {
        try await coldStart()
        let found = try await survey()
        let missing = known.filter { card in !found.contains { $0.isSame(card) } }
        // A card with a random identifier has a new one now.
        var strangers = found.filter { card in !known.contains { $0.isSame(card) } }
        var gone: [PN532Target] = []
        for card in missing {
            known.removeAll { $0.isSame(card) }
            if let index = strangers.firstIndex(where: { $0.target.lasting == card.target.lasting }) {
                known.append(strangers.remove(at: index))
            } else {
                gone.append(card.target)
            }
        }
        guard !gone.isEmpty else { return nil }
        (isSettled, isFrameDue) = (known.isEmpty, true)
        return .lost(gone)
    }

    /// Returns the cards of all technologies, each once.
    ///
    /// The broadcast frame follows each poll as long as there is no card; one that is due precedes the polls.
    private mutating func survey() async throws -> [Finding] {
        // A selected card does not answer; a deselected one does (libnfc#476).
        _ = try? await chip.deselect()
        let startsWithFrame = isFrameDue && known.isEmpty && technologies.contains(.typeA)
        isFrameDue = false
        if startsWithFrame, try await broadcaster?.sendFirst() == true {
            try await Time.sleep(for: Broadcaster.guardTime)
        }
        var found: [Finding] = []
        for technology in technologies {
            for target in try await list(technology, most: 2) {
                // A FeliCa card answers at both bit rates.
                guard !found.contains(where: { $0.target.card == target.card }) else { continue }
                found.append(Finding(target: target, technology: technology))
            }
            guard known.isEmpty, found.isEmpty, !startsWithFrame || technology != .typeA else { continue }
            if try await broadcaster?.send(after: technology) == true, technology != technologies.last {
                try await Time.sleep(for: Broadcaster.guardTime)
            }
        }
        if !found.isEmpty { try await broadcaster?.end() }
        return found
    }

    /// - Returns: nil if the card has left.
    private mutating func select(_ card: Finding) async throws -> Finding? {
        guard card.technology != technologies.last else { return card }
        try await coldStart()
        let target = try await list(card.technology, most: 1).first
        isFrameDue = target == nil
        return target.map { Finding(target: $0, technology: card.technology) }
    }

    private func coldStart() async throws {
        try await chip.cycleField()
        try await warmUp()
    }

    /// Waits for cards to start: 5 ms after the field is on (ISO/IEC 14443-3), FeliCa 20 ms (FeliCa Card User's Manual,
    /// 2.4.1).
    private func warmUp() async throws {
        let isFeliCa = technologies.contains(.felica212) || technologies.contains(.felica424)
        try await Time.sleep(for: .milliseconds(isFeliCa ? 21 : 5))
    }

    /// Returns the targets of a technology.  A reader that gives up on its chip has found none.
    private func list(_ technology: PollingTechnology, most: Int) async throws -> [PN532Target] {
        do {
            return try await chip.listTargets(technology, most: most)
        } catch let error as CardError where error.kind == .noAnswer {
            return []
        }
    }
}

extension PN532Target {
    /// The part of the card that survives a cold start: a UID of four bytes that begins with 08 is random, and a PUPI
    /// may be (ISO/IEC 14443-3, 6.5.4 and ATQB).
    var lasting: Card {
        switch card {
        case .typeA(let uid, let atqa, let sak, let ats) where uid.count == 4 && uid[0] == 0x08:
            .typeA(uid: [0x08], atqa: atqa, sak: sak, ats: ats)
        case .typeB(let atqb, let attribResponse):
            .typeB(atqb: Array(atqb.dropFirst(5)), attribResponse: attribResponse)
        default: card
        }
    }
}
