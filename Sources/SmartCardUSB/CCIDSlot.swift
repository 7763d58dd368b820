import SmartCard
import USBDevices
import Waiting

/// One slot of a reader: its card, the session with it, and the streams that watch it.
final class CCIDSlot: Sendable {
    /// The polling interval for a reader that reports nothing by itself.
    static let pollingInterval = Duration.milliseconds(400)

    private struct State {
        /// The number of power-ups; each invalidates earlier connections.
        var session = 0
        /// The reason for the session's end; nil while it lasts.
        var end: CardError.Kind? = .cardReset
        var atr: ATR?
        /// The exchange of APDUs with the card.
        var exchange: APDUExchange?
        /// The longest time for a T=1 block.
        var timeForABlock = Duration.zero
        /// True if this process switched the card off.
        var isSwitchedOff = false

        /// The last state sent to the streams; nil before the first look.
        var shown: SlotState?
        /// The last notification of the interrupt endpoint: true if a card is present.
        var isNotifiedPresent: Bool?
        var hasSeenRemoval = false
        var isNotified = true
        var isLookDue = false
        var isGone = false
        var streams: [Int: AsyncThrowingStream<SlotState, any Error>.Continuation] = [:]
        var streamCount = 0
        var poll: Task<Void, Never>?
        var explain: Explanation?
    }

    let number: UInt8
    private let pipe: CCIDPipe
    let turn = Turn()
    private let state = Lock(State())

    /// Finds the cause of a failed command.
    typealias Explanation = @Sendable (CardError) async -> CardError

    init(_ pipe: CCIDPipe, number: UInt8) {
        self.pipe = pipe
        self.number = number
    }

    deinit { state.withLock { $0.poll }?.cancel() }

    /// True if the interrupt endpoint reports cards.
    var isNotified: Bool {
        get { state.withLock { $0.isNotified } }
        set {
            state.withLock { $0.isNotified = newValue }
            updatePolling()
        }
    }

    var explain: Explanation? {
        get { state.withLock { $0.explain } }
        set { state.withLock { $0.explain = newValue } }
    }

    private var descriptor: CCIDDescriptor { pipe.function.descriptor }

    // MARK: Sessions

    /// A connection's knowledge of its card.
    struct Session: Sendable {
        let number: Int
        let atr: ATR
        let transmissionProtocol: TransmissionProtocol
    }

    /// Power-cycles the card and begins a session; an earlier session ends with `cardReset`.
    ///
    /// - Parameter insteadOf: a session that must still be valid.
    func connect(insteadOf old: Int? = nil) async throws -> Session {
        try await runningOn { [self] in
            try await turn.take()
            defer { turn.pass() }
            if let old {
                try check(old)
                _ = try await perform(CCIDCommand(.iccPowerOff))
            }
            return try await powerOn()
        }
    }

    /// Ends a session.
    func disconnect(_ session: Int, _ disposition: CardDisposition) async {
        _ = try? await runningOn { [self] in
            try await turn.take()
            defer { turn.pass() }
            guard disposition != .leave, (try? check(session)) != nil else { return }
            endSession(.cardReset)
            _ = try await perform(CCIDCommand(.iccPowerOff))
            state.withLock { $0.isSwitchedOff = true }
            if disposition == .reset { _ = try await powerOn() }
        }
    }

    /// Sends `command` to the card of `session`.
    ///
    /// - Returns: the reader's form of the response, at least one byte.
    nonisolated(nonsending) func transmit(_ command: [UInt8], session: Int) async throws -> [UInt8] {
        // T=1 numbers its blocks: the state must be kept even if no task waits for the response.
        guard state.withLock({ $0.exchange?.t1 == nil }) else {
            return try await runningOn { [self] in try await transmitInTurn(command, session: session) }
        }
        return try await transmitInTurn(command, session: session)
    }

    private nonisolated(nonsending) func transmitInTurn(
        _ command: [UInt8], session: Int
    ) async throws -> [UInt8] {
        try await turn.take()
        defer { turn.pass() }
        guard var exchange = try check(session) else { throw CardError(.disconnected) }
        let first = exchange.start(command)
        do {
            let response = try await run(&exchange, first, timeout: exchangeTimeout(command))
            keep(exchange, of: session)
            guard response.isEmpty else { return response }
            throw CardError(.noAnswer, "the reader reports success with no data")
        } catch let error as CardError where error.kind == .noAnswer || error.kind == .notTransacted {
            keep(exchange, of: session)
            // Most likely the card has left.
            guard try await isStillActive() else {
                endSession(.cardRemoved)
                throw CardError(.cardRemoved, cause: error.cause)
            }
            throw error
        }
    }

