import CardReaderAdapter
import CardReaders
import CardReceipts
import Foundation
import KioskKit
import ProximityReader
import SmartCardSimulator
import SmartCardUSB
import TestSupport
import USBTestSupport

/// psp-sandbox, which is not reached now and then when a payment begins: the terminal stores that.
private struct SometimesOffline: PaymentProcessor {
    let sandbox: SandboxPaymentProcessor
    let shop: Shop

    private func ask<Value>(_ body: () async throws -> Value) async throws -> Value {
        try await shop.course.during(.asking, body)
    }

    func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        if shop.chance.oneIn(4) { throw PaymentProcessorError(.notConnected) }
        return try await sandbox.createIntent(parameters, amount: amount, idempotencyKey: idempotencyKey)
    }

    func process(_ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String) async throws -> PaymentIntent {
        try await ask { try await sandbox.process(intent, card: card, idempotencyKey: idempotencyKey) }
    }

    func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        try await ask { try await sandbox.retrieve(intent) }
    }

    func cancel(_ intent: PaymentIntent) async throws { try await ask { try await sandbox.cancel(intent) } }

    func needsCard(for refund: RefundParameters) async throws -> Bool { try await sandbox.needsCard(for: refund) }

    func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        try await ask {
            try await sandbox.refund(parameters, amount: amount, card: card, idempotencyKey: idempotencyKey)
        }
    }
}

/// What is built on CardReaderAdapter: `CardReaderService` collects, processes, stores and gives back.
struct AdapterApplication: Application {
    private let shop: Shop
    private let sandbox: SandboxPaymentProcessor
    private let service: ContactlessReaderService
    private let offline: OfflinePaymentProcessor
    private var view: View { shop.view }
    private var chance: Chance { shop.chance }

    init(_ shop: Shop) throws {
        self.shop = shop
        sandbox = SandboxPaymentProcessor(shop.sandbox.address)
        let configuration = try shop.configuration()
        offline = try OfflinePaymentProcessor(
            SometimesOffline(sandbox: sandbox, shop: shop), configuration: configuration, psp: shop.sandbox,
            pace: Shop.pace)
        var limits = ContactlessReaderService.TimeLimits()
        limits.processor = .milliseconds(250)
        service = ContactlessReaderService(
            processor: offline,
            backend: MachineReaders(
                configuration, store: offline.store,
                machine: Machine(.usb, usb: USBReaders(on: SoftwareUSBBus(shop.device)))),
            journal: .folder(configuration.folder.appending(path: "intents")), limits: limits, disk: shop.course.disk
        ) { [shop] decision in
            switch decision {
            // What is stored and not yet forwarded is not decided.
            case .payment(let intent) where intent.offlineDetails?.requiresUpload == true: break
            case .payment(let intent): shop.view.add("+\(intent.id) \(intent.amount)")
            case .refund(let parameters, _, let key):
                shop.view.add("-\(key) \(parameters.chargeId) \(parameters.amount.cents)")
            }
        }
    }

    /// Presents a card whenever one is waited for, and takes it away when it is read.
    private func presentCards() -> Task<Void, Never> {
        let events = service.readerEvents
        return Task { [shop] in
            for await event in events {
                switch event {
                case .waitingForInput: shop.present()
                case .cardDetailsCollected, .displayMessage: shop.device.remove()
                default: break
                }
            }
        }
    }

    private func connect() async throws {
        try service.start(sandbox, discoveryMethod: .usb)
        for try await list in service.discoveredReaders {
            guard let reader = list.first else { continue }
            while true {
                // The merchant may be refused, and so its token.
                do {
                    try await service.connect(reader, options: nil)
                    return
                } catch {
                    await shop.pause()
                }
            }
        }
    }

    /// - Returns: whether it is known what became of it.
    private func giveBack(_ charge: String, _ cents: Int) async -> Bool {
        do {
            _ = try await shop.course.during(.reading) {
                try await service.refundPayment(
                    parameters: RefundParameters(chargeId: charge, amount: Decimal(cents) / 100, currency: "eur"))
            }
        } catch CardReaderServiceError.refundPayment(.paymentDeclinedByPaymentProcessorAPI, _) {
            // It is not tried again.
        } catch {
            return false
        }
        view.add("done \(charge)")
        return true
    }

    /// The payment that was under way, and the refunds that the application has promised.
    private func finish() async {
        while let intent = await service.activePaymentIntent {
            let isKnown = view.words.contains { $0[0] == "+\(intent.id)" }
            do {
                if isKnown || chance.oneIn(2) {
                    _ = try await service.retryActivePaymentIntent()
                } else {
                    try await service.cancelPaymentIntent()
                }
            } catch CardReaderServiceError.retryNotPossibleActivePaymentCancelled {
                try? await service.cancelPaymentIntent()
            } catch {
                await shop.pause()
            }
        }
        // What the books were told of is done, too.
        let words = view.words
        let done = Set(words.filter { $0[0] == "done" || $0.count == 3 && $0[0] != "want" }.map { $0[1] })
        for line in words where line[0] == "want" && !done.contains(line[1]) {
            while await !giveBack(line[1], Int(line[2]) ?? 0) { await shop.pause() }
        }
    }

    /// Notes each decision about a stored payment, and only then acknowledges it.
    private func watchDecisions() -> Task<Void, any Error> {
        Task { [offline, shop] in
            for try await decision in offline.forwardingEvents {
                if case .forwarded(let intent, let stored) = decision {
                    shop.view.add("+\(stored) \(intent.amount)")
                }
                try await offline.acknowledge(decision.stored)
            }
        }
    }

    private func start() async throws {
        try await shop.course.during(.preparing) {
            try await connect()
            await finish()
        }
    }

    func run() async throws {
        let (cards, decisions) = (presentCards(), watchDecisions())
        defer {
            cards.cancel()
            decisions.cancel()
        }
        try await start()
        while true {
            if chance.oneIn(5) { await shop.forward(offline.forwarder) }
            let amount = shop.amount()
            if chance.oneIn(3) {
                let charge = UUID().uuidString
                view.add("want \(charge) \(amount.cents)")
                while await !giveBack(charge, amount.cents) { await shop.pause() }
                continue
            }
            do {
                _ = try await shop.course.during(.reading) {
                    try await service.capturePayment(PaymentIntentParameters(amount: amount, currency: "eur"))
                }
            } catch {
                await finish()
            }
        }
    }

    func drain() async throws {
        let (cards, decisions) = (presentCards(), watchDecisions())
        defer {
            cards.cancel()
            decisions.cancel()
        }
        try await start()
        try await shop.drain(offline.forwarder, offline.store)
        while try await offline.ledger.summary().unacknowledged > 0 { await shop.pause() }
    }
}
