public import CardReceipts
import Foundation
import KioskKit
import Waiting

// Payments, and the handling of those that failed.
extension ContactlessReaderService {
    public func capturePayment(_ parameters: PaymentIntentParameters) async throws -> PaymentIntent {
        guard !parameters.currency.isEmpty, let multiplier = MinorUnits.multiplier(of: parameters.currency) else {
            throw CardReaderServiceError.intentCreation(underlyingError: .invalidCurrency)
        }
        guard multiplier == parameters.stripeSmallestCurrencyUnitMultiplier,
            let amount = MinorUnits.units(parameters.amount, of: parameters.currency)
        else { throw CardReaderServiceError.intentCreation(underlyingError: .invalidAmount) }
        await restore()
        await forgetWhatWasTaken()
        if operation == nil, active?.isOpen == true {
            throw CardReaderServiceError.intentCreation(underlyingError: .paymentOutcomeUnknown)
        }
        return try await perform(.payment, as: CardReaderServiceError.paymentMethodCollection) {
            try await self.pay(parameters, amount)
        }
    }

    private func pay(_ parameters: PaymentIntentParameters, _ amount: UInt) async throws -> PaymentIntent {
        active = nil
        try await step(CardReaderServiceError.paymentMethodCollection) { try await waitForFreeReader() }
        let key = UUID().uuidString
        try await step(CardReaderServiceError.intentCreation) {
            let intent = try await ask {
                try await $0.createIntent(parameters, amount: amount, idempotencyKey: key)
            }
            guard intent.status == .requiresPaymentMethod, intent.amount == amount,
                intent.currency.lowercased() == parameters.currency
            else { throw UnderlyingError.processorAPIError }
            active = ActivePayment(intent)
        }
        return try await complete()
    }

    public func retryActivePaymentIntent() async throws -> PaymentIntent {
        await restore()
        await forgetWhatWasTaken()
        guard let active else { throw CardReaderServiceError.retryNotPossibleNoActivePayment }
        guard operation == nil else {
            throw CardReaderServiceError.paymentMethodCollection(underlyingError: .readerBusy)
        }
        switch active.next {
        case .cancel:
            operation = Operation(.cancellation, phase: .processing)
            return try await run {
                try await self.cancelActive()
                throw CardReaderServiceError.retryNotPossibleActivePaymentCancelled
            }
        case .result: return await finish(active)
        case .over(let error):
            if active.isPaid { await decided?(.payment(active.intent)) }
            self.active?.told()
            await settleActive()
            throw error
        case .collect, .process, .inquire:
            // A card that was read needs no reader for learning its result.
            return try await perform(
                .payment, needsReader: active.next.needsReader, as: CardReaderServiceError.paymentMethodCollection
            ) { try await self.payAgain() }
        }
    }

    private func payAgain() async throws -> PaymentIntent {
        if case .inquire = active?.next {
            try await inquire()
            if let active, active.isPaid { return await finish(active) }
        }
        if active?.card == nil {
            try await step(CardReaderServiceError.paymentMethodCollection) { try await waitForFreeReader() }
        }
        return try await complete()
    }

    /// Asks the payment service for the state of the active payment.
    ///
    /// - Throws: also if the state is unchanged.
    private func inquire() async throws {
        guard let asked = active else { return }
        operation?.phase = .processing
        do {
            let now = try await ask { try await $0.retrieve(asked.intent) }
            guard asked.isMeant(by: now) else { throw UnderlyingError.processorAPIError }
            active?.inquired(now)
            if active?.isOpen == false { await settleActive() }
        } catch {
            if let error = error as? PaymentProcessorError, error.reason == .unknownIntent { await forgetActive() }
            throw CardReaderServiceError.paymentCapture(underlyingError: noted(error))
        }
        switch active?.next {
        case .inquire: throw asked.stillOpen
        case .over(let error) where active?.isPaid == false: throw error
        default: operation?.phase = .preparing
        }
    }

    /// Completes the active payment: reads a card, if there is none yet, then asks the payment service.
    private func complete() async throws -> PaymentIntent {
        if active?.card == nil {
            let card = try await step(CardReaderServiceError.paymentMethodCollection) {
                guard let intent = active?.intent else { throw UnderlyingError.noActivePaymentIntent }
                return try await collect(
                    CollectionRequest(
                        kind: .purchase, amount: intent.amount, currency: intent.currency,
                        order: try await (processor as? OfflinePaymentProcessor)?.order(of: intent)))
            }
            active?.read(card)
        }
        guard let payment = active, let card = payment.card else {
            throw CardReaderServiceError.paymentCapture(underlyingError: .noActivePaymentIntent)
        }
        operation?.phase = .processing
        do { try await record(payment.intent, card) } catch {
            throw CardReaderServiceError.paymentCapture(underlyingError: noted(error))
        }
        active?.asked()
        let answer: Result<PaymentIntent, any Error>
        do {
            answer = .success(
                try await ask { try await $0.process(payment.intent, card: card, idempotencyKey: card.id) })
        } catch {
            _ = noted(error)
            answer = .failure(error)
        }
        guard var settled = active else { throw CardReaderServiceError.paymentCapture() }
        let verdict = Result { try settled.settle(answer) }
        active = settled
        if !settled.isOpen { await settleActive() }
        _ = try verdict.get()
        return await finish(settled)
    }

    /// Discards a paid payment, once a caller has the result.
    private func finish(_ paid: ActivePayment) async -> PaymentIntent {
        await decided?(.payment(paid.intent))
        if let claim = ResultClaim.current {
            active?.waits(for: claim)
            claim.whenTaken { [weak self] in Task { await self?.forgetWhatWasTaken() } }
        } else {
            await forgetActive()
        }
        return paid.intent
    }

    func forgetWhatWasTaken() async {
        if active?.claim?.isTaken == true { await forgetActive() }
        for entry in openRefunds.forgetWhatWasTaken() { await entry.settle() }
    }

    public func cancelPaymentIntent() async throws {
        await restore()
        await forgetWhatWasTaken()
        let name = CardReaderServiceError.paymentCancellation
        guard active != nil else { throw name(.noActivePaymentIntent) }
        if let running = operation {
            guard running.kind == .payment, running.phase != .processing else { throw name(.readerBusy) }
            do { try await takeOver(from: running.id) } catch {
                throw name(noted(error))
            }
        } else {
            operation = Operation(.cancellation, phase: .processing)
        }
        try await run { try await self.cancelActive() }
    }

    private func cancelActive() async throws {
        let name = CardReaderServiceError.paymentCancellation
        guard let intent = active?.intent else { throw name(.noActivePaymentIntent) }
        // From now on it may be canceled at any time: no further card is charged for it.
        active?.cancelling()
        for entry in activeEntries { try? await entry.willReverse() }
        do {
            try await ask { try await $0.cancel(intent) }
            await forgetActive()
        } catch {
            // It may have been paid in the meantime.
            active?.notCancelled(error)
            if active?.isBeingCancelled == false { for entry in activeEntries { try? await entry.keep() } }
            throw name(noted(error))
        }
    }
}

extension ActivePayment.Step {
    fileprivate var needsReader: Bool {
        if case .collect = self { true } else { false }
    }
}
