import SmartCard
import Synchronization
import USBDevices
import Waiting

/// The bulk endpoints of a CCID interface: one command at a time, each with its own bSeq, and its answer.
///
/// The pipe never blocks.  A command advances when a transfer completes, on the completing thread, and the waiting task
/// is resumed once.  A command whose task was canceled or whose time is over is aborted (USB CCID 1.10, 5.3.1).  If
/// the reader cannot abort, a canceled command runs to its end unobserved.  In both cases, the next command goes out
/// afterwards.
final class CCIDPipe: Sendable {
    private struct State {
        var running: Job?
        var waiting: [Job] = []
        /// The endpoints to clear before the next command.
        var stalled: Set<UInt8> = []
        /// True when no more commands are sent.
        var isClosing = false
        /// The callers that wait for the last answer.
        var closers: [Delivery<Void>] = []
        weak var owner: (any AnyObject & Sendable)?
        var readerIsGone: (@Sendable () -> Void)?
    }

    /// A command, or all commands of an APDU.
    private final class Job: @unchecked Sendable {
        // Unchecked: mutable state is accessed with the pipe's lock held.
        let timeout: Duration
        let delivery = Delivery<Outcome>()
        /// The stopwatch of the sending task.
        let stopwatch = ExchangeStopwatch.current
        /// Held until the job is over or forgotten.
        var deviceTurn: Turn.Hold?
        /// Kept until the answer has come: see ``CCIDPipe/owner``.
        let owner: (any AnyObject & Sendable)?

        /// The next command to send, when both endpoints are free.
        var next: CCIDCommand?
        /// The exchange that continues after an answer, if any.
        var apdu: APDUExchange?
        /// The command on the wire.
        var exchange: CCIDExchange?
        let slot: UInt8
        var isWriting = false
        var isReading = false
        /// The time just before the command went to libusb.  The end of writing would be wrong: a thread that learns of
        /// it late would make the card appear faster.  A kernel rejects a card that answers too soon, but retries one
        /// that answers late.
        var start: Time.Instant
        var readDeadline: Time.Instant
        var lastDeadline: Time.Instant
        var abort = Abort.none
        var result: Result<CCIDAnswer, CardError>?

        init(
            _ command: CCIDCommand, _ apdu: APDUExchange?, timeout: Duration, owner: (any AnyObject & Sendable)?,
            deviceTurn: Turn.Hold?
        ) {
            (next, self.apdu, slot) = (command, apdu, command.slot)
            (self.timeout, self.owner, self.deviceTurn) = (timeout, owner, deviceTurn)
            (start, readDeadline, lastDeadline) = (Self.noTime, Self.noTime, Self.noTime)
        }

        /// Before the first command.
        private static let noTime = Time.now

        /// True if ``next`` can go out.
        var isDue: Bool {
            next != nil && result == nil && !isReading && !isWriting && (abort == .none || abort == .refused)
        }

        var isOver: Bool { result != nil && !isReading && !isWriting && abort != .wanted && abort != .requested }

        func end(_ result: Result<CCIDAnswer, CardError>) { self.result = self.result ?? result }
    }

    /// The progress of aborting a command.
    private enum Abort {
        case none
        /// The command is still being written.
        case wanted
        /// ABORT is on the control endpoint.
        case requested
        /// PC_to_RDR_Abort is on the bulk endpoints in place of the command.
        case running
        /// The reader does not support ABORT.
        case refused
    }

    private final class Sequence: Sendable {
        private let last: Atomic<UInt8>

        init(_ last: UInt8) { self.last = Atomic(last) }

        func next() -> UInt8 { last.wrappingAdd(1, ordering: .relaxed).newValue }
    }

    private struct Outcome: Sendable {
        let result: Result<CCIDAnswer, CardError>
        let apdu: APDUExchange?
    }

    /// The action to take outside the lock.
    private enum Action {
        case none
        case read(Duration)
        case cancelReading
        /// Writes a message and reads for this long, unless a transfer is already reading.
        case write([UInt8], Duration?)
        case requestAbort(sequence: UInt8)
    }

    let link: any USBLink
    let function: CCIDFunction
    let quirks: Set<ReaderQuirk>
    let timeLimits: CCIDTimeLimits
    /// The device's turn, if its interfaces must take turns.
    private let deviceTurn: Turn?
    private let readSize: Int
    /// Transfers complete on a thread of the bus.
    private let time = Time.current
    /// The bSeq, which counts the messages of all slots.
    private let sequence: Sequence
    private let state = Lock(State())

