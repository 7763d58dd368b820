import Foundation
import KioskKit
import ProximityReader
import SmartCardSimulator
import TestSupport

/// What is built on KioskKit: `PaymentCardReaderSession` reads, `TapToPayService` moves money.
struct KioskApplication: Application {
    private let shop: Shop
    private let reader: PaymentCardReader
    private let service: TapToPayService
    private let forwarder: PaymentForwarder
    private var view: View { shop.view }
    private var chance: Chance { shop.chance }

    init(_ shop: Shop) throws {
        self.shop = shop
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = true
        reader = PaymentCardReader(
            options: options,
            terminal: PaymentTerminal(try shop.configuration { $0.reader = .reader(VirtualReader(shop.device)) }))
        forwarder = PaymentForwarder(
            try reader.fetchPaymentCardReaderStore(), to: shop.sandbox, pace: Shop.pace,
            decided: { [shop] payment, result in
                if result.status == .approved { shop.view.add("+\(payment.id) \(payment.amount.cents)") }
            })
        service = TapToPayService(
            psp: shop.sandbox, reader: reader, pauses: [.milliseconds(1)], reversalPause: .milliseconds(20),
            answerTime: .milliseconds(250), settlingTime: .milliseconds(100), disk: shop.course.disk
        ) { [shop] payment, result in
            guard result.status == .approved, let amount = payment.amount else { return }
            shop.view.add("\(payment.kind == .refund ? "-" : "+")\(payment.id) \(amount.cents)")
        }
    }

    /// Presents a card to each read, and takes it away at its end.
    private func presentCards() -> Task<Void, Never> {
        let events = reader.events
        return Task { [shop] in
            for await event in events {
                switch event {
                case .readyForTap: shop.present()
                case .removeCard, .readCompleted, .readNotCompleted, .readCancelled: shop.device.remove()
                default: break
                }
            }
        }
    }

    private func start() async {
        await shop.course.during(.preparing) {
            try? await service.initialize()
            let over = Set(view.words.filter { $0[0] == "voided" }.map { $0[1] })
            for line in view.words where line[0] == "void" && !over.contains(line[1]) { await void(line[1]) }
        }
    }

    private func void(_ key: String) async {
        if (try? await service.reverse(key)) == true { view.add("voided \(key)") }
    }

    private func storeOne() async throws {
        try await shop.course.during(.storing) {
            let session = try await reader.prepareStoreAndForward()
            _ = try await session.readPaymentCard(
                PaymentCardTransactionRequest(amount: shop.amount(), currencyCode: "EUR"))
        }
    }

    private func takeOne() async throws {
        let (amount, isRefund) = (shop.amount(), chance.oneIn(3))
        let card = try await shop.course.during(.reading) {
            try await service.read(
                PaymentCardTransactionRequest(
                    amount: amount, currencyCode: "EUR", for: isRefund ? .refund : .purchase))
        }
        do {
            guard !isRefund else {
                _ = try await service.giveBack(card, amount: amount, currency: "EUR")
                return
            }
            let result = try await service.authorize(card, amount: amount, currency: "EUR")
            guard result.status == .approved, chance.oneIn(4) else { return }
            // The goods stay in the machine.
            view.add("void \(card.id)")
            await void(card.id)
        } catch TapToPayError.outcomeUnknown(let key) {
            switch chance.number(0...2) {
            case 0: _ = try? await service.resolve(key)
            case 1: _ = try? await service.reverse(key)
            default: break
            }
        }
    }

    func run() async throws {
        let cards = presentCards()
        defer { cards.cancel() }
        await start()
        while true {
            do {
                if chance.oneIn(4) { try await storeOne() }
                if chance.oneIn(5) { await shop.forward(forwarder) }
                try await takeOne()
            } catch TapToPayError.notInitialized {
                await start()
            } catch {
                await shop.pause()
            }
        }
    }

    func drain() async throws {
        await start()
        while await !service.unsettledPayments.isEmpty { await shop.pause() }
        try await shop.drain(forwarder, reader.terminal.store)
    }
}
