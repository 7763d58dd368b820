public import EMVContactless
import Foundation
import SmartCard

extension ProximityReaderSystem.Ledger {
    /// The data for the receipt of a stored payment, which is accepted and not yet authorized.  The merchant's data is
    /// not included.
    public struct Receipt: Codable, Hashable, Sendable {
        /// The payment: ``Payment/time`` is the date of acceptance, ``Payment/card`` the truncated account number.
        public let payment: Payment
        /// The kernel's facts: the application's name and identifier, the verification method; nil if it reported
        /// none.
        public let facts: ReceiptFacts?

        init(_ payment: Payment, facts: Data) {
            self.payment = payment
            self.facts = try? ReceiptFacts(encoded: Array(facts))
        }

        /// The scheme for which the card's application is registered: `Visa`, `Mastercard` (`KnownApplication`); nil
        /// if unknown.
        public var brand: String? {
            facts.flatMap { AID($0.applicationIdentifier) }.flatMap { KnownApplication.scheme(of: $0) }
        }

        /// The last four digits of the account number; nil if the card did not supply it.
        public var lastFour: String? { payment.card.map { String($0.suffix(4)) } }
    }
}
