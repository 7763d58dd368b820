import SmartCard
import Synchronization
import Waiting

/// The slot of a board: the card in its field, the streams that watch it, and the users of the chip.
final class PN532Slot: Sendable {
    private struct State {
        /// The number of activations; each invalidates earlier connections.
        var session = 0
        /// The reason for the session's end; nil while it lasts.
        var end: CardError.Kind? = .cardReset
        /// The selected card.
        var target: PN532Target?
        var commands: StorageCommands?
        /// True if the chip's field is on.
        var isFieldOn = true
        /// The last state sent to the streams; nil before the first look.
        var shown: SlotState?
        var isGone = false
        var streams: [Int: AsyncThrowingStream<SlotState, any Error>.Continuation] = [:]
        var streamCount = 0
        var watch: Task<Void, Never>?
    }

    private static let technologies: [PollingTechnology] = [.typeA, .typeB, .felica212]
    /// The time between two looks for cards.
    private static let interval = Duration.milliseconds(200)

    private let line: SerialLine
    private let link: HSULink
    private let chip: PN532
    private let rate = Mutex(SerialRate.baud115200)
    private let turn = Turn()
    private let state = Mutex(State())

    init(_ line: SerialLine, limits: HSUExchange.Limits) {
        self.line = line
        link = HSULink(line, limits: limits)
        chip = link.chip
    }

    // MARK: Beginning and end

    func begin(rate wanted: SerialRate) async throws -> PN532.FirmwareVersion {
        try line.start { [weak self] in self?.leave() }
        let (firmware, found) = try await wakeUp()
        if found != wanted { try await link.change(to: wanted) }
        rate.withLock { $0 = wanted }
        try await prepare()
        return firmware
    }

    /// Wakes the chip, which is in its reset state or as a killed program left it.
    private func wakeUp() async throws -> (PN532.FirmwareVersion, SerialRate) {
        let rates: [SerialRate] = [.baud115200, .baud921600, .baud460800, .baud230400]
        var first: (any Error)?
        for rate in rates {
            do {
                return (try await link.wakeUp(at: rate), rate)
            } catch let error as CardError where error.kind == .readerTimeout {
                first = first ?? error
            }
        }
        throw first ?? CardError(.readerTimeout)
    }

    /// Two attempts for each card; after that, there is none.
    private func prepare() async throws {
        try await chip.setParameters(.initial)
        try await chip.configure(.retries(atr: 0x01, psl: 0x01, passiveActivation: 0x01))
        try await chip.configure(.field(isOn: true))
    }

    func close() async {
        // Waits for the user of the chip.
        try? await toTheEnd {
            guard (try? await self.turn.take()) != nil else { return }
            defer { self.turn.pass() }
            try? await self.chip.configure(.field(isOn: false))
            if self.rate.withLock({ $0 }) != .baud115200 { try? await self.link.change(to: .baud115200) }
        }
        end()
        finish(.disconnected)
        await line.waitForEnd()
    }

    func end() { line.end() }

    /// Ends the slot after the device has left.
    private func leave() { finish(.readerGone) }

    private func finish(_ reason: CardError.Kind) {
        let streams = state.withLock { state in
            state.isGone = true
            if state.end == nil { state.end = reason }
            state.watch?.cancel()
            defer { state.streams = [:] }
            return state.streams.values
        }
        for stream in streams { stream.finish() }
    }

    // MARK: Cards

    /// Selects a card from a cold start, and begins a session.
    ///
    /// - Parameter insteadOf: a session that must still be valid.
    func activate(insteadOf old: Int? = nil) async throws -> (target: PN532Target, session: Int) {
        try await turn.take()
        defer { turn.pass() }
        if let old { try check(old) }
        forget(.cardReset)
        try await coldStart()
        guard let target = try await find() else {
            show(.empty)
            throw CardError(.cardAbsent)
        }
        let session = state.withLock { state in
            state.session += 1
            (state.end, state.target, state.commands) = (nil, target, StorageCommands(target))
            return state.session
        }
        show(.card(target.atr, exclusivelyHeld: false))
        return (target, session)
    }

    func transmit(_ command: CommandAPDU, session: Int) async throws -> ResponseAPDU {
        try await turn.take()
        defer { turn.pass() }
        try check(session)
        guard
            let (target, commands) = state.withLock({ state in
                state.target.flatMap { target in state.commands.map { (target, $0) } }
            })
        else { throw CardError(.disconnected) }
        do {
            guard command.cla != 0xFF else {
                var commands = commands
                let response = try await commands.perform(command, on: chip)
                state.withLock { [commands] in $0.commands = commands }
                return response
            }
            guard target.speaksISODEP else {
                throw CardError(.unsupported, "a storage card takes no APDUs but those of class FF")
            }
            return try await chip.channel(to: target).transmit(command)
        } catch let error as CardError where Self.mayBeGone.contains(error.kind) {
            guard try await !isThere(target) else { throw error }
            forget(.cardRemoved)
            show(.empty)
            throw CardError(.cardRemoved, cause: error)
        }
    }

    private static let mayBeGone: Set<CardError.Kind> = [.noAnswer, .notTransacted, .cardRemoved]

