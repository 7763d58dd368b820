import Synchronization
import Testing
import Waiting

/// Who is waited for, and for how long.
@Suite(.timeLimit(.minutes(1))) struct TimeLimitTests {
    private struct Late: Error, Equatable {}
    private struct Wrong: Error, Equatable {}

    /// Work that does not hear that it is cancelled, until it is told to end.
    private final class Deaf: Sendable {
        private let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
        private let ends = AsyncStream.makeStream(of: Bool.self)

        /// - Returns: whether it was cancelled by then.
        @Sendable func work() async -> Bool {
            await withCheckedContinuation { continuation in waiting.withLock { $0 = continuation } }
            ends.continuation.yield(Task.isCancelled)
            return Task.isCancelled
        }

        var hasBegun: Bool { waiting.withLock { $0 != nil } }

        func end() async -> Bool? {
            waiting.withLock { $0.take() }?.resume()
            return await ends.stream.first { _ in true }
        }
    }

    @Test("What comes in time is what is returned or thrown")
    func inTime() async throws {
        #expect(try await waiting(atMost: .seconds(60)) { 1 } == 1)
        await #expect(throws: Wrong()) { try await waiting(atMost: .seconds(60)) { throw Wrong() } }
    }

    @Test("When the time is over, a body that is deaf keeps nobody: it is cancelled, and what it returns is nobody's")
    func late() async throws {
        let deaf = Deaf()
        await #expect(throws: Late()) {
            _ = try await waiting(atMost: .milliseconds(10), or: Late()) { await deaf.work() }
        }
        while !deaf.hasBegun { await Task.yield() }
        #expect(await deaf.end() == true)
        await #expect(throws: TimeLimitPassed.self) {
            try await waiting(atMost: .zero) { try await Task.sleep(for: .seconds(600)) }
        }
    }

    @Test("Who is cancelled waits no longer, whatever the body does")
    func cancelled() async throws {
        let deaf = Deaf()
        let caller = Task { try await waiting(atMost: .seconds(600)) { await deaf.work() } }
        while !deaf.hasBegun { await Task.yield() }
        caller.cancel()
        await #expect(throws: CancellationError.self) { _ = try await caller.value }
        #expect(await deaf.end() == true)
    }

    @Test("Of several answers the first counts; none in time is none")
    func answers() async throws {
        #expect(
            try await answer(within: .seconds(60)) { (give: (Result<Int, any Error>) -> Void) in
                give(.success(1))
                give(.success(2))
                give(.failure(Wrong()))
            } == 1)
        await #expect(throws: Wrong()) {
            try await answer(within: .seconds(60)) { (give: (Result<Int, any Error>) -> Void) in
                give(.failure(Wrong()))
                give(.success(2))
            }
        }
        let kept = Mutex<(@Sendable (Result<Int, any Error>) -> Void)?>(nil)
        await #expect(throws: TimeLimitPassed.self) {
            try await answer(within: .zero) { give in kept.withLock { $0 = give } }
        }
        kept.withLock { $0 }?(.success(1))
    }

    @Test("A result is taken once it is claimed, whether that is waited for before or after")
    func claim() {
        let told = Mutex(0)
        let claim = ResultClaim()
        claim.whenTaken { told.withLock { $0 += 1 } }
        #expect(!claim.isTaken && told.withLock { $0 } == 0)
        claim.take()
        #expect(claim.isTaken && told.withLock { $0 } == 1)
        claim.whenTaken { told.withLock { $0 += 1 } }
        #expect(told.withLock { $0 } == 2)
    }
}