    /// - Parameters:
    ///   - sequence: the first bSeq.  Two sessions should begin differently: an answer left over from the last session
    ///     would match a command of this one.
    ///   - deviceTurn: shared by the interfaces of a device that cannot take commands at the same time.
    init(
        _ link: any USBLink, _ function: CCIDFunction, quirks: Set<ReaderQuirk>, timeLimits: CCIDTimeLimits,
        sequence: UInt8, deviceTurn: Turn? = nil
    ) {
        self.deviceTurn = deviceTurn
        (self.link, self.function, self.quirks, self.timeLimits) = (link, function, quirks, timeLimits)
        let packets = function.descriptor.maximumAnswer / function.packetSize + 1
        readSize = packets * function.packetSize
        self.sequence = Sequence(sequence)
    }

    /// Creates a pipe for one slot of several that take commands at once.
    private init(_ pipe: CCIDPipe, over link: any USBLink, places: Turn) {
        (self.link, deviceTurn, sequence) = (link, places, pipe.sequence)
        (function, quirks, timeLimits, readSize) = (pipe.function, pipe.quirks, pipe.timeLimits, pipe.readSize)
    }

    /// Returns a pipe for each slot: this one, unless the reader takes commands for several slots at once
    /// (bMaxCCIDBusySlots, USB CCID 1.10, 5.1).  In that case, do not use this pipe any more.
    func pipesOfSlots() -> [CCIDPipe] {
        let descriptor = function.descriptor
        let busySlots = min(Int(descriptor.maximumBusySlots), descriptor.slotCount)
        guard busySlots > 1, deviceTurn == nil else { return Array(repeating: self, count: descriptor.slotCount) }
        let endpoints = SharedEndpoints(link, function, readSize: readSize)
        let places = Turn(places: busySlots)
        return (0..<descriptor.slotCount).map { slot in
            CCIDPipe(self, over: endpoints.link(for: UInt8(clamping: slot)), places: places)
        }
    }

    /// The object that is kept alive while an answer is outstanding.
    var owner: (any AnyObject & Sendable)? {
        get { state.withLock { $0.owner } }
        set { state.withLock { $0.owner = newValue } }
    }

    /// Called when a command finds that the reader is gone.
    var readerIsGone: (@Sendable () -> Void)? {
        get { state.withLock { $0.readerIsGone } }
        set { state.withLock { $0.readerIsGone = newValue } }
    }

    /// Sends a command and returns its answer, success or failure.
    ///
    /// - Parameter timeout: the time for the reader, extended by the same for each time extension that it requests.
    /// - Throws: `CardError` of kind `readerGone`, `readerTimeout`, `malformedAnswer`, `notTransacted`;
    ///   `CancellationError` at once when the task is cancelled.
    nonisolated(nonsending) func perform(_ command: CCIDCommand, timeout: Duration? = nil) async throws -> CCIDAnswer {
        try await send(command, nil, timeout: timeout ?? timeLimits.duration(of: command.kind)).result.get()
    }

    /// Exchanges an APDU: sends `command` and the commands that `apdu` derives from each answer, until it is done.  A
    /// canceled task or an expired time leaves no partial exchange behind.
    ///
    /// - Parameter timeout: applies to each command, as in ``perform(_:timeout:)``.
    /// - Returns: the last answer, with all bytes of the response; or the failed answer.
    nonisolated(nonsending) func exchange(
        _ apdu: inout APDUExchange, _ command: CCIDCommand, timeout: Duration
    ) async throws -> CCIDAnswer {
        let outcome = try await send(command, apdu, timeout: timeout)
        apdu = outcome.apdu ?? apdu
        return try outcome.result.get()
    }

    private nonisolated(nonsending) func send(
        _ command: CCIDCommand, _ apdu: APDUExchange?, timeout: Duration
    ) async throws -> Outcome {
        let (stalled, owner) = state.withLock { state in
            defer { state.stalled = [] }
            return (state.stalled, state.owner)
        }
        for endpoint in stalled {
            do { try await link.clearHalt(endpoint) } catch { throw CardError(error) }
        }
        let job = Job(command, apdu, timeout: timeout, owner: owner, deviceTurn: try await deviceTurn?.hold())
        return try await job.delivery.receive {
            let action = self.state.withLock { state -> Action? in
                guard !state.isClosing else { return nil }
                guard job.delivery.isAwaited else { return Action.none }
                guard state.running == nil else {
                    state.waiting.append(job)
                    return Action.none
                }
                state.running = job
                return self.begin(job, &state)
            }
            if let action {
                self.perform(action, job)
            } else {
                job.delivery.deliver(.failure(CardError(.disconnected)))
            }
        } onCancel: {
            self.abandon(job)
        }
    }

