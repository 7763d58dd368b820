import Foundation
import KioskKit

/// The refunds of which nobody knows whether the money has been given back, each with the key that it was asked for under.
struct OpenRefunds: Sendable {
    struct Refund: Sendable {
        let amount: UInt
        let currency: String
        let card: CollectedCard?
        /// The same each time, so that it is given back once.
        let key: String
        /// How often the payment service was asked without having said what became of it.
        var unanswered = 0
        var claim: ResultClaim?
        /// The journal's, while nobody knows.
        var entry: OpenPayment?
        /// Whether an earlier run of the program has asked for it: its card is not known any more.
        var isLeftover = false
    }

    /// By charge.
    private var refunds: [String: Refund] = [:]

    /// The one that is to be asked for again; nil: there is none of these parameters.
    ///
    /// - Throws: `paymentOutcomeUnknown`, where another amount of the same charge may have been given back.
    func refund(of parameters: RefundParameters, _ amount: UInt) throws -> Refund? {
        guard let refund = refunds[parameters.chargeId] else { return nil }
        if refund.amount == amount, refund.currency == parameters.currency { return refund }
        guard refund.unanswered == 0 else { throw UnderlyingError.paymentOutcomeUnknown }
        return nil
    }

    var entries: [OpenPayment] { refunds.values.compactMap(\.entry) }

    mutating func restore(_ entry: OpenPayment, of charge: String, _ amount: UInt) {
        refunds[charge] = Refund(
            amount: amount, currency: entry.payment.currency?.lowercased() ?? "", card: nil, key: entry.payment.id,
            unanswered: 1, entry: entry, isLeftover: true)
    }

    mutating func ask(_ refund: Refund, of charge: String) {
        var refund = refund
        refund.unanswered += 1
        refund.claim = nil
        refunds[charge] = refund
    }

    /// Takes in what the payment service has answered.
    ///
    /// - Returns: the entry to be settled, if nothing is unknown any more.
    mutating func settle(_ charge: String, _ answer: Result<RefundOutcome, any Error>) -> OpenPayment? {
        let entry = refunds[charge]?.entry
        learn(charge, answer)
        guard let refund = refunds[charge] else { return entry }
        guard refund.unanswered == 0 else { return nil }
        refunds[charge]?.entry = nil
        return entry
    }

    private mutating func learn(_ charge: String, _ answer: Result<RefundOutcome, any Error>) {
        switch answer {
        case .success(.unknown): break
        case .success(.succeeded), .success(.pending):
            if let claim = ResultClaim.current { refunds[charge]?.claim = claim } else { refunds[charge] = nil }
        case .success(.failed): refunds[charge] = nil
        case .failure(let error):
            guard let reason = (error as? PaymentProcessorError)?.reason else { return }
            switch reason {
            case .noAnswer: break
            case .declined: refunds[charge] = nil
            // Not this time; it may have been, the times before.
            case .notConnected: refunds[charge]?.unanswered -= 1
            case .unknownIntent, .sessionExpired, .invalidAmount, .invalidCurrency, .tooOld, .refused:
                refunds[charge]?.unanswered -= 1
                if refunds[charge]?.unanswered == 0 { refunds[charge] = nil }
            }
        }
    }

    /// - Returns: the entries to be settled.
    mutating func forgetWhatWasTaken() -> [OpenPayment] {
        let taken = refunds.filter { $0.value.claim?.isTaken == true }
        for charge in taken.keys { refunds[charge] = nil }
        return taken.values.compactMap(\.entry)
    }

    /// Forgets those that the payment service was never asked for.
    mutating func forgetWhatIsSettled() { refunds = refunds.filter { $0.value.unanswered > 0 } }
}

