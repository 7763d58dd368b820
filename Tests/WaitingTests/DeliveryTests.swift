import Dispatch
import Synchronization
import Testing
import Waiting

/// One result, one task that waits for it, and those that would end the wait at the same time.
@Suite(.timeLimit(.minutes(1))) struct DeliveryTests {
    private struct Late: Error, Equatable {}
    private struct Wrong: Error, Equatable {}

    @Test("The first result counts, before or after somebody waits for it")
    func first() async throws {
        let early = Delivery<Int>()
        #expect(early.deliver(.success(1)))
        #expect(!early.deliver(.success(2)))
        #expect(!early.isAwaited)
        #expect(try await early.receive { Issue.record("begun, though the result is there") } == 1)
        let late = Delivery<Int>()
        let value = try await late.receive {
            #expect(late.isAwaited)
            #expect(late.deliver(.success(3)))
            #expect(!late.deliver(.failure(Wrong())))
        }
        #expect(value == 3)
        #expect(!late.deliver(.success(4)))
        let failed = Delivery<Int>()
        await #expect(throws: Wrong()) { _ = try await failed.receive { failed.deliver(.failure(Wrong())) } }
    }

    @Test("A canceled task is resumed before anybody is told to stop, and begins nothing if it was canceled before")
    func cancelled() async throws {
        let delivery = Delivery<Int>()
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let wasAwaited = Lock<Bool?>(nil)
        let task = Task {
            try await delivery.receive {
                begin.finish()
            } onCancel: {
                wasAwaited.withLock { $0 = delivery.isAwaited }
            }
        }
        for await _ in begun {}
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(wasAwaited.withLock { $0 } == false)
        #expect(!delivery.deliver(.success(1)))
        let before = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await Delivery<Int>().receive { Issue.record("begun by a canceled task") }
        }
        await #expect(throws: CancellationError.self) { _ = try await before.value }
    }

    @Test("Received to the end: a canceled task waits for what is delivered, also if it was canceled before")
    func waitsThoughCancelled() async throws {
        let delivery = Delivery<Int>()
        let (cancelled, cancel) = AsyncStream.makeStream(of: Bool.self)
        let task = Task { try await delivery.receiveToTheEnd { cancel.yield(delivery.isAwaited) } }
        while !delivery.isAwaited { await Task.yield() }
        task.cancel()
        #expect(await cancelled.first { _ in true } == true)
        #expect(delivery.deliver(.success(1)))
        #expect(try await task.value == 1)

        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let delivery = Delivery<Int>()
            return try await delivery.receiveToTheEnd { delivery.deliver(.success(2)) }
        }
        #expect(try await late.value == 2)
    }

    @Test("Received to the end by an actor: what came while the actor was elsewhere, though it is canceled then")
    func waitsInAnActor() async throws {
        let waiter = Waiter()
        for number in 0..<100 { #expect(try await Task { try await waiter.takes(number) }.value == number) }
    }

    private actor Waiter {
        func takes(_ number: Int) async throws -> Int {
            let delivery = Delivery<Int>()
            _ = await Task.detached { delivery.deliver(.success(number)) }.value
            withUnsafeCurrentTask { $0?.cancel() }
            return try await delivery.receiveToTheEnd { delivery.deliver(.failure(CancellationError())) }
        }
    }

    @Test("A wait ends with its time, and what comes later is nobody's")
    func late() async throws {
        let delivery = Delivery<Int>()
        await #expect(throws: Late()) { _ = try await delivery.receive(within: .milliseconds(10), or: Late()) }
        #expect(!delivery.deliver(.success(1)))
        let inTime = Delivery<Int>()
        #expect(try await inTime.receive(within: .seconds(60)) { inTime.deliver(.success(1)) } == 1)
    }

    @Test("Results, cancellations and times that meet resume the task once, with one of them")
    func race() async {
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<500 {
                group.addTask {
                    let delivery = Delivery<Int>()
                    let task = Task { try await delivery.receive(within: .microseconds(number), or: Late()) }
                    let counted = Mutex(0)
                    DispatchQueue.concurrentPerform(iterations: 3) { value in
                        if value == 2 { task.cancel() }
                        if value < 2, delivery.deliver(.success(value)) { counted.withLock { $0 += 1 } }
                    }
                    let result = await task.result
                    let isValue = if case .success = result { 1 } else { 0 }
                    #expect(counted.withLock { $0 } == isValue)
                }
            }
        }
    }

    @Test("To the end: the body is not canceled, and is waited for by a canceled task")
    func end() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await toTheEnd {
                begin.finish()
                for await _ in gate {}
                return Task.isCancelled
            }
        }
        for await _ in begun {}
        task.cancel()
        open.finish()
        #expect(try await task.value == false)
        await #expect(throws: Wrong()) { try await toTheEnd { throw Wrong() } }
    }

    @Test("Running on: a canceled task leaves at once, and the body, which is not canceled, ends later")
    func on() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Bool.self)
        let task = Task {
            try await runningOn {
                begin.finish()
                for await _ in gate {}
                end.yield(Task.isCancelled)
            }
        }
        for await _ in begun {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        open.finish()
        #expect(await ended.first { _ in true } == false)
        #expect(try await runningOn { 1 } == 1)
    }

    @Test("A call that blocks runs on its queue, in the order of one actor's calls, and its error is the caller's")
    func blocking() async throws {
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "blocking")
        queue.setSpecific(key: key, value: true)
        #expect(await queue.blocking { DispatchQueue.getSpecific(key: key) } == true)
        await #expect(throws: Wrong()) { try await queue.blocking { throw Wrong() } }
    }

    @Test("a queue holds nothing of a blocking call that has returned")
    func released() async {
        final class Held: Sendable {}
        let queue = DispatchQueue(label: "blocking")
        weak var held: Held?
        var left = 0
        for _ in 0..<2000 {
            do {
                let object = Held()
                held = object
                await queue.blocking { withExtendedLifetime(object) {} }
            }
            if held != nil { left += 1 }
        }
        #expect(left == 0)
    }

    @Test("A lock lets one at its value at a time, and its copies are the same lock")
    func lock() {
        let lock = Lock(0)
        let copy = lock
        DispatchQueue.concurrentPerform(iterations: 4) { number in
            for _ in 0..<100_000 { (number.isMultiple(of: 2) ? lock : copy).withLock { $0 += 1 } }
        }
        #expect(lock.withLock { $0 } == 400_000)
        #expect(throws: Wrong()) { try lock.withLock { _ in throw Wrong() } }
        #expect(copy.withLock { $0 } == 400_000)
    }
}
