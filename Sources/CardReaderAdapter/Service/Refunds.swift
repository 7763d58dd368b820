import Foundation
import KioskKit
import Waiting

/// The refunds of which nobody knows whether the money has been given back, each with the key that it was asked for under.
struct OpenRefunds: Sendable {
    struct Refund: Sendable {
        let charge: String
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

        fileprivate var time: Date { entry?.payment.time ?? .distantPast }
    }

    /// By key: of one charge an earlier run of the program may have left several.
    private var refunds: [String: Refund] = [:]

    /// The one that is to be asked for again, of several the oldest; nil: there is none of these parameters.
    ///
    /// - Throws: `paymentOutcomeUnknown`, where another amount of the same charge may have been given back.
    func refund(of parameters: RefundParameters, _ amount: UInt) throws -> Refund? {
        let refunds = refunds.values.filter { $0.charge == parameters.chargeId }
        let same = refunds.filter { $0.amount == amount && $0.currency == parameters.currency }
        if let first = same.min(by: { ($0.time, $0.key) < ($1.time, $1.key) }) { return first }
        guard refunds.allSatisfy({ $0.unanswered == 0 }) else { throw UnderlyingError.paymentOutcomeUnknown }
        return nil
    }

    var entries: [OpenPayment] { refunds.values.compactMap(\.entry) }

    mutating func restore(_ entry: OpenPayment, of charge: String, _ amount: UInt) {
        refunds[entry.payment.id] = Refund(
            charge: charge, amount: amount, currency: entry.payment.currency?.lowercased() ?? "", card: nil,
            key: entry.payment.id, unanswered: 1, entry: entry, isLeftover: true)
    }

    /// It takes the place of one of the same charge that the payment service was never asked for.
    mutating func ask(_ refund: Refund) {
        var refund = refund
        refund.unanswered += 1
        refund.claim = nil
        refunds = refunds.filter { $0.value.charge != refund.charge || $0.value.unanswered > 0 }
        refunds[refund.key] = refund
    }

    /// Takes in what the payment service has answered.
    ///
    /// - Returns: the entry to be settled, if nothing is unknown any more.
    mutating func settle(_ key: String, _ answer: Result<RefundOutcome, any Error>) -> OpenPayment? {
        let entry = refunds[key]?.entry
        learn(key, answer)
        guard let refund = refunds[key] else { return entry }
        guard refund.unanswered == 0 else { return nil }
        refunds[key]?.entry = nil
        return entry
    }

    private mutating func learn(_ key: String, _ answer: Result<RefundOutcome, any Error>) {
        switch answer {
        case .success(.unknown): break
        case .success(.succeeded), .success(.pending):
            if let claim = ResultClaim.current { refunds[key]?.claim = claim } else { refunds[key] = nil }
        case .success(.failed): refunds[key] = nil
        case .failure(let error):
            guard let reason = (error as? PaymentProcessorError)?.reason else { return }
            switch reason {
            case .noAnswer: break
            case .declined: refunds[key] = nil
            // Not this time; it may have been, the times before.
            case .notConnected: refunds[key]?.unanswered -= 1
            case .unknownIntent, .sessionExpired, .invalidAmount, .invalidCurrency, .tooOld, .refused:
                refunds[key]?.unanswered -= 1
                if refunds[key]?.unanswered == 0 { refunds[key] = nil }
            }
        }
    }

    /// - Returns: the entries to be settled.
    mutating func forgetWhatWasTaken() -> [OpenPayment] {
        let taken = refunds.filter { $0.value.claim?.isTaken == true }
        for key in taken.keys { refunds[key] = nil }
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
            charge: parameters.chargeId, amount: amount, currency: parameters.currency, card: card,
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
        openRefunds.ask(asked)
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
        if let over = openRefunds.settle(asked.key, answer) { await over.settle() }
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