    /// Gives up all commands and sends no more; callers that wait fail at once.  A command that the reader already has is
    /// aborted, or its answer is awaited: the reader's next owner would read it first.
    ///
    /// - Returns: false if an answer is still outstanding after ``CCIDTimeLimits/settling``.
    func settle() async -> Bool {
        let isIdle = Delivery<Void>()
        let (running, waiting) = state.withLock { state in
            state.isClosing = true
            if state.running == nil { isIdle.deliver(.success(())) } else { state.closers.append(isIdle) }
            defer { state.waiting = [] }
            return (state.running, state.waiting)
        }
        for job in waiting + [running].compactMap(\.self) {
            job.delivery.deliver(.failure(CardError(.disconnected)))
        }
        if let running {
            abandon(running)
            // What cannot be aborted is over with its next answer.
            change(running) { _ in
                if running.abort == .none || running.abort == .refused {
                    running.end(.failure(CardError(.disconnected)))
                }
                return .none
            }
        }
        return (try? await isIdle.receive(within: timeLimits.settling)) != nil
    }

    /// Discards answers meant for an earlier user.
    func drain() async {
        for _ in 0..<CCIDExchange.mostStrangers {
            let bytes: [UInt8]? = await withCheckedContinuation { continuation in
                link.read(readSize, from: function.bulkIn, timeout: timeLimits.drain) {
                    continuation.resume(returning: try? $0.get())
                }
            }
            if bytes == nil { return }
        }
    }

    // MARK: A command on its way

    /// Changes the job on the wire, delivers its result as soon as there is one, takes the resulting action, and starts
    /// the next job when this one is over.
    private func change(_ job: Job, _ body: (inout State) -> Action) {
        let (action, outcome, next) = state.withLock { state -> (Action, Outcome?, (Action, Job)?) in
            guard state.running === job else { return (.none, nil, nil) }
            let hadResult = job.result != nil
            var action = body(&state)
            let outcome = hadResult ? nil : job.result.map { Outcome(result: $0, apdu: job.apdu) }
            if job.isDue { action = begin(job, &state) }
            guard job.isOver else { return (action, outcome, nil) }
            (state.running, job.deviceTurn) = (nil, nil)
            for closer in state.closers { closer.deliver(.success(())) }
            state.closers = []
            while !state.waiting.isEmpty {
                let next = state.waiting.removeFirst()
                guard next.delivery.isAwaited else { continue }
                state.running = next
                return (action, outcome, (begin(next, &state), next))
            }
            return (action, outcome, nil)
        }
        if let outcome {
            if case .failure(let error) = outcome.result, error.kind == .readerGone { readerIsGone?() }
            job.delivery.deliver(.success(outcome))
        }
        perform(action, job)
        if let (action, next) = next { perform(action, next) }
    }

    private func perform(_ action: Action, _ job: Job) {
        switch action {
        case .none: break
        case .read(let timeout): read(timeout, job)
        case .cancelReading: link.cancel(function.bulkIn)
        case .write(let message, let timeout):
            link.write(message, to: function.bulkOut, timeout: timeLimits.write) { self.written($0, job) }
            if let timeout { read(timeout, job) }
        case .requestAbort(let sequence):
            link.request(
                0x01, value: UInt16(sequence) << 8 | UInt16(job.slot), timeout: timeLimits.abort
            ) { self.abortIsRequested($0, sequence, job) }
        }
    }

    /// Begins the next command of a job.
    private func begin(_ job: Job, _ state: inout State) -> Action {
        guard var command = job.next else { return .none }
        command.slot = job.slot
        let exchange = CCIDExchange(
            command, sequence: sequence.next(), packetSize: function.packetSize,
            maximumAnswer: function.descriptor.maximumAnswer, quirks: quirks)
        let now = time.now
        let timeout = job.timeout * command.waitingTimes
        (job.next, job.exchange) = (nil, exchange)
        (job.start, job.readDeadline, job.lastDeadline) = (now, now + timeout, now + max(timeLimits.total, timeout))
        (job.isWriting, job.isReading) = (true, true)
        return .write(exchange.message, timeout)
    }

