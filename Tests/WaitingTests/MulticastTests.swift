import Dispatch
import Synchronization
import Testing
import Waiting

/// Streams of one multicast: order, replay, bounds, ends, and consumers that are cancelled at every point.
@Suite(.timeLimit(.minutes(5))) struct MulticastTests {
    private func all<Element>(_ stream: AsyncStream<Element>) async -> [Element] {
        var seen: [Element] = []
        for await element in stream { seen.append(element) }
        return seen
    }

    // MARK: Elements

    @Test("Every stream has every element from its beginning on, in the order in which they were sent")
    func everyStream() async {
        let multicast = Multicast<Int>(keeping: .all(upTo: 100))
        let early = multicast.stream()
        multicast.send(1)
        let late = multicast.stream()
        multicast.send(2)
        multicast.finish()
        multicast.send(3)
        #expect(await all(early) == [1, 2])
        #expect(await all(late) == [2])
        #expect(await all(multicast.stream()) == [])
    }

    @Test("The order is one for all, whoever sends at the same time, and however slow a consumer is")
    func order() async {
        let multicast = Multicast<[Int]>(keeping: .all(upTo: 100_000))
        let consumers = (0..<4).map { consumer in
            let stream = multicast.stream()
            return Task {
                var seen: [[Int]] = []
                for await element in stream {
                    seen.append(element)
                    if seen.count.isMultiple(of: consumer + 2) { await Task.yield() }
                }
                return seen
            }
        }
        await withTaskGroup { group in
            for sender in 0..<4 {
                group.addTask {
                    for number in 0..<1000 {
                        multicast.send([sender, number])
                        if number.isMultiple(of: 17) { await Task.yield() }
                    }
                }
            }
        }
        multicast.finish()
        var seen: [[[Int]]] = []
        for consumer in consumers { seen.append(await consumer.value) }
        #expect(seen.allSatisfy { $0 == seen[0] })
        for sender in 0..<4 {
            #expect(seen[0].filter { $0[0] == sender }.map { $0[1] } == Array(0..<1000))
        }
    }

    @Test("A stream of a part has that part, as it is made of the elements, and its bound counts nothing else")
    func part() async {
        let multicast = Multicast<Int>(keeping: .all(upTo: 3))
        let even = multicast.stream { $0.isMultiple(of: 2) ? "\($0)" : nil }
        for number in 1...6 { multicast.send(number) }
        multicast.finish()
        #expect(await all(even) == ["2", "4", "6"])
    }

    @Test("Two consumers of one stream share it, and both end with it")
    func shared() async {
        let multicast = Multicast<Int>(keeping: .all(upTo: 1000))
        let stream = multicast.stream()
        let consumers = (0..<2).map { _ in Task { await all(stream) } }
        for number in 0..<500 { multicast.send(number) }
        multicast.finish()
        let seen = await [consumers[0].value, consumers[1].value]
        #expect(seen.flatMap(\.self).sorted() == Array(0..<500))
        #expect(seen.allSatisfy { $0 == $0.sorted() })
    }

    // MARK: Replay

    @Test("A stream of what is true begins with the last element, also when no more are to come")
    func replay() async {
        let multicast = Multicast(1, keeping: .newest(8))
        #expect(multicast.latest == 1)
        multicast.send(2)
        let stream = multicast.stream()
        multicast.send(3)
        multicast.finish()
        #expect(await all(stream) == [2, 3])
        #expect(await all(multicast.stream()) == [3])
        #expect(multicast.latest == 3)
    }

    @Test("What is made of the last element is the next, whoever makes it at the same time; nothing is sent for nil")
    func update() async {
        let multicast = Multicast(0, keeping: .newest(1))
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<500 { multicast.update { $0.map { $0 + 1 } } } }
            }
        }
        multicast.update { _ in nil }
        #expect(multicast.latest == 2000)
        let stream = multicast.stream()
        multicast.finish()
        multicast.update { _ in 1 }
        #expect(await all(stream) == [2000])
    }

    @Test("What is forgotten is not replayed, and what comes after it is")
    func forget() async {
        let multicast = Multicast(1, keeping: .newest(8))
        multicast.forget()
        #expect(multicast.latest == nil)
        let stream = multicast.stream()
        multicast.send(2)
        multicast.finish()
        #expect(await all(stream) == [2])
    }

    private final class Goods: Sendable {}

    @Test("What is held weakly is replayed as long as somebody has it, and is not kept alive")
    func weakReplay() async throws {
        let multicast = Multicast<Goods>(keeping: .all(upTo: 8)) { goods in { [weak goods] in goods } }
        var goods: Goods? = Goods()
        multicast.send(try #require(goods))
        #expect(multicast.latest === goods)
        var iterator: AsyncStream<Goods>.AsyncIterator? = multicast.stream().makeAsyncIterator()
        goods = nil
        // The stream has it.
        #expect(multicast.latest != nil)
        _ = await iterator?.next()
        iterator = nil
        #expect(multicast.latest == nil)
    }

    // MARK: Bounds

    @Test("Of states, a slow consumer gets the newest")
    func newest() async {
        let multicast = Multicast<Int>(keeping: .newest(3))
        let stream = multicast.stream()
        for number in 1...10 { multicast.send(number) }
        multicast.finish()
        #expect(await all(stream) == [8, 9, 10])
    }

    @Test("Of what must not be missed, a slow consumer gets the first, and then learns that there was more")
    func overrun() async throws {
        let multicast = Multicast<Int>(keeping: .all(upTo: 3))
        let (plain, throwing) = (multicast.stream(), multicast.throwingStream())
        for number in 1...4 { multicast.send(number) }
        var iterator = throwing.makeAsyncIterator()
        for number in 1...3 { #expect(try await iterator.next() == number) }
        await #expect(throws: StreamOverrun.self) { try await iterator.next() }
        #expect(try await iterator.next() == nil)
        // One that does not throw ends, although the multicast goes on.
        #expect(await all(plain) == [1, 2, 3])
        let next = multicast.stream()
        multicast.send(5)
        multicast.finish()
        #expect(await all(next) == [5])
    }

    @Test("A consumer that keeps up is never cut off, however small the bound")
    func keepsUp() async {
        let multicast = Multicast<Int>(keeping: .all(upTo: 1))
        var iterator = multicast.stream().makeAsyncIterator()
        for number in 0..<1000 {
            multicast.send(number)
            #expect(await iterator.next() == number)
        }
    }

    // MARK: Ends

    private struct Fault: Error {}

    @Test("An error ends the streams that throw after what they keep, those to come too, and the others without it")
    func failure() async throws {
        let multicast = Multicast<Int>(keeping: .all(upTo: 8))
        let (plain, throwing) = (multicast.stream(), multicast.throwingStream())
        multicast.send(1)
        multicast.finish(throwing: Fault())
        multicast.finish()
        #expect(await all(plain) == [1])
        for (stream, count) in [(throwing, 1), (multicast.throwingStream(), 0)] {
            var seen = 0
            await #expect(throws: Fault.self) { for try await _ in stream { seen += 1 } }
            #expect(seen == count)
        }
    }

    @Test("A consumer that waits learns of the end, and of an error")
    func failureWhileWaiting() async throws {
        let multicast = Multicast<Int>(keeping: .all(upTo: 8))
        let executor = CallingExecutor()
        let stream = multicast.throwingStream()
        let consumer = Task(executorPreference: executor) { for try await _ in stream {} }
        await executor.turns(1)
        multicast.finish(throwing: Fault())
        await #expect(throws: Fault.self) { try await consumer.value }
    }

    @Test("Streams end with the multicast, which they do not keep alive")
    func release() async {
        var multicast: Multicast<Int>? = Multicast(keeping: .all(upTo: 8))
        weak let weakMulticast = multicast
        let stream = multicast?.stream()
        multicast?.send(1)
        multicast = nil
        #expect(weakMulticast == nil)
        if let stream { #expect(await all(stream) == [1]) }
    }

    @Test("What a stream keeps is released with it, and a stream that is let go of is sent nothing")
    func letGo() async {
        let multicast = Multicast<Goods>(keeping: .all(upTo: 8))
        var stream: AsyncStream<Goods>? = multicast.stream()
        var goods: Goods? = Goods()
        weak let weakGoods = goods
        if let goods { multicast.send(goods) }
        goods = nil
        #expect(weakGoods != nil)
        stream = nil
        _ = stream
        #expect(weakGoods == nil)
        let made = Atomic(0)
        stream = multicast.stream { goods in
            made.add(1, ordering: .relaxed)
            return goods
        }
        stream = nil
        multicast.send(Goods())
        let number = made.load(ordering: .relaxed)
        #expect(number == 0)
    }

    // MARK: No lock is held

    /// Runs tasks on a queue of its own, and calls something each time that one is woken, on the thread that wakes it.
    private final class CallingExecutor: TaskExecutor {
        private let queue = DispatchQueue(label: "calling executor")
        private let state = Mutex(State())

        private struct State {
            var call: @Sendable () -> Void = {}
            var count = 0
        }

        func onWake(_ call: @escaping @Sendable () -> Void) { state.withLock { $0.call = call } }

        func enqueue(_ job: consuming ExecutorJob) {
            state.withLock { $0.call }()
            let job = UnownedJob(job)
            queue.async {
                job.runSynchronously(on: self.asUnownedTaskExecutor())
                self.state.withLock { $0.count += 1 }
            }
        }

        /// Waits until jobs have run so many times, and those that were enqueued before have run out.
        func turns(_ number: Int) async {
            while state.withLock({ $0.count }) < number { await Task.yield() }
        }
    }

    /// What can be done to a multicast, and is done to it here from within what it does.
    private enum Call: CaseIterable {
        case send
        case finish
        case stream
        case latest
        case forget

        func callAsFunction(_ multicast: Multicast<Int>) {
            switch self {
            case .send: multicast.send(-1)
            case .finish: multicast.finish()
            case .stream: _ = multicast.stream()
            case .latest: _ = multicast.latest
            case .forget: multicast.forget()
            }
        }
    }

    // With a lock held, the second call would stop the process: the lock is taken twice on one thread.
    @Test("Whoever is woken by it may use it at once", arguments: [Call.send, .finish], Call.allCases)
    private func wakes(_ outer: Call, _ inner: Call) async {
        let multicast = Multicast(0, keeping: .newest(8))
        let executor = CallingExecutor()
        let stream = multicast.stream()
        let consumer = Task(executorPreference: executor) { for await _ in stream {} }
        await executor.turns(1)
        let isDone = Atomic(false)
        executor.onWake { if !isDone.exchange(true, ordering: .relaxed) { inner(multicast) } }
        outer(multicast)
        let wasCalled = isDone.load(ordering: .relaxed)
        #expect(wasCalled)
        multicast.finish()
        await consumer.value
    }

    @Test(
        "Whoever is woken by the end of it is not held up either, and a cancelled consumer may use it",
        arguments: Call.allCases)
    private func cancelled(_ inner: Call) async {
        let multicast = Multicast(0, keeping: .newest(8))
        let executor = CallingExecutor()
        let stream = multicast.stream()
        let consumer = Task(executorPreference: executor) { for await _ in stream {} }
        await executor.turns(1)
        executor.onWake { inner(multicast) }
        consumer.cancel()
        await consumer.value
    }

    private final class Calling: Sendable {
        private let call: @Sendable () -> Void
        init(_ call: @escaping @Sendable () -> Void) { self.call = call }
        deinit { call() }
    }

    @Test("An element whose release uses it is released with no lock held", arguments: Call.allCases)
    private func releases(_ inner: Call) async {
        let other = Multicast(0, keeping: .newest(1))
        let multicast = Multicast<Calling>(keeping: .newest(1)) { element in { element } }
        let released = Mutex(0)
        let element = { @Sendable [weak multicast] in
            Calling { [weak multicast] in
                inner(other)
                _ = multicast?.latest
                released.withLock { $0 += 1 }
            }
        }
        let (stream, refusing) = (multicast.stream(), multicast.stream { _ in nil as Int? })
        for _ in 0..<3 { multicast.send(element()) }
        #expect(released.withLock { $0 } == 2)
        multicast.forget()
        withExtendedLifetime((stream, refusing)) {}
    }

    // MARK: Everything at once

    /// Rounds of one consumer each, which is cancelled, let go of, or ended at a moment that moves on from round to round.
    @Test("Consumers come, are cancelled at every point, and go, while others send and finish")
    func storm() async {
        for round in 0..<300 {
            let multicast = Multicast(0, keeping: round.isMultiple(of: 2) ? .newest(4) : .all(upTo: 4))
            await withTaskGroup { group in
                for sender in 0..<2 {
                    group.addTask {
                        for number in 1...40 {
                            multicast.send(sender * 100 + number)
                            if number == round % 40 { await Task.yield() }
                        }
                        if sender == 1 { multicast.finish(throwing: round.isMultiple(of: 3) ? Fault() : nil) }
                    }
                }
                for consumer in 0..<4 {
                    group.addTask {
                        let task = Task {
                            var last = 0
                            if consumer.isMultiple(of: 2) {
                                for await element in multicast.stream() where element < 100 {
                                    // Of each sender in its order.
                                    #expect(element >= last)
                                    last = element
                                }
                            } else {
                                do { for try await _ in multicast.throwingStream() {} } catch {}
                            }
                        }
                        for _ in 0..<(round + consumer) % 23 { await Task.yield() }
                        if consumer < 3 { task.cancel() }
                        // Ends with the cancellation, with the multicast, or as it fell behind.
                        await task.value
                    }
                }
            }
        }
    }

    @Test("From threads: sending, finishing and cancelling at the same moment ends every consumer")
    func threads() async {
        for round in 0..<400 {
            let multicast = Multicast<Int>(keeping: .newest(2))
            let consumers = (0..<3).map { _ in
                let stream = multicast.stream()
                return Task { for await _ in stream {} }
            }
            if round.isMultiple(of: 2) { await Task.yield() }
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    DispatchQueue.concurrentPerform(iterations: 5) { thread in
                        switch thread {
                        case 0: for number in 0..<20 { multicast.send(number) }
                        case 1: multicast.finish()
                        default: consumers[thread - 2].cancel()
                        }
                    }
                    continuation.resume()
                }
            }
            for consumer in consumers { await consumer.value }
        }
    }
}
