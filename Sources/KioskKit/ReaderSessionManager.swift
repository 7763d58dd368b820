public import Observation
import ProximityReader

/// Keeps a reader ready: through a machine's sleep, a reader that is unplugged, a session that runs out.
///
/// Where logind tells when the machine sleeps (a system bus is there), nothing else needs to be called but ``start()``.
/// Elsewhere ``hostDidSuspend()`` and ``hostDidResume()`` are for whoever knows.
@Observable
@MainActor
public final class ReaderSessionManager {
    public enum State: Sendable {
        case idle
        case preparing
        case ready
        /// The machine sleeps, or is about to.
        case suspended
        /// The reader was lost, or could not be made ready.  It is tried again until it is.
        case failed(any Error)

        public var isReady: Bool { if case .ready = self { true } else { false } }
    }

    public private(set) var state = State.idle
    private let service: TapToPayService
    private let pace: RetryPace
    private let clock: any Clock<Duration>
    @ObservationIgnored private var watch: Watch?

    /// - Parameters:
    ///   - pause: how long to wait before a reader that is not there is looked for again.
    ///   - tokenPause: how long to wait, at least, before another token is asked for where one was of no use, or none came;
    ///     twice as long each time, up to sixteen times, and up to a quarter longer by chance.
    ///   - clock: what pauses are measured with.
    public init(
        _ service: TapToPayService, pause: Duration = .seconds(2), tokenPause: Duration = .seconds(60),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.service = service
        self.clock = clock
        pace = RetryPace(pause: pause, tokenPause: tokenPause)
    }

    /// Makes the reader ready, and keeps it so for as long as this object lives.
    public func start() { keepReady() }

    /// Before the machine sleeps, where logind does not tell: ends the wait for a card.
    public func hostDidSuspend() async {
        watch = nil
        state = .suspended
        await service.suspend()
    }

    /// After the machine slept, where logind does not tell.
    public func hostDidResume() { keepReady() }

    private func keepReady() {
        state = .preparing
        let (service, clock, first) = (service, clock, pace)
        // Holds this object for no longer than one try.
        watch = Watch(
            Task { [weak self] in
                var known: Int?
                var pace = first
                while !Task.isCancelled, self != nil {
                    // Of each try its own: no loss after it is missed, and none before it counts.
                    let events = service.reader.events
                    let (preparations, fetches) = (await service.preparations, await service.fetches)
                    if known == nil || known == preparations {
                        let isReady = await self?.makeReady {
                            if known == nil { try await service.resume() } else { try await service.initialize() }
                        }
                        guard isReady == true else {
                            let hasFetched = await service.fetches > fetches
                            try? await clock.sleep(
                                for: pace.pause(hasFetched: hasFetched, chance: .random(in: 0..<1)))
                            continue
                        }
                        pace = first
                    } else {
                        // By a read that found its session over.
                        self?.state = .ready
                    }
                    known = await service.preparations
                    for await event in events { if case .notReady = event { break } }
                    guard !Task.isCancelled else { return }
                    self?.state = .failed(PaymentCardReaderError.notReady)
                    // A reader with a bad cable comes and goes.
                    try? await clock.sleep(for: first.pause)
                }
            })
    }

    /// - Returns: whether the reader is ready.
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

/// How long to wait before a reader that could not be made ready is tried again.
struct RetryPace: Sendable {
    let pause: Duration
    let tokenPause: Duration
    /// In which a token was asked for.
    private var failures = 0

    init(pause: Duration, tokenPause: Duration) { (self.pause, self.tokenPause) = (pause, tokenPause) }

    /// - Parameters:
    ///   - hasFetched: whether a token was asked for, which another try would do again.
    ///   - chance: 0 to 1, so that not all who failed at once try again at once.
    mutating func pause(hasFetched: Bool, chance: Double) -> Duration {
        guard hasFetched else { return pause }
        defer { failures += 1 }
        return tokenPause * (1 << min(failures, 4)) * (1 + chance / 4)
    }
}

/// A task that ends with what holds it.
final class Watch: Sendable {
    private let task: Task<Void, Never>
    init(_ task: Task<Void, Never>) { self.task = task }
    deinit { task.cancel() }
}
