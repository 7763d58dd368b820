public import SmartCard
import Synchronization
import Waiting

/// A ``SoftwareACR122U`` with its own host in this process: no bus, no driver, no service.
///
///     let reader = VirtualReader(SoftwareACR122U())
///     reader.device.insert(card)
///     let connection = try await reader.connect()
///
/// The host speaks CCID with the reader as a driver does, and trusts it as little.
public final class VirtualReader: CardReader {
    /// The software reader, which takes cards and faults.
    public let device: SoftwareACR122U
    public let identity: ReaderIdentity
    private let slot: VirtualSlot
    private let watch: Task<Void, Never>

    /// - Parameters:
    ///   - device: the software reader, which nobody else uses.
    ///   - limit: the longest wait for an answer, and for each extension that the reader requests.
    public init(_ device: SoftwareACR122U, limit: Duration = .seconds(3)) {
        self.device = device
        identity = ReaderIdentity(
            name: "ACS ACR122U PICC Interface 00 00", backend: .virtual, vendor: "ACS")
        let slot = VirtualSlot(device, limit: limit)
        self.slot = slot
        watch = Task { await slot.watch() }
    }

    deinit { watch.cancel() }

    public func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        // The stream keeps the reader, and so the watch, alive.
        slot.states { [self] in _ = self }
    }

    /// Powers the card with IccPowerOn.  An earlier connection ends with `cardReset`.
    public func connect() async throws -> any CardConnection {
        let (atr, session) = try await slot.powerOn()
        return VirtualConnection(slot: slot, atr: atr, session: session)
    }

    /// Sends a command of class FF; the reader passes all others on to the card.
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        guard command.first == 0xFF else { throw CardError(.unsupported, "commands to the reader are of class FF") }
        return try await slot.transmitToReader(command)
    }
}

/// A card on a software reader, between one IccPowerOn and the next.
private final class VirtualConnection: CardConnection {
    let atr: ATR
    let transmissionProtocol = TransmissionProtocol.t1
    private let slot: VirtualSlot
    /// The session of the slot, nil when disconnected.
    private let session: Mutex<Int?>

    init(slot: VirtualSlot, atr: ATR, session: Int) {
        self.slot = slot
        self.atr = atr
        self.session = Mutex(session)
    }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try await slot.transmit(command, session: openSession())
    }

    func reset() async throws {
        let new = try await slot.powerOn(insteadOf: openSession()).session
        session.withLock { if $0 != nil { $0 = new } }
    }

    func disconnect(_ disposition: CardDisposition) async {
        let session = session.withLock { session in
            defer { session = nil }
            return session
        }
        guard let session, disposition != .leave else { return }
        await slot.powerOff(session: session)
    }

    private func openSession() throws -> Int {
        guard let session = session.withLock({ $0 }) else { throw CardError(.disconnected) }
        return session
    }
}

/// The driver's side of the one slot.
private final class VirtualSlot: Sendable {
    private struct State {
        var sequence: UInt8 = 0
        /// Counts power-ups; an increment ends earlier connections.
        var session = 0
        /// The reason why the session has ended; nil while it lasts.
        var end: CardError.Kind? = .cardReset
        var atr: ATR?
        /// The last state that the streams received; nil before the first look at the slot.
        var shown: SlotState?
        var isGone = false
        var streams: [Int: AsyncThrowingStream<SlotState, any Error>.Continuation] = [:]
        var streamCount = 0
    }

    private let device: SoftwareACR122U
    private let limit: Duration
    private let bulkIn = Inbox()
    private let interruptIn = Inbox()
    private let turn = Turn()
    private let state = Mutex(State())

    init(_ device: SoftwareACR122U, limit: Duration) {
        self.device = device
        self.limit = limit
        device.observe { [bulkIn, interruptIn] event in
            switch event {
            case .ready(SoftwareACR122U.Endpoint.bulkIn, let bytes, let delay): bulkIn.put(bytes, after: delay)
            case .ready(_, let bytes, let delay): interruptIn.put(bytes, after: delay)
            case .unplugged:
                bulkIn.close()
                interruptIn.close()
            }
        }
    }

    // MARK: Cards

    /// Powers the card and begins a session.
    ///
    /// - Parameter insteadOf: a session that must still be going on.
    func powerOn(insteadOf old: Int? = nil) async throws -> (atr: ATR, session: Int) {
        try await turn.take()
        defer { turn.pass() }
        if let old { try check(old) }
        let atr = try await powerOnInTurn()
        let session = state.withLock { $0.session }
        return (atr, session)
    }

