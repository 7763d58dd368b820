import CardReceipts
import Foundation
import KioskKit
import Waiting

/// The refunds whose result is unknown, each with the key under which it was requested.
struct OpenRefunds: Sendable {
    struct Refund: Sendable {
        let charge: String
        let amount: UInt
        let currency: String
        let card: CollectedCard?
        /// The same for each attempt, so that the money is refunded once.
        let key: String
        /// The number of requests that the payment service has not answered.
        var unanswered = 0
        var claim: ResultClaim?
        /// The journal's entry, while the result is unknown.
        var entry: OpenPayment?
        /// True if an earlier run of the program requested the refund: its card is no longer known.
        var isLeftover = false

        fileprivate var time: Date { entry?.payment.time ?? .distantPast }
    }

    /// The refunds by key.  An earlier run of the program may have left several for one charge.
    private var refunds: [String: Refund] = [:]

    /// Returns the refund to request again: the oldest one with these parameters, or nil.
    ///
    /// - Throws: `paymentOutcomeUnknown` if another amount of the same charge may have been refunded.
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

    /// Adds a refund.  It replaces one of the same charge that was never sent to the payment service.
    mutating func ask(_ refund: Refund) {
        var refund = refund
        refund.unanswered += 1
        refund.claim = nil
        refunds = refunds.filter { $0.value.charge != refund.charge || $0.value.unanswered > 0 }
        refunds[refund.key] = refund
    }

    /// Records the payment service's answer.
    ///
    /// - Returns: the entry to settle, if the result is known.
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
            // This request was not sent; earlier ones may have been.
            case .notConnected: refunds[key]?.unanswered -= 1
            case .unknownIntent, .sessionExpired, .invalidAmount, .invalidCurrency, .tooOld, .refused:
                refunds[key]?.unanswered -= 1
                if refunds[key]?.unanswered == 0 { refunds[key] = nil }
            }
        }
    }

    /// Discards the refunds whose result the caller has taken.
    ///
    /// - Returns: the entries to settle.
    mutating func forgetWhatWasTaken() -> [OpenPayment] {
        let taken = refunds.filter { $0.value.claim?.isTaken == true }
        for key in taken.keys { refunds[key] = nil }
        return taken.values.compactMap(\.entry)
    }

    /// Discards the refunds that were never sent to the payment service.
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

    /// Waits for the card, if the refund needs one.
    ///
    /// - Parameter leftover: the same refund, if an earlier run of the program requested it.
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