    /// Keeps the state of T=1; other protocols have none.
    private func keep(_ exchange: APDUExchange, of session: Int) {
        guard exchange.t1 != nil else { return }
        state.withLock { if $0.session == session { $0.exchange = exchange } }
    }

    private func exchangeTimeout(_ command: [UInt8]) -> Duration {
        max(pipe.timeLimits.exchange, state.withLock { $0.timeForABlock })
            + CCIDTimeLimits.extra(for: command, pipe.quirks)
    }

    private nonisolated(nonsending) func run(
        _ exchange: inout APDUExchange, _ first: APDUExchange.Step, timeout: Duration
    ) async throws -> [UInt8] {
        switch first {
        case .send(var command):
            command.slot = number
            let answer: CCIDAnswer
            do {
                answer = try await pipe.exchange(&exchange, command, timeout: timeout)
            } catch let error as CardError {
                throw await explain?(error) ?? error
            }
            if answer.commandStatus == .failed { throw failure(of: answer) }
            return answer.data
        case .done(let response): return response
        case .failed(let error): throw error
        }
    }

    private func failure(of answer: CCIDAnswer) -> CardError {
        if answer.cardStatus == .absent, !pipe.quirks.contains(.falseStatusInExchanges) {
            endSession(.cardRemoved)
            return CardError(.cardRemoved, cause: answer.error)
        }
        return CardError(answer.error.kind, cause: answer.error)
    }

    /// Checks that a session is valid.  Nil for a session without a card.
    @discardableResult private func check(_ session: Int) throws -> APDUExchange? {
        try state.withLock { state in
            if let end = state.session == session ? state.end : .cardReset { throw CardError(end) }
            return state.exchange
        }
    }

    private func endSession(_ reason: CardError.Kind) {
        state.withLock { state in
            state.end = state.end ?? reason
            state.atr = nil
        }
    }

    // MARK: Power

    /// Powers the card, negotiates the protocol and begins a session.
    private func powerOn() async throws -> Session {
        endSession(.cardReset)
        let atr = try await answerToReset()
        let choice: ProtocolChoice
        var exchange: APDUExchange
        do throws(CardError) {
            choice = try ProtocolChoice(atr, descriptor)
            let parameters = choice.parameters
            exchange = try APDUExchange(
                descriptor,
                t1: parameters.transmissionProtocol == .t1
                    ? T1Protocol(ifsc: parameters.ifsc, usesCRC: parameters.usesCRC) : nil)
        } catch {
            show(.card(atr, exclusivelyHeld: false))
            throw error
        }
        try await settle(choice)
        if exchange.t1 != nil, !descriptor.features.contains(.automaticIFSD) {
            // A card that refuses keeps fields of 32 bytes.
            let ifsd = min(254, Int(min(descriptor.maximumIFSD, 254)), descriptor.maximumData - 5)
            var attempt = exchange
            if (try? await run(&attempt, attempt.announce(ifsd: ifsd), timeout: pipe.timeLimits.exchange)) != nil {
                exchange = attempt
            }
        }
        let timeForABlock =
            exchange.t1 == nil ? .zero : choice.parameters.timeForABlock(kilohertz: descriptor.defaultClock)
        let session = state.withLock { [exchange] state in
            state.session += 1
            state.timeForABlock = timeForABlock
            state.end = nil
            state.atr = atr
            state.exchange = exchange
            state.isSwitchedOff = false
            state.hasSeenRemoval = false
            return state.session
        }
        show(.card(atr, exclusivelyHeld: false))
        return Session(
            number: session, atr: atr, transmissionProtocol: choice.parameters.transmissionProtocol)
    }

