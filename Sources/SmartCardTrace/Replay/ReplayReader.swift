public import SmartCard
import Synchronization
import Waiting

/// A reader that plays a trace.
///
/// It answers as the recorded reader did.  A command without a recorded answer is an error; the reader never invents an
/// answer.
///
///     let reader = ReplayReader(try Trace(path: "payment.apdu"))
///     let report = try await terminal.perform(transaction, in: CardReaderField(reader)) { _ in }
///     try reader.checkPlayedThrough()
///
/// Its slot changes as the recorded one did: a change is visible after all calls recorded before it, while a program
/// watches.  At the end of the trace the reader is gone.
public final class ReplayReader: CardReader {
    /// The order in which commands get their answers.
    public enum Order: Hashable, Sendable {
        /// The calls must be those of the trace, in their order.
        case strict
        /// The command is looked up among all of the trace, under the application that is selected; asked for again it
        /// gets the next answer recorded for it, and when there are no more the last.  The card is always there.
        case keyed
    }

    /// The comparison of commands.
    public enum Comparison: Hashable, Sendable {
        /// Commands are equal if they agree in every byte.
        case exact
        /// Commands are equal if they agree apart from the data that differ between transactions.
        ///
        /// These are amounts, date, time, unpredictable number and transaction counter, at the places that the card's
        /// own PDOL, CDOL1, CDOL2, DDOL and UDOL give.
        case lenient
    }

    /// The duration of an answer.
    ///
    /// An `ExchangeStopwatch` always receives the recorded duration, so that a kernel that depends on it decides as in
    /// the recording.
    public enum Timing: Hashable, Sendable {
        case none
        /// The recorded duration, multiplied by this; values below zero count as zero.
        case recorded(scale: Double = 1)
    }

    public let identity: ReaderIdentity
    private let player: Player

    public init(
        _ trace: Trace, order: Order = .strict, comparison: Comparison = .exact, timing: Timing = .none
    ) {
        let script = ReplayScript(trace)
        identity = script.identity
        player = Player(script, of: trace, order: order, comparison: comparison, timing: timing)
    }

    public func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable { ReplayedStates(player: player) }

    /// - Throws: ``ReplayMismatch``, and the `CardError` that the trace has here.
    public func connect() async throws -> any CardConnection {
        ReplayedConnection(try player.connect(), player: player)
    }

    /// - Throws: ``ReplayMismatch``, and the `CardError` that the trace has here.
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try await player.exchange(.escape, command)
    }

    /// - Throws: ``ReplayMismatch`` if calls of the trace have not been made.  In keyed order there is no such thing.
    public func checkPlayedThrough() throws(ReplayMismatch) { try player.checkPlayedThrough() }
}

private final class ReplayedConnection: CardConnection {
    let atr: ATR
    let transmissionProtocol: TransmissionProtocol
    private let player: Player
    private let isOpen = Mutex(true)

    init(_ connection: ReplayScript.Connection, player: Player) {
        atr = connection.atr
        transmissionProtocol = connection.transmissionProtocol
        self.player = player
    }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try checkOpen()
        let answer = try await player.exchange(.apdu, command.bytes)
        do {
            return try ResponseAPDU(answer)
        } catch {
            throw CardError(.malformedAnswer, cause: error)
        }
    }

    func reset() async throws {
        try checkOpen()
        try player.reset()
    }

    func disconnect(_ disposition: CardDisposition) async {
        let wasOpen = isOpen.withLock { isOpen in
            defer { isOpen = false }
            return isOpen
        }
        if wasOpen { player.disconnect() }
    }

    private func checkOpen() throws(CardError) {
        guard isOpen.withLock({ $0 }) else { throw CardError(.disconnected) }
    }
}

// MARK: Playing

/// The state of a replay.
private final class Player: Sendable {
    /// The key for the lookup of a command in keyed order.
    private struct Key: Hashable {
        let layer: TraceEvent.Layer
        /// The last SELECT that succeeded since the card was reset.
        let selection: [UInt8]?
        let command: [UInt8]
    }

    /// The state of a card, as far as it affects the meaning of a command.
    private struct CardState {
        var selection: [UInt8]?
        var places = DataObjectPlaces()

        mutating func learn(_ step: ReplayScript.Step) {
            switch step {
            case .connect, .reset: self = CardState()
            case .exchange(let exchange):
                guard exchange.layer == .apdu, case .success(let answer)? = exchange.answer else { return }
                learn(answer, to: exchange.command)
            case .disconnect, .slot, .slotFailed: break
            }
        }

        private mutating func learn(_ answer: [UInt8], to command: [UInt8]) {
            guard let command = try? CommandAPDU(command), let response = try? ResponseAPDU(answer) else { return }
            places.learn(response, to: command)
            guard command.cla == 0x00, command.ins == 0xA4 else { return }
            switch response.status {
            case .success, .moreData, .warning: selection = command.bytes
            default: break
            }
        }
    }

