public import Testing
import Waiting

/// Gives each test a time of its own: 30 seconds of waiting take none.
///
///     @Test(.simulatedTime) func nothingComes() async throws {
///         let reader = ScriptedReader()
///         try await Time.sleep(for: .milliseconds(400))   // ends when nothing has anything left to do before
///         #expect(reader.exchanges.isEmpty)
///     }
///
/// The time stands still as long as any thread of the process is awake, and goes on to the next deadline at an instant at
/// which all were asleep, as the kernel says (``ThreadWatch``).  So whatever runs in this process counts without a word of
/// its own: tasks, the main actor, Dispatch's queues, a driver's threads, a store's disk.
///
/// Guaranteed:
/// - Deadlines pass one at a time, in the order of their instants; of one instant, in the order in which they were set.
///   What one sets off is over before the next passes: it waits for a deadline, or for ever.
/// - Tasks of tests in simulated time run one at a time, in the order in which they became ready, together with the main
///   actor's (``SimulatedOrder``).  So what tasks do among themselves happens in the same order each time.
/// - A test that waits for ever is told, and canceled.
///
/// Not guaranteed is the order among threads that are not tasks, such as a queue's, while the time stands still; nor,
/// under the thread sanitizer, which is to see them side by side, that of tasks.  And what is outside of this process is
/// not seen: other programs, the network, a pseudo-terminal and the kernel's timers do not keep the time from going on.  A
/// test that talks to them keeps the real time.
///
/// Tests beside each other have a time each.  All of them wait for one that computes.  What a test leaves behind goes on
/// in the real time.
public struct SimulatedTime: TestTrait, SuiteTrait, TestScoping {
    public let isRecursive = true

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite has no body of its own.
        guard testCase != nil else { return try await function() }
        try await withoutActuallyEscaping(function) { function in try await withSimulatedTime { try await function() } }
    }
}

extension Trait where Self == SimulatedTime {
    /// The test runs in a time of its own, which takes none.
    public static var simulatedTime: Self { Self() }
}

/// Runs `body` as a test with ``SimulatedTime`` runs.
///
/// - Parameter patience: how long nothing may be left to run, in real time, until `body` is said to wait for ever.
/// - Throws: the error of `body`.
public func withSimulatedTime<Value: Sendable>(
    patience: Duration = .seconds(10), sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let time = TestTime(patience: patience)
    TimeKeeper.shared.begin(time)
    defer { TimeKeeper.shared.end(time) }
    return try await Time.$current.withValue(Time(time)) {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try? await time.waitForStandstill()
                return nil
            }
            defer { group.cancelAll() }
            if let value = try await group.next() ?? nil { return value }
            Issue.record(
                "It waits for ever: nothing is left to run, and no deadline is to come.", sourceLocation: sourceLocation
            )
            group.cancelAll()
            guard let value = try await group.next() ?? nil else { throw CancellationError() }
            return value
        }
    }
}
