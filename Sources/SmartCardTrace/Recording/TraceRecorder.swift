public import SmartCard
import Synchronization
import Waiting

/// A recorder of the traffic between a program and a reader, which it does not change.
///
///     let recorder = TraceRecorder(try TraceWriter(path: "payment.apdu"))
///     let recorded = recorder.recording(reader)    // a CardReader like the one it was given
///
/// A trace covers one slot: a recorder takes one reader, or one bare channel.
public final class TraceRecorder: Sendable {
    private struct State {
        var writer: TraceWriter
        var failure: (any Error)?
        var slot: SlotState?
        /// The time of the event that was written last.
        var time = Duration.zero

        mutating func write(_ event: TraceEvent) {
            do {
                try writer.write(event)
            } catch let error as TraceError where error.reason == .lineTooLong {
                // One event, not those after it.
                write(TraceEvent(at: event.time, .note("an event is left out: \(error)")))
            } catch {
                failure = error
            }
        }
    }

    private let state: Mutex<State>
    /// Exchanges end on any thread.
    private let time = Time.current
    private let start = Time.now

    public init(_ writer: sending TraceWriter) { state = Mutex(State(writer: writer)) }

    /// Why recording has stopped, if it has: the trace could not be written.  Exchanges go on without it.
    public var failure: (any Error)? { state.withLock { $0.failure } }

    /// Writes an event of this moment, such as a note.
    public func record(_ what: TraceEvent.What) { record(what, at: nil) }

    /// - Parameter time: since the beginning, no earlier than the event before and no later than now; nil: now.
    /// - Returns: that time.
    @discardableResult
    fileprivate func record(_ what: TraceEvent.What, at time: Duration?) -> Duration {
        state.withLock { state in
            // Read under the lock, so that no later event is written first.
            let now = self.time.now - start
            guard state.failure == nil else { return now }
            // Each program that watches the slot receives the same change.
            switch what {
            case .slot(let slot):
                guard slot != state.slot else { return now }
                state.slot = slot
            // Any later state is new.
            case .failed(.slot, _): state.slot = nil
            default: break
            }
            state.time = min(max(time ?? now, state.time), now)
            state.write(TraceEvent(at: state.time, what))
            return state.time
        }
    }

    /// Records an exchange.  The time of its answer is the transport's, if that reports it to an `ExchangeStopwatch`,
    /// so that decisions by that time repeat on replay.
    fileprivate func recordingExchange<Answer>(
        _ layer: TraceEvent.Layer, _ command: [UInt8], answer bytes: (Answer) -> [UInt8],
        _ body: () async throws -> Answer
    ) async throws -> Answer {
        let stopwatch = ExchangeStopwatch.current
        let before = stopwatch?.told ?? .zero
        let sent = record(.sent(layer, command), at: nil)
        let answer = try await recordingFailure(of: .exchange(layer), body)
        record(.received(layer, bytes(answer)), at: (stopwatch?.told).map { sent + $0 - before })
        return answer
    }

    /// Returns `reader`, recorded: its identity, the slot's states while it is watched, connections and their
    /// exchanges, and commands to the reader itself.
    public func recording(_ reader: any CardReader) -> any CardReader {
        record(.reader(reader.identity))
        return RecordedReader(base: reader, recorder: self)
    }

    /// `channel`, recorded.
    public func recording(_ channel: any CardChannel) -> any CardChannel {
        RecordedChannel(base: channel, recorder: self)
    }

    /// Records the failure of `operation`, if `body` fails.
    fileprivate func recordingFailure<Result>(
        of operation: TraceEvent.Operation, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            record(.failed(operation, .init(error)))
            throw error
        }
    }
}

extension TraceEvent.Failure {
    init(_ error: any Error) {
        switch error {
        case is CancellationError: self.init(nil)
        case let error as CardError:
            let details = [error.detail, error.cause.map { "\($0)" }].compactMap(\.self)
            self.init(error.kind, details.isEmpty ? nil : details.joined(separator: ": "))
        default: self.init(.other, "\(error)")
        }
    }
}

private struct RecordedReader: CardReader, MuteCardReader {
    let base: any CardReader
    let recorder: TraceRecorder
    private let turn = Turn()

    init(base: any CardReader, recorder: TraceRecorder) {
        self.base = base
        self.recorder = recorder
    }

    var identity: ReaderIdentity { base.identity }

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        RecordedStates(base: base.slotStates(), recorder: recorder)
    }

    func connect() async throws -> any CardConnection {
        let card = try await recorder.recordingFailure(of: .connect) { try await base.connect() }
        recorder.record(.connected(card.atr, card.transmissionProtocol))
        return RecordedConnection(card, recorder: recorder)
    }

    func powerMuteCard() async { await (base as? any MuteCardReader)?.powerMuteCard() }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try await turn.take()
        defer { turn.pass() }
        return try await recorder.recordingExchange(.escape, command, answer: { $0 }) {
            try await base.transmitToReader(command)
        }
    }
}

private struct RecordedChannel: CardChannel {
    let base: any CardChannel
    let recorder: TraceRecorder

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try await recorder.recordingExchange(.apdu, command.bytes, answer: \.bytes) { try await base.transmit(command) }
    }
}

private struct RecordedStates: AsyncSequence, Sendable {
    let base: any AsyncSequence<SlotState, any Error> & Sendable
    let recorder: TraceRecorder

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: any AsyncIteratorProtocol<SlotState, any Error>
        let recorder: TraceRecorder

        mutating func next() async throws -> SlotState? { try await next(isolation: nil) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> SlotState? {
            do {
                let state = try await base.next(isolation: actor)
                if let state {
                    recorder.record(.slot(state))
                } else if !Task.isCancelled {
                    recorder.record(.failed(.slot, .init(.readerGone)))
                }
                return state
            } catch {
                // Who stops watching says nothing of the slot.
                if !(error is CancellationError) { recorder.record(.failed(.slot, .init(error))) }
                throw error
            }
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator(), recorder: recorder) }
}

/// A connection, whose exchanges are recorded until it is disconnected.
private final class RecordedConnection: CardConnection {
    private let base: any CardConnection
    private let channel: any CardChannel
    private let recorder: TraceRecorder
    private let turn = Turn()
    private let isOpen = Mutex(true)

    init(_ base: any CardConnection, recorder: TraceRecorder) {
        self.base = base
        channel = recorder.recording(base as any CardChannel)
        self.recorder = recorder
    }

    var atr: ATR { base.atr }
    var transmissionProtocol: TransmissionProtocol { base.transmissionProtocol }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        guard isOpen.withLock({ $0 }) else { return try await base.transmit(command) }
        // One after the other, so that each answer follows its own command.
        try await turn.take()
        defer { turn.pass() }
        return try await channel.transmit(command)
    }

    func reset() async throws {
        guard isOpen.withLock({ $0 }) else { return try await base.reset() }
        try await turn.take()
        defer { turn.pass() }
        try await recorder.recordingFailure(of: .reset) { try await base.reset() }
        recorder.record(.reset)
    }

    func disconnect(_ disposition: CardDisposition) async {
        let wasOpen = isOpen.withLock { isOpen in
            defer { isOpen = false }
            return isOpen
        }
        await base.disconnect(disposition)
        if wasOpen { recorder.record(.disconnected(disposition)) }
    }
}