    /// A call of the program.
    private enum Call {
        case connect, reset, disconnect
        case exchange(TraceEvent.Layer, [UInt8])

        func text(isHidden: Bool) -> String {
            switch self {
            case .connect: "connect"
            case .reset: "reset"
            case .disconnect: "disconnect"
            case .exchange(let layer, let command):
                ReplayScript.Exchange.text(layer, command, isHidden: isHidden)
            }
        }
    }

    /// A call, and the step that was due.  Words are made of it when somebody reads them.
    private struct Row {
        let recorded: ReplayScript.Step?
        /// The played call; nil for the recorded one.
        let played: Call?
    }

    private struct State {
        var position = 0
        /// In strict order, of the steps before ``learned``.
        var card = CardState()
        var learned = 0
        /// The last of the calls made.
        var rows: [Row] = []
        /// The number of answers given to each command, in keyed order.
        var given: [Key: Int] = [:]
        /// The sights of the slot so far; never ``Sight/wait``.
        var shown: [Sight] = []
    }

    private let script: ReplayScript
    private let trace: Trace
    private let order: ReplayReader.Order
    private let comparison: ReplayReader.Comparison
    private let scale: Double
    private let keyed: [Key: [ReplayScript.Exchange]]
    private let state = Mutex(State())
    private let changed = Signal()

    init(
        _ script: ReplayScript, of trace: Trace, order: ReplayReader.Order, comparison: ReplayReader.Comparison,
        timing: ReplayReader.Timing
    ) {
        self.script = script
        self.trace = trace
        self.order = order
        self.comparison = comparison
        scale =
            switch timing {
            case .none: 0
            case .recorded(let scale): scale.isFinite ? max(0, scale) : 0
            }
        var keyed: [Key: [ReplayScript.Exchange]] = [:]
        if order == .keyed {
            var card = CardState()
            for step in script.steps {
                // An answer that the recorded program did not wait for is unknown.
                if case .exchange(let exchange) = step, exchange.answer != nil {
                    keyed[Self.key(exchange.layer, exchange.command, card, comparison), default: []].append(exchange)
                }
                card.learn(step)
            }
        }
        self.keyed = keyed
        state.withLock { $0.shown = [.state(firstState)] }
    }

    /// The slot as it is before anything happens.
    private var firstState: SlotState {
        if order == .strict, case .slot(let state)? = script.steps.first { return state }
        return .card(script.card.atr, exclusivelyHeld: false)
    }

    private static func key(
        _ layer: TraceEvent.Layer, _ command: [UInt8], _ card: CardState, _ comparison: ReplayReader.Comparison
    ) -> Key {
        guard layer == .apdu else { return Key(layer: layer, selection: nil, command: command) }
        // SELECT by DF name means the same everywhere (ISO/IEC 7816-4, 11.2.2).
        let isSelection = command.starts(with: [0x00, 0xA4, 0x04])
        return Key(
            layer: layer, selection: isSelection ? nil : card.selection,
            command: compared(layer, command, card, comparison))
    }

    private static func compared(
        _ layer: TraceEvent.Layer, _ command: [UInt8], _ card: CardState, _ comparison: ReplayReader.Comparison
    ) -> [UInt8] {
        guard layer == .apdu, comparison == .lenient, let apdu = try? CommandAPDU(command) else { return command }
        return card.places.normalized(apdu)
    }

    // MARK: Calls

    func connect() throws -> ReplayScript.Connection {
        guard order == .strict, script.hasConnections || isConnectNext else {
            forget()
            return script.card
        }
        let result: Result<ReplayScript.Connection, CardError> = try call(.connect) { step, _ in
            if case .connect(let result) = step { result } else { nil }
        }
        return try result.get()
    }

    /// Also a trace whose card never answered has its failures to connect.
    private var isConnectNext: Bool {
        state.withLock { state in
            skipSlot(&state)
            if state.position < script.steps.count, case .connect = script.steps[state.position] { return true }
            return false
        }
    }

    func reset() throws {
        guard order == .strict else { return forget() }
        let result: Result<Void, CardError> = try call(.reset) { step, _ in
            if case .reset(let result) = step { result } else { nil }
        }
        try result.get()
    }

    /// The card was reset, and the trace does not have it.
    private func forget() {
        state.withLock { state in
            state.card = CardState()
            state.learned = state.position
        }
    }

    /// If the trace continues before it disconnects, the next call detects this.
    func disconnect() {
        guard order == .strict else { return }
        _ = take(.disconnect) { step, _ -> Bool? in
            if case .disconnect = step { true } else { nil }
        }
    }

