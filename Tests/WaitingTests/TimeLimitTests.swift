import Synchronization
import TestSupport
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
            try await waiting(atMost: .zero) { try await waitUntilCanceled() }
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

    @Test("A body over its time is canceled and waited for: the next thing begins after its end")
    func waitedFor() async throws {
        let steps = Lock<[String]>([])
        await #expect(throws: Late()) {
            try await withTimeLimit(.milliseconds(10), or: Late()) {
                try? await waitUntilCanceled()
                steps.withLock { $0.append(Task.isCancelled ? "canceled" : "slept") }
            }
        }
        steps.withLock { $0.append("next") }
        #expect(steps.withLock { $0 } == ["canceled", "next"])
    }

    @Test("Within its time, a body's result and error are the caller's, and so is the caller's cancellation the body's")
    func withinTime() async throws {
        #expect(try await withTimeLimit(.seconds(60), or: Late()) { 1 } == 1)
        await #expect(throws: Wrong()) { try await withTimeLimit(.seconds(60), or: Late()) { throw Wrong() } }
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let caller = Task {
            try await withTimeLimit(.seconds(600), or: Late()) {
                begin.finish()
                try await waitUntilCanceled()
            }
        }
        for await _ in begun {}
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
    }
}
