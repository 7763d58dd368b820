import SmartCard

/// The bulk endpoints of a CCID interface: one command after the other, each with its own bSeq, and its answer.
///
/// Nothing waits in here.  A command moves on when a transfer completes, on the thread that completes it, and the task
/// that wants the answer is resumed once.  Readers do not take kindly to commands cut short; so one whose task is
/// cancelled runs on to its end, unseen, and the next one goes out after it.
final class CCIDPipe: Sendable {
    private struct State {
        var sequence: UInt8
        var running: Running?
        var waiting: [Job] = []
        /// Endpoints that have to be cleared before the next command.
        var stalled: Set<UInt8> = []
    }

    /// The command on the wire.
    private struct Running {
        let job: Job
        var exchange: CCIDExchange
        var readDeadline: ContinuousClock.Instant
        let lastDeadline: ContinuousClock.Instant
        var isWriting = true
        var isReading = true
        var result: Result<CCIDAnswer, CardError>?
    }

    private struct Job: Sendable {
        let command: CCIDCommand
        let timeout: Duration
        let delivery: Delivery<CCIDAnswer>
    }

    let link: any USBLink
    let function: CCIDFunction
    let quirks: Set<ReaderQuirk>
    let timeouts: CCIDTimeouts
    /// Where the interfaces of a device take turns, theirs.
    private let deviceTurn: Turn?
    private let readSize: Int
    private let state: Lock<State>

    /// - Parameter sequence: the bSeq to begin with.  Two sessions should not begin alike: an answer that the last one
    ///   left behind would pass for one of this.
    /// - Parameter deviceTurn: shared by the interfaces of a device that cannot take commands at the same time.
    init(
        _ link: any USBLink, _ function: CCIDFunction, quirks: Set<ReaderQuirk>, timeouts: CCIDTimeouts,
        sequence: UInt8, deviceTurn: Turn? = nil
    ) {
        self.deviceTurn = deviceTurn
        (self.link, self.function, self.quirks, self.timeouts) = (link, function, quirks, timeouts)
        let packets = function.descriptor.maximumAnswer / function.packetSize + 1
        readSize = packets * function.packetSize
        state = Lock(State(sequence: sequence))
    }

    /// Sends a command and returns its answer, be it a success or a failure.
    ///
    /// - Parameter timeout: how long the reader may take, and once more for each time that it asks for.
    /// - Throws: `CardError` of kind `readerGone`, `readerTimeout`, `malformedAnswer`, `notTransacted`;
    ///   `CancellationError` at once when the task is cancelled.
    func perform(_ command: CCIDCommand, timeout: Duration? = nil) async throws -> CCIDAnswer {
        guard let deviceTurn else { return try await send(command, timeout) }
        return try await toTheEnd { [self] in
            try await deviceTurn.take()
            defer { deviceTurn.pass() }
            return try await send(command, timeout)
        }
    }

    private func send(_ command: CCIDCommand, _ timeout: Duration?) async throws -> CCIDAnswer {
        try await clearStalls()
        let timeout = timeout ?? timeouts.duration(of: command.kind)
        return try await Delivery<CCIDAnswer>.receive { delivery in
            let job = Job(command: command, timeout: timeout, delivery: delivery)
            let isFree = self.state.withLock { state in
                if state.running != nil { state.waiting.append(job) }
                return state.running == nil && self.prepare(job, &state)
            }
            if isFree { self.launch() }
        }
    }

    /// Throws away what the reader has still to say to somebody before us.
    func drain() async {
        for _ in 0..<CCIDExchange.mostStrangers {
            let bytes: [UInt8]? = await withCheckedContinuation { continuation in
                link.read(readSize, from: function.bulkIn, timeout: timeouts.drain) {
                    continuation.resume(returning: try? $0.get())
                }
            }
            if bytes == nil { return }
        }
    }

    private func clearStalls() async throws {
        let stalled = state.withLock { state in
            defer { state.stalled = [] }
            return state.stalled
        }
        for endpoint in stalled {
            do { try await link.clearHalt(endpoint) } catch { throw CardError(error) }
        }
    }

    // MARK: A command on its way

    /// - Returns: true; `launch` is due, outside the lock.
    private func prepare(_ job: Job, _ state: inout State) -> Bool {
        state.sequence &+= 1
        let now = ContinuousClock.now
        state.running = Running(
            job: job,
            exchange: CCIDExchange(
                job.command, sequence: state.sequence, packetSize: function.packetSize,
                maximumAnswer: function.descriptor.maximumAnswer, quirks: quirks),
            readDeadline: now + job.timeout, lastDeadline: now + max(timeouts.total, job.timeout))
        return true
    }

    private func launch() {
        guard let (message, timeout) = state.withLock({ $0.running.map { ($0.exchange.message, $0.job.timeout) } })
        else { return }
        if message[0] == CCIDCommand.Kind.abort.rawValue {
            // ABORT on the control endpoint and Abort on the bulk endpoint belong together (USB CCID 1.10, 5.3.1).
            link.request(0x01, value: UInt16(message[6]) << 8 | UInt16(message[5]), timeout: timeouts.abort) { _ in }
        }
        link.write(
            message, to: function.bulkOut,
            endsWithEmptyPacket: quirks.contains(.needsZeroLengthPacket)
                && message.count.isMultiple(of: function.packetSize), timeout: timeouts.write
        ) { self.written($0) }
        read(timeout)
    }

    private func read(_ timeout: Duration) {
        link.read(readSize, from: function.bulkIn, timeout: timeout) { self.read($0) }
    }

