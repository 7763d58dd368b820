import Synchronization
package import Waiting

/// The duration of an exchange by the transport's time stamps.  It excludes other work of this process and the time
/// that tasks wait for a thread.
///
///     let stopwatch = ExchangeStopwatch()
///     let response = try await stopwatch.time { try await channel.transmit(command) }
///     print(stopwatch.elapsed)
///
/// It passes through all layers as ``current``.  If a command takes several exchanges, as with GET RESPONSE or a PN532,
/// the durations are added; the gaps between them do not count.
///
/// | transport | from | to |
/// |---|---|---|
/// | SmartCardUSB | a CCID message is about to go to libusb | libusb's thread receives the end of the answer |
/// | SmartCardPCSC | the thread of the connection calls SCardTransmit or SCardControl | that call returns |
/// | SmartCardSimulator | the software reader is about to get a CCID message | its answer is due |
/// | SmartCardTrace | the recorded command | the recorded answer |
/// | others | the call | its return |
///
/// All durations include the reader and the bus; over PC/SC, also pcscd and its driver.  Time that the kernel keeps a
/// thread waiting still counts: no transport sees an answer earlier.
public final class ExchangeStopwatch: Sendable {
    /// The stopwatch that measures this task's exchange; nil: none.
    ///
    /// A transport reads it in the calling task.  The transport's own threads and queues do not inherit it.
    @TaskLocal public static var current: ExchangeStopwatch?

    private struct State {
        /// nil until a transport has reported a duration.
        var told: Duration?
        var elapsed = Duration.zero
    }

    private let state = Mutex(State())
    /// The time in which it measures, for threads without a task.
    package let clock = Time.current

    public init() {}

    /// The last measurement of ``time(isolation:_:)``; zero before the first.
    public var elapsed: Duration { state.withLock { $0.elapsed } }

    /// The durations that transports have reported since ``time(isolation:_:)`` began; nil: none.
    package var told: Duration? { state.withLock { $0.told } }

    /// Adds the duration of an answered exchange.  Transports call it on any thread, before they deliver the answer.
    public func add(_ duration: Duration) {
        state.withLock { $0.told = ($0.told ?? .zero) + duration }
    }

    /// Runs `body` and measures its exchanges: by the transport's reports; from call to return if there are none or
    /// `body` throws.
    ///
    /// Measures one body at a time.  Do not reuse a stopwatch after an error: a canceled exchange may still be
    /// reported.
    public func time<R>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> R
    ) async rethrows -> R {
        state.withLock { $0.told = nil }
        let start = Time.now
        do {
            let result = try await Self.$current.withValue(self, operation: body, isolation: isolation)
            let duration = Time.now - start
            state.withLock { $0.elapsed = $0.told ?? duration }
            return result
        } catch {
            let duration = Time.now - start
            state.withLock { $0.elapsed = duration }
            throw error
        }
    }
}