    private func answerToReset() async throws -> ATR {
        var last: CCIDError?
        for voltage in voltages {
            let answer = try await perform(.powerOn(voltage: voltage))
            guard answer.commandStatus == .failed else {
                if pipe.quirks.contains(.emptyATRWithoutCard), answer.data == [0x3B, 0x00] { throw noCard() }
                guard !answer.data.isEmpty else { break }
                return ATR(answer.data)
            }
            if answer.cardStatus == .absent { throw noCard() }
            guard ![.readerBusy, .unsupported].contains(answer.error.kind) else {
                throw CardError(answer.error.kind, cause: answer.error)
            }
            last = answer.error
        }
        show(.muteCard)
        throw CardError(.cardMute, cause: last)
    }

    private func noCard() -> CardError {
        show(.empty)
        return CardError(.cardAbsent)
    }

    /// The bPowerSelect values to try: automatic, or the supported voltages in rising order (ISO/IEC 7816-3, 6.2.3).
    private var voltages: [UInt8] {
        if descriptor.features.contains(.automaticVoltage) || descriptor.features.contains(.automaticActivation)
            || pipe.quirks.contains(.anyVoltage)
        {
            return [0]
        }
        let supported = ([3, 2, 1] as [UInt8]).filter { descriptor.voltages & 1 << ($0 - 1) != 0 }
        return supported.isEmpty ? [0] : supported
    }

    private func settle(_ choice: ProtocolChoice) async throws {
        if let pps = choice.pps {
            let answer = try await perform(.xfrBlock(pps))
            guard answer.commandStatus == .done, answer.data == pps else {
                throw CardError(.protocolMismatch, "the card does not agree to the protocol", cause: answer.failure)
            }
        }
        guard choice.setsParameters else { return }
        let answer = try await perform(.setParameters(choice.parameters))
        // A reader of APDU level handles this by itself; a reader that passes on blocks does not.
        guard answer.commandStatus == .done || descriptor.exchangeLevel != .tpdu else {
            throw CardError(.protocolMismatch, "the reader refuses the parameters", cause: answer.failure)
        }
    }

    // MARK: The reader itself

