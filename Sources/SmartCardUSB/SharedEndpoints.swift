import USBDevices
import Waiting

/// The shared bulk endpoints of a reader that takes commands for several slots at once (bMaxCCIDBusySlots, USB CCID
/// 1.10, 5.1).  Each slot gets a link that behaves as its own.
///
/// Outgoing messages take turns; incoming ones go to the slot that they name (bSlot, 6.2).
final class SharedEndpoints: Sendable {
    private struct Write {
        let bytes: [UInt8]
        let timeout: Duration
        let completion: USBLink.Completion
    }

    private struct Reader {
        let deadline: Time.Instant?
        let completion: USBLink.Completion
    }

    private struct State {
        var isWriting = false
        var writes: [Write] = []
        var isReading = false
        var readers: [UInt8: Reader] = [:]
        /// Transfers that arrived while their slot was not reading.
        var early: [UInt8: [[UInt8]]] = [:]
        /// The slot of the incoming message.
        var slot: UInt8 = 0
        var rest = 0
    }

    /// The number of transfers to keep for a slot that is not reading; older ones belong to no command.
    private static let mostEarly = 16
    /// The greatest delay after which a slot learns that its time is over.
    private static let slice = Duration.milliseconds(100)

    fileprivate let base: any USBLink
    fileprivate let bulkIn: UInt8
    fileprivate let bulkOut: UInt8
    private let packetSize: Int
    private let readSize: Int
    /// Transfers complete on a thread of the bus.
    private let time = Time.current
    private let state = Lock(State())

    /// - Parameter readSize: the size of one transfer, enough for the longest message.
    init(_ base: any USBLink, _ function: CCIDFunction, readSize: Int) {
        (self.base, bulkIn, bulkOut) = (base, function.bulkIn, function.bulkOut)
        (packetSize, self.readSize) = (function.packetSize, readSize)
    }

    func link(for slot: UInt8) -> any USBLink { SlotLink(self, slot) }

    // MARK: Out

    fileprivate func write(_ bytes: [UInt8], timeout: Duration, _ completion: @escaping USBLink.Completion) {
        let write = Write(bytes: bytes, timeout: timeout, completion: completion)
        let isFree = state.withLock { state in
            guard state.isWriting else {
                state.isWriting = true
                return true
            }
            state.writes.append(write)
            return false
        }
        if isFree { start(write) }
    }

    private func start(_ write: Write) {
        base.write(write.bytes, to: bulkOut, timeout: write.timeout) { [self] result in
            let next: Write? = state.withLock { state in
                state.isWriting = !state.writes.isEmpty
                return state.isWriting ? state.writes.removeFirst() : nil
            }
            write.completion(result)
            if let next { start(next) }
        }
    }

    // MARK: In

    fileprivate func read(_ slot: UInt8, timeout: Duration?, _ completion: @escaping USBLink.Completion) {
        let (early, isFirst) = state.withLock { state -> ([UInt8]?, Bool) in
            if let first = state.early[slot]?.first {
                state.early[slot]?.removeFirst()
                return (first, false)
            }
            state.readers[slot] = Reader(deadline: timeout.map { time.now + $0 }, completion: completion)
            defer { state.isReading = true }
            return (nil, !state.isReading)
        }
        if let early { return completion(.success(early)) }
        if isFirst { readOn() }
    }

    fileprivate func cancel(_ slot: UInt8) {
        state.withLock { $0.readers.removeValue(forKey: slot) }?.completion(.failure(.interrupted))
    }

    private func readOn() {
        let first = state.withLock { $0.readers.values.compactMap(\.deadline).min() }
        let left = first.map { max($0 - time.now, .milliseconds(1)) } ?? Self.slice
        base.read(readSize, from: bulkIn, timeout: min(left, Self.slice)) { [self] result in
            for (reader, result) in state.withLock({ take(result, &$0) }) { reader.completion(result) }
            let isWanted = state.withLock { state in
                state.isReading = !state.readers.isEmpty
                return state.isReading
            }
            if isWanted { readOn() }
        }
    }

    /// Returns the completions to call and their results.
    private func take(
        _ result: Result<[UInt8], USBStatus>, _ state: inout State
    ) -> [(Reader, Result<[UInt8], USBStatus>)] {
        var told: [(Reader, Result<[UInt8], USBStatus>)] = []
        switch result {
        case .success(let bytes):
            // An empty transfer may follow a message whose length is a multiple of the packet size.
            guard !bytes.isEmpty else { break }
            if state.rest == 0, bytes.count >= CCIDAnswer.headerSize {
                (state.slot, state.rest) = (bytes[5], CCIDAnswer.length(bytes))
            }
            state.rest = bytes.count.isMultiple(of: packetSize) ? max(state.rest - bytes.count, 0) : 0
            if let reader = state.readers.removeValue(forKey: state.slot) {
                told.append((reader, result))
            } else {
                state.early[state.slot] = (state.early[state.slot] ?? []).suffix(Self.mostEarly - 1) + [bytes]
            }
        case .failure(.timeout): break
        case .failure:
            told = state.readers.values.map { ($0, result) }
            state.readers = [:]
        }
        let now = time.now
        for (slot, reader) in state.readers where reader.deadline.map({ $0 <= now }) ?? false {
            state.readers[slot] = nil
            told.append((reader, .failure(.timeout)))
        }
        return told
    }
}

/// The endpoints as one slot sees them.
private final class SlotLink: USBLink {
    private let shared: SharedEndpoints
    private let slot: UInt8

    init(_ shared: SharedEndpoints, _ slot: UInt8) { (self.shared, self.slot) = (shared, slot) }

    func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion) {
        shared.write(bytes, timeout: timeout, completion)
    }

    func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion) {
        guard endpoint == shared.bulkIn else {
            return shared.base.read(count, from: endpoint, timeout: timeout, completion)
        }
        shared.read(slot, timeout: timeout, completion)
    }

    func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion) {
        shared.base.request(request, value: value, timeout: timeout, completion)
    }

    func request(
        _ request: UInt8, value: UInt16, reading count: Int, timeout: Duration, _ completion: @escaping Completion
    ) { shared.base.request(request, value: value, reading: count, timeout: timeout, completion) }

    func cancel(_ endpoint: UInt8) {
        if endpoint == shared.bulkIn { shared.cancel(slot) } else { shared.base.cancel(endpoint) }
    }

    func clearHalt(_ endpoint: UInt8) async throws(USBStatus) { try await shared.base.clearHalt(endpoint) }
    func reset() async throws(USBStatus) { try await shared.base.reset() }
    func close(_ completion: @escaping @Sendable () -> Void) { shared.base.close(completion) }
}
