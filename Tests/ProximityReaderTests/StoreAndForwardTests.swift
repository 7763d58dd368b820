import CardEncryption
import EMVContactless
import Foundation
import ProximityReader
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Payments without a network, from the reader to the deletion.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct StoreAndForwardTests {
    private static func policy(total: Decimal = 100) -> ProximityReaderSystem.StoreAndForwardPolicy {
        .init(limits: ["EUR": .init(perPayment: 15, total: total)], maximumCount: 3, maximumAge: .seconds(3600))
    }

    private static var quick: PaymentCardReader.Options {
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = true
        return options
    }

    /// One that was prepared online, with a card on it.
    private func preparedBench(
        _ configure: (inout ProximityReaderSystem.Configuration) -> Void = { $0.storeAndForward = policy() }
    ) async throws -> Bench {
        let bench = try await Bench(options: Self.quick, configure: configure)
        _ = try await bench.reader.prepare(using: bench.token())
        try bench.insert("visa")
        return bench
    }

    private func pay(
        _ session: PaymentCardReaderSession, on bench: Bench, _ request: PaymentCardTransactionRequest = purchase
    ) async throws -> PaymentCardReadResult {
        try bench.present("visa")
        return try await session.readPaymentCard(request)
    }

    @Test("a payment is stored when it returns, sealed, and goes with the payment service's leave")
    func aPayment() async throws {
        let bench = try await preparedBench()
        let session = try await bench.reader.prepareStoreAndForward()
        let start = try await session.status()
        #expect(start.readCount == 0)
        let result = try await pay(session, on: bench)
        #expect(try await session.status().readCount == 1)
        let store = try bench.reader.fetchPaymentCardReaderStore()
        #expect(try await store.fetchStoredPaymentCardReadResultCount() == 1)
        let batch = try await store.fetchStoredPaymentCardReadResultBatch()
        let payment = try #require(batch.payments.first)
        #expect(payment.id == result.id && payment.paymentCardData == result.paymentCardData)
        // The card's file: TEST.
        #expect(try bench.open(payment.paymentCardData)[0x57]?.hex.hasPrefix("4761739001010010D") == true)
        let ledger = ProximityReaderSystem.Ledger(of: store)
        #expect(try await ledger.payments().map(\.amount) == [Decimal(string: "12.34")])
        #expect(try await ledger.batch()?.id == batch.id)
        try await ledger.willSend(batch: batch.id)
        await expect("notAllowed") { try await store.resetBatchState() }
        try await ledger.record([result.id: .approved])
        await expect("storeAndForwardDeletionTokenInvalid") {
            _ = try await store.resolveBatch(batchDeletionToken: .init(rawValue: "x"))
        }
        let token = try await deletionToken(for: batch, on: bench)
        #expect(try await store.resolveBatch(batchDeletionToken: token) == 0)
        #expect(try await ledger.state(of: result.id) == .resolved)
    }

    private func deletionToken(
        for batch: StoreAndForwardBatch, on bench: Bench
    ) async throws -> StoreAndForwardBatchDeletionToken {
        let service = try StoreBench(service: bench.signer)
        var claims = service.claims(for: batch)
        claims["aud"] = try await bench.reader.readerIdentifier
        return try service.token(claims)
    }

    @Test("the last payment is taken back; a session that is over takes nothing back")
    func declined() async throws {
        let bench = try await preparedBench()
        let session = try await bench.reader.prepareStoreAndForward()
        await expect("storeAndForwardResultNotFound") { try await session.decline() }
        _ = try await pay(session, on: bench)
        try await session.decline()
        #expect(try await session.status().readCount == 0)
        _ = try await pay(session, on: bench)
        bench.passTime(61)
        await expect("storeAndForwardDeclineFailed") { try await session.decline() }
        _ = try await bench.reader.prepareStoreAndForward()
        await expect("noReaderSession") { try await session.decline() }
    }

    // MARK: When

    @Test("payments are stored only where the configuration wants it")
    func optIn() async throws {
        let bench = try await preparedBench { _ in }
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        await expect("storeAndForwardNotAllowed") { _ = try bench.reader.fetchPaymentCardReaderStore() }
    }

    @Test("payments are stored within a day of an online preparation, whatever programs end meanwhile")
    func prerequisites() async throws {
        var bench = try await Bench(options: Self.quick) { $0.storeAndForward = Self.policy() }
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        _ = try await bench.reader.prepare(using: bench.token())
        bench.passTime(24 * 3600 - 60)
        try await bench.restart()
        do {
            let session = try await bench.reader.prepareStoreAndForward()
            _ = try await pay(session, on: bench)
            bench.passTime(61)
            await expect("storeAndForwardSessionExpired") { _ = try await session.readPaymentCard(purchase) }
        }
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        // The store is there nevertheless.
        try await bench.restart { $0.storeAndForward = nil }
        let store = try bench.reader.fetchPaymentCardReaderStore()
        #expect(try await store.fetchStoredPaymentCardReadResultCount() == 1)
    }

    @Test("no payment is stored after the token has expired that the reader was prepared with")
    func tokenExpires() async throws {
        let bench = try await Bench { $0.storeAndForward = Self.policy() }
        _ = try await bench.reader.prepare(using: bench.token(lifetime: 3600))
        let session = try await bench.reader.prepareStoreAndForward()
        bench.passTime(3601)
        await expect("storeAndForwardSessionExpired") { _ = try await session.readPaymentCard(purchase) }
    }

    @Test("no payment is stored of a card that comes when the time is over")
    func lateCard() async throws {
        let bench = try await preparedBench()
        bench.device.remove()
        let session = try await bench.reader.prepareStoreAndForward()
        let log = await EventLog(bench.reader)
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readyForTap")
        bench.passTime(24 * 3600)
        try bench.insert("visa")
        await expect("storeAndForwardSessionExpired") { _ = try await read.value }
        #expect(try await session.status().readCount == 0)
    }

    @Test("after the machine was restarted the reader has to be prepared online")
    func restarted() async throws {
        var bench = try await preparedBench()
        bench.restartMachine()
        try await bench.restart()
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        _ = try await bench.reader.prepare(using: bench.token())
        _ = try await bench.reader.prepareStoreAndForward()
    }

    @Test("a clock that goes back ends it; one that goes forth shortens it; none makes it longer")
    func clocks() async throws {
        let bench = try await preparedBench()
        let session = try await bench.reader.prepareStoreAndForward()
        bench.setClock(by: -50)
        _ = try await pay(session, on: bench)
        bench.setClock(by: -15)
        let log = await EventLog(bench.reader)
        await expect("storeAndForwardSessionInvalidated") { _ = try await session.readPaymentCard(purchase) }
        try await log.wait(for: "notReady")
        await expect("storeAndForwardSessionInvalidated") { _ = try await bench.reader.prepareStoreAndForward() }
        // The payment service's clock is right.
        _ = try await bench.reader.prepare(using: bench.token(issued: 65))
        _ = try await bench.reader.prepareStoreAndForward()
        bench.setClock(by: 25 * 3600)
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        // As slowly as the clock is slewed, a day is over when it is over.
        _ = try await bench.reader.prepare(using: bench.token())
        bench.passTime(24 * 3600 + 1)
        bench.setClock(by: -50)
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
    }

    @Test("another payment service's payments are forwarded first")
    func issuers() async throws {
        var bench = try await Bench(options: Self.quick) { configuration in
            configuration.storeAndForward = Self.policy()
            configuration.tokenIssuer = nil
        }
        _ = try await bench.reader.prepare(using: bench.token())
        _ = try await pay(bench.reader.prepareStoreAndForward(), on: bench)
        let other = try await bench.token(issuer: "https://elsewhere.example")
        try await bench.reader.linkAccount(using: other)
        _ = try await bench.reader.prepare(using: other)
        await expect("storeAndForwardTokenIssuerChanged") { _ = try await bench.reader.prepareStoreAndForward() }
        try await bench.restart()
        let store = try bench.reader.fetchPaymentCardReaderStore()
        let batch = try await store.fetchStoredPaymentCardReadResultBatch()
        #expect(try await store.resolveBatch(batchDeletionToken: deletionToken(for: batch, on: bench)) == 0)
        _ = try await bench.reader.prepareStoreAndForward()
    }

    // MARK: What

    @Test("amounts, currencies, refunds and reads that the policy does not take are refused before a card is asked for")
    func refused() async throws {
        let bench = try await preparedBench()
        let session = try await bench.reader.prepareStoreAndForward()
        let log = await EventLog(bench.reader)
        for request in [
            PaymentCardTransactionRequest(amount: 15.01, currencyCode: "EUR"),
            PaymentCardTransactionRequest(amount: 1, currencyCode: "USD"),
            PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR", for: .refund),
        ] {
            await expect("readNotAllowed") { _ = try await session.readPaymentCard(request) }
        }
        await expect("readNotAllowed") {
            _ = try await session.readPaymentCard(PaymentCardVerificationRequest(currencyCode: "EUR"))
        }
        #expect(await log.names.isEmpty)
        #expect(try await session.status().readCount == 0)
        // Online nothing of it counts.
        let online = try await bench.reader.prepare(using: bench.token())
        _ = try await online.readPaymentCard(PaymentCardTransactionRequest(amount: 15.01, currencyCode: "EUR"))
        let store = try bench.reader.fetchPaymentCardReaderStore()
        #expect(try await store.fetchStoredPaymentCardReadResultCount() == 0)
    }

    @Test("the store is full by the number of payments, their sum, or the age of the oldest")
    func limits() async throws {
        let bench = try await preparedBench()
        let session = try await bench.reader.prepareStoreAndForward()
        for _ in 0..<3 { _ = try await pay(session, on: bench) }
        await expect("readerMemoryFull") { _ = try await session.readPaymentCard(purchase) }
        // A batch makes no room; only what is resolved does.
        let store = try bench.reader.fetchPaymentCardReaderStore()
        let batch = try await store.fetchStoredPaymentCardReadResultBatch(size: 2)
        await expect("readerMemoryFull") { _ = try await session.readPaymentCard(purchase) }
        _ = try await store.resolveBatch(batchDeletionToken: deletionToken(for: batch, on: bench))
        _ = try await pay(session, on: bench)
        bench.passTime(3601)
        await expect("readerMemoryFull") { _ = try await session.readPaymentCard(purchase) }

        let poor = try await preparedBench { $0.storeAndForward = Self.policy(total: 24.67) }
        let other = try await poor.reader.prepareStoreAndForward()
        _ = try await pay(other, on: poor)
        await expect("readerMemoryFull") { _ = try await other.readPaymentCard(purchase) }
        let less = PaymentCardTransactionRequest(amount: 12.33, currencyCode: "EUR")
        _ = try await pay(other, on: poor, less)
    }

    @Test("a card that the policy does not take is read and not stored")
    func cards() async throws {
        let name = try #require(AID([0xA0, 0, 0, 0, 4]))
        let bench = try await preparedBench { configuration in
            configuration.storeAndForward = Self.policy()
            configuration.storeAndForward?.applications = [name]
        }
        let session = try await bench.reader.prepareStoreAndForward()
        let log = await EventLog(bench.reader)
        await expect("readNotAllowed") { _ = try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readNotCompleted")
        #expect(try await session.status().readCount == 0)
    }

    @Test(
        "a PIN that has to be verified online, and a card that is not good now, keep a payment from being stored",
        arguments: [
            (nil, .notExpired, nil, true), (Outcome.CVM.none, .notExpired, .active, true),
            (.deviceCVM, .notExpired, nil, true), (.signature, .notExpired, nil, false),
            (nil, .unknown, nil, false), (nil, nil, nil, false),
            (.onlinePIN, .notExpired, nil, false), (nil, .expired, nil, false), (nil, .invalid, nil, false),
            (nil, .notExpired, .inactive, false), (nil, .notExpired, .invalid, false),
        ]
            as [(
                Outcome.CVM?, PaymentCardReadResult.CardExpirationState?, PaymentCardReadResult.CardEffectiveState?,
                Bool
            )])
    func cardholders(
        cvm: Outcome.CVM?, expiration: PaymentCardReadResult.CardExpirationState?,
        effective: PaymentCardReadResult.CardEffectiveState?, isTaken: Bool
    ) async {
        let result = PaymentCardReadResult(
            id: "a", paymentCardData: "sealed", generalCardData: nil, applicationTypeIdentifier: "A0000000031010",
            outcome: .success, cardEffectiveState: effective, cardExpirationState: expiration)
        if isTaken {
            #expect(throws: Never.self) { try Self.policy().admit(result, cvm, []) }
        } else {
            await expect("readNotAllowed") { try Self.policy().admit(result, cvm, []) }
        }
    }

    @Test("an online PIN is not stored, even where the policy has it: nobody could check it")
    func onlinePIN() async {
        let result = PaymentCardReadResult(
            id: "a", paymentCardData: "sealed", generalCardData: nil, applicationTypeIdentifier: "A0000000031010",
            outcome: .success, cardEffectiveState: nil, cardExpirationState: .notExpired)
        var policy = Self.policy()
        policy.cardholderVerification.insert(.onlinePIN)
        await expect("readNotAllowed") { try policy.admit(result, .onlinePIN, []) }
    }

    @Test(
        "what is found out about a card keeps its payment from being stored, as the policy has it",
        arguments: [
            (.offlineDataAuthenticationNotPerformed, true), (.sdaFailed, false), (.ddaFailed, false),
            (.cdaFailed, false), (.iccDataMissing, false), (.cardOnExceptionFile, false),
            (.floorLimitExceeded, false), (.upperConsecutiveOfflineLimitExceeded, false),
            (.lowerConsecutiveOfflineLimitExceeded, true), (.serviceNotAllowed, false),
        ] as [(TerminalVerificationResults, Bool)])
    func findings(_ finding: TerminalVerificationResults, isTaken: Bool) async throws {
        let result = PaymentCardReadResult(
            id: "a", paymentCardData: "sealed", generalCardData: nil, applicationTypeIdentifier: "A0000000031010",
            outcome: .success, cardEffectiveState: nil, cardExpirationState: .notExpired)
        var policy = Self.policy()
        if !isTaken {
            await expect("readNotAllowed") { try policy.admit(result, nil, finding) }
            policy.denial.remove(finding)
        }
        try policy.admit(result, nil, finding)
        policy.denial.insert(finding)
        await expect("readNotAllowed") { try policy.admit(result, nil, finding) }
    }

    @Test("a card that has to prove offline that it is genuine is stored if it does, and only then")
    func authentic() async throws {
        let bench = try await preparedBench { configuration in
            configuration.storeAndForward = Self.policy()
            configuration.storeAndForward?.denial.insert(.offlineDataAuthenticationNotPerformed)
            Self.allowOffline(&configuration)
        }
        let session = try await bench.reader.prepareStoreAndForward()
        for (card, isTaken) in [("visa", false), ("visa-oda-fails-online", false), ("visa-offline", true)] {
            try bench.present(card)
            if isTaken {
                _ = try await session.readPaymentCard(purchase)
            } else {
                await expect("readNotAllowed") { _ = try await session.readPaymentCard(purchase) }
            }
        }
        #expect(try await session.status().readCount == 1)
        // One that failed is not taken either where others need not prove it.
        let other = try await preparedBench { configuration in
            configuration.storeAndForward = Self.policy()
            Self.allowOffline(&configuration)
        }
        let lenient = try await other.reader.prepareStoreAndForward()
        _ = try await pay(lenient, on: other)
        try other.present("visa-oda-fails-online")
        await expect("readNotAllowed") { _ = try await lenient.readPaymentCard(purchase) }
    }

    /// A terminal that does not want a cryptogram for the issuer from each card.
    private static func allowOffline(_ configuration: inout ProximityReaderSystem.Configuration) {
        for index in configuration.terminal.combinations.indices {
            configuration.terminal.combinations[index].floorLimit = 10_000
        }
    }

    @Test("a card in the exception file is not stored; the file has no number in it")
    func exceptions() async throws {
        // TEST: printf 4761739001010010 | openssl dgst -sha256 -mac HMAC -macopt hexkey:(32 times 42)
        let reference = "d26cccb9bb05ddb0f423bc9b31cb640eca40cd46c97bb61eafacdec43de4305e"
        let key = SecretKey([UInt8](repeating: 0x42, count: 32))
        for (references, isTaken) in [([reference], false), ([String(reference.reversed())], true), ([], true)] {
            let bench = try await preparedBench { configuration in
                configuration.storeAndForward = Self.policy()
                configuration.storeAndForward?.exceptionFile = ProximityReaderSystem.KeyedExceptionFile(
                    references, key: key)
            }
            let session = try await bench.reader.prepareStoreAndForward()
            if isTaken {
                _ = try await pay(session, on: bench)
            } else {
                await expect("readNotAllowed") { _ = try await pay(session, on: bench) }
            }
        }
    }

    @Test("a card pays as often and as much as the policy allows in its time, forwarded or not")
    func velocity() async throws {
        let bench = try await preparedBench { configuration in
            configuration.storeAndForward = Self.policy()
            configuration.storeAndForward?.cardVelocity = .init(
                maximumCount: 2, maximumAmount: 25, window: .seconds(600))
        }
        let session = try await bench.reader.prepareStoreAndForward()
        for _ in 0..<2 { _ = try await pay(session, on: bench) }
        await expect("readNotAllowed") { _ = try await pay(session, on: bench) }
        let ledger = ProximityReaderSystem.Ledger(of: try bench.reader.fetchPaymentCardReaderStore())
        #expect(try await ledger.payments().map(\.card) == ["476173******0010", "476173******0010"])
        // What was forwarded counts as well.
        let store = try bench.reader.fetchPaymentCardReaderStore()
        let batch = try await store.fetchStoredPaymentCardReadResultBatch()
        _ = try await store.resolveBatch(batchDeletionToken: deletionToken(for: batch, on: bench))
        await expect("readNotAllowed") { _ = try await pay(session, on: bench) }
        bench.passTime(601)
        let more = PaymentCardTransactionRequest(amount: 14, currencyCode: "EUR")
        _ = try await pay(session, on: bench, more)
        await expect("readNotAllowed") { _ = try await pay(session, on: bench, more) }
        _ = try await pay(session, on: bench, PaymentCardTransactionRequest(amount: 11, currencyCode: "EUR"))
        // Nothing of the number is anywhere.
        let text = try await ledger.export(.jsonLines)
        #expect(!text.contains("4761739001010010") && text.contains(#""card":"476173******0010""#))
        #expect(text.split(separator: "\n").count == 4)
    }

    @Test("what a card owes stays below the floor limit; what was forwarded does not count")
    func floorLimit() async throws {
        let bench = try await preparedBench { configuration in
            configuration.storeAndForward = Self.policy()
            configuration.storeAndForward?.limits["EUR"]?.floorLimit = Decimal(string: "24.68")
        }
        let session = try await bench.reader.prepareStoreAndForward()
        _ = try await pay(session, on: bench)
        // It is reached by the amount that equals it.
        await expect("readNotAllowed") { _ = try await pay(session, on: bench) }
        let store = try bench.reader.fetchPaymentCardReaderStore()
        let batch = try await store.fetchStoredPaymentCardReadResultBatch()
        _ = try await store.resolveBatch(batchDeletionToken: deletionToken(for: batch, on: bench))
        _ = try await pay(session, on: bench)
    }

    @Test("a preparation with a token that was used before proves no network")
    func oldTokens() async throws {
        var bench = try await Bench(options: Self.quick) { $0.storeAndForward = Self.policy() }
        let (first, second) = (try await bench.token(), try await bench.token(issued: 1))
        _ = try await bench.reader.prepare(using: first)
        _ = try await bench.reader.prepareStoreAndForward()
        bench.restartMachine()
        try await bench.restart()
        _ = try await bench.reader.prepare(using: first)
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        _ = try await bench.reader.prepare(using: second)
        _ = try await bench.reader.prepareStoreAndForward()
        bench.restartMachine()
        try await bench.restart()
        _ = try await bench.reader.prepare(using: first)
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
    }

    @Test("where the system tells nothing of its starts, nothing is stored")
    func noBootIdentifier() async throws {
        let bench = try await preparedBench { configuration in
            configuration.storeAndForward = Self.policy()
            configuration.bootIdentifier = { "" }
        }
        await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
    }

    @Test("without the store's key nothing is read, and the error says so")
    func keyIsLost() async throws {
        var bench = try await preparedBench()
        _ = try await pay(bench.reader.prepareStoreAndForward(), on: bench)
        let folder = bench.configuration.folder
        try await bench.restart()
        let (key, away) = (folder.appending(path: "store.key"), folder.appending(path: "away"))
        try FileManager.default.moveItem(at: key, to: away)
        let store = try bench.reader.fetchPaymentCardReaderStore()
        await expect("passcodeDisabled") { _ = try await store.fetchStoredPaymentCardReadResultCount() }
        await expect("passcodeDisabled") { _ = try await bench.reader.prepareStoreAndForward() }
        try FileManager.default.moveItem(at: away, to: key)
        #expect(try await store.fetchStoredPaymentCardReadResultCount() == 1)
    }

    @Test("a card that declines is not stored")
    func cardDeclines() async throws {
        let bench = try await Bench(options: Self.withErrors) { $0.storeAndForward = Self.policy() }
        _ = try await bench.reader.prepare(using: bench.token())
        let session = try await bench.reader.prepareStoreAndForward()
        try bench.insert("visa-decline")
        #expect(try await session.readPaymentCard(purchase).outcome == .cardDeclined)
        #expect(try await session.status().readCount == 0)
    }

    private static var withErrors: PaymentCardReader.Options {
        var options = quick
        options.includeErrorInReadResult = true
        return options
    }

    @Test("what the machine tells of its starts is what the kernel has")
    func machine() throws {
        let configuration = ProximityReaderSystem.Configuration()
        let text = try String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        #expect(configuration.bootIdentifier() + "\n" == text)
        #expect(configuration.uptime() > .zero)
    }
}
