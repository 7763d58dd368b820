public import Observation
import ProximityReader

/// Keeps a reader ready: through a machine's sleep, a reader that is unplugged, a session that runs out.
///
/// On a phone the system tells that an application leaves the screen; on a kiosk ``hostDidSuspend()`` and ``hostDidResume()``
/// are to be called, for instance when logind says `PrepareForSleep`.
@Observable
@MainActor
public final class ReaderSessionManager {
    public enum State: Sendable {
        case idle
        case preparing
        case ready
        case suspended
        /// The reader was lost, or could not be made ready.  It is tried again until it is.
        case failed(any Error)

        public var isReady: Bool { if case .ready = self { true } else { false } }
    }

    public private(set) var state = State.idle
    private let service: TapToPayService
    private let pause: Duration
    @ObservationIgnored private var watch: Watch?

    /// - Parameter pause: how long to wait before a reader that was lost, or could not be made ready, is tried again.
    public init(_ service: TapToPayService, pause: Duration = .seconds(2)) {
        self.service = service
        self.pause = pause
    }

    /// Makes the reader ready, and keeps it so for as long as this object lives.
    public func start() { keepReady() }

    /// Before the machine sleeps: ends the wait for a card.
    public func hostDidSuspend() async {
        watch = nil
        state = .suspended
        await service.suspend()
    }

    /// After the machine slept.
    public func hostDidResume() { keepReady() }

    private func keepReady() {
        state = .preparing
        let events = service.reader.events
        let (service, pause) = (service, pause)
        // Holds this object for no longer than one try.
        watch = Watch(
            Task { [weak self] in
                while await self?.makeReady({ try await service.resume() }) == false {
                    try? await Task.sleep(for: pause)
                }
                for await event in events {
                    guard case .notReady = event, !Task.isCancelled else { continue }
                    self?.state = .failed(PaymentCardReaderError.notReady)
                    // A reader with a bad cable comes and goes.
                    repeat {
                        try? await Task.sleep(for: pause)
                    } while await self?.makeReady({ try await service.initialize() }) == false
                }
            })
    }

    /// - Returns: whether it need not be tried again: the reader is ready, or nobody wants it any more.
    private func makeReady(_ body: () async throws -> Void) async -> Bool {
        guard !Task.isCancelled else { return true }
        do {
            try await body()
            if !Task.isCancelled { state = .ready }
            return true
        } catch {
            if !Task.isCancelled { state = .failed(error) }
            return Task.isCancelled
        }
    }
}

/// A task that ends with what holds it.
final class Watch: Sendable {
    private let task: Task<Void, Never>
    init(_ task: Task<Void, Never>) { self.task = task }
    deinit { task.cancel() }
}
