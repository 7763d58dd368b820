public import Foundation

extension ProximityReaderSystem.Ledger {
    public enum State: String, Codable, Hashable, Sendable, CaseIterable {
        /// The payment is in no batch.
        case stored
        /// The payment is in no batch, and is kept out of further ones.
        case setAside
        /// The payment is in the batch, which nobody has seen.
        case batched
        /// The payment is in the batch, which the payment service may have seen.
        case sent
        case approved
        case declined
        /// The payment service did not answer.
        case unknown
        /// The payment was deleted with the payment service's consent.
        case resolved
    }

    /// A person's finding about a payment: see ``release(batch:_:references:by:reason:)``.
    public enum Finding: String, Codable, Hashable, Sendable {
        case approved, declined
        /// The payment service has not taken the payment, and will not take it from that batch any more.
        case notTaken
    }

    /// A batch that a person has dissolved.
    public struct Release: Codable, Hashable, Sendable {
        public let batch: String
        public let time: Date
        /// The name of the person.
        public let person: String
        public let reason: String
        /// The findings by the payments' `id`.
        public let payments: [String: Finding]
        /// The payment service's earlier answers by the payments' `id`.
        public let answers: [String: Answer]
    }

    /// The payment service's answer about a payment.
    public enum Answer: String, Codable, Hashable, Sendable {
        case approved, declined, unknown
    }

    /// The payment service's reference to a decision.
    public struct Reference: Codable, Hashable, Sendable {
        /// The payment service's identifier of the payment.
        public let id: String
        /// Field 39 of ISO 8583, the response code; nil if the service does not report it.
        public let responseCode: String?
        /// A message for a person; nil if there is none.
        public let message: String?

        public init(id: String, responseCode: String? = nil, message: String? = nil) {
            (self.id, self.responseCode, self.message) = (id, responseCode, message)
        }
    }

    /// The decision about a stored payment, kept until the application acknowledges it.
    public struct Outcome: Codable, Hashable, Sendable, Identifiable {
        /// The payment's identifier.
        public var id: String { payment.id }
        /// The payment with its decision: approved or declined.
        public let payment: Payment
        public let time: Date
        /// The payment service's reference; nil if a person found out the decision.
        public let reference: Reference?
        /// The data that the application stored with the payment.
        public let attachment: Data?
    }

    /// A stored payment.
    public struct Payment: Codable, Hashable, Sendable, Identifiable {
        /// The payment's identifier, which is also its idempotency key.
        public let id: String
        public let time: Date
        /// The amount in the currency's major unit.
        public let amount: Decimal
        public let currency: String
        public let merchant: String
        public let state: State
        /// The payment service's answer; nil before the first one.
        public let answer: Answer?
        /// The account number, masked: `476173******0010`; nil if the card did not supply it.
        public let card: String?
        /// The reason for which the payment was set aside.
        public let reason: String?

        init(_ payment: StoreLedger.Payment) { self.init(payment, payment.state) }

        init(resolved payment: StoreLedger.Payment) { self.init(payment, .resolved) }

        private init(_ payment: StoreLedger.Payment, _ state: State) {
            self.state = state
            answer = payment.answer
            card = payment.card?.masked
            id = payment.id
            time = payment.time
            amount = payment.amount
            currency = payment.currency
            merchant = payment.merchant
            reason = payment.reason
        }
    }

    /// The certificates of this device's key, each DER in Base64, as in a batch (``StoreAndForwardBatch``).
    public struct Certificates: Codable, Hashable, Sendable {
        public let leafCertificate: String
        public let intermediateCertificate: [String]
    }
}
