import Synchronization

/// How long an exchange takes, by the time stamps of the transport: what this process does besides, and for how long its
/// tasks wait for a thread, is not in it.
///
///     let stopwatch = ExchangeStopwatch()
///     let response = try await stopwatch.time { try await channel.transmit(command) }
///     print(stopwatch.elapsed)
///
/// It passes through every layer by itself, as ``current``.  Where a command takes several exchanges, as with GET RESPONSE
/// or a PN532, theirs are added up, without what lies between.
///
/// | transport | from | to |
/// |---|---|---|
/// | SmartCardUSB | a CCID message is about to be handed to libusb | libusb's own thread is told of the end of the answer |
/// | SmartCardPCSC | the thread of the connection calls SCardTransmit or SCardControl | that call returns |
/// | SmartCardSimulator | the software reader is about to be given a CCID message | its answer is due |
/// | SmartCardTrace | the command, when it was recorded | the answer, likewise |
/// | others | the call | its return |
///
/// The time of the reader and of the bus is in it everywhere, and with PC/SC that of pcscd and its driver.  A thread that the
/// kernel itself keeps waiting still counts: no transport has an earlier sight of an answer.
public final class ExchangeStopwatch: Sendable {
    /// The one that the exchange of this task is measured by, if any.
    ///
    /// A transport reads it in the task that calls it: threads and queues of its own do not inherit it.
    @TaskLocal public static var current: ExchangeStopwatch?

    private struct State {
        /// nil until a transport has told anything.
        var told: Duration?
        var elapsed = Duration.zero
    }

    private let state = Mutex(State())

    public init() {}

    /// What ``time(isolation:_:)`` has measured last; zero before.
    public var elapsed: Duration { state.withLock { $0.elapsed } }

    /// What transports have told since ``time(isolation:_:)`` began; nil: nothing.
    package var told: Duration? { state.withLock { $0.told } }

    /// Called by a transport, on any thread, for each exchange that was answered, before the answer is handed on.
    public func add(_ duration: Duration) {
        state.withLock { $0.told = ($0.told ?? .zero) + duration }
    }

    /// Runs `body`, and measures the exchanges in it: by what their transport tells, or from the call to its return where it
    /// tells nothing or `body` throws.
    ///
    /// One at a time, and not again once it has thrown: what was cancelled may still be told.
    public func time<R>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> R
    ) async rethrows -> R {
        state.withLock { $0.told = nil }
        let start = ContinuousClock.now
        do {
            let result = try await Self.$current.withValue(self, operation: body, isolation: isolation)
            let duration = ContinuousClock.now - start
            state.withLock { $0.elapsed = $0.told ?? duration }
            return result
        } catch {
            let duration = ContinuousClock.now - start
            state.withLock { $0.elapsed = duration }
            throw error
        }
    }
}
