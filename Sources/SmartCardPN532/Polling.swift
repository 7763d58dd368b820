import SmartCard

extension ACR122U {
    /// Keeps the reader's firmware from the PN532 while `body` uses it, and puts the reader back as it was: operating
    /// parameter, retries, the chip's parameters, the field.
    ///
    ///     let uid = try await reader.withChip { chip in
    ///         try await chip.poll([.typeA, .typeB], within: .seconds(10))
    ///     }
    ///
    /// Automatic polling is off meanwhile, listing cards fails at once where there is none, and RATS is sent to type A
    /// cards.  What is put back is put back on every way out, also when `body` throws or the task is cancelled; targets
    /// are released before.  The chip cannot be asked for its retries and parameters: they become what they are after
    /// a reset, automatic RATS as the operating parameter has it.
    ///
    /// - Throws: what `body` throws; else `CardError` where the reader cannot be taken or put back.
    public func withChip<R: Sendable>(_ body: (PN532) async throws -> R) async throws -> R {
        let before = try await operatingParameter()
        let result: Result<R, any Error>
        do {
            try await setOperatingParameter(before.subtracting(.automaticPolling))
            try await chip.setParameters(.initial)
            // Two tries a card, then the answer is: none.
            try await chip.configure(.retries(atr: 0x01, psl: 0x01, passiveActivation: 0x01))
            try await chip.configure(.field(isOn: true))
            result = .success(try await body(chip))
        } catch {
            result = .failure(error)
        }
        let restored = await putBack(before)
        let value = try result.get()
        if let error = restored { throw error }
        return value
    }

    /// Does each step whether or not the one before it worked.
    ///
    /// - Returns: the first error; a target that cannot be released is none, as it may have left.
    private func putBack(_ parameter: PICCOperatingParameter) async -> (any Error)? {
        var parameters = PN532.Parameters.initial
        if !parameter.contains(.automaticATS) { parameters.remove(.automaticRATS) }
        let final = parameters
        let steps: [@Sendable () async throws -> Void] = [
            { _ = try? await chip.release() },
            { try await chip.configure(.initialRetries) },
            { try await chip.setParameters(final) },
            { try await chip.configure(.field(isOn: true)) },
            { try await setOperatingParameter(parameter) },
        ]
        var first: (any Error)?
        for step in steps {
            do { try await unlessCancelled(step) } catch { first = first ?? error }
        }
        return first
    }
}

/// What a round of polling has found.
public enum PollingOutcome: Hashable, Sendable {
    /// One card, selected.
    case card(PN532Target, PollingTechnology)
    /// Two cards or more, none of them selected: the person has to take all but one away.
    case collision([PN532Target])
}

extension PN532 {
    /// Looks for cards of the technologies, in their order, round after round, until there is one.
    ///
    /// A round looks for every technology, so that a second card is noticed, whatever it is.  The card found is then
    /// selected, from a cold start if another technology was asked for after it.
    ///
    /// Only within ``ACR122U/withChip(_:)`` does a round without a card end by itself.
    ///
    /// - Parameters:
    ///   - time: how long to look; at least one round is made.
    ///   - pause: between rounds.
    /// - Returns: nil if no card came in time.
    /// - Throws: `CardError`, and `CancellationError` when the task is cancelled.
    public func poll(
        _ technologies: [PollingTechnology], within time: Duration, pause: Duration = .milliseconds(100)
    ) async throws -> PollingOutcome? {
        let deadline = ContinuousClock.now + time
        while true {
            try Task.checkCancellation()
            if let outcome = try await round(technologies) { return outcome }
            let rest = deadline - .now
            guard rest > .zero else { return nil }
            try await Task.sleep(for: min(pause, rest))
        }
    }

    private func round(_ technologies: [PollingTechnology]) async throws -> PollingOutcome? {
        var found: [(target: PN532Target, technology: PollingTechnology)] = []
        for technology in technologies {
            for target in try await list(technology, most: 2) {
                // A FeliCa card answers at both bit rates.
                guard !found.contains(where: { $0.target.identifier == target.identifier }) else { continue }
                found.append((target, technology))
            }
        }
        guard let (target, technology) = found.first else { return nil }
        guard found.count == 1 else { return .collision(found.map(\.target)) }
        guard technology != technologies.last else { return .card(target, technology) }
        try await cycleField()
        // The card may have left meanwhile, or another come.
        guard let again = try await list(technology, most: 1).first else { return nil }
        return .card(again, technology)
    }

    /// The targets of a technology.  A reader that loses patience with its chip has found none.
    private func list(_ technology: PollingTechnology, most: Int) async throws -> [PN532Target] {
        do {
            return try await listTargets(technology, most: most)
        } catch let error as CardError where error.kind == .noAnswer {
            return []
        }
    }
}
