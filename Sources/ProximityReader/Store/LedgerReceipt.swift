public import EMVContactless
import Foundation
import SmartCard

extension ProximityReaderSystem.Ledger {
    /// What the receipt of a stored payment says beside the merchant's own: it is accepted, and not yet authorized.
    public struct Receipt: Codable, Hashable, Sendable {
        /// ``Payment/time`` is the date of acceptance, ``Payment/card`` the account number, truncated.
        public let payment: Payment
        /// Of the kernel: the application's name and identifier, how the cardholder was verified; nil if it has told nothing.
        public let facts: ReceiptFacts?

        init(_ payment: Payment, facts: Data) {
            self.payment = payment
            self.facts = try? ReceiptFacts(encoded: Array(facts))
        }

        /// The scheme that the card's application is registered for: `Visa`, `Mastercard` (`KnownApplication`); nil if it is
        /// not known.
        public var brand: String? {
            facts.flatMap { AID($0.applicationIdentifier) }.flatMap { KnownApplication.scheme(of: $0) }
        }

        /// The account number's last four digits; nil if the card did not give it.
        public var lastFour: String? { payment.card.map { String($0.suffix(4)) } }
    }
}
