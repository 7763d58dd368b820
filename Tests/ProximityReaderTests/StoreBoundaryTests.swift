import EMVContactless
import Foundation
import SmartCard
import TestSupport
import Testing

@testable import ProximityReader

/// The policy's and the store's limits: the last value that is taken and the first that is not.
@Suite(.simulatedTime, .timeLimit(.minutes(2))) struct StoreBoundaryTests {
    private typealias Policy = ProximityReaderSystem.StoreAndForwardPolicy

    private static let policy = Policy(
        limits: ["EUR": .init(perPayment: 15, total: 100)], maximumCount: 3, maximumAge: .seconds(3600))

    // MARK: Before the card

    @Test("a payment of the highest amount is stored, and one that makes the sum the highest; a cent more is not")
    func amounts() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        let cent = try #require(Decimal(string: "0.01"))
        try await store.admit(15, "EUR", under: Self.policy)
        await expect("readNotAllowed") { try await store.admit(15 + cent, "EUR", under: Self.policy) }
        try await store.add(StoreBench.payment("a", amount: 90))
        try await store.admit(10, "EUR", under: Self.policy)
        await expect("readerMemoryFull") { try await store.admit(10 + cent, "EUR", under: Self.policy) }
    }

    @Test("the last payment of the highest number is stored, and none after it")
    func count() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for number in 0..<3 {
            try await store.admit(1, "EUR", under: Self.policy)
            try await store.add(StoreBench.payment("\(number)", amount: 1))
        }
        await expect("readerMemoryFull") { try await store.admit(1, "EUR", under: Self.policy) }
    }

    @Test("a payment is stored while the oldest is of the highest age, and not later")
    func age() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a", amount: 1))
        // The store keeps milliseconds.
        let age = bench.clock.now.timeIntervalSince(try #require(try await store.payments().first).time)
        let policy = Policy(limits: Self.policy.limits, maximumAge: .seconds(1000 + age))
        bench.clock.advance(999.99)
        try await store.admit(1, "EUR", under: policy)
        bench.clock.advance(0.02)
        await expect("readerMemoryFull") { try await store.admit(1, "EUR", under: policy) }
    }

    // MARK: The time in which payments may be stored

    private static let start = Date(timeIntervalSince1970: 1_700_000_000)

    private static func preparation(expires: TimeInterval = 48 * 3600) -> Preparation {
        Preparation(
            issuer: StoreBench.issuer, merchant: "merchant-1", terminalProfile: nil, cardDataKey: nil,
            tokenExpiration: start.addingTimeInterval(expires), time: start, uptime: 1000, boot: "boot-1",
            reader: StoreBench.reader)
    }

    /// - Parameters:
    ///   - clock: the seconds by the clock since the preparation.
    ///   - latest: those of the latest known time.
    ///   - uptime: the seconds since boot.
    private static func admission(
        clock: TimeInterval, latest: TimeInterval = 0, uptime: Double, expires: TimeInterval = 48 * 3600,
        boot: String = "boot-1"
    ) -> Policy.Admission {
        policy.admits(
            preparation(expires: expires), at: start.addingTimeInterval(clock),
            latest: start.addingTimeInterval(latest), uptime: uptime, boot: boot)
    }

    @Test("the time is over at its end, by whichever clock comes to it first")
    func expiration() {
        #expect(Self.admission(clock: 86_399, uptime: 87_399) == .good)
        #expect(Self.admission(clock: 86_400, uptime: 87_399) == .expired)
        #expect(Self.admission(clock: 86_399, uptime: 87_400) == .expired)
        #expect(Self.admission(clock: 99, uptime: 1099, expires: 100) == .good)
        #expect(Self.admission(clock: 100, uptime: 1099, expires: 100) == .expired)
        #expect(Self.admission(clock: 99, uptime: 1100, expires: 100) == .expired)
    }

    @Test("a clock may go back by a minute, against the uptime and against the latest known time, and no further")
    func clockWentBack() {
        #expect(Self.admission(clock: 440, uptime: 1500) == .good)
        #expect(Self.admission(clock: 439, uptime: 1500) == .clockWentBack)
        #expect(Self.admission(clock: 500, latest: 560, uptime: 1500) == .good)
        #expect(Self.admission(clock: 500, latest: 561, uptime: 1500) == .clockWentBack)
    }

    @Test("an uptime that is less than at the preparation, or none, is that of another boot")
    func restarted() {
        #expect(Self.admission(clock: 0, uptime: 1000) == .good)
        #expect(Self.admission(clock: 0, uptime: 999) == .restarted)
        #expect(Self.admission(clock: 0, uptime: 0) == .restarted)
        let unknown = Preparation(
            issuer: "i", merchant: "m", terminalProfile: nil, cardDataKey: nil, tokenExpiration: .distantFuture,
            time: Self.start, uptime: 0, boot: "boot-1", reader: "r")
        #expect(
            Self.policy.admits(unknown, at: Self.start, latest: Self.start, uptime: 0, boot: "boot-1") == .restarted)
        #expect(Self.admission(clock: 0, uptime: 1000, boot: "boot-2") == .restarted)
    }

    @Test("the latest known time stays what it was when the clock goes back, in the open store and in a new one")
    func latest() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        bench.clock.advance(100)
        try await store.add(StoreBench.payment("a"))
        let latest = try await store.latest()
        bench.clock.advance(-50)
        // Each is removed again, and so the book is compacted.
        for number in 0..<4 {
            try await store.add(StoreBench.payment("\(number)"))
            #expect(try await store.withdraw("\(number)", reason: "test"))
            #expect(try await store.latest() == latest)
        }
        await store.close()
        #expect(try await bench.store().latest() == latest)
    }

    // MARK: The card

    private func findings(
        _ policy: Policy, paying amount: Decimal, _ currency: String = "EUR",
        after earlier: [(amount: Decimal, currency: String, age: TimeInterval)] = []
    ) throws -> TerminalVerificationResults {
        let now = Self.start.addingTimeInterval(1_000_000)
        let payments = try earlier.enumerated().map { index, payment in
            let json = """
                {"id": "\(index)", "time": \(now.addingTimeInterval(-payment.age).timeIntervalSinceReferenceDate), \
                "amount": \(payment.amount), "currency": "\(payment.currency)", "merchant": "m", "state": "stored"}
                """
            return try JSONDecoder().decode(ProximityReaderSystem.Ledger.Payment.self, from: Data(json.utf8))
        }
        // TEST: Visa's published test account number.
        let number = try #require(PAN(packed: [UInt8](hex: "4761739001010010")))
        return policy.findings(on: number, sequenceNumber: nil, paying: amount, currency, after: payments, at: now)
    }

    @Test("a card may pay as often and as much as its velocity says within its time, and again when that is over")
    func velocity() throws {
        var policy = Self.policy
        policy.cardVelocity = .init(maximumCount: 2, maximumAmount: 25, window: .seconds(600))
        #expect(try findings(policy, paying: 15, after: [(10, "EUR", 1)]) == [])
        #expect(
            try findings(policy, paying: 16, after: [(10, "EUR", 1)]) == [.upperConsecutiveOfflineLimitExceeded])
        #expect(
            try findings(policy, paying: 1, after: [(1, "EUR", 1), (1, "EUR", 599)])
                == [.upperConsecutiveOfflineLimitExceeded])
        #expect(try findings(policy, paying: 1, after: [(1, "EUR", 1), (1, "EUR", 600)]) == [])
        // Another currency counts as a payment, and not by its amount.
        #expect(try findings(policy, paying: 15, after: [(20, "USD", 1)]) == [])
    }

    @Test("the floor limit is exceeded by the sum that equals it, and holds for any amount")
    func floorLimit() throws {
        var policy = Self.policy
        policy.limits["EUR"]?.floorLimit = 30
        let cent = try #require(Decimal(string: "19.99"))
        #expect(try findings(policy, paying: cent, after: [(10, "EUR", 1), (20, "USD", 1)]) == [])
        #expect(try findings(policy, paying: 20, after: [(10, "EUR", 1)]) == [.floorLimitExceeded])
        let huge = try #require(Decimal(string: "1e30"))
        #expect(try findings(policy, paying: huge) == [.floorLimitExceeded])
    }

    // MARK: Forwarding

    @Test("the last payment can be taken back in its sixtieth second, and not later")
    func withdrawLast() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a"))
        let rest = bench.clock.now.timeIntervalSince(try #require(try await store.payments().first).time)
        bench.clock.advance(60.01 - rest)
        await expect("storeAndForwardDeclineFailed") { try await store.withdrawLast() }
        bench.clock.advance(-0.02)
        try await store.withdrawLast()
        #expect(try await store.payments().isEmpty)
    }

    @Test("a deletion token of the greatest length is kept; one that is longer is not")
    func tokenLength() async throws {
        for (length, isKept) in [(1 << 20, true), (1 << 20 + 1, false)] {
            let bench = try StoreBench()
            let store = try await bench.preparedStore()
            try await store.add(StoreBench.payment("a"))
            let batch = try await store.makeBatch(size: 0)
            try await store.willSend(batch: batch.id)
            try await store.record(["a": .approved], deletionToken: String(repeating: "x", count: length))
            #expect((try await store.deletionToken() != nil) == isKept)
        }
    }

    @Test("a token may be from five minutes ahead of the clock, and holds until its last moment")
    func tokenTimes() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a"))
        let batch = try await store.makeBatch(size: 0)
        let now = bench.clock.now.timeIntervalSince1970
        func token(_ name: String, _ time: TimeInterval) async throws {
            var claims = bench.claims(for: batch)
            claims[name] = time
            _ = try await bench.verified(claims)
        }
        try await token("iat", now + 299)
        await expect("storeAndForwardDeletionTokenInvalid") { try await token("iat", now + 301) }
        try await token("exp", now + 1)
        await expect("storeAndForwardDeletionTokenExpired") { try await token("exp", now) }
    }

    @Test("an alarm is raised by the use that equals its share of the limit")
    func alarms() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        let policy = Policy(limits: ["EUR": .init(perPayment: 100, total: 100)], maximumCount: 1000)
        func alarm() async throws -> ProximityReaderSystem.Ledger.Summary.Alarm? {
            try await store.summary(under: policy).limits.first { $0.limit == .total(currency: "EUR") }?.alarm
        }
        try await store.add(StoreBench.payment("a", amount: Decimal(string: "49.99") ?? 0))
        #expect(try await alarm() == nil)
        try await store.add(StoreBench.payment("b", amount: Decimal(string: "0.01") ?? 0))
        #expect(try await alarm() == .half)
        try await store.add(StoreBench.payment("c", amount: 30))
        #expect(try await alarm() == .most)
        try await store.add(StoreBench.payment("d", amount: 20))
        #expect(try await alarm() == .all)
    }

    @Test("a payment that was sent once is not withdrawn, also after a refusal and in a book begun anew")
    func sentOnce() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a"))
        let batch = try await store.makeBatch(size: 0)
        try await store.willSend(batch: batch.id)
        try await store.wasRefused(batch: batch.id)
        try await store.reset()
        #expect(try await store.withdraw("a", reason: "test") == false)
        // More than twice as many are removed as are left: the book is compacted.
        for number in 0..<6 {
            try await store.add(StoreBench.payment("\(number)"))
            #expect(try await store.withdraw("\(number)", reason: "test"))
        }
        await store.close()
        let again = bench.store()
        #expect(try await again.withdraw("a", reason: "test") == false)
        #expect(try await again.payments().map(\.state) == [.stored])
    }

    @Test(
        "After a compaction, the open store finds each payment in its new entry, as does one that reads the book anew")
    func compactedInPlace() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        let kept = ["a", "b", "c", "d"]
        for (index, id) in kept.enumerated() {
            try await store.add(StoreBench.payment(id))
            // A gap before each of the others.
            try await store.add(StoreBench.payment("gap \(index)"))
        }
        try await store.setAside("c", reason: "it fails")
        for index in kept.indices { #expect(try await store.withdraw("gap \(index)", reason: "test")) }
        // At the third: a checkpoint, the five payments there were, and the fourth withdrawal.
        #expect(try await store.entryCount() == 1 + 5 + 1)
        #expect(try await store.withdraw("a", reason: "test"))
        let batch = try await store.makeBatch(size: 0)
        #expect(batch.payments.map(\.id) == ["b", "d"])
        #expect(batch.payments.map(\.paymentCardData) == ["b", "d"].map { StoreBench.payment($0).paymentCardData })
        let open = try await store.payments()
        await store.close()
        let again = bench.store()
        #expect(try await again.payments().map(\.id) == open.map(\.id))
        #expect(try await again.payments().map(\.state) == open.map(\.state))
        #expect(try await again.batch()?.signature == batch.signature)
        #expect(try await again.resolve(bench.verified(bench.claims(for: batch))) == 1)
    }

    /// The limit is 256 and four for each payment.  Three entries: the store is opened and prepared, and has a payment.
    @Test(
        "a book of very many entries for its payments is compacted when it is opened",
        arguments: [(260, 260), (261, 2)]
    )
    func entries(_ written: Int, _ read: Int) async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a"))
        for number in 3..<written {
            if number % 2 == 1 {
                try await store.setAside("a", reason: "it fails")
            } else {
                try await store.putBack("a")
            }
        }
        #expect(try await store.entryCount() == written)
        await store.close()
        let again = bench.store()
        // A checkpoint and the payment, or what was written.
        #expect(try await again.entryCount() == read)
        #expect(try await again.payments().map(\.state) == [written % 2 == 0 ? .setAside : .stored])
    }
}