    func exchange(_ layer: TraceEvent.Layer, _ command: [UInt8]) async throws -> [UInt8] {
        try Task.checkCancellation()
        let exchange =
            switch order {
            case .strict: try strict(layer, command)
            case .keyed: try lookUp(layer, command)
            }
        if scale > 0 {
            // A duration may be more than a hundred years here.
            let seconds = min((exchange.duration / .seconds(1)) * scale, 1e9)
            try await Time.sleep(for: .seconds(seconds))
        }
        guard let answer = exchange.answer else {
            let text = ReplayScript.Exchange.text(layer, command, isHidden: hidden.contains(exchange.event))
            throw mismatch { _, _ in "the trace ends before the answer to \(text)" }
        }
        ExchangeStopwatch.current?.add(exchange.duration)
        return try answer.get()
    }

    private func strict(_ layer: TraceEvent.Layer, _ command: [UInt8]) throws -> ReplayScript.Exchange {
        try call(.exchange(layer, command)) { step, state in
            guard case .exchange(let exchange) = step, exchange.layer == layer else { return nil }
            if exchange.command == command { return exchange }
            guard comparison == .lenient else { return nil }
            let card = card(&state)
            let (recorded, played) = (exchange.command, command)
            return Self.compared(layer, recorded, card, comparison) == Self.compared(layer, played, card, comparison)
                ? exchange : nil
        }
    }

    /// Returns the state of the card at the next call.  It is computed on demand: most commands match the trace byte
    /// for byte.
    private func card(_ state: inout State) -> CardState {
        for step in script.steps[state.learned..<state.position] { state.card.learn(step) }
        state.learned = state.position
        return state.card
    }

    private func lookUp(_ layer: TraceEvent.Layer, _ command: [UInt8]) throws -> ReplayScript.Exchange {
        let found: ReplayScript.Exchange? = state.withLock { state in
            let key = Self.key(layer, command, state.card, comparison)
            guard let answers = keyed[key] else { return nil }
            let index = state.given[key, default: 0]
            state.given[key] = index + 1
            let exchange = answers[min(index, answers.count - 1)]
            state.card.learn(.exchange(exchange))
            return exchange
        }
        guard let found else {
            note(recorded: nil, played: .exchange(layer, command))
            throw mismatch { "the trace has no answer to \($1 ?? "")" }
        }
        note(recorded: .exchange(found), played: nil)
        return found
    }

    /// The step that is due, if it is the one called for; then the next one is due.
    private func call<Value>(_ call: Call, _ match: (ReplayScript.Step, inout State) -> Value?) throws -> Value {
        if let value = take(call, match) { return value }
        throw mismatch { recorded, played in
            let due = recorded.map { "the trace has \($0) here" } ?? "the trace is at its end"
            return "\(due), the program asks for \(played ?? "")"
        }
    }

    /// Performs ``call(_:_:)``, but returns nil if another step is next.
    private func take<Value>(_ call: Call, _ match: (ReplayScript.Step, inout State) -> Value?) -> Value? {
        let (step, value) = state.withLock { state -> (ReplayScript.Step?, Value?) in
            skipSlot(&state)
            guard state.position < script.steps.count else { return (nil, nil) }
            let step = script.steps[state.position]
            guard let value = match(step, &state) else { return (step, nil) }
            state.position += 1
            return (step, value)
        }
        guard let value else {
            note(recorded: step, played: call)
            return nil
        }
        note(recorded: step, played: nil)
        changed.send()
        return value
    }

    private func note(recorded: ReplayScript.Step?, played: Call?) {
        state.withLock { state in
            if state.rows.count == ReplayMismatch.maximumRows { state.rows.removeFirst() }
            state.rows.append(Row(recorded: recorded, played: played))
        }
    }

    /// - Parameter reason: makes the words of those of the last row.
    private func mismatch(_ reason: (_ recorded: String?, _ played: String?) -> String) -> ReplayMismatch {
        let rows = rows(hiding: hidden)
        return ReplayMismatch(reason: reason(rows.last?.recorded, rows.last?.played), rows: rows)
    }

    /// The events of the trace that hold account numbers.  Looked for when words are made of them.
    private var hidden: Set<Int> { Set(TraceRedaction.eventsWithAccountNumbers(in: trace)) }