    private func read(_ timeout: Duration, _ job: Job) {
        link.read(readSize, from: function.bulkIn, timeout: timeout) { self.read($0, job) }
    }

    private func written(_ result: Result<[UInt8], USBStatus>, _ job: Job) {
        change(job) { state in
            job.isWriting = false
            switch result {
            case .success:
                return job.abort == .wanted ? requestAbort(job, &state) : .none
            case .failure(let status):
                if status == .pipe { state.stalled.insert(function.bulkOut) }
                if job.abort == .wanted { job.abort = .none }
                job.end(.failure(CardError(status)))
                return job.isReading ? .cancelReading : .none
            }
        }
    }

    private func read(_ result: Result<[UInt8], USBStatus>, _ job: Job) {
        let end = job.stopwatch.map { _ in time.now }
        change(job) { state in
            let step: CCIDExchange.Step?
            switch result {
            case .success(let bytes): step = job.exchange?.received(bytes)
            case .failure(.timeout): step = job.exchange?.timedOut()
            case .failure(let status):
                if status == .pipe { state.stalled.insert(function.bulkIn) }
                job.end(.failure(CardError(status)))
                step = nil
            }
            job.isReading = false
            switch step {
            case .done(let answer):
                if let end { job.stopwatch?.add(end - job.start) }
                received(answer, job)
            case .failed(let kind, let detail): job.end(.failure(CardError(kind, detail)))
            case .read:
                if let left = left(until: job.readDeadline, job) { return .read(left) }
            case .readAnew(let multiplier):
                job.readDeadline = min(time.now + job.timeout * Int(multiplier), job.lastDeadline)
                if let left = left(until: job.readDeadline, job) { return .read(left) }
            case nil: break
            }
            // The reader must not continue a command that no task waits for.
            guard case .failure(let error)? = job.result, error.kind == .readerTimeout else { return .none }
            return abort(job, &state)
        }
    }

    /// Returns the remaining time to read; nil, after ending the job, if there is none.
    private func left(until deadline: Time.Instant, _ job: Job) -> Duration? {
        let now = time.now
        guard job.result == nil, now < deadline else {
            job.end(.failure(CardError(.readerTimeout)))
            return nil
        }
        job.isReading = true
        return deadline - now
    }

    private func received(_ answer: CCIDAnswer, _ job: Job) {
        guard job.apdu != nil, answer.commandStatus == .done || job.apdu?.repairs(answer.error) == true else {
            return job.end(.success(answer))
        }
        switch job.apdu?.received(answer) {
        case .send(let command): job.next = command
        case .failed(let error): job.end(.failure(error))
        case .done(let response):
            var answer = answer
            answer.data = response
            job.end(.success(answer))
        case nil: break
        }
    }

    // MARK: Aborting

    /// Handles a job that no task waits for any more.
    private func abandon(_ job: Job) {
        change(job) { state in job.result == nil ? abort(job, &state) : .none }
    }

    /// Aborts commands that wait for a card or a person; the others are short.
    private func abort(_ job: Job, _ state: inout State) -> Action {
        let kind = job.exchange?.command
        guard job.abort == .none, !quirks.contains(.noAbort), kind == .xfrBlock || kind == .escape else { return .none }
        guard !job.isWriting else {
            job.abort = .wanted
            return .none
        }
        return requestAbort(job, &state)
    }

    /// ABORT on the control endpoint and PC_to_RDR_Abort on the bulk endpoint belong together: same slot, same bSeq.
    /// After the first, the reader fails every command except the second (USB CCID 1.10, 5.3.1).
    private func requestAbort(_ job: Job, _ state: inout State) -> Action {
        job.abort = .requested
        return .requestAbort(sequence: sequence.next())
    }

    private func abortIsRequested(_ result: Result<[UInt8], USBStatus>, _ sequence: UInt8, _ job: Job) {
        change(job) { state in
            guard case .success = result else {
                job.abort = .refused
                if state.isClosing { job.end(.failure(CardError(.disconnected))) }
                return .none
            }
            // Late answers to the command are skipped.
            job.exchange?.replace(with: CCIDCommand(.abort, slot: job.slot), sequence: sequence)
            (job.next, job.apdu, job.result) = (nil, nil, nil)
            job.abort = .running
            job.readDeadline = time.now + timeLimits.abort
            job.lastDeadline = job.readDeadline
            let isReading = job.isReading
            (job.isWriting, job.isReading) = (true, true)
            return .write(job.exchange?.message ?? [], isReading ? nil : timeLimits.abort)
        }
    }
}
