public import CardReceipts
import Foundation
public import KioskKit
public import ProximityReader

/// A payment service that is not always reachable.  Payments are stored in the meantime, and forwarded later.
///
/// The processor itself stores nothing.  When a card has been read, the terminal writes the payments that
/// `ProximityReaderSystem.StoreAndForwardPolicy` admits to the disk.  ``forwarder`` sends them to the payment service.
/// Its decisions stay in the ledger until the app acknowledges them.
///
/// An intent created offline has `PaymentIntent.offlineDetails`.  Nobody has authorized it.  Forwarding shows
/// whether it is paid; the policy's limits are the amounts that the merchant is ready to lose.
public actor OfflinePaymentProcessor: PaymentProcessor {
    /// The number and the amounts of the stored payments.
    public struct Status: Hashable, Sendable {
        public let paymentsCount: Int
        /// The amounts in the currency's minor unit, by ISO 4217 code in lower case.
        public let paymentAmountsByCurrency: [String: UInt]
    }

    /// The payment service's decision about a stored payment.
    public enum ForwardingEvent: Sendable {
        /// The payment is authorized and is to be captured.
        ///
        /// - Parameter stored: the payment's identifier when it was taken; the payment service has given it another
        ///   one.
        case forwarded(PaymentIntent, stored: String)
        /// The payment is declined.
        case failed(stored: String, PaymentProcessorError)

        /// The payment's identifier when it was taken, for ``OfflinePaymentProcessor/acknowledge(_:)``.
        public var stored: String {
            switch self {
            case .forwarded(_, let stored), .failed(let stored, _): stored
            }
        }
    }

    /// Sends the stored payments to the payment service: once with `forward()`, or continuously with `run()`.
    public nonisolated let forwarder: PaymentForwarder
    /// The records of the stored payments, with the data for their receipts.
    public nonisolated let ledger: ProximityReaderSystem.Ledger

    nonisolated let configuration: ProximityReaderSystem.ValidatedConfiguration
    nonisolated let terminal: PaymentTerminal
    /// The terminal's store, which all terminals of the readers share.
    package nonisolated var store: RecordStore { terminal.store }
    private let online: any PaymentProcessor
    /// Intents created offline that have no card yet, the oldest first.  The reader takes one payment at a time, so
    /// the oldest of many are the ones that nobody will present a card for.
    private var begun: [(id: String, parameters: PaymentIntentParameters)] = []
    package static let mostBegun = 16

    /// Creates a processor.
    ///
    /// - Parameters:
    ///   - online: charges cards while the payment service is reachable.
    ///   - configuration: the cards that the terminal accepts, and the payments that it may store.
    ///   - psp: receives the stored payments.
    ///   - pace: the pauses between requests, and the size of a batch.
    /// - Throws: `PaymentCardReaderError.storeAndForwardNotAllowed` if nothing may be stored, and nothing ever was.
    public init(
        _ online: any PaymentProcessor, configuration: ProximityReaderSystem.ValidatedConfiguration,
        psp: any PaymentServiceProvider, pace: PaymentForwarder.Pace = PaymentForwarder.Pace()
    ) throws {
        (self.online, self.configuration) = (online, configuration)
        terminal = PaymentTerminal(configuration)
        let store = try PaymentCardReader(terminal: terminal).fetchPaymentCardReaderStore()
        ledger = ProximityReaderSystem.Ledger(of: store)
        forwarder = PaymentForwarder(store, to: psp, pace: pace)
    }

    /// The decisions: first those that nobody has acknowledged, including those of earlier runs of the program, then
    /// new ones.
    ///
    /// An authorization that nobody captures reappears here at each start.  Each sequence delivers each decision once.
    /// It fails with `PaymentCardReaderStore.StoreError`.
    public nonisolated var forwardingEvents: some AsyncSequence<ForwardingEvent, any Error> & Sendable {
        ledger.outcomes().map { Self.event($0) }
    }

    /// Acknowledges a decision, which is then not delivered again.
    ///
    /// - Parameter stored: the payment's identifier when it was taken.
    /// - Throws: `PaymentCardReaderStore.StoreError`.
    public func acknowledge(_ stored: String) async throws { try await ledger.acknowledge(stored) }

    /// The number and the amounts of the stored payments.
    ///
    /// - Throws: `PaymentCardReaderStore.StoreError`.
    public var status: Status {
        get async throws {
            let summary = try await ledger.summary()
            return Status(
                paymentsCount: summary.count,
                paymentAmountsByCurrency: summary.totals.reduce(into: [:]) { sums, total in
                    let currency = total.currency.lowercased()
                    let units = MinorUnits.units(total.amount, of: currency) ?? .max
                    let (sum, isTooMuch) = sums[currency, default: 0].addingReportingOverflow(units)
                    sums[currency] = isTooMuch ? .max : sum
                })
        }
    }

    public func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        do {
            return try await online.createIntent(parameters, amount: amount, idempotencyKey: idempotencyKey)
        } catch let error as PaymentProcessorError where error.reason == .notConnected {
            guard let id = UUID(uuidString: idempotencyKey), await isAdmitted(amount, parameters.currency) else {
                throw error
            }
            forget(id.uuidString)
            begun.append((id.uuidString, parameters))
            begun.removeFirst(max(0, begun.count - Self.mostBegun))
            return PaymentIntent(
                id: id.uuidString, status: .requiresPaymentMethod, created: Date(), amount: amount,
                currency: parameters.currency, metadata: parameters.metadata,
                offlineDetails: OfflineDetails(storedAt: nil, requiresUpload: true))
        }
    }

    private func isBegun(_ id: String) -> Bool { begun.contains { $0.id == id } }
    private func forget(_ id: String) { begun.removeAll { $0.id == id } }

    private func isAdmitted(_ amount: UInt, _ currency: String) async -> Bool {
        guard let multiplier = MinorUnits.multiplier(of: currency) else { return false }
        return (try? await terminal.checkStoring(Decimal(amount) / multiplier, currency.uppercased())) != nil
    }

    /// Returns the order that the terminal stores with a payment when its card is read.
    ///
    /// - Returns: nil for an intent that the payment service knows.
    /// - Throws: ``PaymentProcessorError`` of `unknownIntent` if the intent was not created in this run of the
    ///   program, or if too many others were created after it.
    func order(of intent: PaymentIntent) throws -> StoredOrder? {
        guard intent.offlineDetails != nil else { return nil }
        guard let parameters = begun.first(where: { $0.id == intent.id })?.parameters,
            let id = UUID(uuidString: intent.id)
        else {
            throw PaymentProcessorError(.unknownIntent)
        }
        return StoredOrder(id: id, attachment: try JSONEncoder().encode(StoredOrder.Details(parameters)))
    }

    /// Finds a payment that was begun offline.  The terminal stored it when its card was read.
    public func process(
        _ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String
    ) async throws -> PaymentIntent {
        guard intent.offlineDetails != nil else {
            return try await online.process(intent, card: card, idempotencyKey: idempotencyKey)
        }
        let stored = try await stored(intent)
        forget(intent.id)
        return stored
    }

    public func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        guard intent.offlineDetails != nil else { return try await online.retrieve(intent) }
        do {
            return try await stored(intent)
        } catch let error as PaymentProcessorError where error.reason == .unknownIntent && isBegun(intent.id) {
            return intent.with(.requiresPaymentMethod)
        }
    }

    /// Returns the intent with the state that the ledger records.
    ///
    /// - Throws: ``PaymentProcessorError`` of `unknownIntent`; `PaymentCardReaderStore.StoreError`.
    private func stored(_ intent: PaymentIntent) async throws -> PaymentIntent {
        guard let payment = try await ledger.payment(intent.id), payment.currency.lowercased() == intent.currency,
            MinorUnits.units(payment.amount, of: intent.currency) == intent.amount
        else { throw PaymentProcessorError(.unknownIntent) }
        return PaymentIntent(
            id: intent.id, status: payment.answer == .declined ? .canceled : .requiresCapture, created: intent.created,
            amount: intent.amount, currency: intent.currency, metadata: intent.metadata,
            offlineDetails: OfflineDetails(
                storedAt: payment.time, requiresUpload: payment.answer != .approved && payment.answer != .declined))
    }

    /// Cancels a stored payment.
    ///
    /// If the payment service may have received the payment, it is asked first.  A state that it cannot tell remains
    /// unknown.
    ///
    /// - Throws: ``PaymentProcessorError``: `noAnswer` if the state is unknown; with the intent if the payment is
    ///   authorized.
    public func cancel(_ intent: PaymentIntent) async throws {
        guard intent.offlineDetails != nil else { return try await online.cancel(intent) }
        do {
            switch try await forwarder.cancel(intent.id) {
            case .cancelled, .declined: forget(intent.id)
            case .approved: throw PaymentProcessorError(.refused("authorized"), intent: try await stored(intent))
            case .unknown: throw PaymentProcessorError(.noAnswer)
            }
        } catch PaymentCardReaderStore.StoreError.storeAndForwardResultsNotFound {
            guard isBegun(intent.id) else { throw PaymentProcessorError(.unknownIntent) }
            forget(intent.id)
        }
    }

    public func needsCard(for refund: RefundParameters) async throws -> Bool { try await online.needsCard(for: refund) }

    public func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        try await online.refund(parameters, amount: amount, card: card, idempotencyKey: idempotencyKey)
    }

    private static func event(_ outcome: ProximityReaderSystem.Ledger.Outcome) -> ForwardingEvent {
        guard outcome.payment.answer == .approved else {
            return .failed(stored: outcome.id, PaymentProcessorError(.declined(.unknown)))
        }
        let currency = outcome.payment.currency.lowercased()
        let details = outcome.attachment.flatMap { try? JSONDecoder().decode(StoredOrder.Details.self, from: $0) }
        return .forwarded(
            PaymentIntent(
                id: outcome.reference?.id ?? outcome.id, status: .requiresCapture, created: outcome.payment.time,
                amount: MinorUnits.units(outcome.payment.amount, of: currency) ?? 0, currency: currency,
                metadata: details?.metadata,
                offlineDetails: OfflineDetails(storedAt: outcome.payment.time, requiresUpload: false)),
            stored: outcome.id)
    }
}

/// A payment for the terminal to store when its card is read.
package struct StoredOrder: Sendable {
    /// The identifier of the intent, of the read, and of the stored payment.
    package let id: UUID
    /// ``Details`` as JSON.  The store seals it, and the payment service receives it with the payment.
    package let attachment: Data

    /// The part of ``PaymentIntentParameters`` that the payment service needs besides the amount and the currency.
    struct Details: Codable {
        let applicationFee: Decimal?
        let receiptDescription: String?, statementDescription: String?, receiptEmail: String?
        let paymentMethodTypes: [String]
        let metadata: [String: String]?

        init(_ parameters: PaymentIntentParameters) {
            applicationFee = parameters.applicationFee
            receiptDescription = parameters.receiptDescription
            statementDescription = parameters.statementDescription
            receiptEmail = parameters.receiptEmail
            (paymentMethodTypes, metadata) = (parameters.paymentMethodTypes, parameters.metadata)
        }
    }
}