    func release(session: Int, _ disposition: CardDisposition) async {
        try? await toTheEnd {
            try await self.turn.take()
            defer { self.turn.pass() }
            guard (try? self.check(session)) != nil else { return }
            self.state.withLock { $0.end = .disconnected }
            guard disposition != .leave else { return }
            // A card that is found again has lost its state.
            self.forget(.disconnected)
            try await self.chip.configure(.field(isOn: false))
            self.state.withLock { $0.isFieldOn = false }
        }
    }

    func transmitToChip(_ command: [UInt8]) async throws -> [UInt8] {
        try await turn.take()
        defer { turn.pass() }
        try checkPresence()
        return try await link.transmit(command)
    }

    func lend<R: Sendable>(_ body: (PN532) async throws -> R) async throws -> R {
        try await turn.take()
        defer { turn.pass() }
        try checkPresence()
        forget(.cardReset)
        try await prepare()
        let result: Result<R, any Error>
        do { result = .success(try await body(chip)) } catch { result = .failure(error) }
        // However the card left, the next look begins from a cold start.
        state.withLock { $0.isFieldOn = false }
        try? await toTheEnd { [chip] in
            _ = try? await chip.release()
            try await chip.setParameters(.initial)
            try await chip.configure(.retries(atr: 0x01, psl: 0x01, passiveActivation: 0x01))
        }
        return try result.get()
    }

    private func check(_ session: Int) throws {
        let end = state.withLock { $0.session == session ? $0.end : .cardReset }
        if let end { throw CardError(end) }
    }

    private func checkPresence() throws {
        if state.withLock({ $0.isGone }) { throw CardError(.readerGone) }
    }

    /// Ends the session, if there is one.
    private func forget(_ reason: CardError.Kind) {
        state.withLock { state in
            state.end = state.end ?? reason
            (state.target, state.commands) = (nil, nil)
        }
    }

    private func coldStart() async throws {
        try await chip.cycleField()
        state.withLock { $0.isFieldOn = true }
        // A FeliCa card answers 20 ms after the field has come up (FeliCa Card User's Manual, 2.4.1).
        try await Time.sleep(for: .milliseconds(21))
    }

    private func find() async throws -> PN532Target? {
        for technology in Self.technologies {
            if let target = try await chip.listTargets(technology).first { return target }
        }
        return nil
    }

    /// Returns true if a selected card is still present.  An ISO/IEC 14443-4 card keeps its state; others are selected
    /// anew.
    private func isThere(_ target: PN532Target) async throws -> Bool {
        // A silent card may answer the second time.
        if target.speaksISODEP {
            if try await chip.senseCard() { return true }
            return try await chip.senseCard()
        }
        return try await find()?.card == target.card
    }

    // MARK: Presence

    /// Returns a stream of states, beginning with the present one.  The stream holds `keep`.
    func states(keep: @escaping @Sendable () -> Void) -> AsyncThrowingStream<SlotState, any Error> {
        let (stream, continuation) = AsyncThrowingStream<SlotState, any Error>.makeStream()
        let id: Int? = state.withLock { state in
            guard !state.isGone else { return nil }
            // The last state may have become wrong after the last stream ended.
            if state.streams.isEmpty {
                state.shown = nil
                state.watch?.cancel()
                state.watch = Task { [weak self] in
                    while !Task.isCancelled, await self?.look() == true { try? await Time.sleep(for: Self.interval) }
                }
            } else if let shown = state.shown {
                continuation.yield(shown)
            }
            state.streamCount += 1
            state.streams[state.streamCount] = continuation
            return state.streamCount
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        // In a task: a consumer that is cancelled holds its own lock here, and `show` wakes consumers with the slot's.
        continuation.onTermination = { [weak self] _ in
            Task {
                keep()
                // The end of the last stream may release the slot, outside the lock.
                let watch = self?.state.withLock { state in
                    state.streams[id] = nil
                    return state.streams.isEmpty ? state.watch : nil
                }
                watch?.cancel()
            }
        }
        return stream
    }

    /// Looks at the slot and reports changes to the streams.
    ///
    /// - Returns: false when there is nothing left to watch.
    private func look() async -> Bool {
        guard (try? await turn.take()) != nil else { return false }
        defer { turn.pass() }
        let (target, isConnected, isFieldOn) = state.withLock { ($0.target, $0.end == nil, $0.isFieldOn) }
        do {
            if let target {
                // Looking for a storage card erases its keys.
                if isConnected && !target.speaksISODEP { return true }
                if try await isThere(target) {
                    show(.card(target.atr, exclusivelyHeld: false))
                    return true
                }
                forget(.cardRemoved)
                show(.empty)
            }
            if !isFieldOn { try await coldStart() }
            let found = try await find()
            state.withLock { $0.target = found }
            show(found.map { .card($0.atr, exclusivelyHeld: false) } ?? .empty)
        } catch let error as CardError where error.kind == .readerGone || error.kind == .disconnected {
            return false
        } catch is CancellationError {
            return false
        } catch {
            show(.unknown)
        }
        return true
    }

    private func show(_ slotState: SlotState) {
        state.withLock { state in
            guard slotState != state.shown else { return }
            state.shown = slotState
            for stream in state.streams.values { stream.yield(slotState) }
        }
    }
}
