import Dispatch
import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import Waiting

/// The tap transaction's stream, row for row as its promises are numbered: E1 to E7.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct TapTransactionTests {
    /// A state without what belongs to one attempt alone.
    enum Seen: Hashable {
        case cancelled(String)
        case confirming(Decimal, String)
        case completed(TapOutcome)

        init(_ state: TapTransactionState) {
            self =
                switch state {
                case .cancelled(let error): .cancelled(String("\(error)".prefix { $0 != "(" }))
                case .confirmingPayment(let payment, _): .confirming(payment.amount, payment.currencyCode)
                case .completed(let outcome): .completed(outcome)
                }
        }
    }

    private func readyForTap(_ bench: KioskBench) -> Task<Void, Never> {
        let events = bench.reader.events
        return Task { for await event in events { if case .readyForTap = event { return } } }
    }

    /// The states of one attempt, whose confirmations `confirm` answers.
    private func states(
        _ transactions: TapTransactions, amount: Decimal = 12.34, _ confirm: @Sendable (TapConfirmation) async -> Void
    ) async -> [Seen] {
        var seen: [Seen] = []
        for await state in transactions.processPayment(amount, currencyCode: "EUR") {
            seen.append(Seen(state))
            if case .confirmingPayment(_, let confirmation) = state { await confirm(confirmation) }
        }
        return seen
    }

    @Test("E1: cancelled before the tap, an attempt is cancelled and nothing else, and its stream ends")
    func e1() async throws {
        let bench = try await KioskBench()
        let transactions = TapTransactions(bench.service)
        let ready = readyForTap(bench)
        async let seen = states(transactions) { _ in Issue.record("nothing was read") }
        await ready.value
        #expect(await transactions.cancel())
        #expect(await seen == [.cancelled("readCancelled")])
    }

    /// Counts how often a card is asked for.
    private func asked(_ bench: KioskBench) -> (count: @Sendable () -> Int, end: @Sendable () -> Void) {
        let count = Counter()
        let task = Task { [events = bench.reader.events] in
            for await event in events { if case .readyForTap = event { count.value.withLock { $0 += 1 } } }
        }
        return ({ count.value.withLock { $0 } }, { task.cancel() })
    }

    private final class Counter: Sendable {
        let value = Mutex(0)
    }

    /// It may have asked for a card before whoever cancels it says so: what is promised is that nobody waits for one then.
    @Test(
        "E1: cancelled as soon as it has begun, an attempt takes back what it has asked for, and asks for no card after its end"
    )
    func e1AtOnce() async throws {
        let bench = try await KioskBench()
        let transactions = TapTransactions(bench.service)
        let events = bench.reader.events
        for _ in 0..<20 {
            let stream = transactions.processPayment(12.34, currencyCode: "EUR")
            try #require(await transactions.cancel())
            var seen: [Seen] = []
            for await state in stream { seen.append(Seen(state)) }
            #expect(seen == [.cancelled("readCancelled")])
        }
        #expect(await !transactions.cancel(), "there is none")
        // Every event of theirs has been sent: from here on there is the next attempt's card, and no other.
        let later = bench.reader.events
        let ready = readyForTap(bench)
        async let last = states(transactions) { _ in }
        await ready.value
        #expect(await transactions.cancel())
        _ = await last
        // What is told last.
        bench.device.unplug()
        var cards = 0
        for await event in later {
            if case .notReady = event { break }
            if case .readyForTap = event { cards += 1 }
        }
        #expect(cards == 1)
        var isAwaited = false
        for await event in events {
            if case .notReady = event { break }
            switch event {
            case .readyForTap:
                #expect(!isAwaited, "two are awaited")
                isAwaited = true
            case .readCancelled: isAwaited = false
            default: break
            }
        }
        #expect(!isAwaited)
    }

    @Test(
        "E1: cancelled while a session that is over is being replaced, an attempt asks for no card",
        arguments: [0, 1, 2])
    func e1Preparing(_ who: Int) async throws {
        let bench = try await KioskBench()
        let transactions = TapTransactions(bench.service)
        let cards = asked(bench)
        let model = await PaymentViewModel(bench.service)
        await model.setup()
        bench.passTime(24 * 3600 + 1)
        await bench.psp.holdTokens()
        let tokens = await bench.psp.tokens
        switch who {
        case 0:
            async let seen = states(transactions) { _ in }
            try await wait(for: "token") { await bench.psp.tokens > tokens }
            try #require(await transactions.cancel())
            #expect(await seen == [.cancelled("readCancelled")])
        case 1:
            let charge = Task { try await bench.service.charge(amount: 1, currency: "EUR") }
            try await wait(for: "token") { await bench.psp.tokens > tokens }
            try #require(await bench.service.cancelRead())
            #expect(await thrown { _ = try await charge.value } == "readCancelled")
        default:
            let read = Task { @MainActor in
                model.amount = 1
                await model.readPayment()
            }
            try await wait(for: "token") { await bench.psp.tokens > tokens }
            await model.cancel()
            await read.value
            #expect(await model.errorMessage == nil)
        }
        await bench.psp.release()
        try await bench.service.initialize()
        // Begun after that, and so the first that asks.
        let ready = readyForTap(bench)
        async let last = states(transactions) { _ in }
        await ready.value
        #expect(await transactions.cancel())
        _ = await last
        #expect(cards.count() == 1)
        cards.end()
    }

    @Test("a payment that was approved for an attempt that is over is taken back, until the service has confirmed it")
    func reversal() async throws {
        let bench = try await KioskBench(script: [.held, .approved])
        try bench.insert()
        await bench.psp.failReversals(5)
        let transactions = TapTransactions(bench.service, confirmationTime: .milliseconds(50))
        let asking = Mutex<Task<Bool, Never>?>(nil)
        let key = Mutex("")
        var seen: [Seen] = []
        for await state in transactions.processPayment(12.34, currencyCode: "EUR") {
            seen.append(Seen(state))
            guard case .confirmingPayment(let payment, let confirmation) = state else { continue }
            key.withLock { $0 = payment.card.id }
            asking.withLock { task in
                task = Task { await bench.service.authorize(payment, answering: confirmation) }
            }
            try await wait(for: "call") { await bench.psp.calls.count == 1 }
        }
        #expect(seen.last == .completed(.failed(.timedOut)))
        await bench.psp.release()
        #expect(await asking.withLock { $0 }?.value == false)
        try await wait(for: "reversal") { await bench.psp.reversals == [key.withLock { $0 }] }
        try await wait(for: "end") { await bench.service.unsettledPayments.isEmpty }

        bench.device.remove()
        try bench.insert()
        let next = TapTransactions(bench.service)
        for await state in next.processPayment(1, currencyCode: "EUR") {
            if case .confirmingPayment(let payment, let confirmation) = state {
                #expect(await bench.service.authorize(payment, answering: confirmation))
                #expect(await !bench.service.authorize(payment, answering: confirmation), "it is over")
            }
            seen.append(Seen(state))
        }
        #expect(seen.last == .completed(.approved))
        #expect(await bench.psp.reversals.count == 1)
        #expect(await bench.psp.calls.count == 2)
    }

    @Test("what authorize has thrown is an outcome: nothing was done, or nobody knows")
    func outcomes() {
        let refusal = PaymentServiceError.refused(code: "merchant", message: "No such merchant.")
        #expect(TapOutcome(refusal) == .failed(.service(refusal.description)))
        #expect(TapOutcome(TapToPayError.outcomeUnknown(key: "k")) == .failed(.outcomeUnknown(key: "k")))
    }

    @Test("no card is awaited where the terminal has no application of the merchant's networks")
    func networks() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let jcb = TapTransactions(bench.service, networks: [.jcb])
        #expect(await states(jcb) { _ in Issue.record("confirmed") } == [.cancelled("cardNotSupported")])
        let visa = TapTransactions(bench.service, networks: [.visa])
        let seen = await states(visa) { #expect($0.complete(.approved)) }
        #expect(seen.last == .completed(.approved))
    }

    @Test(
        "E2: a tap is confirmed and then completed as the payment service decides",
        arguments: [
            (ScriptedService.Answer.approved, TapOutcome.approved),
            (.declined, .declined(reason: "Insufficient funds")),
        ])
    func e2(_ answer: ScriptedService.Answer, _ outcome: TapOutcome) async throws {
        let bench = try await KioskBench(script: [answer])
        try bench.insert()
        var seen: [Seen] = []
        for await state in TapTransactions(bench.service).processPayment(12.34, currencyCode: "EUR") {
            seen.append(Seen(state))
            guard case .confirmingPayment(let payment, let confirmation) = state else { continue }
            let result = try await bench.service.authorize(
                payment.card, amount: payment.amount, currency: payment.currencyCode)
            #expect(confirmation.complete(TapOutcome(result)))
        }
        #expect(seen == [.confirming(12.34, "EUR"), .completed(outcome)])
    }

    @Test("E2: a card that declines has paid nothing: cancelled, whether it is thrown or a result")
    func e2Card() async throws {
        for isResult in [false, true] {
            var options = PaymentCardReader.Options()
            options.includeErrorInReadResult = isResult
            let bench = try await KioskBench(options: options)
            try bench.insert("visa-decline")
            let seen = await states(TapTransactions(bench.service)) { _ in Issue.record("there is nothing to confirm") }
            #expect(seen == [.cancelled("paymentCardDeclined")])
        }
    }

    @Test("E3: of two answers the first counts, from whatever thread")
    func e3Twice() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let seen = await states(TapTransactions(bench.service)) { confirmation in
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    #expect(confirmation.complete(.declined(reason: "first")))
                    #expect(!confirmation.complete(.approved))
                    continuation.resume()
                }
            }
            #expect(!confirmation.complete(.approved))
        }
        #expect(seen == [.confirming(12.34, "EUR"), .completed(.declined(reason: "first"))])
    }

    private final class Accepted: Sendable {
        let outcomes = Mutex<[TapOutcome]>([])
    }

    @Test("E3: of a hundred answers at once one counts")
    func e3AtOnce() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let accepted = Accepted()
        let seen = await states(TapTransactions(bench.service)) { confirmation in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        let outcome = TapOutcome.declined(reason: "\(number)")
                        if confirmation.complete(outcome) { accepted.outcomes.withLock { $0.append(outcome) } }
                    }
                }
            }
        }
        let outcomes = accepted.outcomes.withLock { $0 }
        #expect(outcomes.count == 1)
        #expect(seen.last == outcomes.first.map(Seen.completed))
    }

    @Test("E3: a confirmation that is let go of unanswered fails the payment at once")
    func e3Never() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let seen = await states(TapTransactions(bench.service)) { _ in }
        #expect(seen == [.confirming(12.34, "EUR"), .completed(.failed(.unanswered))])
    }

    @Test(
        "E3: one that is held and not answered fails it when its time is over, and an answer after that does not count")
    func e3Late() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let held = Mutex<TapConfirmation?>(nil)
        let transactions = TapTransactions(bench.service, confirmationTime: .milliseconds(50))
        let seen = await states(transactions) { confirmation in held.withLock { $0 = confirmation } }
        #expect(seen == [.confirming(12.34, "EUR"), .completed(.failed(.timedOut))])
        #expect(held.withLock { $0 }?.complete(.approved) == false)
    }

    @Test("E3: after a cancel an answer does not count, and whoever gives it learns so")
    func e3Cancelled() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let transactions = TapTransactions(bench.service)
        let held = Mutex<TapConfirmation?>(nil)
        var all = transactions.transactionStates.makeAsyncIterator()
        let attempt = Task {
            for await state in transactions.processPayment(12.34, currencyCode: "EUR") {
                if case .confirmingPayment(_, let confirmation) = state {
                    held.withLock { $0 = confirmation }
                    try? await Time.sleep(for: .seconds(3600))
                }
            }
        }
        try await wait(for: "confirmation") { held.withLock { $0 } != nil }
        attempt.cancel()
        await attempt.value
        let states = [await all.next(), await all.next()].compactMap { $0.map(Seen.init) }
        #expect(states == [.confirming(12.34, "EUR"), .cancelled("readCancelled")])
        #expect(held.withLock { $0 }?.complete(.approved) == false)
    }

    @Test("E4: an attempt that cannot start is cancelled once")
    func e4CannotStart() async throws {
        let bench = try await KioskBench(isPrepared: false)
        let transactions = TapTransactions(bench.service)
        #expect(await states(transactions) { _ in } == [.cancelled("The reader is not ready. Make it ready first.")])
        try await bench.service.initialize()
        #expect(await states(transactions, amount: -1) { _ in } == [.cancelled("invalidAmount")])
    }

    @Test("E4: a second attempt while one is active is busy, also while that one is confirmed, and does not disturb it")
    func e4Busy() async throws {
        let bench = try await KioskBench()
        let transactions = TapTransactions(bench.service)
        let ready = readyForTap(bench)
        async let first = states(transactions) { confirmation in
            #expect(await states(transactions) { _ in } == [.cancelled("readerSessionBusy")])
            #expect(confirmation.complete(.approved))
        }
        await ready.value
        #expect(await states(transactions) { _ in } == [.cancelled("readerSessionBusy")])
        try bench.insert()
        #expect(await first == [.confirming(12.34, "EUR"), .completed(.approved)])
    }

    @Test("E5: who stops consuming cancels the read, and the next attempt begins")
    func e5Consumer() async throws {
        let bench = try await KioskBench()
        let transactions = TapTransactions(bench.service)
        let ready = readyForTap(bench)
        let events = bench.reader.events
        let attempt = Task { for await _ in transactions.processPayment(12.34, currencyCode: "EUR") {} }
        await ready.value
        attempt.cancel()
        await attempt.value
        var isCancelled = false
        for await event in events {
            if case .readCancelled = event { isCancelled = true }
            if case .userInterfaceDismissed = event { break }
        }
        #expect(isCancelled)
        try bench.insert()
        var seen: [Seen] = []
        // The cancelled attempt may still be ending.
        repeat {
            try await Time.sleep(for: .milliseconds(10))
            seen = await states(transactions) { #expect($0.complete(.approved)) }
        } while seen == [.cancelled("readerSessionBusy")]
        #expect(seen == [.confirming(12.34, "EUR"), .completed(.approved)])
    }

    private final class Listener: TapTransactionDelegate {
        let seen = Mutex<[Seen]>([])
        func tapTransactions(_: TapTransactions, didRead payment: TapPayment, confirmation: TapConfirmation) {
            seen.withLock { $0.append(.confirming(payment.amount, payment.currencyCode)) }
        }
        func tapTransactions(_: TapTransactions, didComplete outcome: TapOutcome) {
            seen.withLock { $0.append(.completed(outcome)) }
        }
        func tapTransactions(_: TapTransactions, didCancel error: any Error) {
            seen.withLock { $0.append(.cancelled("\(error)")) }
        }
    }

    @Test("E5: every delegate is told of every state, and none is kept alive; nor is what tells them")
    func e5Delegates() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        var transactions: TapTransactions? = TapTransactions(bench.service)
        weak let weakTransactions = transactions
        let listeners = [Listener(), Listener()]
        let removed = Listener()
        var released: Listener? = Listener()
        weak let weakReleased = released
        for listener in listeners + [removed] { transactions?.add(listener) }
        if let released { transactions?.add(released) }
        transactions?.remove(removed)
        released = nil
        #expect(weakReleased == nil)
        let stream = try #require(transactions).processPayment(12.34, currencyCode: "EUR")
        for await state in stream {
            if case .confirmingPayment(_, let confirmation) = state { #expect(confirmation.complete(.approved)) }
        }
        for listener in listeners {
            #expect(listener.seen.withLock { $0 } == [.confirming(12.34, "EUR"), .completed(.approved)])
        }
        #expect(removed.seen.withLock { $0 }.isEmpty)
        transactions = nil
        try await wait(for: "release") { weakTransactions == nil }
    }

    @Test(
        "E6: who comes late gets the state that the attempt is in, and can confirm; the next attempt begins without it")
    func e6() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let transactions = TapTransactions(bench.service)
        let held = Mutex<TapConfirmation?>(nil)
        async let first = states(transactions) { confirmation in
            held.withLock { $0 = confirmation }
            for await state in transactions.transactionStates {
                #expect(Seen(state) == .confirming(12.34, "EUR"))
                if case .confirmingPayment(_, let same) = state { #expect(same.complete(.approved)) }
                break
            }
        }
        #expect(await first == [.confirming(12.34, "EUR"), .completed(.approved)])
        // It is over: its end is what a late one gets.
        var late = transactions.transactionStates.makeAsyncIterator()
        #expect(await late.next().map(Seen.init) == .completed(.approved))

        let ready = readyForTap(bench)
        async let second = states(transactions, amount: 5) { #expect($0.complete(.declined(reason: nil))) }
        await ready.value
        // Nothing of the first.
        var fresh = transactions.transactionStates.makeAsyncIterator()
        try bench.insert()
        #expect(await second == [.confirming(5, "EUR"), .completed(.declined(reason: nil))])
        #expect(await fresh.next().map(Seen.init) == .confirming(5, "EUR"))
        #expect(await late.next().map(Seen.init) == .confirming(5, "EUR"))
    }

    /// Runs tasks, and calls something each time that one is woken, on the thread that wakes it.
    private final class CallingExecutor: TaskExecutor {
        private let call: @Sendable () -> Void
        init(_ call: @escaping @Sendable () -> Void) { self.call = call }
        func enqueue(_ job: consuming ExecutorJob) {
            call()
            let job = UnownedJob(job)
            DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    // With a lock held the process would stop: the lock is taken twice on one thread.
    @Test("E6: whoever is told of a state may ask for all states while it is woken")
    func e6Woken() async throws {
        let bench = try await KioskBench()
        let transactions = TapTransactions(bench.service)
        let executor = CallingExecutor { _ = transactions.transactionStates }
        let all = transactions.transactionStates
        let listener = Task(executorPreference: executor) {
            var seen: [Seen] = []
            for await state in all {
                seen.append(Seen(state))
                if case .completed = state { break }
            }
            return seen
        }
        try bench.insert()
        let seen = await states(transactions) { #expect($0.complete(.approved)) }
        #expect(seen == [.confirming(12.34, "EUR"), .completed(.approved)])
        #expect(await listener.value == [.confirming(12.34, "EUR"), .completed(.approved)])
    }

    @Test("E7: payments can be made with a reader, and a network that its terminal has an application of")
    func e7() async throws {
        let bench = try await KioskBench()
        #expect(await TapTransactions(bench.service).canMakePayments)
        #expect(await TapTransactions(bench.service, networks: [.visa, .jcb]).canMakePayments)
        // The test terminal has one kernel: Visa's.
        #expect(await !TapTransactions(bench.service, networks: [.jcb]).canMakePayments)
        #expect(await !TapTransactions(bench.service, networks: []).canMakePayments)
        let without = try await KioskBench(isPrepared: false) { $0.reader = .serialNumber("no such reader") }
        #expect(await !TapTransactions(without.service).canMakePayments)
    }
}
