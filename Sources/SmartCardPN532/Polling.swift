import SmartCard
import Waiting

extension ACR122U {
    /// Keeps the reader's firmware from the PN532 while `body` uses it, and puts the reader back as it was: operating
    /// parameter, retries, the chip's parameters, the field.
    ///
    ///     let card = try await reader.withChip { chip in
    ///         try await chip.poll([.typeA, .typeB], within: .seconds(10))
    ///     }
    ///
    /// Automatic polling is off meanwhile, listing cards fails at once where there is none, and RATS is sent to type A
    /// cards.  What is put back is put back on every way out, also when `body` throws or the task is cancelled; targets
    /// are released before.  The chip cannot be asked for its retries and parameters: they become what they are after
    /// a reset, automatic RATS as the operating parameter has it.
    ///
    /// A reader whose automatic polling was off already, because somebody left it so, gets its defaults instead: no
    /// program would find a card on it.
    ///
    /// Whoever shares the reader with another task lets one end before the other begins.
    ///
    /// - Throws: what `body` throws; else `CardError` where the reader cannot be taken or put back.
    public func withChip<R: Sendable>(_ body: (PN532) async throws -> R) async throws -> R {
        let link = RestoringLink(over: self.link, Self.settings)
        let reader = ACR122U(over: link)
        let before = try await reader.operatingParameter()
        let result: Result<R, any Error>
        do {
            try await link.prepare(for: Self.commandsOfChipUse)
            try await reader.setOperatingParameter(before.subtracting(.automaticPolling))
            try await reader.chip.setParameters(.initial)
            // Two tries a card, then the answer is: none.
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

    /// Brings the reader to where it is after it was plugged in: operating parameter, retries, timings, the chip's parameters,
    /// the field.
    ///
    /// - Throws: `CardError`, the first; the rest is done nevertheless.
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

/// What polling tells.
public enum PollingEvent: Hashable, Sendable {
    /// One card lies there, selected.
    case found(PN532Target, PollingTechnology)
    /// Two cards or more lie there, none of them selected: the person has to take all but one away.
    case collision([PN532Target])
    /// These have been found, or taken part in a collision, and lie there no more.
    case lost([PN532Target])
}

extension PN532 {
    /// Tells what comes to the reader and what leaves it, for as long as the sequence is asked.
    ///
    ///     try await reader.withChip { chip in
    ///         for try await event in chip.polling([.typeA, .typeB, .felica212]) {
    ///             guard case .found(let target, _) = event else { continue }
    ///             …  // the card is selected
    ///         }
    ///     }
    ///
    /// A round asks for every technology, in their order, so that a second card is noticed, whatever it is.  The one
    /// card found is then selected, from a cold start if another technology was asked for after it.  A card is lost
    /// that answers neither as it is nor from a cold start.  When a collision ends, `lost` is followed by `found` for
    /// the card that stays.
    ///
    /// The chip is used only while the next event is waited for; until then a card found stays selected.  Waiting is
    /// waiting for the reader's answers, which do not depend on a card's coming, and sleeping in between: nothing blocks
    /// a thread.  Only within ``ACR122U/withChip(_:)`` does a round without a card end by itself.
    ///
    /// The sequence ends when the task is cancelled, after the round under way at the latest, or throws `CardError`; the
    /// field is off then.  Who leaves the loop instead keeps the field and the card.
    ///
    /// - Parameter interval: from the end of a round to the next, 10 ms at least.
    public func polling(
        _ technologies: [PollingTechnology], every interval: Duration = .milliseconds(100)
    ) -> PollingEvents {
        PollingEvents { PollingRounds(chip: self, technologies: technologies, interval: interval) }
    }

    /// The first event of ``polling(_:every:)``: a card, or a collision.
    ///
    /// - Parameters:
    ///   - time: how long to look; at least one round is made.
    ///   - interval: from the end of a round to the next, 10 ms at least.
    /// - Returns: nil if no card came in time; the field is off then.
    /// - Throws: `CardError`, and `CancellationError` when the task is cancelled; the field is off then.
    public func poll(
        _ technologies: [PollingTechnology], within time: Duration, every interval: Duration = .milliseconds(100)
    ) async throws -> PollingEvent? {
        var rounds = PollingRounds(chip: self, technologies: technologies, interval: interval)
        return try await rounds.next(until: .now + time)
    }
}

/// What ``PN532/polling(_:every:)`` gives.  Each iterator polls by itself, so that there is one at a time.
public struct PollingEvents: AsyncSequence, Sendable {
    fileprivate let makeRounds: @Sendable () -> PollingRounds

    public func makeAsyncIterator() -> Iterator { Iterator(rounds: makeRounds()) }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var rounds: PollingRounds

        /// - Returns: nil when the task is cancelled, and ever after an end.
        public mutating func next() async throws -> PollingEvent? {
            do {
                return try await rounds.next(until: nil)
            } catch is CancellationError {
                return nil
            }
        }
    }
}

/// Polling: round after round, and what has changed since the one before.
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
    /// The cards that have been told of and are not lost, and whether it has been told that there are no others.
    private var known: [Finding] = []
    private var isSettled = true
    private var isFieldOn = false
    /// When the next round may begin; nil for at once.
    private var due: ContinuousClock.Instant?
    private var isOver = false

    init(chip: PN532, technologies: [PollingTechnology], interval: Duration) {
        self.chip = chip
        self.technologies = technologies
        self.interval = max(interval, .milliseconds(10))
    }

    /// - Returns: nil when `deadline` has passed, and ever after an end.
    mutating func next(until deadline: ContinuousClock.Instant?) async throws -> PollingEvent? {
        guard !isOver else { return nil }
        do {
            while true {
                if let due {
                    try await Task.sleep(until: min(due, deadline ?? due), clock: .continuous)
                    if let deadline, deadline < due {
                        await end()
                        return nil
                    }
                }
                try Task.checkCancellation()
                let event = try await round()
                due = .now + interval
                if let event { return event }
            }
        } catch {
            await end()
            throw error
        }
    }

    private mutating func end() async {
        isOver = true
        let chip = chip
        try? await toTheEnd { try await chip.configure(.field(isOn: false)) }
    }

    private mutating func round() async throws -> PollingEvent? {
        if !isFieldOn {
            try await chip.configure(.field(isOn: true))
            isFieldOn = true
            try await warmUp()
        }
        let found = try await survey()
        guard known.allSatisfy({ card in found.contains { $0.isSame(card) } }) else { return try await loss() }
        // What is known is among what is found.
        guard found.count > known.count || !isSettled else { return nil }
        guard found.count == 1 else {
            (known, isSettled) = (found, true)
            return .collision(found.map(\.target))
        }
        guard let card = try await select(found[0]) else { return nil }
        (known, isSettled) = ([card], true)
        return .found(card.target, card.technology)
    }

    /// Asks again from a cold start.
    ///
    /// - Returns: nil if every card that is known answers.
    private mutating func loss() async throws -> PollingEvent? {
        try await coldStart()
        let found = try await survey()
        let missing = known.filter { card in !found.contains { $0.isSame(card) } }
        // A card that draws its identifier has another one now.
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
        isSettled = known.isEmpty
        return .lost(gone)
    }

    /// The cards of every technology, each once.
    private func survey() async throws -> [Finding] {
        // A card that is selected does not answer; one that has been let go does (libnfc#476).
        _ = try? await chip.deselect()
        var found: [Finding] = []
        for technology in technologies {
            for target in try await list(technology, most: 2) {
                // A FeliCa card answers at both bit rates.
                guard !found.contains(where: { $0.target.card == target.card }) else { continue }
                found.append(Finding(target: target, technology: technology))
            }
        }
        return found
    }

    /// - Returns: nil if the card has left meanwhile.
    private func select(_ card: Finding) async throws -> Finding? {
        guard card.technology != technologies.last else { return card }
        try await coldStart()
        return try await list(card.technology, most: 1).first.map { Finding(target: $0, technology: card.technology) }
    }

    private func coldStart() async throws {
        try await chip.cycleField()
        try await warmUp()
    }

    /// A card answers 5 ms after the field has come up (ISO/IEC 14443-3), FeliCa after 20 (FeliCa Card User's
    /// Manual, 2.4.1).
    private func warmUp() async throws {
        let isFeliCa = technologies.contains(.felica212) || technologies.contains(.felica424)
        try await Task.sleep(for: .milliseconds(isFeliCa ? 21 : 5))
    }

    /// The targets of a technology.  A reader that loses patience with its chip has found none.
    private func list(_ technology: PollingTechnology, most: Int) async throws -> [PN532Target] {
        do {
            return try await chip.listTargets(technology, most: most)
        } catch let error as CardError where error.kind == .noAnswer {
            return []
        }
    }
}

extension PN532Target {
    /// What stays the same from one cold start to the next: a UID of four bytes that begins with 08 is drawn anew, and a
    /// PUPI may be (ISO/IEC 14443-3, 6.5.4 and ATQB).
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
