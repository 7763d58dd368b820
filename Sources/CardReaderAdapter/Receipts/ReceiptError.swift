/// Why there is no receipt.
public enum ReceiptError: Error, Hashable, Sendable {
    /// What the card networks require of every receipt is not there, or empty.
    case missingRequiredField(ReceiptField)
    /// It is there, and not what it should be.
    case malformedField(ReceiptField)
}

/// What a receipt may say.
public enum ReceiptField: String, CaseIterable, Hashable, Sendable {
    case merchantName = "merchant name"
    case transactionType = "transaction type"
    case amount
    case currency
    case dateAndTime = "date and time"
    case lastFourDigits = "last four digits"
    case entryMode = "entry mode"
    case cardBrand = "card brand"
    case applicationName = "application name"
    case applicationIdentifier = "application identifier"
    case cardholderVerification = "cardholder verification"
    case authorizationCode = "authorization code"
    case authorizationResponseCode = "authorization response code"
    case applicationCryptogram = "application cryptogram"
    case terminalVerificationResults = "terminal verification results"
    case transactionStatusInformation = "transaction status information"
    case subtotal
    case quantity
    case lineItems = "line items"
}

extension ReceiptError: CustomStringConvertible {
    /// One line that says what is wrong: `the receipt has no merchant name`.
    public var description: String {
        switch self {
        case .missingRequiredField(let field): "the receipt has no \(field.rawValue)"
        case .malformedField(let field): "the receipt's \(field.rawValue) is not what it should be"
        }
    }

    /// One sentence for a person: what to do next.
    public var hint: String {
        switch self {
        case .missingRequiredField(.applicationName), .missingRequiredField(.applicationIdentifier),
            .missingRequiredField(.cardholderVerification):
            "Card networks require it where the card was read by EMV; take it from the transaction."
        case .missingRequiredField: "Card networks require it on every receipt."
        case .malformedField(.currency): "Name a currency of ISO 4217 that has a minor unit: EUR."
        case .malformedField(.dateAndTime): "Write it as 2026-11-22T14:05:09+01:00."
        case .malformedField(.lastFourDigits): "Give the last four digits and no other."
        case .malformedField: "See what the field must be in receipt(1)."
        }
    }
}
