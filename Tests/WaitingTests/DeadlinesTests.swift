import Dispatch
import Foundation
import Synchronization
import Testing
import Waiting

struct DeadlinesTests {
    @Test("what is due is carried out in the order of time, whatever was set first") func order() async {
        let deadlines = Deadlines()
        let (carriedOut, carryOut) = AsyncStream<Int>.makeStream()
        for tenth in [3, 1, 2] { _ = deadlines.set(.milliseconds(100 * tenth)) { carryOut.yield(tenth) } }
        var order: [Int] = []
        for await tenth in carriedOut {
            order.append(tenth)
            if order.count == 3 { break }
        }
        #expect(order == [1, 2, 3])
    }

    @Test("what has become due at the same moment is carried out in the order of time, too") func late() async {
        let deadlines = Deadlines()
        let (carriedOut, carryOut) = AsyncStream<Int>.makeStream()
        // Keeps the thread of the timer until all are due.
        _ = deadlines.set(.zero) { Thread.sleep(forTimeInterval: 0.1) }
        for number in (1...20).reversed() { _ = deadlines.set(.milliseconds(number)) { carryOut.yield(number) } }
        var order: [Int] = []
        for await number in carriedOut {
            order.append(number)
            if order.count == 20 { break }
        }
        #expect(order == Array(1...20))
    }

    @Test("nothing is carried out before its time, and a past time is now") func time() async {
        let deadlines = Deadlines()
        for limit in [Duration.milliseconds(50), .zero, .seconds(-1)] {
            let start = DispatchTime.now().uptimeNanoseconds
            await withCheckedContinuation { continuation in _ = deadlines.set(limit) { continuation.resume() } }
            #expect(.nanoseconds(DispatchTime.now().uptimeNanoseconds - start) >= limit)
        }
    }

    @Test("one that was lifted is not carried out, and those behind it are") func lifted() async {
        let deadlines = Deadlines()
        let tally = Tally()
        let ids = (0..<100).map { _ in deadlines.set(.milliseconds(300)) { tally.count(0) } }
        for id in ids { deadlines.lift(id) }
        for id in ids { deadlines.lift(id) }
        let (later, end) = AsyncStream.makeStream(of: Void.self)
        _ = deadlines.set(.milliseconds(310)) { end.finish() }
        for await _ in later {}
        #expect(tally.counts.isEmpty)
    }

    @Test("a limit beyond every clock waits for ever, and keeps nobody from being earlier") func farAway() async {
        let deadlines = Deadlines()
        for seconds in [Int64.max, 1 << 40] { _ = deadlines.set(.seconds(seconds)) { Issue.record("the end of time") } }
        await withCheckedContinuation { continuation in _ = deadlines.set(.milliseconds(1)) { continuation.resume() } }
    }

    @Test("set and lifted by many at once, all of the rest are carried out once") func many() async {
        let deadlines = Deadlines()
        let tally = Tally()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                group.addTask {
                    if number.isMultiple(of: 2) {
                        deadlines.lift(deadlines.set(.seconds(60)) { tally.count(number) })
                    } else {
                        await withCheckedContinuation { continuation in
                            _ = deadlines.set(.microseconds(number * 50)) {
                                tally.count(number)
                                continuation.resume()
                            }
                        }
                    }
                }
            }
        }
        #expect(tally.counts.count == 200)
        #expect(tally.counts.allSatisfy { $0.value == 1 && !$0.key.isMultiple(of: 2) })
    }
}

/// How often each has been carried out.
private final class Tally: Sendable {
    private let state = Mutex<[Int: Int]>([:])

    var counts: [Int: Int] { state.withLock { $0 } }

    func count(_ number: Int) { state.withLock { $0[number, default: 0] += 1 } }
}