    /// Sends a command to the reader, with or without a card.
    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        if pipe.quirks.contains(.commandsByXfrBlock) {
            guard command.first == 0xFF else {
                throw CardError(.unsupported, "commands to this reader are of class FF")
            }
            return try await readerAnswer(.xfrBlock(command), timeout: exchangeTimeout(command))
        }
        return try await escape(command)
    }

    /// PC_to_RDR_Escape.
    func escape(_ command: [UInt8]) async throws -> [UInt8] {
        try await readerAnswer(
            CCIDCommand(.escape, data: command),
            timeout: pipe.timeLimits.escape + CCIDTimeLimits.extra(for: command, pipe.quirks))
    }

    private func readerAnswer(_ command: CCIDCommand, timeout: Duration) async throws -> [UInt8] {
        guard command.data.count <= descriptor.maximumData else {
            throw CardError(.tooLong, "\(command.data.count) bytes; this reader takes \(descriptor.maximumData)")
        }
        try await turn.take()
        defer { turn.pass() }
        let answer = try await perform(command, timeout: timeout)
        if let error = answer.failure { throw CardError(error.kind, cause: error) }
        guard !answer.data.isEmpty else { throw CardError(.noAnswer) }
        return answer.data
    }

    private func perform(_ command: CCIDCommand, timeout: Duration? = nil) async throws -> CCIDAnswer {
        var command = command
        command.slot = number
        do {
            return try await pipe.perform(command, timeout: timeout)
        } catch let error as CardError {
            throw await explain?(error) ?? error
        }
    }

    // MARK: Presence

    /// Returns a stream of states, beginning with the present one.
    func states(_ continuation: AsyncThrowingStream<SlotState, any Error>.Continuation) -> Int? {
        let (id, isFirst): (Int?, Bool) = state.withLock { state in
            guard !state.isGone else { return (nil, false) }
            // The state may have changed since the last look if no stream watched it.
            let isWatched = !state.streams.isEmpty
            if isWatched, let shown = state.shown { continuation.yield(shown) }
            if !isWatched { state.shown = nil }
            state.streamCount += 1
            state.streams[state.streamCount] = continuation
            return (state.streamCount, !isWatched)
        }
        guard let id else {
            continuation.finish()
            return nil
        }
        if isFirst { lookSoon() }
        updatePolling()
        return id
    }

    func removeStream(_ id: Int) {
        _ = state.withLock { $0.streams.removeValue(forKey: id) }
        updatePolling()
    }

    /// Handles a notification of the interrupt endpoint.  It is only a hint; GetSlotStatus decides.
    func heard(isPresent: Bool) {
        let isWanted = state.withLock { state in
            state.isNotifiedPresent = isPresent
            if !isPresent { state.hasSeenRemoval = true }
            return !state.streams.isEmpty || state.end == nil
        }
        if isWanted { lookSoon() }
    }

    /// Ends the slot: the reader has left, is released, or hangs.
    func end(_ reason: CardError) {
        let poll = state.withLock { state in
            state.isGone = true
            state.end = state.end ?? (reason.kind == .readerGone ? .readerGone : .disconnected)
            defer { state.poll = nil }
            return state.poll
        }
        poll?.cancel()
    }

    /// As ``CCIDPipe/settle()``.
    func settle() async -> Bool { await pipe.settle() }

    /// Tells who watches the slot why there is no more to see.
    func endStreams(_ reason: CardError) {
        let streams = state.withLock { state in
            defer { state.streams = [:] }
            return state.streams.values
        }
        for stream in streams { stream.finish(throwing: reason.kind == .readerGone ? nil : reason) }
    }

    private func lookSoon() {
        let isNews = state.withLock { state in
            defer { state.isLookDue = true }
            return !state.isLookDue
        }
        guard isNews else { return }
        Task { await self.look() }
    }

    private func updatePolling() {
        let stopped: Task<Void, Never>? = state.withLock { state in
            let isNeeded = !state.isNotified && !state.streams.isEmpty && !state.isGone
            if isNeeded, state.poll == nil {
                state.poll = Task { [weak self] in
                    while (try? await Time.sleep(for: Self.pollingInterval)) != nil { await self?.look() }
                }
            }
            guard !isNeeded else { return nil }
            defer { state.poll = nil }
            return state.poll
        }
        stopped?.cancel()
    }

    /// Returns true if the card that we powered is present and was not replaced meanwhile.
    private func isStillActive() async throws -> Bool {
        if pipe.quirks.contains(.presenceByInterruptOnly) {
            return state.withLock { $0.isNotifiedPresent != false && !$0.hasSeenRemoval }
        }
        return try await perform(CCIDCommand(.getSlotStatus)).cardStatus == .active
    }

    private func look() async {
        guard (try? await turn.take()) != nil else { return }
        defer { turn.pass() }
        state.withLock { $0.isLookDue = false }
        do {
            switch try await cardStatus() {
            case .absent:
                endSession(.cardRemoved)
                state.withLock { $0.hasSeenRemoval = false }
                show(.empty)
            case .active:
                guard let atr = state.withLock({ $0.atr }) else { fallthrough }
                state.withLock { $0.hasSeenRemoval = false }
                show(.card(atr, exclusivelyHeld: false))
            case .inactive, .unknown:
                // A card that is off, although we did not switch it off, was replaced or removed and put back.
                let (isNew, wasShown) = state.withLock { state in
                    (!state.isSwitchedOff || state.hasSeenRemoval, state.shown)
                }
                guard isNew || wasShown == nil || wasShown == .empty else { return }
                endSession(.cardRemoved)
                if wasShown?.hasCard == true { show(.empty) }
                state.withLock { $0.hasSeenRemoval = false }
                _ = try await powerOn()
            }
        } catch let error as CardError where ![.readerGone, .cardAbsent, .cardMute].contains(error.kind) {
            if state.withLock({ $0.shown?.hasCard != true }) { show(.unknown) }
        } catch {}
    }

    private func cardStatus() async throws -> CCIDAnswer.CardStatus {
        guard pipe.quirks.contains(.presenceByInterruptOnly) else {
            return try await perform(CCIDCommand(.getSlotStatus)).cardStatus
        }
        return state.withLock { state in
            switch (state.isNotifiedPresent, state.hasSeenRemoval) {
            case (false?, _): .absent
            case (true?, false) where state.end == nil: .active
            default: .inactive
            }
        }
    }

    private func show(_ slotState: SlotState) {
        state.withLock { state in
            guard slotState != state.shown else { return }
            state.shown = slotState
            for stream in state.streams.values { stream.yield(slotState) }
        }
    }
}

extension CCIDAnswer {
    /// The error of a command that failed.
    var failure: CCIDError? { commandStatus == .failed ? error : nil }
}
