import CardReaderAdapter
import CardReaders
import CardReceipts
import EMVContactless
import Foundation
import KioskKit
import ProximityReader
import SmartCardSimulator
import SmartCardUSB
import Synchronization
import TestSupport
import Testing
import USBTestSupport

/// Payments that are taken while the payment service is not reached: a software ACR122U, the terminal's own store, and
/// KioskKit's forwarder.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct OfflineTests {
    private final class Bench {
        let bus = SoftwareUSBBus()
        let device = SoftwareACR122U()
        let online = ScriptedProcessor([])
        let psp = SlowService()
        let shop: SigningShop
        private let folder: URL
        private let policy: ProximityReaderSystem.StoreAndForwardPolicy
        private(set) var offline: OfflinePaymentProcessor
        private(set) var service: ContactlessReaderService

        static let policy = ProximityReaderSystem.StoreAndForwardPolicy(
            limits: ["EUR": .init(perPayment: 40, total: 70), "JPY": .init(perPayment: 1000, total: 0)])

        init(_ policy: ProximityReaderSystem.StoreAndForwardPolicy = Bench.policy) async throws {
            self.policy = policy
            folder = FileManager.default.temporaryDirectory.appending(path: "offline-\(UUID().uuidString)")
            shop = try SigningShop()
            (offline, service) = try Self.start(folder, policy, shop, bus, online, psp)
            bus.plug(device)
            try await connect()
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        private static func start(
            _ folder: URL, _ policy: ProximityReaderSystem.StoreAndForwardPolicy, _ shop: SigningShop,
            _ bus: SoftwareUSBBus, _ online: ScriptedProcessor, _ psp: SlowService
        ) throws -> (OfflinePaymentProcessor, ContactlessReaderService) {
            var pace = PaymentForwarder.Pace()
            (pace.interval, pace.attempts) = (.zero, 1)
            let configuration = try ProximityReaderSystem.ValidatedConfiguration.forVirtualCards(
                in: folder, tokenKeys: shop.keySet, storing: policy)
            let offline = try OfflinePaymentProcessor(online, configuration: configuration, psp: psp, pace: pace)
            let service = ContactlessReaderService(storing: offline, machine: Machine(.usb, usb: USBReaders(on: bus)))
            return (offline, service)
        }

        private func connect() async throws {
            try service.start(shop, discoveryMethod: .usb)
            for try await readers in service.discoveredReaders {
                if let reader = readers.first { try await service.connect(reader, options: nil) }
            }
        }

        /// The same folder in the next run of the program.
        func restart() async throws {
            try await service.disconnect()
            (offline, service) = try Self.start(folder, policy, shop, bus, online, psp)
            try await connect()
        }

        /// The first decision that nobody has acknowledged.
        func next() async throws -> OfflinePaymentProcessor.ForwardingEvent? {
            try await offline.forwardingEvents.first { _ in true }
        }

        /// A payment with the network down.
        func pay(
            _ amount: Decimal, _ currency: String = "eur", card name: String = "visa", metadata: [String: String]? = nil
        ) async throws -> PaymentIntent {
            await online.follow([.fails(.notConnected)])
            let parameters = PaymentIntentParameters(amount: amount, currency: currency, metadata: metadata)
            return try await present(name) { [service] in try await service.capturePayment(parameters) }
        }

        /// Presents a card to `payment`, and takes it away.
        func present(
            _ name: String = "visa", to payment: @escaping @Sendable () async throws -> PaymentIntent
        ) async throws -> PaymentIntent {
            device.remove()
            let card = try #require(VirtualCards.named(name))
            let events = Seen(service.readerEvents)
            let payment = Task { try await payment() }
            let presenting = Task { [device] in
                try await wait(for: "wait for a card") { events.all.contains { $0.text == "waiting 4" } }
                device.insert(card)
                // Who waits for the card to be taken away is not waited for.
                try await wait(for: "end of the read") { events.all.contains { $0.text == "cardDetailsCollected" } }
                device.remove()
            }
            defer {
                presenting.cancel()
                device.remove()
            }
            return try await payment.value
        }
    }

    /// A payment service that takes batches, loses each answer to one, and answers what it is asked of a payment.
    final class SlowService: PaymentServiceProvider {
        private struct Stored: Decodable {
            struct Payment: Decodable {
                let id: String
                let attachment: String?
            }
            let payments: [Payment]
        }
        struct State {
            /// By payment: its amount, and how often it was charged.
            var amounts: [Decimal] = []
            var charges: [(id: String, attachment: String?)] = []
            var status = PaymentResult.Status.approved
            var isAway = false
            var reversals: [String] = []
        }
        let state = Mutex(State())

        private func check() throws {
            if state.withLock({ $0.isAway }) { throw PaymentServiceError.noAnswer("away") }
        }
        func fetchReaderToken() async throws -> String { throw PaymentServiceError.noAnswer("none here") }
        func processPayment(
            cardData: String, amount: Decimal, currency: String, idempotencyKey: String
        ) async throws -> PaymentResult { throw PaymentServiceError.noAnswer("not here") }
        func processRefund(
            cardData: String, amount: Decimal, currency: String, idempotencyKey: String
        ) async throws -> RefundResult { throw PaymentServiceError.noAnswer("not here") }
        func result(for key: String) async throws -> PaymentResult? {
            try check()
            return state.withLock { state in
                state.charges.firstIndex { $0.id == key }.map {
                    PaymentResult(
                        id: "psp-\($0)", status: state.status, idempotencyKey: key, amount: state.amounts[$0],
                        currency: "EUR")
                }
            }
        }
        func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
            try check()
            state.withLock { $0.reversals.append(idempotencyKey) }
        }
        func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
            try check()
            let stored = try JSONDecoder().decode(Stored.self, from: batch)
            state.withLock { state in
                for payment in stored.payments where !state.charges.contains(where: { $0.id == payment.id }) {
                    state.charges.append((payment.id, payment.attachment))
                }
            }
            throw PaymentServiceError.noAnswer("lost")
        }
    }

    private static let refused = "intentCreation(underlyingError: notConnectedToInternet)"

    @Test("A27: without the network no more is taken than the store's policy allows, and what is taken is in the store")
    func a27Limits() async throws {
        let bench = try await Bench()
        #expect(await failure { _ = try await bench.pay(41) } == Self.refused)
        let first = try await bench.pay(40)
        #expect(first.status == .requiresCapture && first.offlineDetails?.requiresUpload == true)
        #expect(first.offlineDetails?.storedAt != nil)
        #expect(await failure { _ = try await bench.pay(31) } == Self.refused)
        _ = try await bench.pay(30)
        #expect(await failure { _ = try await bench.pay(1) } == Self.refused)
        #expect(await failure { _ = try await bench.pay(500, "jpy") } == Self.refused)
        #expect(await failure { _ = try await bench.pay(1, "usd") } == Self.refused)
        let status = try await bench.offline.status
        #expect(status.paymentsCount == 2 && status.paymentAmountsByCurrency == ["eur": 7000])
        #expect(await bench.online.calls(of: "process").isEmpty)
        // One that is taken back counts no more, and is not there to be taken back again.
        try await bench.offline.cancel(first)
        #expect(try await bench.offline.status.paymentAmountsByCurrency == ["eur": 3000])
        #expect(await failure { try await bench.offline.cancel(first) } != nil)
    }

    @Test("Of intents that no card is read for, only the last few are kept")
    func begun() async throws {
        let bench = try await Bench()
        let count = OfflinePaymentProcessor.mostBegun
        await bench.online.follow(Array(repeating: .fails(.notConnected), count: count + 1))
        var intents: [PaymentIntent] = []
        for _ in 0...count {
            intents.append(
                try await bench.offline.createIntent(
                    PaymentIntentParameters(amount: 10, currency: "eur"), amount: 1000,
                    idempotencyKey: UUID().uuidString))
        }
        await #expect(throws: PaymentProcessorError.self) { _ = try await bench.offline.retrieve(intents[0]) }
        for intent in intents[1...] {
            #expect(try await bench.offline.retrieve(intent).status == .requiresPaymentMethod)
        }
        try await bench.offline.cancel(intents[1])
        await #expect(throws: PaymentProcessorError.self) { _ = try await bench.offline.retrieve(intents[1]) }
    }

    /// Every card is on it.
    private struct EveryCard: ExceptionFile {
        func contains(_ number: PAN, sequenceNumber: UInt8?) -> Bool { true }
    }

    @Test("One admission policy for both doors: a card on the exception file is read, and nothing is stored")
    func admission() async throws {
        var policy = Bench.policy
        policy.exceptionFile = EveryCard()
        let bench = try await Bench(policy)
        #expect(await failure { _ = try await bench.pay(10) }?.hasPrefix("paymentMethodCollection") == true)
        #expect(try await bench.offline.status.paymentsCount == 0)
    }

    @Test("A27: what requires upload is not captured; online everything is as without")
    func a27Capture() async throws {
        let bench = try await Bench()
        let parameters = PaymentIntentParameters(amount: 20, currency: "eur")
        let service = bench.service
        await bench.online.follow([.fails(.notConnected)])
        let stored = try await bench.present {
            try await service.collectPayment(parameters) { intent in
                Issue.record("captured")
                return intent
            }
        }
        #expect(stored.offlineDetails?.requiresUpload == true)
        let intent = try await bench.present { try await service.capturePayment(parameters) }
        #expect(intent.offlineDetails == nil && intent.status == .requiresCapture)
        #expect(try await bench.offline.status.paymentsCount == 1)
    }

    @Test("A27: a decision is told until it is acknowledged, also after a restart, with the app's own of the payment")
    func a27Forwarding() async throws {
        let bench = try await Bench()
        let stored = try await bench.pay(10, metadata: ["order_id": "7"])
        bench.psp.state.withLock { $0.amounts = [10] }
        try await bench.offline.forwarder.forward()
        #expect(try await bench.offline.status.paymentsCount == 0)
        #expect(bench.psp.state.withLock { $0.charges.map(\.id) } == [stored.id])
        #expect(bench.psp.state.withLock { $0.charges.first?.attachment } != nil)
        for _ in 0..<2 {
            guard case .forwarded(let intent, stored.id)? = try await bench.next()
            else { throw AdapterBench.Missing() }
            #expect(intent.id == "psp-0" && intent.amount == 1000 && intent.metadata == ["order_id": "7"])
            #expect(intent.status == .requiresCapture && intent.offlineDetails?.requiresUpload == false)
            try await bench.restart()
        }
        try await bench.offline.acknowledge(stored.id)
        let second = try await bench.pay(20)
        bench.psp.state.withLock { ($0.amounts, $0.status) = ([10, 20], .declined) }
        try await bench.offline.forwarder.forward()
        guard case .failed(second.id, let error)? = try await bench.next()
        else { throw AdapterBench.Missing() }
        #expect(error.reason == .declined(.unknown))
        #expect(try await bench.offline.retrieve(second).status == .canceled)
    }

    @Test("A payment that may have been sent is not taken back before the payment service says what became of it")
    func cancelled() async throws {
        let bench = try await Bench()
        let stored = try await bench.pay(10)
        bench.psp.state.withLock { $0.amounts = [10] }
        // Sent, and then the service is away: nobody knows.
        bench.psp.state.withLock { $0.status = .processing }
        _ = try? await bench.offline.forwarder.forward()
        bench.psp.state.withLock { $0.isAway = true }
        await #expect(throws: PaymentProcessorError(.noAnswer)) { try await bench.offline.cancel(stored) }
        #expect(try await bench.offline.status.paymentsCount == 1)
        bench.psp.state.withLock { ($0.isAway, $0.status) = (false, .approved) }
        do {
            try await bench.offline.cancel(stored)
            Issue.record("it was charged")
        } catch let error as PaymentProcessorError {
            #expect(error.intent?.id == stored.id && error.intent?.status == .requiresCapture)
        }
        #expect(bench.psp.state.withLock { $0.reversals }.isEmpty)
    }
}
