/// The reason for which no receipt can be made.
public enum ReceiptError: Error, Hashable, Sendable {
    /// A field that the card networks require is absent or empty.
    case missingRequiredField(ReceiptField)
    /// A field is malformed.
    case malformedField(ReceiptField)
    /// The transaction has charged nobody: it was declined or canceled, or it is not over.
    case notPaid
}

/// A field of a receipt.
public enum ReceiptField: String, CaseIterable, Hashable, Sendable {
    case merchantName = "merchant name"
    case location
    case country
    case merchantID = "merchant number"
    case terminalID = "terminal number"
    case order
    case cardDetails = "card that was present"
    case transactionType = "transaction type"
    case amount
    case currency
    case dateAndTime = "date and time"
    case lastFourDigits = "last four digits"
    case entryMode = "entry mode"
    case cardBrand = "card brand"
    case emv = "EMV data"
    case applicationName = "application name"
    case applicationIdentifier = "application identifier"
    case cardholderVerification = "cardholder verification"
    case accountType = "account type"
    case authorizationCode = "authorization code"
    case authorizationResponseCode = "authorization response code"
    case applicationCryptogram = "application cryptogram"
    case terminalVerificationResults = "terminal verification results"
    case transactionStatusInformation = "transaction status information"
    case issuerApplicationData = "issuer application data"
    case subtotal
    case quantity
    case lineItems = "line items"
}

extension ReceiptError: CustomStringConvertible {
    /// A line that says what is wrong: `the receipt has no merchant name`.
    public var description: String {
        switch self {
        case .missingRequiredField(let field): "the receipt has no \(field.rawValue)"
        case .malformedField(let field): "the receipt's \(field.rawValue) is not what it should be"
        case .notPaid: "the transaction is not paid"
        }
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch self {
        case .missingRequiredField(.accountType):
            "Take it from the transaction, tag 5F57; write Default where none was selected. In the United States it may be left out."
        case .missingRequiredField(.cardDetails): "Only a payment with a card that was present has such a receipt."
        case .missingRequiredField(.lineItems): "Name what was sold, in one line at least."
        case .missingRequiredField(.cardBrand): "Name the network; “unknown” is none."
        case .missingRequiredField(.emv), .missingRequiredField(.applicationName),
            .missingRequiredField(.applicationIdentifier),
            .missingRequiredField(.cardholderVerification):
            "Card networks require it where the card was read by EMV; take it from the transaction."
        case .missingRequiredField(.dateAndTime):
            "Take the time of the payment service's answer, the charge's created."
        case .missingRequiredField: "Card networks require it on every receipt."
        case .notPaid: "A receipt is for a payment that has succeeded, or is to be captured."
        case .malformedField(.country): "Write it as ISO 3166-1 has it, in two letters: DE."
        case .malformedField(.order):
            "The order and the transaction name different orders; take those that belong together."
        case .malformedField(.currency): "Name a currency of ISO 4217 that has a minor unit: EUR."
        case .malformedField(.dateAndTime): "Write it as 2026-11-22T14:05:09+01:00."
        case .malformedField(.lastFourDigits): "Give the last four digits and no other."
        case .malformedField: "See what the field must be in receipt(1)."
        }
    }
}