// Refunds.
extension ContactlessReaderService {
    public func refundPayment(parameters: RefundParameters) async throws -> String {
        guard !parameters.currency.isEmpty else {
            throw CardReaderServiceError.refundCreation(underlyingError: .invalidCurrency)
        }
        guard let amount = MinorUnits.units(parameters.amount, of: parameters.currency) else {
            throw CardReaderServiceError.refundCreation(underlyingError: .invalidAmount)
        }
        await restore()
        await forgetWhatWasTaken()
        let name = CardReaderServiceError.refundCreation
        guard operation == nil else { throw name(.readerBusy) }
        let open: OpenRefunds.Refund?
        do { open = try openRefunds.refund(of: parameters, amount) } catch { throw name(noted(error)) }
        return try await perform(.refund, needsReader: open?.isLeftover ?? true, as: name) {
            let refund: OpenRefunds.Refund
            if let open, !open.isLeftover {
                refund = open
            } else {
                refund = try await self.prepare(parameters, amount, open)
            }
            return try await self.giveBack(refund, parameters)
        }
    }

    /// Has the card presented, where one is needed.
    ///
    /// - Parameter leftover: the same refund, if an earlier run of the program has asked for it.
    private func prepare(
        _ parameters: RefundParameters, _ amount: UInt, _ leftover: OpenRefunds.Refund?
    ) async throws -> OpenRefunds.Refund {
        let needsCard = try await step(CardReaderServiceError.refundCreation) {
            try await ask { try await $0.needsCard(for: parameters) }
        }
        var card: CollectedCard?
        if needsCard {
            card = try await step(CardReaderServiceError.paymentMethodCollection) {
                try await waitForFreeReader()
                return try await collect(
                    CollectionRequest(kind: .refund, amount: amount, currency: parameters.currency))
            }
        }
        return OpenRefunds.Refund(
            amount: amount, currency: parameters.currency, card: card,
            key: leftover?.key ?? card?.id ?? UUID().uuidString, unanswered: leftover?.unanswered ?? 0,
            entry: leftover?.entry)
    }

    private func giveBack(_ refund: OpenRefunds.Refund, _ parameters: RefundParameters) async throws -> String {
        operation?.phase = .processing
        var refund = refund
        if refund.entry == nil {
            do {
                refund.entry = try await begin(
                    .refund, refund.key, refund.amount, refund.currency,
                    .refund(charge: parameters.chargeId, amount: refund.amount))
            } catch {
                throw CardReaderServiceError.refundCreation(underlyingError: noted(error))
            }
        }
        let asked = refund
        openRefunds.ask(asked, of: parameters.chargeId)
        let answer: Result<RefundOutcome, any Error>
        do {
            answer = .success(
                try await ask {
                    try await $0.refund(
                        parameters, amount: asked.amount, card: asked.card, idempotencyKey: asked.key)
                })
        } catch {
            answer = .failure(error)
        }
        if case .success(let outcome) = answer, outcome == .succeeded || outcome == .pending {
            await decided?(.refund(parameters, outcome, key: asked.key))
        }
        if let over = openRefunds.settle(parameters.chargeId, answer) { await over.settle() }
        if let claim = ResultClaim.current {
            claim.whenTaken { [weak self] in Task { await self?.forgetWhatWasTaken() } }
        }
        switch answer {
        case .success(.succeeded): return "success"
        case .success(.pending): return "pending"
        case .success(.unknown): return "unknown"
        case .success(.failed(let reason)): throw Self.declined(reason)
        case .failure(let error):
            if case .declined(let reason) = (error as? PaymentProcessorError)?.reason { throw Self.declined(reason) }
            throw CardReaderServiceError.refundPayment(underlyingError: noted(error))
        }
    }

    private static func declined(_ reason: DeclineReason?) -> CardReaderServiceError {
        .refundPayment(
            underlyingError: .paymentDeclinedByPaymentProcessorAPI(declineReason: reason ?? .unknown),
            shouldRetry: reason?.allowsRefundRetry ?? false)
    }

    public func cancelRefund() async throws {
        guard let operation, operation.kind == .refund else {
            throw CardReaderServiceError.refundCancellation(underlyingError: .noRefundInProgress)
        }
        guard operation.phase != .processing else {
            throw CardReaderServiceError.refundCancellation(underlyingError: .readerBusy)
        }
        do { try await cancelOperation(operation.id) } catch {
            throw CardReaderServiceError.refundCancellation(underlyingError: noted(error))
        }
        await end(of: operation.id)
    }
}
