import ArgumentParser
import Dispatch
import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import SmartCardTrace
import Synchronization
import ToolSupport

extension ReplayCommand {
    /// Runs the program with the card of a trace.
    func replayProgram(
        _ recorded: Trace, _ order: ReplayReader.Order, _ comparison: ReplayReader.Comparison,
        _ timing: ReplayReader.Timing
    ) async throws {
        let escapes = recorded.exchanges(on: [.escape]).count
        if escapes > 0 { Terminal.remark("\(escapes) commands to the reader itself are not played") }
        let card = try ReplayedCard(recorded, order: order) { trace in
            ReplayReader(trace, order: order, comparison: comparison, timing: timing)
        }
        let status = try await onOwnThread {
            do {
                let slot = try VPCDSlot(card)
                defer { slot.stop() }
                return try ForegroundProgram(CommandLineProgram.command, environment: slot.environment).wait()
            } catch let error as HostError {
                throw ToolError.usage(error.description, error.hint)
            }
        }
        try card.check()
        throw ExitCode(status)
    }
}

/// vsmartcard's reader, with a replayed card that comes and goes as the recorded one did.
private final class VPCDSlot: Sendable {
    /// The variables with which a program sees it.
    let environment: [String: String]
    private let service: PrivatePCSCD?
    private let host: VPCDHost
    private let hands: Hands
    private let watch: Task<Void, Never>

    /// Blocks until the card lies in the reader, if it is there from the start.
    init(_ card: ReplayedCard) throws {
        let port = try VPCDHost.freePort()
        do {
            let service = try PrivatePCSCD(.vpcd(port: port))
            try service.waitForReader()
            self.service = service
            host = VPCDHost(port: port)
        } catch let error as HostError {
            // Perhaps the machine's own pcscd has the driver.
            host = VPCDHost()
            service = nil
            guard (try? host.insert(card, atr: card.atr)) != nil else { throw error }
            host.remove()
        }
        environment = service?.environment ?? [:]
        let hands = Hands(host, card)
        self.hands = hands
        card.onSilence = { hands.takeAway(forGood: $0) }
        if card.isThereFirst {
            hands.hold(true)
            try service?.waitForReader(withCard: true)
        }
        watch = Task.detached {
            var isThere = card.isThereFirst
            do {
                for try await state in card.reader.slotStates() where state.hasCard != isThere {
                    isThere = state.hasCard
                    hands.hold(isThere)
                }
            } catch {
                // The reader failed there: here the card leaves.
                hands.takeAway(forGood: true)
            }
        }
    }

    func stop() {
        watch.cancel()
        hands.takeAway(forGood: true)
        service?.stop()
    }

    /// Put the card in and take it out, one thing after the other.  The calls block for moments.
    private final class Hands: Sendable {
        private let host: VPCDHost
        private let card: ReplayedCard
        private let queue = DispatchQueue(label: "card")
        /// True if the card should be there; nil when it has gone for good.
        private let wanted = Mutex<Bool?>(false)

        init(_ host: VPCDHost, _ card: ReplayedCard) {
            self.host = host
            self.card = card
        }

        func hold(_ isThere: Bool) {
            wanted.withLock { if $0 != nil { $0 = isThere } }
            move()
        }

        /// The driver tells a program of silence only when the card leaves.
        func takeAway(forGood: Bool) {
            if forGood { wanted.withLock { $0 = nil } }
            move()
        }

        private func move() {
            queue.sync {
                host.remove()
                if wanted.withLock({ $0 }) == true { try? host.insert(card, atr: card.atr) }
            }
        }
    }
}

/// A card that answers from a trace.  Its calls block, until the answer is there.
private final class ReplayedCard: VirtualCard {
    let reader: ReplayReader
    /// The ATR of the first card in the trace.
    let atr: [UInt8]
    /// True if the trace begins with the card in the reader.
    let isThereFirst: Bool
    private let order: ReplayReader.Order
    private let connection: any CardConnection
    private let mismatch = Mutex<ReplayMismatch?>(nil)
    private let silence = Mutex(Silence())

    private struct Silence {
        var handler: @Sendable (_ forGood: Bool) -> Void = { _ in }
    }

    /// Called when there is no answer; `forGood` is true if there will never be one again.
    var onSilence: @Sendable (_ forGood: Bool) -> Void {
        get { silence.withLock { $0.handler } }
        set { silence.withLock { $0.handler = newValue } }
    }

    /// - Parameter makeReader: makes the reader that plays a trace.
    init(
        _ trace: Trace, order: ReplayReader.Order, _ makeReader: (Trace) -> ReplayReader
    ) throws {
        let atrs = trace.events.compactMap { event -> [UInt8]? in
            switch event.what {
            case .connected(let atr, _), .slot(.card(let atr, _)): atr.bytes.isEmpty ? nil : atr.bytes
            default: nil
            }
        }
        guard let atr = atrs.first else {
            throw ToolError.usage(
                "there is no card in the trace", "Record one with a card: apdu-trace record -o FILE -- PROGRAM")
        }
        (self.atr, self.order) = (atr, order)
        let reader = makeReader(Trace(trace.events.filter { Self.isPlayed($0.what, order) }))
        self.reader = reader
        let slot = trace.events.first { if case .slot = $0.what { true } else { false } }
        isThereFirst = order == .keyed || slot.map { $0.what != .slot(.empty) } ?? true
        connection = try waiting { try await reader.connect() }
    }

    /// Returns true for an event that is played.  A service powers and resets cards at any time, and commands to the
    /// reader never arrive here.
    private static func isPlayed(_ what: TraceEvent.What, _ order: ReplayReader.Order) -> Bool {
        switch what {
        case .slot, .sent(.apdu, _), .received(.apdu, _), .failed(.exchange(.apdu), _): true
        // Connections and resets divide the answers by the selected application.
        case .connected, .reset: order == .keyed
        default: false
        }
    }

    /// - Throws: the first ``ReplayMismatch``.
    func check() throws {
        if let mismatch = mismatch.withLock({ $0 }) { throw mismatch }
        try reader.checkPlayedThrough()
    }

    /// Nobody looks at it: the answer to reset is given.
    var radio: VirtualCardRadio { .typeA(uid: [], atqa: [], sak: 0x20, ats: []) }

    func reset() {
        // In strict order the trace has no resets left.
        guard order == .keyed else { return }
        _ = try? waiting { [connection] in try await connection.reset() }
    }

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        // After the first thing that the trace does not know there is no card any more that could go on.
        guard mismatch.withLock({ $0 == nil }) else { return nil }
        do {
            let command = try CommandAPDU(command)
            return try waiting { [connection] in try await connection.transmit(command).bytes }
        } catch let error as ReplayMismatch {
            mismatch.withLock { $0 = error }
            onSilence(true)
        } catch {
            onSilence(false)
        }
        return nil
    }
}

/// Blocks until `body` is done.  Not for threads that others wait for.
private func waiting<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let outcome = Outcome<Value>()
    Task.detached {
        do { outcome.set(.success(try await body())) } catch { outcome.set(.failure(error)) }
    }
    return try outcome.get()
}

/// The result of a task, for a thread that waits.
private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>>(.failure(CancellationError()))
    private let isThere = DispatchSemaphore(value: 0)

    func set(_ value: Result<Value, any Error>) {
        result.withLock { $0 = value }
        isThere.signal()
    }

    func get() throws -> Value {
        isThere.wait()
        return try result.withLock { $0 }.get()
    }
}
