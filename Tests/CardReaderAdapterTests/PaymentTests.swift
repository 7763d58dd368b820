import CardReaderAdapter
import Foundation
import Synchronization
import Testing

/// Payments and refunds, row for row as their promises are numbered.
@Suite(.timeLimit(.minutes(10))) struct PaymentTests {
    private func waitsForCard(_ events: Seen<CardReaderEvent>) async throws {
        try await wait(for: "wait for a card") { events.all.contains { $0.text == "waiting 4" } }
    }

    enum State: CaseIterable { case connecting, preparing, collecting, processing }

    @Test(
        "A9: a reader unplugged in any state ends the call with a typed error, and tells why", arguments: State.allCases
    )
    func a9(_ state: State) async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        let lists = Seen(bench.service.connectedReaders)
        switch state {
        case .connecting:
            bench.shop.set(token: .silent)
            let reader = try await bench.find()
            let attempt = Task { await failure { try await bench.service.connect(reader, options: nil) } }
            try await wait(for: "question") { bench.shop.isAsked }
            bench.readers.unplug("A")
            bench.shop.answerLate()
            #expect(await attempt.value == "connection(underlyingError: bluetoothDisconnected)")
            #expect(events.all.isEmpty)
            bench.shop.set()
        case .preparing, .collecting, .processing:
            try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
            if state == .preparing { bench.readers.layCard() }
            if state == .processing {
                await bench.processor.follow([.approved, .held])
                bench.readers.present(.approved(.visa))
            }
            let payment = Task { await failure { _ = try await bench.pay() } }
            switch state {
            case .preparing: try await wait(for: "prompt") { !events.all.isEmpty }
            case .processing: try await wait(for: "process") { await bench.processor.isHolding }
            default: try await waitsForCard(events)
            }
            bench.readers.unplug("A")
            try await wait(for: "event") { events.all.last?.text == "disconnected usbDisconnected" }
            try await wait(for: "empty list") { lists.all.last?.isEmpty == true }
            if state == .processing {
                // The money has moved: what the payment service says counts.
                await bench.processor.release()
                #expect(await payment.value == nil)
            } else {
                #expect(await payment.value == "paymentMethodCollection(underlyingError: bluetoothDisconnected)")
            }
        }
        try await bench.payOnceMore()
    }

    @Test("A14: the events of a payment, the calls to the payment service and the statuses, in their order")
    func a14() async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        let intent = try await bench.pay()
        #expect(intent.amount == 1234 && intent.currency == "eur" && intent.metadata == ["order_id": "7"])
        #expect(events.all.map(\.text).prefix(1) == ["waiting 4"])
        try await wait(for: "events") { events.all.count == 4 }
        #expect(
            events.all.map(\.text) == ["waiting 4", "cardInserted", "message Remove the card", "cardDetailsCollected"])
        #expect(await bench.processor.calls.map(\.kind) == ["create", "process"])
        #expect(await bench.processor.intents.map(\.status) == [.requiresPaymentMethod, .requiresCapture])
        #expect(await Set(bench.processor.calls.map(\.key)).count == 2)
        #expect(await bench.service.activePaymentIntent == nil)
    }

    @Test("A15: a card that lies on the reader has to be removed first, and the payment goes on when it is")
    func a15() async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.layCard()
        bench.readers.present(.approved(.visa))
        async let intent = bench.pay()
        try await wait(for: "prompt") { events.all.count == 1 }
        #expect(await bench.processor.calls.isEmpty)
        bench.readers.takeCard()
        #expect(try await intent.status == .requiresCapture)
        try await wait(for: "events") { events.all.count == 5 }
        #expect(events.all.map(\.text).prefix(2) == ["message Remove the card", "waiting 4"])
    }

    @Test("A16: onProcessing comes before the capture and the removal, which go on at once")
    func a16() async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        let steps = Mutex<[String]>([])
        let result = Task {
            try await bench.service.collectPayment(AdapterBench.payment) { _ in
                steps.withLock { $0.append("processed") }
                bench.readers.layCard()
            } capture: { intent in
                steps.withLock { $0.append("capture") }
                return Self.succeeded(intent)
            }
        }
        try await wait(for: "capture") { steps.withLock { $0.count } == 2 }
        try await wait(for: "prompt") { events.all.last?.text == "message Remove the card" && events.all.count == 5 }
        bench.readers.takeCard()
        #expect(try await result.value.status == .succeeded)
        #expect(steps.withLock { $0 } == ["processed", "capture"])
        try await wait(for: "event") { events.all.last?.text == "cardRemovedAfterClientSidePaymentCapture" }
    }

    private static func succeeded(_ intent: PaymentIntent, id: String? = nil) -> PaymentIntent {
        PaymentIntent(
            id: id ?? intent.id, status: .succeeded, created: intent.created, amount: intent.amount,
            currency: intent.currency)
    }

    @Test("A16: a capture that fails is told of after the card is gone; one that is of another intent, too")
    func a16Fails() async throws {
        struct ServerDown: Error {}
        let bench = AdapterBench()
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        let isGone = Mutex(false)
        let payment = Task {
            await failure {
                _ = try await bench.service.collectPayment(
                    AdapterBench.payment, onProcessing: { _ in bench.readers.layCard() }
                ) { _ in throw ServerDown() }
                Issue.record("captured")
            }.map { ($0, isGone.withLock { $0 }) }
        }
        let events = Seen(bench.service.readerEvents)
        try await wait(for: "prompt") { events.all.last?.text == "message Remove the card" }
        isGone.withLock { $0 = true }
        bench.readers.takeCard()
        let end = try #require(await payment.value)
        #expect(end == ("ServerDown()", true))
        bench.readers.present(.approved(.visa))
        #expect(
            await failure {
                _ = try await bench.service.collectPayment(AdapterBench.payment) { Self.succeeded($0, id: "other") }
            } == "paymentCapture(underlyingError: processorAPIError)")
    }

    @Test(
        "A17: what a retry does depends on the intent's status",
        arguments: [
            (PaymentIntentStatus.requiresPaymentMethod, nil, ["create", "process", "process"], 2),
            (.requiresConfirmation, nil, ["create", "process", "process"], 1),
            (.processing, "retryNotPossibleProcessingInProgress", ["create", "process"], 1),
            (.canceled, "retryNotPossibleActivePaymentCancelled", ["create", "process"], 1),
            (.succeeded, "retryNotPossibleActivePaymentSucceeded", ["create", "process"], 1),
            (.requiresAction, "retryNotPossibleRequiresAction", ["create", "process"], 1),
            (.unknown, "retryNotPossibleUnknownCause", ["create", "process"], 1),
        ] as [(PaymentIntentStatus, String?, [String], Int)])
    func a17(_ status: PaymentIntentStatus, _ error: String?, _ kinds: [String], _ cards: Int) async throws {
        let bench = AdapterBench(script: [.approved, .failsWith(.refused("no"), status)])
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } == "paymentCapture(underlyingError: processorAPIError)")
        #expect(await bench.service.activePaymentIntent?.status == status)
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } == error)
        #expect(await bench.processor.calls.map(\.kind) == kinds)
        #expect(events.all.count { $0.text == "cardDetailsCollected" } == cards)
        #expect(await bench.service.activePaymentIntent == nil || error != nil)
    }

    @Test("A17: without a payment there is none to try again; one that only has to be captured succeeds")
    func a17None() async throws {
        let bench = AdapterBench(script: [.approved, .failsWith(.noAnswer, .requiresCapture)])
        let none = "retryNotPossibleNoActivePayment"
        #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } == none)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(try await bench.pay().status == .requiresCapture)
        #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } == none)
    }

    @Test("A17: an answer that is lost is asked for again under the same key, and a decline wants another card")
    func a17Keys() async throws {
        let bench = AdapterBench(script: [.approved, .fails(.noAnswer), .fails(.declined(.insufficientFunds))])
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } == "paymentCapture(underlyingError: requestTimedOut)")
        #expect(
            await failure { _ = try await bench.service.retryActivePaymentIntent() }
                == "paymentCapture(underlyingError: paymentDeclinedByPaymentProcessorAPI(declineReason: "
                + "CardReaderAdapter.DeclineReason.insufficientFunds))".replacing("CardReaderAdapter.", with: ""))
        bench.readers.present(.approved(.masterCard))
        #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
        let keys = await bench.processor.calls(of: "process").map(\.key)
        #expect(keys.count == 3 && keys[0] == keys[1] && keys[1] != keys[2])
        #expect(await bench.processor.calls(of: "create").count == 1)
    }

    @Test("A18: before there is an intent, there is none to cancel")
    func a18Before() async throws {
        let bench = AdapterBench(script: [.held])
        let none = "paymentCancellation(underlyingError: noActivePaymentIntent)"
        #expect(await failure { try await bench.service.cancelPaymentIntent() } == none)
        try await bench.connect()
        #expect(await failure { try await bench.service.cancelPaymentIntent() } == none)
        bench.readers.present(.approved(.visa))
        async let payment = bench.pay()
        try await wait(for: "question") { await bench.processor.isHolding }
        #expect(await failure { try await bench.service.cancelPaymentIntent() } == none)
        await bench.processor.release()
        #expect(try await payment.status == .requiresCapture)
    }

    @Test("A18: while a card is awaited the app cancels, and so does the customer")
    func a18() async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        let payment = Task { await failure { _ = try await bench.pay() } }
        try await waitsForCard(events)
        try await bench.service.cancelPaymentIntent()
        #expect(await payment.value == Self.cancelled(.app))
        #expect(await bench.processor.calls.map(\.kind) == ["create", "cancel"])
        #expect(await bench.service.activePaymentIntent == nil)
        bench.readers.present(.cancelledAtReader)
        #expect(await failure { _ = try await bench.pay() } == Self.cancelled(.reader))
        try await bench.service.cancelPaymentIntent()
        try await bench.payOnceMore()
    }

    private static func cancelled(_ source: CancellationSource) -> String {
        "paymentMethodCollection(underlyingError: commandCancelled(from: CancellationSource.\(source)))"
    }

    @Test("A18: what is being processed is not cancelled; a payment service that refuses to cancel is told of")
    func a18Late() async throws {
        let bench = AdapterBench(script: [.approved, .held])
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        async let payment = bench.pay()
        try await wait(for: "process") { await bench.processor.isHolding }
        #expect(
            await failure { try await bench.service.cancelPaymentIntent() }
                == "paymentCancellation(underlyingError: readerBusy)")
        await bench.processor.release()
        #expect(try await payment.status == .requiresCapture)

        await bench.processor.follow([.approved, .fails(.noAnswer), .fails(.notConnected)])
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        #expect(
            await failure { try await bench.service.cancelPaymentIntent() }
                == "paymentCancellation(underlyingError: notConnectedToInternet)")
        #expect(await bench.service.activePaymentIntent != nil, "it can still be cancelled")
        try await bench.service.cancelPaymentIntent()
        #expect(await bench.service.activePaymentIntent == nil)
    }

    @Test("A18: a reader that cannot cancel makes the cancellation fail, and the payment goes on")
    func a18Stuck() async throws {
        let readers = StubbornReaders()
        let processor = ScriptedProcessor([])
        let service = ContactlessReaderService(processor: processor, backend: readers)
        let shop = Shop()
        try service.start(shop, discoveryMethod: .usb)
        for try await list in service.discoveredReaders {
            if let reader = list.first { try await service.connect(reader, options: nil) }
        }
        async let payment = service.capturePayment(AdapterBench.payment)
        try await wait(for: "read") { readers.link.isCollecting }
        #expect(
            await failure { try await service.cancelPaymentIntent() }
                == "paymentCancellation(underlyingError: readerCommunicationError)")
        readers.link.present()
        #expect(try await payment.status == .requiresCapture)
    }

    @Test("A19: a task that is cancelled cancels the payment, whatever it waits for; the intent can be tried again")
    func a19() async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.layCard()
        let early = Task { await failure { _ = try await bench.pay() } }
        try await wait(for: "prompt") { !events.all.isEmpty }
        early.cancel()
        #expect(await early.value == Self.cancelled(.app))
        bench.readers.takeCard()

        await bench.processor.follow([.held])
        let creating = Task { await failure { _ = try await bench.pay() } }
        try await wait(for: "question") { await bench.processor.isHolding }
        creating.cancel()
        #expect(
            await creating.value
                == "intentCreation(underlyingError: commandCancelled(from: CancellationSource.app))")
        await bench.processor.release()

        let collecting = Task { await failure { _ = try await bench.pay() } }
        try await waitsForCard(events)
        collecting.cancel()
        #expect(await collecting.value == Self.cancelled(.app))
        bench.readers.present(.approved(.visa))
        #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
    }

    @Test(
        "A20: what becomes of a refund",
        arguments: [
            (RefundOutcome.succeeded, "success", nil), (.pending, "pending", nil), (.unknown, "unknown", nil),
            (.failed(nil), nil, "unknown false"), (.failed(.fraud), nil, "fraud false"),
            (.failed(.insufficientFunds), nil, "insufficientFunds true"), (.failed(.unknown), nil, "unknown true"),
        ] as [(RefundOutcome, String?, String?)])
    func a20(_ outcome: RefundOutcome, _ result: String?, _ error: String?) async throws {
        let bench = AdapterBench()
        await bench.processor.setRefund(outcome, needsCard: false)
        try await bench.connect()
        let refund = RefundParameters(chargeId: "charge-1", amount: 5, currency: "EUR")
        do {
            #expect(try await bench.service.refundPayment(parameters: refund) == result)
        } catch CardReaderServiceError.refundPayment(
            .paymentDeclinedByPaymentProcessorAPI(let reason), let shouldRetry)
        {
            #expect("\(reason) \(shouldRetry)" == error)
        }
        #expect(await bench.processor.calls.map(\.amount) == [500])
    }

    @Test("A20: a refund that needs the card waits for it, and can be cancelled until then")
    func a20Card() async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        await bench.processor.setRefund(.succeeded, needsCard: true)
        try await bench.connect()
        let refund = RefundParameters(chargeId: "charge-1", amount: 5, currency: "EUR")
        let none = "refundCancellation(underlyingError: noRefundInProgress)"
        #expect(await failure { try await bench.service.cancelRefund() } == none)
        let cancelled = Task { await failure { _ = try await bench.service.refundPayment(parameters: refund) } }
        try await waitsForCard(events)
        #expect(
            await failure { _ = try await bench.pay() } == "paymentMethodCollection(underlyingError: readerBusy)")
        #expect(
            await failure { try await bench.service.disconnect() } == "disconnection(underlyingError: readerBusy)")
        try await bench.service.cancelRefund()
        #expect(await cancelled.value == Self.cancelled(.app))
        #expect(await failure { try await bench.service.cancelRefund() } == none)
        bench.readers.present(.approved(.interac))
        #expect(try await bench.service.refundPayment(parameters: refund) == "success")
        #expect(await bench.processor.calls.map(\.kind) == ["refund"])
    }

    @Test(
        "A20: amounts are in the currency's minor unit, of no, two or three decimals, and exact",
        arguments: [
            ("12.34", "EUR", nil, 1234, nil), ("500", "JPY", nil, 500, nil), ("5.123", "KWD", nil, 5123, nil),
            ("0.01", "usd", 100, 1, nil), ("9999999999.99", "USD", nil, 999_999_999_999, nil),
            ("500", "JPY", 100, nil, "invalidAmount"), ("0.5", "JPY", nil, nil, "invalidAmount"),
            ("12.345", "EUR", nil, nil, "invalidAmount"), ("5.1234", "KWD", nil, nil, "invalidAmount"),
            ("0", "EUR", nil, nil, "invalidAmount"), ("-1", "EUR", nil, nil, "invalidAmount"),
            ("NaN", "EUR", nil, nil, "invalidAmount"), ("10000000000", "USD", nil, nil, "invalidAmount"),
            ("1", "XYZ", nil, nil, "invalidCurrency"), ("1", "", nil, nil, "invalidCurrency"),
        ] as [(String, String, Decimal?, UInt?, String?)])
    func a20Amounts(
        _ amount: String, _ currency: String, _ multiplier: Decimal?, _ units: UInt?, _ error: String?
    ) async throws {
        let bench = AdapterBench()
        try await bench.connect()
        let decimal = amount == "NaN" ? Decimal.nan : try #require(Decimal(string: amount))
        let parameters = PaymentIntentParameters(
            amount: decimal, currency: currency, stripeSmallestCurrencyUnitMultiplier: multiplier)
        if units != nil { bench.readers.present(.approved(.visa)) }
        let thrown = await failure { _ = try await bench.service.capturePayment(parameters) }
        #expect(thrown == error.map { "intentCreation(underlyingError: \($0))" })
        #expect(await bench.processor.calls(of: "create").map(\.amount) == (units.map { [$0] } ?? []))
        guard multiplier == nil else { return }
        let refund = RefundParameters(chargeId: "charge-1", amount: decimal, currency: currency)
        let refunded = await failure { _ = try await bench.service.refundPayment(parameters: refund) }
        #expect(refunded == error.map { "refundCreation(underlyingError: \($0))" })
    }

    @Test("one call at a time, and none without a reader")
    func oneAtATime() async throws {
        let bench = AdapterBench()
        #expect(
            await failure { _ = try await bench.pay() }
                == "paymentMethodCollection(underlyingError: notConnectedToReader)")
        #expect(await bench.processor.calls.isEmpty)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        async let payment = bench.pay()
        try await waitsForCard(events)
        #expect(
            await failure { _ = try await bench.pay() } == "paymentMethodCollection(underlyingError: readerBusy)")
        bench.readers.present(.approved(.visa))
        #expect(try await payment.status == .requiresCapture)
    }
}

/// One reader that does not let its wait for a card be cancelled.
private struct StubbornReaders: ReaderBackend {
    let link = Link()

    func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool { true }
    func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error> {
        let (stream, continuation) = AsyncThrowingStream<[AttachedReader], any Error>.makeStream()
        continuation.yield([AttachedReader(CardReader(serial: "A"), handle: 0)])
        return stream
    }
    func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink { link }

    final class Link: ReaderLink {
        private let card = Mutex<CheckedContinuation<Void, Never>?>(nil)
        let events = AsyncStream<LinkEvent> { _ in }
        var isCollecting: Bool { card.withLock { $0 != nil } }
        func present() { card.withLock { $0 }?.resume() }

        func collect(
            _ request: CollectionRequest, tell: @escaping @Sendable (CardReaderEvent) -> Void
        ) async throws -> CollectedCard {
            await withCheckedContinuation { continuation in card.withLock { $0 = continuation } }
            return CollectedCard(id: "read-1", sealedData: "sealed")
        }
        func cancelCollection() async throws -> Bool { throw UnderlyingError.readerCommunicationError }
        func waitForRemoval(_ cardIsThere: @escaping @Sendable () -> Void) async {}
        func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws {}
        func close() async {}
    }
}
