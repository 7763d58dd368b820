import EMVContactless
import Foundation

extension Sandbox {
    /// The request for a payment or a refund.
    struct Charge: Decodable, Sendable {
        /// As `PaymentCardReadResult.paymentCardData` has it.
        let cardData: String
        /// In the currency's major unit: `12.34`.
        let amount: String
        /// The currency by its ISO 4217 code: `EUR`.
        let currency: String
        /// For the receipt; nil for card data that came without.
        let receiptFacts: ReceiptFacts?
    }

    /// The original request under a key to be reversed, as far as the caller knows it.
    struct Reversal: Decodable, Sendable {
        /// The amount, as in ``Charge``.
        let amount: String?
        let currency: String?
    }

    /// The answer; nothing in it is secret.
    struct Payment: Codable, Sendable {
        let id: String
        let kind: Kind
        /// `approved`, `declined`, or, in a checkout, `pending`.
        var status: String
        var responseCode: String
        var message: String
        /// The amount in the currency's major unit; nil for invalid card data, and for a payment that was reversed by
        /// its key alone and has not arrived.
        var amount: String?
        var currency: String?
        /// The masked account number, or the masked code of a voucher; nil for invalid card data, and for a payment that
        /// was reversed before it arrived.
        var card: String?
        let idempotencyKey: String
        /// When it was decided.
        let time: Date
        /// The receipt facts as received.
        let receiptFacts: ReceiptFacts?
        /// For a payment in a checkout.
        var checkout: CheckoutFacts?

        /// Returns the same payment with the amount, currency and card that a later call names for it.
        func about(_ amount: String, _ currency: String, _ card: String?) -> Payment {
            var payment = self
            (payment.amount, payment.currency, payment.card) = (amount, currency, card)
            return payment
        }

        /// The payment after a reversal: ISO 8583, field 39, 17: customer cancellation.
        var reversed: Payment { decided("declined", "17", "Reversed") }

        /// Returns the payment with another decision.
        func decided(_ status: String, _ responseCode: String, _ message: String) -> Payment {
            var payment = self
            (payment.status, payment.responseCode, payment.message) = (status, responseCode, message)
            return payment
        }
    }

    /// The facts about a payment that a checkout adds.
    struct CheckoutFacts: Codable, Sendable {
        let session: String
        /// The identifier of the method.
        let method: String
        let methodKind: String
        let network: String?
        let token: String?
        /// The identifier of the challenge that decides it; nil: none.
        let challenge: String?
    }
}