    private func written(_ result: Result<[UInt8], USBStatus>) {
        let cancelsReading = change { running, state in
            running.isWriting = false
            guard case .failure(let status) = result else { return false }
            if status == .pipe { state.stalled.insert(function.bulkOut) }
            running.result = running.result ?? .failure(CardError(status))
            return running.isReading
        }
        if cancelsReading == true { link.cancel(function.bulkIn) }
    }

    private func read(_ result: Result<[UInt8], USBStatus>) {
        let again: Duration?? = change { running, state in
            let now = ContinuousClock.now
            let step: CCIDExchange.Step
            switch result {
            case .success(let bytes): step = running.exchange.received(bytes)
            case .failure(.timeout): step = running.exchange.timedOut()
            case .failure(let status):
                if status == .pipe { state.stalled.insert(function.bulkIn) }
                running.result = running.result ?? .failure(CardError(status))
                running.isReading = false
                return nil
            }
            switch step {
            case .read where running.result == nil && now < running.readDeadline:
                return running.readDeadline - now
            case .readAnew(let multiplier) where running.result == nil && now < running.lastDeadline:
                running.readDeadline = min(now + running.job.timeout * Int(multiplier), running.lastDeadline)
                return running.readDeadline - now
            case .done(let answer): running.result = running.result ?? .success(answer)
            case .failed(let kind, let detail): running.result = running.result ?? .failure(CardError(kind, detail))
            case .read, .readAnew: running.result = running.result ?? .failure(CardError(.readerTimeout))
            }
            running.isReading = false
            return nil
        }
        if case .some(.some(let timeout)) = again { read(timeout) }
    }

    /// Changes the command on the wire, hands its result over as soon as there is one, and starts the next command when
    /// both transfers have ended.
    private func change<R: Sendable>(_ body: (inout Running, inout State) -> R) -> R? {
        let (value, delivery, hasNext) = state.withLock {
            state -> (R?, (Delivery<CCIDAnswer>, Result<CCIDAnswer, CardError>)?, Bool) in
            guard var running = state.running else { return (nil, nil, false) }
            let hadResult = running.result != nil
            let value = body(&running, &state)
            let delivery = hadResult ? nil : running.result.map { (running.job.delivery, $0) }
            guard running.result != nil, !running.isReading, !running.isWriting else {
                state.running = running
                return (value, delivery, false)
            }
            state.running = nil
            var hasNext = false
            while !hasNext, !state.waiting.isEmpty {
                let next = state.waiting.removeFirst()
                hasNext = next.delivery.isAwaited && prepare(next, &state)
            }
            return (value, delivery, hasNext)
        }
        if let (delivery, result) = delivery { delivery.deliver(result.mapError { $0 as any Error }) }
        if hasNext { launch() }
        return value
    }
}

/// Where a result and a cancellation meet: whichever is first resumes the task, the other does nothing.
final class Delivery<T: Sendable>: Sendable {
    private enum Phase {
        case new
        case awaited(CheckedContinuation<T, any Error>)
        case over
    }

    private let phase = Lock(Phase.new)

    /// Calls `start` and waits for what it, or somebody later, delivers.
    ///
    /// - Throws: `CancellationError`, at once, when the task is cancelled; `start` may not have been called then.
    static func receive(_ start: (Delivery) -> Void) async throws -> T {
        let delivery = Delivery()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isWanted = delivery.phase.withLock { phase in
                    guard case .new = phase else { return false }
                    phase = .awaited(continuation)
                    return true
                }
                if isWanted { start(delivery) } else { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            delivery.deliver(.failure(CancellationError()))
        }
    }

    var isAwaited: Bool {
        phase.withLock { if case .awaited = $0 { true } else { false } }
    }

    /// - Returns: whether anybody still waited for it.
    @discardableResult func deliver(_ result: Result<T, any Error>) -> Bool {
        let continuation: CheckedContinuation<T, any Error>? = phase.withLock { phase in
            defer { phase = .over }
            return if case .awaited(let continuation) = phase { continuation } else { nil }
        }
        continuation?.resume(with: result)
        return continuation != nil
    }
}

/// Runs `body` to its end, whether or not the task that waits for it is cancelled.
///
/// - Throws: what `body` throws; `CancellationError`, at once, when the task is cancelled.
func toTheEnd<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T {
    try await Delivery<T>.receive { delivery in
        Task {
            do { delivery.deliver(.success(try await body())) } catch { delivery.deliver(.failure(error)) }
        }
    }
}

/// Lets tasks through one after the other, in the order in which they came.
final class Turn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [Delivery<Void>] = []
    }

    private let state = Lock(State())

    /// - Throws: `CancellationError`, at once, when the task is cancelled; the turn is not taken then.
    func take() async throws {
        if state.withLock({ state in
            defer { state.isTaken = true }
            return !state.isTaken
        }) {
            return
        }
        try await Delivery<Void>.receive { delivery in
            let isFree = state.withLock { state in
                if state.isTaken { state.waiting.append(delivery) }
                defer { state.isTaken = true }
                return !state.isTaken
            }
            if isFree { hand(to: delivery) }
        }
    }

    func pass() {
        let next = state.withLock { state in
            state.isTaken = !state.waiting.isEmpty
            return state.isTaken ? state.waiting.removeFirst() : nil
        }
        if let next { hand(to: next) }
    }

    /// Whoever was cancelled while he waited has no use for the turn.
    private func hand(to delivery: Delivery<Void>) {
        if !delivery.deliver(.success(())) { pass() }
    }
}
