import CardReaderAdapter
import CardReceipts
import Foundation
import TestSupport
import Testing

/// The readers of a script.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct SimulationTests {
    private func service(_ readers: SimulatedReaders) -> (ContactlessReaderService, Seen<CardReaderSoftwareUpdateState>)
    {
        let service = ContactlessReaderService(simulating: readers, journal: .memory)
        return (service, Seen(service.softwareUpdateEvents))
    }

    private func connect(_ service: ContactlessReaderService) async throws {
        try service.start(Shop(), discoveryMethod: .simulated)
        for try await list in service.discoveredReaders {
            guard let reader = list.first else { continue }
            try await service.connect(reader, options: nil)
            return
        }
    }

    private func text(_ state: CardReaderSoftwareUpdateState) -> String {
        switch state {
        case .available: "available"
        case .started: "started"
        case .installing(let progress): "\(progress)"
        case .failed(let error): "failed \(error)".replacing("CardReaderAdapter.UnderlyingError.", with: "")
        case .completed: "completed"
        case .none: "none"
        }
    }

    private static let installation = ["started", "0.0", "0.25", "0.5", "0.75", "1.0", "completed", "none"]

    @Test("readers are let go with the service, although nobody has disconnected")
    func released() async throws {
        weak var released: SimulatedReaders?
        do {
            let readers = SimulatedReaders()
            released = readers
            let (service, _) = service(readers)
            try await connect(service)
        }
        // Tasks that the service has cancelled hold them until they have heard of it.
        try await wait(for: "the end of the readers") { released == nil }
    }

    @Test("A21: without an update there is nothing to install, and nobody is told anything")
    func a21None() async throws {
        let (service, states) = service(SimulatedReaders())
        try await service.installUpdate()
        try await connect(service)
        try await service.installUpdate()
        try await wait(for: "state") { !states.all.isEmpty }
        #expect(states.all.map(text) == ["none"])
    }

    @Test("A21: an update that is available is installed when the app says so, once; its progress grows")
    func a21Available() async throws {
        let (service, states) = service(SimulatedReaders([SimulatedReader(serial: "A", update: .available)]))
        try await connect(service)
        try await wait(for: "state") { states.all.count == 2 }
        try await service.installUpdate()
        try await service.installUpdate()
        try await wait(for: "end") { states.all.count == 10 }
        #expect(states.all.map(text) == ["none", "available"] + Self.installation)
    }

    @Test("A21: an update that is required is installed by connect")
    func a21Required() async throws {
        let (service, states) = service(SimulatedReaders([SimulatedReader(serial: "A", update: .required)]))
        try await connect(service)
        try await wait(for: "end") { states.all.count == 9 }
        #expect(states.all.map(text) == ["none"] + Self.installation)
    }

    @Test("A21: one that fails for its battery is a failure of the update, not of the connection")
    func a21Battery() async throws {
        let readers = SimulatedReaders([
            SimulatedReader(
                serial: "A", batteryLevel: 0.25, update: .required, updateFailure: .readerSoftwareUpdateFailedBatteryLow
            )
        ])
        let (service, states) = service(readers)
        #expect(
            await failure { try await connect(service) }
                == "softwareUpdate(underlyingError: readerSoftwareUpdateFailedBatteryLow, batteryLevel: Optional(0.25))"
        )
        try await wait(for: "failure") { states.all.count == 3 }
        #expect(text(states.all[2]) == "failed readerSoftwareUpdateFailedBatteryLow")
        readers.plug(SimulatedReader(serial: "A", batteryLevel: 0.25))
        try await connect(service)
    }

    @Test("A25: what comes of each card", arguments: CardBrand.allCases)
    func a25Brands(_ brand: CardBrand) async throws {
        let readers = SimulatedReaders()
        let (service, _) = service(readers)
        try await connect(service)
        readers.present(.approved(brand))
        let intent = try await service.capturePayment(PaymentIntentParameters(amount: 1, currency: "cad"))
        switch intent.paymentMethod() {
        case .interacPresent(let details): #expect(brand == .interac && details.brand == .interac)
        case .cardPresent(let details): #expect(details.brand == brand)
        default: Issue.record("no card")
        }
    }

    @Test("A25: every reason to decline, and another card afterwards", arguments: DeclineReason.allCases)
    func a25Declines(_ reason: DeclineReason) async throws {
        let readers = SimulatedReaders()
        let (service, _) = service(readers)
        try await connect(service)
        readers.present(.declined(reason))
        do {
            _ = try await service.capturePayment(PaymentIntentParameters(amount: 1, currency: "usd"))
            Issue.record("paid")
        } catch let error as CardReaderServiceError {
            #expect(error.underlyingError == .paymentDeclinedByPaymentProcessorAPI(declineReason: reason))
            #expect(error.recovery == .tryAnotherPaymentMethod)
        }
        readers.present(.approved(.visa))
        #expect(try await service.retryActivePaymentIntent().status == .requiresCapture)
    }

    @Test(
        "A25: what a card does that is not read",
        arguments: [
            (SimulatedCard.declinedByCard, "paymentDeclinedByCardReader"), (.unreadable, "readerCommunicationError"),
            (.notPresented, "cardReadTimeOut"),
            (.cancelledAtReader, "commandCancelled(from: CancellationSource.reader)"),
        ])
    func a25Cards(_ card: SimulatedCard, _ error: String) async throws {
        let readers = SimulatedReaders()
        let (service, _) = service(readers)
        try await connect(service)
        readers.present(.removedTooEarly)
        readers.present(card)
        #expect(
            await failure {
                _ = try await service.capturePayment(PaymentIntentParameters(amount: 1, currency: "usd"))
            } == "paymentMethodCollection(underlyingError: \(error))")
    }

    @Test(
        "A25: how the payment service is reached",
        arguments: [
            (SimulatedNetwork.online, nil), (.offline, "intentCreation(underlyingError: notConnectedToInternet)"),
            (.silent, "intentCreation(underlyingError: requestTimedOut)"),
            (.intermittent, "intentCreation(underlyingError: requestTimedOut)"),
        ] as [(SimulatedNetwork, String?)])
    func a25Network(_ network: SimulatedNetwork, _ error: String?) async throws {
        let readers = SimulatedReaders()
        let (service, _) = service(readers)
        try await connect(service)
        readers.setNetwork(network)
        readers.present(.approved(.visa))
        let parameters = PaymentIntentParameters(amount: 1, currency: "usd")
        #expect(await failure { _ = try await service.capturePayment(parameters) } == error)
        readers.setNetwork(.online)
        readers.present(.approved(.visa))
        #expect(try await service.capturePayment(parameters).status == .requiresCapture)
    }

    @Test("A25: the service of machines without readers fails every call, and its sequences are over")
    func a25NoOp() async throws {
        let service = NoOpCardReaderService()
        let shop = Shop()
        #expect(!service.checkSupport(for: .other, configProvider: shop, discoveryMethod: .usb))
        for try await _ in service.discoveredReaders { Issue.record("a reader") }
        for await _ in service.connectedReaders { Issue.record("a reader") }
        for await _ in service.readerEvents { Issue.record("an event") }
        for await _ in service.softwareUpdateEvents { Issue.record("an update") }
        let refund = RefundParameters(chargeId: "1", amount: 1, currency: "eur")
        let calls: [() async throws -> Void] = [
            { try service.start(shop, discoveryMethod: .usb) }, { try await service.cancelDiscovery() },
            { _ = try await service.connect(CardReader(serial: "A"), options: nil) },
            { try await service.disconnect() }, { try service.clear() },
            { _ = try await service.capturePayment(AdapterBench.payment) },
            { _ = try await service.retryActivePaymentIntent() }, { try await service.cancelPaymentIntent() },
            { _ = try await service.refundPayment(parameters: refund) }, { try await service.cancelRefund() },
            { try await service.installUpdate() },
        ]
        for call in calls { #expect(await failure(call) != nil) }
        await service.waitForInsertedCardToBeRemoved()
        #expect(shop.tokens == 0)
    }
}
