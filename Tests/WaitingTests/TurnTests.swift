import Testing
import Waiting

/// Tasks that take turns, with some that leave the line.
@Suite(.timeLimit(.minutes(1))) struct TurnTests {
    /// Tasks in the line, each begun when the one before waits.
    private func line(
        _ count: Int, at turn: Turn, _ body: @escaping @Sendable (Int) -> Void
    ) async -> [Task<Void, any Error>] {
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<count {
            tasks.append(
                Task {
                    try await turn.take()
                    defer { turn.pass() }
                    body(number)
                })
            while turn.waitingCount <= number { await Task.yield() }
        }
        return tasks
    }

    @Test("The turn goes from one to the next in the order in which they came")
    func order() async throws {
        let turn = Turn()
        let seen = Lock<[Int]>([])
        try await turn.take()
        let tasks = await line(5, at: turn) { number in seen.withLock { $0.append(number) } }
        #expect(seen.withLock { $0 } == [])
        turn.pass()
        for task in tasks { try await task.value }
        #expect(seen.withLock { $0 } == [0, 1, 2, 3, 4])
    }

    @Test("Who is canceled leaves the line at once, and his turn is the next one's; a canceled task takes no free turn")
    func cancelled() async throws {
        let turn = Turn()
        let seen = Lock<[Int]>([])
        try await turn.take()
        let tasks = await line(3, at: turn) { number in seen.withLock { $0.append(number) } }
        tasks[0].cancel()
        tasks[1].cancel()
        // The turn is still taken.
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        turn.pass()
        try await tasks[2].value
        #expect(seen.withLock { $0 } == [2])
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await turn.take()
        }
        await #expect(throws: CancellationError.self) { try await late.value }
        try await turn.take()
    }

    @Test("As many as there are places have the turn at once, and a hold gives it back when it is let go")
    func places() async throws {
        let turn = Turn(places: 2)
        var holds = [try await turn.hold(), try await turn.hold()]
        let third = await line(1, at: turn) { _ in }
        holds.removeLast()
        try await third[0].value
        holds = []
        try await turn.take()
        try await turn.take()
    }

    @Test("However many come, go and are canceled at once, one at a time has the turn and nobody is forgotten")
    func race() async throws {
        let turn = Turn()
        let inside = Lock(0)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                group.addTask {
                    let task = Task {
                        try await turn.take()
                        #expect(
                            inside.withLock { count in
                                count += 1; return count
                            } == 1)
                        await Task.yield()
                        inside.withLock { $0 -= 1 }
                        turn.pass()
                    }
                    if number.isMultiple(of: 3) { task.cancel() }
                    _ = await task.result
                }
            }
        }
        try await turn.take()
        #expect(turn.waitingCount == 0)
    }
}
