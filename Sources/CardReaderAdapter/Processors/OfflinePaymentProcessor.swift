public import Foundation
import Waiting

/// A payment service that is not always reached: payments are stored meanwhile, up to limits, and forwarded when it is back.
///
/// An intent that is made offline has ``PaymentIntent/offlineDetails``.  Nobody has authorised it: whether it is paid is known
/// when it is forwarded, and the limits are what the merchant is ready to lose.
public actor OfflinePaymentProcessor: PaymentProcessor {
    /// How much is taken without the payment service, in the currency's minor unit, by ISO 4217 code in lower case.  A currency
    /// that is missing in either is not taken.
    public struct Limits: Sendable {
        public var perTransaction: [String: UInt]
        /// Of all that is stored.
        public var total: [String: UInt]

        public init(perTransaction: [String: UInt], total: [String: UInt]) {
            (self.perTransaction, self.total) = (perTransaction, total)
        }
    }

    /// What is stored.
    public struct Status: Hashable, Sendable {
        public let paymentsCount: Int
        public let paymentAmountsByCurrency: [String: UInt]
    }

    /// What became of a stored payment.
    public enum ForwardingEvent: Sendable {
        /// - Parameter stored: its identifier when it was taken; the payment service has given it another.
        case forwarded(PaymentIntent, stored: String)
        /// It is not paid, and no longer stored.
        case failed(stored: String, PaymentProcessorError)
    }

    private let online: any PaymentProcessor
    private let limits: Limits
    private let store: any StoredPaymentStore
    private let events = Multicast<ForwardingEvent>(keeping: .all(upTo: 4096))
    /// Made offline, without a card yet.
    private var begun: [String: StoredPayment.Order] = [:]
    private var isForwarding = false

    public init(_ online: any PaymentProcessor, limits: Limits, store: any StoredPaymentStore) {
        (self.online, self.limits, self.store) = (online, limits, store)
    }

    /// From now on.
    public nonisolated var forwardingEvents: AsyncStream<ForwardingEvent> { events.stream() }

    /// - Throws: what the store fails with.
    public var status: Status {
        get throws {
            let payments = try store.payments()
            return Status(
                paymentsCount: payments.count,
                paymentAmountsByCurrency: payments.reduce(into: [:]) {
                    // A file may say anything.
                    let (sum, isTooMuch) = ($0[$1.intent.currency] ?? 0).addingReportingOverflow($1.intent.amount)
                    $0[$1.intent.currency] = isTooMuch ? .max : sum
                })
        }
    }

    public func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        do {
            return try await online.createIntent(parameters, amount: amount, idempotencyKey: idempotencyKey)
        } catch let error as PaymentProcessorError where error.reason == .notConnected {
            guard try isAllowed(amount, parameters.currency) else { throw error }
            let intent = PaymentIntent(
                id: "offline-\(idempotencyKey)", status: .requiresPaymentMethod, created: Date(), amount: amount,
                currency: parameters.currency, metadata: parameters.metadata,
                offlineDetails: OfflineDetails(storedAt: nil, requiresUpload: true))
            begun[intent.id] = StoredPayment.Order(parameters)
            return intent
        }
    }

    private func isAllowed(_ amount: UInt, _ currency: String) throws -> Bool {
        guard let perTransaction = limits.perTransaction[currency], let total = limits.total[currency] else {
            return false
        }
        let stored = try status.paymentAmountsByCurrency[currency] ?? 0
        return amount <= perTransaction && stored <= total && amount <= total - stored
    }

    /// Stores a payment that was begun offline; it is on the disk when this returns.
    public func process(
        _ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String
    ) async throws -> PaymentIntent {
        guard intent.offlineDetails != nil else {
            return try await online.process(intent, card: card, idempotencyKey: idempotencyKey)
        }
        var payments = try store.payments()
        if let known = payments.first(where: { $0.intent.id == intent.id }) { return known.intent }
        guard let order = begun[intent.id] else { throw PaymentProcessorError(.unknownIntent) }
        guard try isAllowed(intent.amount, intent.currency) else { throw PaymentProcessorError(.notConnected) }
        let stored = PaymentIntent(
            id: intent.id, status: .requiresCapture, created: intent.created, amount: intent.amount,
            currency: intent.currency, metadata: intent.metadata,
            offlineDetails: OfflineDetails(storedAt: Date(), requiresUpload: true))
        payments.append(StoredPayment(intent: stored, order: order, card: card, key: idempotencyKey))
        try store.replace(with: payments)
        begun[intent.id] = nil
        return stored
    }

    public func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        guard intent.offlineDetails != nil else { return try await online.retrieve(intent) }
        if let known = try store.payments().first(where: { $0.intent.id == intent.id }) { return known.intent }
        guard begun[intent.id] != nil else { throw PaymentProcessorError(.unknownIntent) }
        return intent
    }

    /// A stored payment can be taken back until it is forwarded.
    public func cancel(_ intent: PaymentIntent) async throws {
        guard intent.offlineDetails != nil else { return try await online.cancel(intent) }
        guard !isForwarding else { throw PaymentProcessorError(.notConnected) }
        let payments = try store.payments()
        guard begun.removeValue(forKey: intent.id) != nil || payments.contains(where: { $0.intent.id == intent.id })
        else {
            throw PaymentProcessorError(.unknownIntent)
        }
        try store.replace(with: payments.filter { $0.intent.id != intent.id })
    }

    public func needsCard(for refund: RefundParameters) async throws -> Bool { try await online.needsCard(for: refund) }

    public func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        try await online.refund(parameters, amount: amount, card: card, idempotencyKey: idempotencyKey)
    }

    /// Tells the payment service of each payment that is stored, the first first, each under the keys of its first time.
    ///
    /// What is declined or refused is told by ``forwardingEvents`` and no longer stored.  Where the payment service is not
    /// reached, or does not answer, this one and those behind it stay.
    ///
    /// - Returns: how many are still stored.
    /// - Throws: what the store fails with.
    @discardableResult
    public func forward() async throws -> Int {
        guard !isForwarding else { return try status.paymentsCount }
        isForwarding = true
        defer { isForwarding = false }
        while let payment = try store.payments().first {
            let event: ForwardingEvent
            do {
                let intent = try await online.createIntent(
                    payment.order.parameters, amount: payment.intent.amount, idempotencyKey: payment.intent.id)
                event = .forwarded(
                    try await online.process(intent, card: payment.card, idempotencyKey: payment.key),
                    stored: payment.intent.id)
            } catch let error as PaymentProcessorError {
                if error.reason == .noAnswer || error.reason == .notConnected || error.reason == .sessionExpired {
                    break
                }
                // The answer to an earlier call was lost, and the payment was made.
                if let intent = error.intent, intent.status == .requiresCapture || intent.status == .succeeded {
                    event = .forwarded(intent, stored: payment.intent.id)
                } else {
                    event = .failed(stored: payment.intent.id, error)
                }
            } catch {
                break
            }
            try store.replace(with: try store.payments().filter { $0.intent.id != payment.intent.id })
            events.send(event)
        }
        return try status.paymentsCount
    }
}

