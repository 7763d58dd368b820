import CardReaderAdapter
import CardReaderCombine
import CardReceipts
import Foundation
import OpenCombine
import Synchronization
import TestSupport
import Testing

/// Nobody is charged twice, nobody is given money back twice, and no result is lost.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct MoneyTests {
    private static let unknown = "intentCreation(underlyingError: paymentOutcomeUnknown)"
    private static let refund = RefundParameters(chargeId: "charge-1", amount: 5, currency: "eur")

    /// With a payment service that is given up soon, but not so soon that a busy machine's answers come late.
    private func impatient(_ script: [ScriptedProcessor.Answer], on surface: Surface) -> AdapterBench {
        var limits = ContactlessReaderService.TimeLimits()
        limits.processor = .seconds(8)
        return AdapterBench(script: script, limits: limits, on: surface)
    }

    private func keys(_ bench: AdapterBench, _ kind: String) async -> [String] {
        await bench.processor.calls(of: kind).map(\.key)
    }

    // MARK: Refunds

    @Test(
        "A20: a refund whose answer is lost, late or unknown is asked for again under the same key, without the reader",
        arguments: [false, true], Surface.allCases)
    func refundAgain(_ needsCard: Bool, _ surface: Surface) async throws {
        let bench = impatient(
            [.approved, .fails(.noAnswer), .never, .fails(.notConnected), .fails(.sessionExpired)], on: surface)
        await bench.processor.setRefund(.succeeded, needsCard: needsCard)
        try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
        if needsCard { bench.readers.present(.approved(.interac)) }
        let errors = [
            "requestTimedOut", "requestTimedOut", "notConnectedToInternet", "readerSessionExpired",
        ]
        for (index, error) in errors.enumerated() {
            if index == 1 { bench.readers.unplug("A") }
            #expect(
                await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
                    == "refundPayment(underlyingError: \(error), shouldRetry: true)")
        }
        #expect(
            await failure {
                _ = try await bench.service.refundPayment(
                    parameters: RefundParameters(chargeId: "charge-1", amount: 6, currency: "eur"))
            } == "refundCreation(underlyingError: paymentOutcomeUnknown)")
        try bench.service.clear()
        #expect(try await bench.service.refundPayment(parameters: Self.refund) == "success")
        #expect(await keys(bench, "refund").count == 5)
        #expect(await Set(keys(bench, "refund")).count == 1)
        await bench.processor.release()
        // What is settled is not asked about again: the next one is another.
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await bench.connect()
        if needsCard { bench.readers.present(.approved(.interac)) }
        #expect(try await bench.service.refundPayment(parameters: Self.refund) == "success")
        #expect(await Set(keys(bench, "refund")).count == 2)
    }

    @Test(
        "A20: a refund that was refused has another key the next time; one of which nothing is known has not",
        arguments: Surface.allCases)
    func refundKeys(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        try await bench.connect()
        func once() async -> String? {
            await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
        }
        await bench.processor.setRefund(.failed(.temporary), needsCard: false)
        #expect(await once() != nil)
        await bench.processor.setRefund(.unknown, needsCard: false)
        #expect(await once() == nil)
        #expect(await once() == nil)
        await bench.processor.follow([.fails(.declined(.temporary))])
        #expect(await once() != nil)
        await bench.processor.setRefund(.pending, needsCard: false)
        #expect(await once() == nil)
        let keys = await keys(bench, "refund")
        #expect(keys.count == 5 && keys[0] != keys[1] && keys[1] == keys[2] && keys[2] == keys[3] && keys[3] != keys[4])
    }

    // MARK: Payments

    @Test(
        "A17: while nobody knows whether a card was charged, no other payment begins, nor after clear",
        arguments: [
            ScriptedProcessor.Answer.never, .fails(.noAnswer), .wrong, .failsWith(.noAnswer, .processing),
            .failsWith(.noAnswer, .unknown), .failsWith(.noAnswer, .requiresAction),
        ], Surface.allCases)
    func doubt(_ answer: ScriptedProcessor.Answer, _ surface: Surface) async throws {
        let bench = impatient([.approved, answer], on: surface)
        try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } == Self.unknown)
        try await bench.service.disconnect()
        try bench.service.clear()
        try await bench.connect()
        #expect(await failure { _ = try await bench.pay() } == Self.unknown)
        #expect(await keys(bench, "create").count == 1)
        #expect(await keys(bench, "process").count == 1)
        // Taken back, it is over.
        await bench.processor.release()
        try await bench.service.cancelPaymentIntent()
        #expect(try await bench.pay().status == .requiresCapture)
    }

    @Test(
        "A9, A17: unplugged while the payment service is silent, the payment is asked about without a reader",
        arguments: [false, true], Surface.allCases)
    func withoutReader(_ isCancelled: Bool, _ surface: Surface) async throws {
        let bench = impatient([.approved, .never], on: surface)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
        bench.readers.present(.approved(.visa))
        let payment = Task { await failure { _ = try await bench.pay() } }
        try await wait(for: "process") { await bench.processor.isHolding }
        bench.readers.unplug("A")
        try await wait(for: "event") { events.all.last?.text == "disconnected usbDisconnected" }
        #expect(await payment.value == "paymentCapture(underlyingError: requestTimedOut)")
        await bench.processor.release()
        if isCancelled {
            try await bench.service.cancelPaymentIntent()
            #expect(await bench.activePaymentIntent == nil)
        } else {
            #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
            #expect(await Set(keys(bench, "process")).count == 1)
        }
        try await bench.payOnceMore()
    }

    @Test("A17: what the payment service has done meanwhile is asked for, and returned", arguments: Surface.allCases)
    func inquiry(_ surface: Surface) async throws {
        let bench = AdapterBench(
            script: [.approved, .failsWith(.noAnswer, .processing), .wrong, .status(.succeeded)], on: surface)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } == "paymentCapture(underlyingError: requestTimedOut)")
        #expect(
            await failure { _ = try await bench.service.retryActivePaymentIntent() }
                == "paymentCapture(underlyingError: processorAPIError)")
        #expect(try await bench.service.retryActivePaymentIntent().status == .succeeded)
        #expect(await bench.processor.calls.map(\.kind) == ["create", "process", "retrieve", "retrieve"])
        // One that there never was is forgotten, and one that was declined wants another card.
        await bench.processor.follow([.approved, .failsWith(.noAnswer, .unknown), .fails(.unknownIntent)])
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        #expect(
            await failure { _ = try await bench.service.retryActivePaymentIntent() }
                == "paymentCapture(underlyingError: confirmInvalidPaymentIntent)")
        await bench.processor.follow([
            .approved, .failsWith(.noAnswer, .processing), .status(.requiresPaymentMethod),
        ])
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        bench.readers.present(.approved(.masterCard))
        #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
    }

    @Test(
        "A17, A18: one that turns out to be paid when it is cancelled is told of, and then another may begin",
        arguments: Surface.allCases)
    func paidMeanwhile(_ surface: Surface) async throws {
        let bench = AdapterBench(
            script: [.approved, .fails(.noAnswer), .failsWith(.unknownIntent, .succeeded)], on: surface)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        #expect(
            await failure { try await bench.service.cancelPaymentIntent() }
                == "paymentCancellation(underlyingError: confirmInvalidPaymentIntent)")
        #expect(await failure { _ = try await bench.pay() } == Self.unknown)
        #expect(
            await failure { _ = try await bench.service.retryActivePaymentIntent() }
                == "retryNotPossibleActivePaymentSucceeded")
        try await bench.payOnceMore()
        // One that is to be captured is returned.
        await bench.processor.follow([.approved, .fails(.noAnswer), .failsWith(.unknownIntent, .requiresCapture)])
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        #expect(await failure { try await bench.service.cancelPaymentIntent() } != nil)
        #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
        try await bench.payOnceMore()
    }

    @Test("A17: a call that is refused says nothing of those before it", arguments: Surface.allCases)
    func refusedAfterDoubt(_ surface: Surface) async throws {
        let bench = AdapterBench(
            script: [
                .approved, .fails(.noAnswer), .fails(.notConnected), .fails(.sessionExpired), .fails(.unknownIntent),
                .fails(.notConnected), .status(.requiresPaymentMethod),
            ], on: surface)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        for _ in 0..<4 {
            #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } != nil)
            #expect(await failure { _ = try await bench.pay() } == Self.unknown)
        }
        #expect(await Set(keys(bench, "process")).count == 1)
        #expect(await bench.processor.calls.last?.kind == "retrieve", "the key has become unknown")
        bench.readers.present(.approved(.visa))
        #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
        // At the first time it says that nothing was done.
        for reason: PaymentProcessorError.Reason in [.notConnected, .sessionExpired, .refused("merchant"), .tooOld] {
            await bench.processor.follow([.approved, .fails(reason)])
            bench.readers.present(.approved(.visa))
            #expect(await failure { _ = try await bench.pay() } != nil)
            try await bench.payOnceMore()
        }
    }

    @Test(
        "A18: while a payment is being taken back nothing else begins, neither it again nor another",
        arguments: Surface.allCases)
    func cancelling(_ surface: Surface) async throws {
        let bench = AdapterBench(script: [.approved, .fails(.noAnswer), .held], on: surface)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        let cancellation = Task { await failure { try await bench.service.cancelPaymentIntent() } }
        try await wait(for: "cancel") { await bench.processor.isHolding }
        let busy = "(underlyingError: readerBusy)"
        #expect(
            await failure { _ = try await bench.service.retryActivePaymentIntent() } == "paymentMethodCollection\(busy)"
        )
        #expect(await failure { _ = try await bench.pay() } == "paymentMethodCollection\(busy)")
        #expect(await failure { try await bench.service.cancelPaymentIntent() } == "paymentCancellation\(busy)")
        #expect(await failure { try await bench.service.disconnect() } == "disconnection\(busy)")
        #expect(
            await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
                == "refundCreation\(busy)")
        // Whoever no longer waits for it does not undo it.
        cancellation.cancel()
        await bench.processor.release()
        #expect(await cancellation.value == nil)
        #expect(await bench.activePaymentIntent == nil)
        try await bench.payOnceMore()
    }

    @Test(
        "A18: between the wait for a card that is cancelled and the cancellation nothing comes",
        arguments: Surface.allCases)
    func cancellingACollection(_ surface: Surface) async throws {
        let bench = AdapterBench(script: [.approved, .held], on: surface)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        let payment = Task {
            let error = await failure { _ = try await bench.pay() }
            // The moment it ends.
            return [error, await failure { _ = try await bench.service.retryActivePaymentIntent() }]
        }
        try await wait(for: "wait for a card") { events.all.contains { $0.text == "waiting 4" } }
        let cancellation = Task { await failure { try await bench.service.cancelPaymentIntent() } }
        #expect(
            await payment.value == [
                "paymentMethodCollection(underlyingError: commandCancelled(from: CancellationSource.app))",
                "paymentMethodCollection(underlyingError: readerBusy)",
            ])
        try await wait(for: "cancel") { await bench.processor.isHolding }
        await bench.processor.release()
        #expect(await cancellation.value == nil)
        #expect(await bench.processor.calls.map(\.kind) == ["create", "cancel"])
    }

    @Test(
        "A16: a payment that has succeeded is not captured; one that is captured for another amount is no success",
        arguments: Surface.allCases)
    func capture(_ surface: Surface) async throws {
        let bench = AdapterBench(script: [.approved, .status(.succeeded)], on: surface)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        let paid = try await bench.service.collectPayment(AdapterBench.payment) { intent in
            Issue.record("captured twice")
            return intent
        }
        #expect(paid.status == .succeeded)
        for (amount, currency) in [(UInt(1233), "eur"), (1235, "eur"), (1234, "usd")] {
            bench.readers.present(.approved(.visa))
            #expect(
                await failure {
                    _ = try await bench.service.collectPayment(AdapterBench.payment) { intent in
                        PaymentIntent(
                            id: intent.id, status: .succeeded, created: intent.created, amount: amount,
                            currency: currency)
                    }
                } == "paymentCapture(underlyingError: processorAPIError)")
        }
    }

    // MARK: Publishers

    /// Returns when the call is over that nobody waits for.
    private func ended(_ bench: AdapterBench) async throws {
        try await wait(for: "end") {
            await failure { _ = try await bench.pay() } != "paymentMethodCollection(underlyingError: readerBusy)"
        }
    }

    @Test(
        "A26: a payment whose subscription is cancelled while it is processed is not lost, and none is made beside it")
    func unclaimed() async throws {
        let bench = AdapterBench(script: [.approved, .held])
        let combine = CombineCardReaderService(bench.service)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        let payment = combine.capturePayment(AdapterBench.payment)
        let got = Mutex<[String]>([])
        func subscribe() -> AnyCancellable {
            payment.sink { _ in
            } receiveValue: { intent in
                got.withLock { $0.append(intent.id) }
            }
        }
        let first = subscribe()
        try await wait(for: "process") { await bench.processor.isHolding }
        first.cancel()
        await bench.processor.release()
        try await ended(bench)
        // Another publisher, another task: none of them begins a second one.
        #expect(await failure { _ = try await bench.pay() } == Self.unknown)
        #expect(await keys(bench, "process").count == 1)
        // One call for each publisher.
        let second = subscribe()
        try await wait(for: "value") { got.withLock { $0.count } == 1 }
        let third = subscribe()
        try await wait(for: "value") { got.withLock { $0.count } == 2 }
        #expect(got.withLock { $0 } == ["intent-1", "intent-1"])
        #expect(await keys(bench, "process").count == 1)
        // It is taken, and the next one may begin.
        #expect(await bench.activePaymentIntent == nil)
        try await bench.payOnceMore()
        withExtendedLifetime((second, third)) {}
    }

    @Test("A26: where the publisher is gone, too, a retry returns the payment, and a cancellation takes it back")
    func unclaimedRetry() async throws {
        for isCancelled in [false, true] {
            let bench = AdapterBench(script: [.approved, .held])
            let combine = CombineCardReaderService(bench.service)
            try await bench.connect()
            bench.readers.present(.approved(.visa))
            var payment: AnyCancellable? = combine.capturePayment(AdapterBench.payment).sink { _ in
            } receiveValue: { _ in
                Issue.record("a value for nobody")
            }
            try await wait(for: "process") { await bench.processor.isHolding }
            payment?.cancel()
            payment = nil
            await bench.processor.release()
            try await ended(bench)
            if isCancelled {
                try await bench.service.cancelPaymentIntent()
                #expect(await bench.processor.calls.map(\.kind) == ["create", "process", "cancel"])
            } else {
                #expect(try await bench.service.retryActivePaymentIntent().id == "intent-1")
                #expect(await bench.processor.calls.map(\.kind) == ["create", "process"])
            }
            try await bench.payOnceMore()
        }
    }

    @Test("A26: a refund whose subscription is cancelled while it is processed is asked about under its own key")
    func unclaimedRefund() async throws {
        let bench = AdapterBench(script: [.approved, .held])
        let combine = CombineCardReaderService(bench.service)
        try await bench.connect()
        let refund = combine.refundPayment(parameters: Self.refund).sink { _ in
        } receiveValue: { _ in
        }
        try await wait(for: "refund") { await bench.processor.isHolding }
        refund.cancel()
        await bench.processor.release()
        try await wait(for: "end") {
            await failure { try await bench.service.cancelRefund() }
                == "refundCancellation(underlyingError: noRefundInProgress)"
        }
        #expect(try await bench.service.refundPayment(parameters: Self.refund) == "success")
        #expect(await Set(keys(bench, "refund")).count == 1)
        #expect(try await bench.service.refundPayment(parameters: Self.refund) == "success")
        #expect(await Set(keys(bench, "refund")).count == 2)
    }
}
