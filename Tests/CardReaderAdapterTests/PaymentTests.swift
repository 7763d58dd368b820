import CardReaderAdapter
import CardReceipts
import Foundation
import Synchronization
import TestSupport
import Testing

/// Payments and refunds, row for row as their promises are numbered.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct PaymentTests {
    private func waitsForCard(_ events: Seen<CardReaderEvent>) async throws {
        try await wait(for: "wait for a card") { events.all.contains { $0.text == "waiting 4" } }
    }

    enum State: CaseIterable { case connecting, preparing, collecting, processing }

    @Test(
        "A9: a reader unplugged ends the call with a typed error, and tells why; while a payment is processed the service's answer counts",
        arguments: State.allCases, Surface.allCases)
    func a9(_ state: State, _ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
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

    @Test(
        "A14: the events of a payment, the calls to the payment service and the statuses, in their order",
        arguments: Surface.allCases)
    func a14(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        let intent = try await bench.pay()
        #expect(intent.amount == 1234 && intent.currency == "eur" && intent.metadata == ["order_id": "7"])
        try await wait(for: "events") { events.all.count == 4 }
        #expect(
            events.all.map(\.text) == ["waiting 4", "cardInserted", "message Remove the card", "cardDetailsCollected"])
        #expect(await bench.processor.calls.map(\.kind) == ["create", "process"])
        #expect(await bench.processor.intents.map(\.status) == [.requiresPaymentMethod, .requiresCapture])
        #expect(await Set(bench.processor.calls.map(\.key)).count == 2)
        #expect(await bench.activePaymentIntent == nil)
    }

    @Test(
        "A15: a card that lies on the reader has to be removed first, and the payment goes on when it is",
        arguments: Surface.allCases)
    func a15(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.layCard()
        bench.readers.present(.approved(.visa))
        async let intent = bench.pay()
        try await wait(for: "prompt") { events.all.count == 1 }
        #expect(await bench.processor.calls.isEmpty)
        bench.readers.takeCard()
        #expect(try await intent.status == .requiresCapture)
        try await wait(for: "events") { events.all.count == 6 }
        #expect(events.all.map(\.text).prefix(3) == ["message Remove the card", "cardRemoved", "waiting 4"])
    }

    @Test(
        "A16: onProcessing comes before the capture and the removal, which go on at once", arguments: Surface.allCases)
    func a16(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
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

    @Test(
        "A16: a capture that fails is told of after the card is gone; one that is of another intent, too",
        arguments: Surface.allCases)
    func a16Fails(_ surface: Surface) async throws {
        struct ServerDown: Error {}
        let bench = AdapterBench(on: surface)
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
            (PaymentIntentStatus.requiresPaymentMethod, refused, nil, ["create", "process", "process"], 2),
            (.requiresConfirmation, refused, nil, ["create", "process", "process"], 1),
            (.requiresCapture, nil, "retryNotPossibleNoActivePayment", ["create", "process"], 1),
            (.processing, refused, "retryNotPossibleProcessingInProgress", ["create", "process", "retrieve"], 1),
            (.canceled, refused, "retryNotPossibleActivePaymentCancelled", ["create", "process"], 1),
            // It is paid, however the payment service says so.
            (.succeeded, nil, "retryNotPossibleNoActivePayment", ["create", "process"], 1),
            (.requiresAction, refused, "retryNotPossibleRequiresAction", ["create", "process", "retrieve"], 1),
            (.unknown, refused, "retryNotPossibleUnknownCause", ["create", "process", "retrieve"], 1),
        ] as [(PaymentIntentStatus, String?, String?, [String], Int)], Surface.allCases)
    func a17(_ row: (PaymentIntentStatus, String?, String?, [String], Int), _ surface: Surface) async throws {
        let (status, first, second, kinds, cards) = row
        let bench = AdapterBench(script: [.approved, .failsWith(.refused("no"), status)], on: surface)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        let thrown = await failure {
            let paid = try await bench.pay()
            #expect(paid.status == status)
        }
        #expect(thrown == first)
        #expect(await bench.activePaymentIntent?.status == (first == nil ? nil : status))
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } == second)
        #expect(await bench.processor.calls.map(\.kind) == kinds)
        try await wait(for: "reads") { events.all.count { $0.text == "cardDetailsCollected" } >= cards }
        #expect(events.all.count { $0.text == "cardDetailsCollected" } == cards)
        #expect(await bench.activePaymentIntent == nil || second != nil)
    }

    private static let refused = "paymentCapture(underlyingError: processorAPIError)"

    @Test("A17: without a payment there is none to try again, nor after one that was made", arguments: Surface.allCases)
    func a17None(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let none = "retryNotPossibleNoActivePayment"
        #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } == none)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(try await bench.pay().status == .requiresCapture)
        #expect(await failure { _ = try await bench.service.retryActivePaymentIntent() } == none)
    }

    @Test(
        "A17: an answer that is lost is asked for again under the same key, and a decline wants another card",
        arguments: Surface.allCases)
    func a17Keys(_ surface: Surface) async throws {
        let bench = AdapterBench(
            script: [.approved, .fails(.noAnswer), .fails(.declined(.insufficientFunds))], on: surface)
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

    @Test("A18: before there is an intent, there is none to cancel", arguments: Surface.allCases)
    func a18Before(_ surface: Surface) async throws {
        let bench = AdapterBench(script: [.held], on: surface)
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

    @Test("A18: while a card is awaited the app cancels, and so does the customer", arguments: Surface.allCases)
    func a18(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        let payment = Task { await failure { _ = try await bench.pay() } }
        try await waitsForCard(events)
        try await bench.service.cancelPaymentIntent()
        #expect(await payment.value == Self.cancelled(.app))
        #expect(await bench.processor.calls.map(\.kind) == ["create", "cancel"])
        #expect(await bench.activePaymentIntent == nil)
        bench.readers.present(.cancelledAtReader)
        #expect(await failure { _ = try await bench.pay() } == Self.cancelled(.reader))
        try await bench.service.cancelPaymentIntent()
        try await bench.payOnceMore()
    }

    private static func cancelled(_ source: CancellationSource) -> String {
        "paymentMethodCollection(underlyingError: commandCancelled(from: CancellationSource.\(source)))"
    }

    @Test(
        "A18: what is being processed is not cancelled; a payment service that refuses to cancel is told of",
        arguments: Surface.allCases)
    func a18Late(_ surface: Surface) async throws {
        let bench = AdapterBench(script: [.approved, .held], on: surface)
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
        #expect(await bench.activePaymentIntent != nil, "it can still be cancelled")
        try await bench.service.cancelPaymentIntent()
        #expect(await bench.activePaymentIntent == nil)
    }

    @Test("A18: a reader that cannot cancel makes the cancellation fail, and the payment goes on")
    func a18Stuck() async throws {
        let readers = StubbornReaders()
        let service = try await Self.service(with: readers, ScriptedProcessor([]))
        async let payment = service.capturePayment(AdapterBench.payment)
        try await wait(for: "read") { readers.link.isCollecting }
        #expect(
            await failure { try await service.cancelPaymentIntent() }
                == "paymentCancellation(underlyingError: readerCommunicationError)")
        readers.link.present()
        #expect(try await payment.status == .requiresCapture)
    }

    @Test("no intent is made with a reader that is gone, whatever says so first")
    func goneWhileCardIsToBeRemoved() async throws {
        let processor = ScriptedProcessor([])
        let service = try await Self.service(with: StubbornReaders(isGone: true), processor)
        #expect(
            await failure { _ = try await service.capturePayment(AdapterBench.payment) }
                == "paymentMethodCollection(underlyingError: bluetoothDisconnected)")
        #expect(await processor.calls.isEmpty)
    }

    private static func service(
        with readers: StubbornReaders, _ processor: ScriptedProcessor
    ) async throws -> ContactlessReaderService {
        let service = ContactlessReaderService(processor: processor, backend: readers, journal: .memory)
        try service.start(Shop(), discoveryMethod: .usb)
        for try await list in service.discoveredReaders {
            if let reader = list.first { try await service.connect(reader, options: nil) }
        }
        return service
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
        ] as [(RefundOutcome, String?, String?)], Surface.allCases)
    func a20(_ row: (RefundOutcome, String?, String?), _ surface: Surface) async throws {
        let (outcome, result, error) = row
        let bench = AdapterBench(on: surface)
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

    @Test(
        "A20: a refund that needs the card waits for it, and can be cancelled until then", arguments: Surface.allCases)
    func a20Card(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
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
        ] as [(String, String, Decimal?, UInt?, String?)], Surface.allCases)
    func a20Amounts(_ row: (String, String, Decimal?, UInt?, String?), _ surface: Surface) async throws {
        let (amount, currency, multiplier, units, error) = row
        let bench = AdapterBench(on: surface)
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

    @Test("one call at a time, and none without a reader", arguments: Surface.allCases)
    func oneAtATime(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
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
    let link: Link
    /// - Parameter isGone: true if the reader is gone and says so only to whoever waits for a card's removal.
    init(isGone: Bool = false) { link = Link(isGone: isGone) }

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
        private let isGone: Bool
        init(isGone: Bool) { self.isGone = isGone }
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
        func waitForRemoval(_ cardIsThere: @escaping @Sendable () -> Void) async -> Bool { !isGone }
        func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws {}
        func close() async {}
    }
}
