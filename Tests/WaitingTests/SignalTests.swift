import TestSupport
import Testing
import Waiting

@Suite(.timeLimit(.minutes(1))) struct SignalTests {
    @Test("every task that waits is woken, once") func wakesAll() async {
        let signal = Signal()
        let isOver = Lock(false)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    while !isOver.withLock({ $0 }) {
                        await signal.wait { isOver.withLock { $0 } }
                    }
                }
            }
            for _ in 0..<20 { await Task.yield() }
            isOver.withLock { $0 = true }
            signal.send()
        }
    }

    @Test("a change between the look at the state and the wait is not missed") func changeMeanwhile() async {
        let signal = Signal()
        let isOver = Lock(false)
        await signal.wait {
            defer {
                isOver.withLock { $0 = true }
                signal.send()
            }
            return isOver.withLock { $0 }
        }
        #expect(isOver.withLock { $0 })
    }

    @Test("nothing is waited for where the change is there already") func isDue() async {
        await Signal().wait { true }
    }

    @Test("a wait ends with its time", .simulatedTime) func limit() async {
        let start = Time.now
        await Signal().wait(within: .milliseconds(20)) { false }
        #expect(Time.now - start == .milliseconds(20))
    }

    @Test("a canceled task does not wait, and leaves nobody behind for whom a signal is kept") func cancelled() async {
        let signal = Signal()
        let task = Task { await signal.wait { false } }
        task.cancel()
        await task.value
        // A signal is not kept for those who come later.
        signal.send()
        await signal.wait(within: .milliseconds(1)) { false }
    }

    @Test("a thousand changes, seen by several tasks, one after the other") func counting() async {
        let signal = Signal()
        let count = Lock(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var seen = 0
                    while seen < 1000 {
                        let last = seen
                        await signal.wait { count.withLock { $0 } > last }
                        seen = count.withLock { $0 }
                    }
                }
            }
            group.addTask {
                for _ in 0..<1000 {
                    count.withLock { $0 += 1 }
                    signal.send()
                    await Task.yield()
                }
            }
        }
        #expect(count.withLock { $0 } == 1000)
    }
}