    private func powerOnInTurn() async throws -> ATR {
        endSession(.cardReset)
        let answer = try await exchange(.iccPowerOn)
        let atr = ATR(answer.data)
        if atr.contactless == .noCard || answer.commandStatus == .failed && answer.cardStatus == .absent {
            show(.empty)
            throw CardError(.cardAbsent)
        }
        guard answer.commandStatus == .done, !answer.data.isEmpty else {
            show(.muteCard)
            throw CardError(.cardMute)
        }
        state.withLock { state in
            state.session += 1
            state.end = nil
            state.atr = atr
        }
        show(.card(atr, exclusivelyHeld: false))
        return atr
    }

    func powerOff(session: Int) async {
        guard (try? await turn.take()) != nil else { return }
        defer { turn.pass() }
        guard (try? check(session)) != nil else { return }
        endSession(.cardReset)
        _ = try? await exchange(.iccPowerOff)
    }

    func transmit(_ command: CommandAPDU, session: Int) async throws -> ResponseAPDU {
        let bytes = command.bytes
        guard bytes.count <= ACR122UFirmware.maximumData else {
            throw CardError(.tooLong, "\(bytes.count) bytes; this reader takes \(ACR122UFirmware.maximumData)")
        }
        try await turn.take()
        defer { turn.pass() }
        try check(session)
        let answer = try await exchange(.xfrBlock, data: bytes)
        guard answer.commandStatus == .done, !answer.data.isEmpty else {
            guard try await exchange(.getSlotStatus).cardStatus == .active else {
                endSession(.cardRemoved)
                throw CardError(.cardRemoved)
            }
            throw answer.commandStatus == .done || answer.error == CCIDError.mute
                ? CardError(.noAnswer) : CardError(.notTransacted, "CCID error \([answer.error].hex)")
        }
        do {
            return try ResponseAPDU(answer.data)
        } catch {
            throw CardError(.malformedAnswer, cause: error)
        }
    }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        guard command.count <= ACR122UFirmware.maximumData else {
            throw CardError(.tooLong, "\(command.count) bytes; this reader takes \(ACR122UFirmware.maximumData)")
        }
        try await turn.take()
        defer { turn.pass() }
        var limit = limit
        if command.starts(with: [0xFF, 0x00, 0x40]), command.count >= 9 {
            // Lights and buzzer are answered when they are done (ACS API v2.04, 6.2).
            limit += .milliseconds(100 * Int(command[7]) * (Int(command[5]) + Int(command[6])))
        }
        let answer = try await exchange(.xfrBlock, data: command, limit: limit)
        guard answer.commandStatus == .done else {
            throw CardError(.notTransacted, "CCID error \([answer.error].hex)")
        }
        guard !answer.data.isEmpty else { throw CardError(.noAnswer) }
        return answer.data
    }

    private func check(_ session: Int) throws {
        let end = state.withLock { $0.session == session ? $0.end : .cardReset }
        if let end { throw CardError(end) }
    }

    private func endSession(_ reason: CardError.Kind) {
        state.withLock { state in
            state.end = state.end ?? reason
            state.atr = nil
        }
    }

    // MARK: Presence

    /// A stream of states, the present one first.  `keep` is held as long as the stream is.
    func states(
        keep: @escaping @Sendable () -> Void
    ) -> AsyncThrowingStream<SlotState, any Error> {
        let (stream, continuation) = AsyncThrowingStream<SlotState, any Error>.makeStream()
        let isPluggedIn = device.isPluggedIn
        let id: Int? = state.withLock { state in
            // A reader that is gone has no slot.
            guard isPluggedIn, !state.isGone else { return nil }
            if let shown = state.shown { continuation.yield(shown) }
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
                // The last stream to go may take the slot along, outside the lock.
                _ = self?.state.withLock { $0.streams.removeValue(forKey: id) }
            }
        }
        return stream
    }

    /// Looks at the slot now and whenever the interrupt endpoint speaks, until the reader is gone.
    func watch() async {
        await look()
        while !Task.isCancelled {
            device.willTransferIn(endpoint: SoftwareACR122U.Endpoint.interruptIn)
            guard let message = try? await interruptIn.next(by: nil) else { break }
            // NotifySlotChange (USB CCID 1.10, 6.3.1): bit 0 is presence.  Only a hint, except that the slot has been
            // empty, however short.  A later one must not be told after a look that has seen what it tells.
            let changes = ([message] + interruptIn.takeDue()).map(\.bytes).filter { $0.count >= 2 && $0[0] == 0x50 }
            guard !changes.isEmpty else { continue }
            if changes.contains(where: { $0[1] & 0x01 == 0 }) { show(.empty) }
            await look()
        }
        let streams = state.withLock { state in
            state.isGone = true
            defer { state.streams = [:] }
            return state.streams.values
        }
        for stream in streams { stream.finish() }
    }

    private func look() async {
        guard (try? await turn.take()) != nil else { return }
        defer { turn.pass() }
        do {
            switch try await exchange(.getSlotStatus).cardStatus {
            case .absent:
                endSession(.cardRemoved)
                show(.empty)
            case .active:
                guard let atr = state.withLock({ $0.atr }) else { fallthrough }
                show(.card(atr, exclusivelyHeld: false))
            case .inactive, .unknown:
                endSession(.cardRemoved)
                _ = try await powerOnInTurn()
            }
        } catch let error as CardError where ![.readerGone, .cardAbsent, .cardMute].contains(error.kind) {
            show(.unknown)
        } catch {}
    }

    private func show(_ slotState: SlotState) {
        state.withLock { state in
            guard slotState != state.shown else { return }
            state.shown = slotState
            for stream in state.streams.values { stream.yield(slotState) }
        }
    }

    // MARK: CCID

    /// Sends one command and returns its answer.  Ignores answers to other commands.
    private func exchange(
        _ kind: CCIDCommand.Kind, data: [UInt8] = [], limit: Duration? = nil
    ) async throws -> CCIDAnswer {
        let limit = limit ?? self.limit
        bulkIn.drain()
        let sequence = state.withLock { state in
            state.sequence &+= 1
            return state.sequence
        }
        let command = CCIDCommand(kind: kind, sequence: sequence, data: data).bytes
        let start = Time.now
        device.transferOut(endpoint: SoftwareACR122U.Endpoint.bulkOut, command)

        let end = Time.now + limit * 10
        var deadline = Time.now + limit
        var strangers = 0
        while strangers < 10 {
            device.willTransferIn(endpoint: SoftwareACR122U.Endpoint.bulkIn)
            guard let frame = try await bulkIn.next(by: deadline) else { break }
            guard let answer = CCIDAnswer(frame.bytes) else {
                throw CardError(.malformedAnswer, "\(frame.bytes.count) bytes that are no CCID message")
            }
            // Some firmware answers to long messages with the bSeq before (acsccid, c90e443).
            guard answer.sequence == sequence || answer.sequence == sequence &- 1 && command.count > 64 else {
                strangers += 1
                continue
            }
            guard answer.kind == kind.answer else {
                throw CardError(.malformedAnswer, "\([kind.rawValue].hex) answered by \([answer.kind.rawValue].hex)")
            }
            guard answer.commandStatus == .timeExtension else {
                // Not when this task has come to see it.
                ExchangeStopwatch.current?.add(frame.due - start)
                return answer
            }
            deadline = min(Time.now + limit * max(Int(answer.error), 1), end)
        }
        throw strangers > 0 ? CardError(.malformedAnswer, "an answer to another command") : CardError(.readerTimeout)
    }
}

