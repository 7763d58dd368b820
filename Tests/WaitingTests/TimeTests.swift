import Dispatch
import Foundation
import TestSupport
import Testing
import Waiting

/// The time that tests have: a discrete simulation.
@Suite(.timeLimit(.minutes(2))) struct TimeTests {
    /// What happened, in its order.
    private final class Record<Entry: Sendable>: Sendable {
        private let entries = Lock<[Entry]>([])

        var all: [Entry] { entries.withLock { $0 } }

        func add(_ entry: Entry) { entries.withLock { $0.append(entry) } }
    }

    /// Keeps the thread for a real while.
    private static func compute() {
        let end = ContinuousClock.now + .milliseconds(60)
        while ContinuousClock.now < end {}
    }

    // MARK: Waiting

    @Test("Hours of waiting take none, and are hours", .simulatedTime)
    func hours() async throws {
        let start = Time.now
        for _ in 0..<300 { try await Time.sleep(for: .milliseconds(100)) }
        #expect(Time.now - start == .seconds(30))
        try await Time.sleep(until: start + .seconds(40))
        #expect(Time.now - start == .seconds(40))
        await #expect(throws: TimeLimitPassed.self) {
            try await waiting(atMost: .seconds(3600)) { try await Time.sleep(for: .seconds(3601)) }
        }
        await #expect(throws: TimeLimitPassed.self) {
            try await withTimeLimit(.seconds(3600), or: TimeLimitPassed()) { try await Time.sleep(for: .seconds(3601)) }
        }
        await Signal().wait(within: .seconds(3600)) { false }
        #expect(Time.now - start == .seconds(40 + 3 * 3600))
    }

    @Test("What is past, or now, is waited for without time, and what is canceled throws at once", .simulatedTime)
    func noTime() async throws {
        let start = Time.now
        for duration in [Duration.zero, .seconds(-5)] { try await Time.sleep(for: duration) }
        let sleeper = Task { try await Time.sleep(for: .seconds(100)) }
        try await Time.sleep(for: .seconds(1))
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        let canceled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await Time.sleep(for: .seconds(100))
        }
        await #expect(throws: CancellationError.self) { try await canceled.value }
        #expect(Time.now - start == .seconds(1))
    }

    @Test("Without a simulation the time is the machine's")
    func real() async throws {
        let (start, clock) = (Time.now, ContinuousClock.now)
        #expect(Time.current.simulation == nil && start <= clock)
        try await Time.sleep(for: .milliseconds(20))
        try await Time.sleep(until: .now + .milliseconds(20))
        #expect(ContinuousClock.now - clock >= .milliseconds(40) && Time.now - start >= .milliseconds(40))
        await withCheckedContinuation { continuation in
            Time.deadline(after: .seconds(3600)) { Issue.record("lifted") }.lift()
            _ = Time.deadline(after: .milliseconds(20)) { continuation.resume() }
        }
        #expect(ContinuousClock.now - clock >= .milliseconds(60))
    }

    // MARK: Order

    @Test(
        "Deadlines pass in the order of their instants, then in that of their setting; a lifted one does not",
        .simulatedTime)
    func order() async throws {
        let record = Record<Int>()
        for number in [3, 1, 2] {
            for part in 0..<3 { _ = Time.deadline(after: .seconds(number)) { record.add(10 * number + part) } }
        }
        Time.deadline(after: .seconds(2)) { record.add(99) }.lift()
        try await Time.sleep(for: .seconds(3))
        #expect(record.all == [10, 11, 12, 20, 21, 22, 30, 31, 32])
    }

    @Test("What a deadline sets off is over before the next passes, on whatever threads it goes on", .simulatedTime)
    func consequences() async throws {
        let record = Record<String>()
        for name in ["a", "b", "c"] {
            _ = Time.deadline(after: .seconds(1)) {
                Task {
                    for step in 1...3 {
                        await DispatchQueue.global().blocking { Self.compute() }
                        await Task { @MainActor in record.add("\(name)\(step)") }.value
                    }
                }
            }
        }
        try await Time.sleep(for: .seconds(1))
        #expect(record.all == ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"])
    }

    @Test(
        "Tasks that are ready at once run in one order", .simulatedTime,
        .unsanitized(by: .thread, because: "they are to run side by side"), arguments: 0..<20)
    func tasks(_ round: Int) async throws {
        let record = Record<Int>()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    try? await Time.sleep(for: .milliseconds(number % 4))
                    await Task { @MainActor in await Task.yield() }.value
                    record.add(number)
                }
            }
        }
        let expected: [Int] = (0..<40).sorted { ($0 % 4, $0) < ($1 % 4, $1) }
        #expect(record.all == expected)
    }

    @Test(
        "What is waited for is seen at the instant at which it happens, and after all that happens then",
        .simulatedTime,
        .unsanitized(by: .thread, because: "its own thread sleeps for ever, so no sleep counts"))
    func waited() async throws {
        let (start, record) = (Time.now, Record<Int>())
        Task {
            for number in 1...7 {
                try await Time.sleep(for: .seconds(100))
                await Task { @MainActor in record.add(number) }.value
                record.add(-number)
            }
        }
        try await wait(for: "fifth") { record.all.contains(5) }
        #expect(Time.now - start == .seconds(500) && record.all.last == -5)
        // It comes from outside, and takes no time.
        DispatchQueue.global().async {
            usleep(20_000)
            record.add(100)
        }
        try await wait(for: "what comes from outside") { record.all.last == 100 }
        #expect(Time.now - start == .seconds(500))
    }

    // MARK: Threads

    @Test("The time stands while a queue, the main actor or a thread of its own computes or sleeps", .simulatedTime)
    func busy() async throws {
        let (start, record) = (Time.now, Record<String>())
        let time = Time.current
        let sleeper = Task { try await Time.sleep(for: .milliseconds(1)) }
        DispatchQueue(label: "queue").async {
            Self.compute()
            record.add("queue")
        }
        DispatchQueue(label: "sleeping queue").async {
            usleep(60_000)
            record.add("sleeping queue")
        }
        Task { @MainActor in
            Self.compute()
            record.add("main actor")
        }
        Thread.detachNewThread {
            Self.compute()
            record.add("thread")
            // It has no task, and is told the time by who made it.
            if Time.current.simulation != nil || time.now != start { record.add("wrong time") }
        }
        try await sleeper.value
        let sleeping = Sanitizer.current == .thread ? [] : ["sleeping queue"]
        #expect(Set(record.all).isSuperset(of: sleeping + ["queue", "main actor", "thread"]))
        #expect(!record.all.contains("wrong time"))
        #expect(Time.now - start == .milliseconds(1))
    }

    @Test("Blocking calls and deadlines' actions are in the task's time, and so is what they start", .simulatedTime)
    func inherited() async throws {
        let start = Time.now
        let now = await DispatchQueue.global().blocking { Time.now }
        #expect(now == start)
        let later = await withCheckedContinuation { continuation in
            _ = Time.deadline(after: .seconds(5)) {
                Task {
                    try? await Time.sleep(for: .seconds(5))
                    continuation.resume(returning: Time.now)
                }
            }
        }
        #expect(later - start == .seconds(10))
    }

    @Test("Two beside each other have a time each; both wait for what computes beside them")
    func beside() async throws {
        let record = Record<String>()
        Thread.detachNewThread {
            Self.compute()
            record.add("computed")
        }
        let durations = try await withThrowingTaskGroup(of: Duration.self) { group in
            for seconds in [10, 2000] {
                group.addTask {
                    try await withSimulatedTime {
                        let start = Time.now
                        for _ in 0..<20 { try await Time.sleep(for: .milliseconds(50 * seconds)) }
                        #expect(record.all == ["computed"])
                        return Time.now - start
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(durations) == [.seconds(10), .seconds(2000)])
        #expect(Time.current.simulation == nil)
    }

    // MARK: Ends

    @Test("A test that waits for ever is told, and canceled")
    func hang() async throws {
        await withKnownIssue {
            await #expect(throws: CancellationError.self) {
                try await withSimulatedTime(patience: .milliseconds(100)) {
                    try await Time.sleep(for: .seconds(1))
                    try await Delivery<Void>().receive()
                }
            }
        } matching: { issue in
            issue.description.contains("waits for ever")
        }
    }

    @Test("What is left behind goes on in the real time, from where the test ended")
    func leftBehind() async throws {
        let delivery = Delivery<Duration>()
        try await withSimulatedTime {
            let start = Time.now
            Task {
                try await Time.sleep(for: .seconds(60))
                try await Time.sleep(for: .milliseconds(20))
                delivery.deliver(.success(Time.now - start))
            }
            try await Time.sleep(for: .milliseconds(59_980))
        }
        #expect(try await delivery.receive() >= .milliseconds(60_020))
    }

    @Test("An error is the test's")
    func error() async throws {
        await #expect(throws: TimeLimitPassed.self) { try await withSimulatedTime { throw TimeLimitPassed() } }
    }
}
