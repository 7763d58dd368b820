public import Observation
import ProximityReader
import Waiting

/// A manager that keeps a reader ready: through the machine's sleep, the loss of the reader, and the end of a session.
///
/// If logind reports the machine's sleep (there is a system bus), only ``start()`` has to be called.  Otherwise call
/// ``hostDidSuspend()`` and ``hostDidResume()``.
@Observable
@MainActor
public final class ReaderSessionManager {
    public enum State: Sendable {
        case idle
        case preparing
        case ready
        /// The machine sleeps, or is about to.
        case suspended
        /// The reader was lost, or could not be prepared.  The manager retries until it succeeds.
        case failed(any Error)

        public var isReady: Bool { if case .ready = self { true } else { false } }
    }

    public private(set) var state = State.idle
    private let service: TapToPayService
    private let pace: RetryPace
    @ObservationIgnored private var watch: Watch?

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - service: the service whose reader is kept ready.
    ///   - pause: the interval between searches for a missing reader.
    ///   - tokenPause: the least interval before another token is requested after one that was of no use, or that
    ///     failed; it doubles each time, up to sixteenfold, and is extended at random by up to one quarter.
    public init(
        _ service: TapToPayService, pause: Duration = .seconds(2), tokenPause: Duration = .seconds(60)
    ) {
        self.service = service
        pace = RetryPace(pause: pause, tokenPause: tokenPause)
    }

    /// Prepares the reader, and keeps it ready for as long as this object exists.
    public func start() { keepReady() }

    /// Ends the wait for a card before the machine sleeps, if logind does not report it.
    public func hostDidSuspend() async {
        watch = nil
        state = .suspended
        await service.suspend()
    }

    /// Prepares the reader after the machine slept, if logind does not report it.
    public func hostDidResume() { keepReady() }

    private func keepReady() {
        state = .preparing
        let (service, first) = (service, pace)
        // Retains this object for no longer than one attempt.
        watch = Watch(
            Task { [weak self] in
                var known: Int?
                var pace = first
                while !Task.isCancelled, self != nil {
                    // Each attempt has its own stream: no loss after it is missed, and none before it counts.
                    let events = service.reader.events
                    let (preparations, fetches) = (await service.preparations, await service.fetches)
                    if known == nil || known == preparations {
                        let isReady = await self?.makeReady {
                            if known == nil { try await service.resume() } else { try await service.initialize() }
                        }
                        guard isReady == true else {
                            let hasFetched = await service.fetches > fetches
                            try? await Time.sleep(
                                for: pace.pause(hasFetched: hasFetched, chance: .random(in: 0..<1)))
                            continue
                        }
                        pace = first
                    } else {
                        // By a read that found its session expired.
                        self?.state = .ready
                    }
                    known = await service.preparations
                    for await event in events { if case .notReady = event { break } }
                    guard !Task.isCancelled else { return }
                    self?.state = .failed(PaymentCardReaderError.notReady)
                    // A reader with a bad cable comes and goes.
                    try? await Time.sleep(for: first.pause)
                }
            })
    }

    /// Prepares the reader.
    ///
    /// - Returns: true if the reader is ready.
    private func makeReady(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            if !Task.isCancelled { state = .ready }
            return true
        } catch {
            guard !Task.isCancelled else { return false }
            if case PaymentCardReaderError.backgroundRequestNotAllowed = error {
                state = .suspended
            } else {
                state = .failed(error)
            }
            return false
        }
    }
}

/// The pace of retries for a reader that could not be prepared.
struct RetryPace: Sendable {
    let pause: Duration
    let tokenPause: Duration
    /// The number of failures for which a token was requested.
    private var failures = 0

    init(pause: Duration, tokenPause: Duration) { (self.pause, self.tokenPause) = (pause, tokenPause) }

    /// Returns the pause before the next attempt.
    ///
    /// - Parameters:
    ///   - hasFetched: true if a token was requested, as another attempt would do again.
    ///   - chance: 0 to 1; it keeps many terminals from retrying at once.
    mutating func pause(hasFetched: Bool, chance: Double) -> Duration {
        guard hasFetched else { return pause }
        defer { failures += 1 }
        return tokenPause * (1 << min(failures, 4)) * (1 + chance / 4)
    }
}

/// A task that ends with its owner.
final class Watch: Sendable {
    private let task: Task<Void, Never>
    init(_ task: Task<Void, Never>) { self.task = task }
    deinit { task.cancel() }
}
