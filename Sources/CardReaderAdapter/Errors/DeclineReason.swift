/// The reason that an issuer or a payment service gives for declining.
public enum DeclineReason: String, CaseIterable, Hashable, Codable, Sendable {
    case temporary
    /// Suspected fraud.  Its text is that of ``generic``: the customer must not learn of the suspicion.
    case fraud
    case generic, invalidAccount, cardNotSupported, currencyNotSupported, duplicateTransaction, expiredCard
    case incorrectPostalCode, insufficientFunds, invalidAmount, pinRequired, incorrectPin, tooManyPinTries, testCard
    case testModeLiveCard, unknown

    /// The text to show to the customer.
    public var text: String {
        switch self {
        case .temporary: "The payment was declined for now. Try again, or use another card."
        case .fraud, .generic: "The payment was declined. Try another card."
        case .invalidAccount: "The card or its account is not valid. Try another card."
        case .cardNotSupported: "This card cannot be used for this payment. Try another card."
        case .currencyNotSupported: "This card cannot be used in this currency. Try another card."
        case .duplicateTransaction: "The same payment was made just before. Try another card if it is meant."
        case .expiredCard: "The card has expired. Try another card."
        case .incorrectPostalCode: "The postal code is not the card's. Try another card."
        case .insufficientFunds: "The card's account does not hold enough. Try another card."
        case .invalidAmount: "The card cannot be used for this amount. Try another card."
        case .pinRequired: "This card needs a PIN, which cannot be entered here. Try another card."
        case .incorrectPin: "The PIN was not right. Try another card."
        case .tooManyPinTries: "The PIN was wrong too often. Try another card."
        case .testCard: "A test card was used where money is moved. Try another card."
        case .testModeLiveCard: "A real card was used where no money is moved. Try a test card."
        case .unknown: "The payment was declined for a reason that is not known. Try another card."
        }
    }

    /// True if a refund that was declined for this reason may succeed on a retry.
    public var allowsRefundRetry: Bool {
        switch self {
        case .fraud, .invalidAccount, .currencyNotSupported, .duplicateTransaction, .incorrectPostalCode,
            .invalidAmount:
            false
        default: true
        }
    }
}