/// The frames received from one IN endpoint.  One task at a time reads it.
private final class Inbox: Sendable {
    typealias Frame = (bytes: [UInt8], due: Time.Instant)

    private struct State {
        var frames: [Frame] = []
        var isClosed = false
    }

    private enum Sight {
        case frame(Frame)
        case waiting(until: Time.Instant?)
        case closed
    }

    /// Frames come on any thread.
    private let time = Time.current
    private let state = Mutex(State())
    private let changed = Signal()

    func put(_ bytes: [UInt8], after delay: Duration) {
        state.withLock { state in
            let due = time.now + delay
            state.frames.append((bytes, max(due, state.frames.last?.due ?? due)))
        }
        changed.send()
    }

    func close() {
        state.withLock { $0.isClosed = true }
        changed.send()
    }

    func drain() {
        state.withLock { $0.frames = [] }
    }

    /// Returns and removes the frames that are due now.
    func takeDue() -> [Frame] {
        let now = time.now
        return state.withLock { state in
            let due = state.frames.prefix { $0.due <= now }
            state.frames.removeFirst(due.count)
            return Array(due)
        }
    }

    /// The next frame, once it is due; nil when the deadline passes first.
    ///
    /// - Throws: `CardError` of kind `readerGone`; `CancellationError`.
    func next(by deadline: Time.Instant?) async throws -> Frame? {
        while true {
            try Task.checkCancellation()
            let now = time.now
            let sight: Sight = state.withLock { state in
                if state.isClosed { return .closed }
                guard let first = state.frames.first else { return .waiting(until: nil) }
                return first.due <= now ? .frame(state.frames.removeFirst()) : .waiting(until: first.due)
            }
            switch sight {
            case .frame(let frame): return frame
            case .closed: throw CardError(.readerGone)
            case .waiting(let due):
                if let deadline, deadline <= now { return nil }
                let next = [due, deadline].compactMap { $0 }.min()
                await changed.wait(within: next.map { $0 - now }) {
                    state.withLock { $0.isClosed || $0.frames.first?.due != due }
                }
            }
        }
    }
}