/// A payment that the payment service does not know yet.  Its card is sealed.
public struct StoredPayment: Codable, Sendable {
    public let intent: PaymentIntent
    let order: Order
    let card: CollectedCard
    let key: String

    /// What ``PaymentIntentParameters`` are made of.
    struct Order: Codable, Sendable {
        let amount: Decimal
        let currency: String
        let applicationFee: Decimal?
        let receiptDescription: String?, statementDescription: String?, receiptEmail: String?
        let paymentMethodTypes: [String]
        let metadata: [String: String]?

        init(_ parameters: PaymentIntentParameters) {
            (amount, currency, applicationFee) = (parameters.amount, parameters.currency, parameters.applicationFee)
            receiptDescription = parameters.receiptDescription
            statementDescription = parameters.statementDescription
            receiptEmail = parameters.receiptEmail
            (paymentMethodTypes, metadata) = (parameters.paymentMethodTypes, parameters.metadata)
        }

        var parameters: PaymentIntentParameters {
            PaymentIntentParameters(
                amount: amount, currency: currency, applicationFee: applicationFee,
                receiptDescription: receiptDescription, statementDescription: statementDescription,
                receiptEmail: receiptEmail, paymentMethodTypes: paymentMethodTypes, metadata: metadata)
        }
    }
}

/// Where payments are kept that the payment service does not know yet.
public protocol StoredPaymentStore: Sendable {
    /// The first first.
    func payments() throws -> [StoredPayment]
    /// They are on the disk when this returns.
    func replace(with payments: [StoredPayment]) throws
}

/// A file for this user alone, which is whole at any time.
public struct StoredPaymentFile: StoredPaymentStore {
    public let url: URL

    public init(_ url: URL) { self.url = url }

    public func payments() throws -> [StoredPayment] {
        guard FileManager.default.fileExists(atPath: url.path) else { return [] }
        return try JSONDecoder().decode([StoredPayment].self, from: Data(contentsOf: url))
    }

    public func replace(with payments: [StoredPayment]) throws {
        try PrivateFile.replace(url, with: JSONEncoder().encode(payments))
    }
}