    /// The calls so far.  Of those that hold account numbers, or parts of one, no more than the header is shown.
    private func rows(hiding hidden: Set<Int>) -> [ReplayMismatch.Row] {
        let rows = state.withLock { $0.rows }
        var secrets = TraceSecrets()
        secrets.learn(from: trace)
        // The program's commands and answers form a separate trace.
        var played = Trace()
        var commands: [Int] = []
        for row in rows {
            commands.append(played.events.count)
            switch (row.played, row.recorded) {
            case (.exchange(let layer, let command)?, _):
                played.events.append(TraceEvent(at: .zero, .sent(layer, command)))
                // Nothing was answered.
                played.events.append(TraceEvent(at: .zero, .failed(.exchange(layer), .init(.other))))
            case (nil, .exchange(let exchange)?):
                played.events.append(TraceEvent(at: .zero, .sent(exchange.layer, exchange.command)))
                let answer: TraceEvent.What =
                    if case .success(let bytes)? = exchange.answer {
                        .received(exchange.layer, bytes)
                    } else {
                        .failed(.exchange(exchange.layer), .init(.other))
                    }
                played.events.append(TraceEvent(at: .zero, answer))
            default: break
            }
        }
        let hiddenPlayed = Set(TraceRedaction.eventsWithAccountNumbers(in: played, knowing: secrets))
        return zip(rows, commands).map { row, command in
            let recorded = row.recorded?.text(hiding: hidden)
            return ReplayMismatch.Row(
                recorded: recorded, played: row.played?.text(isHidden: hiddenPlayed.contains(command)) ?? recorded)
        }
    }

    func checkPlayedThrough() throws(ReplayMismatch) {
        guard order == .strict else { return }
        let left = script.steps[state.withLock { $0.position }...].filter { step in
            switch step {
            // Giving back the card changes nothing that follows.
            case .slot, .slotFailed, .disconnect: false
            default: true
            }
        }
        guard !left.isEmpty else { return }
        let hidden = hidden
        let texts = left.prefix(ReplayMismatch.maximumRows / 2).map { $0.text(hiding: hidden) }
        let rows = rows(hiding: hidden) + texts.map { .init(recorded: $0, played: nil) }
        throw ReplayMismatch(
            reason: "\(left.count) calls of the trace were not made, the first of them \(texts.first ?? "")",
            rows: rows.suffix(ReplayMismatch.maximumRows))
    }

    // MARK: The slot

    /// Skips the slot's changes before the next call.
    private func skipSlot(_ state: inout State) { while showNext(&state) {} }

    /// Shows the next change of the slot, if it is due.
    private func showNext(_ state: inout State) -> Bool {
        guard state.position < script.steps.count else { return false }
        switch script.steps[state.position] {
        case .slot(let slot):
            state.position += 1
            if case .state(slot)? = state.shown.last { break }
            state.shown.append(.state(slot))
        case .slotFailed(let error):
            state.position += 1
            state.shown.append(.end(error.kind == .readerGone ? .success(()) : .failure(error)))
        default: return false
        }
        return true
    }

    enum Sight {
        case state(SlotState)
        /// The slot cannot be watched any longer by this watcher.
        case end(Result<Void, CardError>)
        case wait
    }

    /// Returns the sight of the slot at the place `index`, which happens now if it is next.
    ///
    /// - Parameter index: nil for a new watcher, which sees the present state, or the next one if the last sight is an
    ///   end,
    ///   because the reader may have returned.
    func look(at index: Int?) -> (sight: Sight, index: Int) {
        let (sight, place, isNew) = state.withLock { state -> (Sight, Int, Bool) in
            var isNew = false
            if index == nil, order == .strict, case .end? = state.shown.last { isNew = showNext(&state) }
            let place = index ?? state.shown.count - 1
            while place >= state.shown.count, order == .strict, showNext(&state) { isNew = true }
            if place < state.shown.count { return (state.shown[place], place, isNew) }
            // In keyed order the card stays.
            let isOver = order == .strict && state.position >= script.steps.count
            return (isOver ? .end(.success(())) : .wait, place, isNew)
        }
        if isNew { changed.send() }
        return (sight, place)
    }

    /// Waits until something has happened, or the task is canceled.
    func waitForChange(after index: Int) async {
        await changed.wait { state.withLock { canShow($0, index) } }
    }

    /// Returns true if ``look(at:)`` has a sight at `index`.
    private func canShow(_ state: State, _ index: Int) -> Bool {
        if index < state.shown.count { return true }
        guard order == .strict else { return false }
        guard state.position < script.steps.count else { return true }
        switch script.steps[state.position] {
        case .slot, .slotFailed: return true
        default: return false
        }
    }

}

private struct ReplayedStates: AsyncSequence, Sendable {
    let player: Player

    struct AsyncIterator: AsyncIteratorProtocol {
        let player: Player
        /// The place of the next sight; nil before the first.
        var index: Int?

        mutating func next() async throws -> SlotState? { try await next(isolation: nil) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> SlotState? {
            while true {
                try Task.checkCancellation()
                let (sight, place) = player.look(at: index)
                index = place
                switch sight {
                case .state(let state):
                    index = place + 1
                    return state
                case .end(let result):
                    try result.get()
                    return nil
                case .wait: await player.waitForChange(after: place)
                }
            }
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(player: player) }
}
