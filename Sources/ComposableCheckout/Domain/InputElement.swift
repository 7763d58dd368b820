/// A field of the checkout, by its name in configurations.
public enum ComposableInputElementType: String, CaseIterable, Codable, CodingKeyRepresentable, Hashable, Sendable {
    case cardNumber = "CARD_NUMBER"
    case cvv = "CVV"
    case expiryDate = "EXPIRY_DATE"
    case cardholderName = "CARDHOLDER_NAME"
    case postalCode = "POSTAL_CODE"
    case countryCode = "COUNTRY_CODE"
    case city = "CITY"
    case state = "STATE"
    case addressLine1 = "ADDRESS_LINE_1"
    case addressLine2 = "ADDRESS_LINE_2"
    case phoneNumber = "PHONE_NUMBER"
    case firstName = "FIRST_NAME"
    case lastName = "LAST_NAME"
    case retailOutlet = "RETAIL_OUTLET"
    case otpCode = "OTP_CODE"
}

/// The reason for which the value of a field is not accepted.
public struct ComposableInputValidationError: Error, Hashable, Codable, Sendable {
    public let field: ComposableInputElementType
    /// The rule that the value breaks, as `invalid-card-number` or `card-expired`.
    public let code: String

    public init(_ field: ComposableInputElementType, _ code: String) { (self.field, self.code) = (field, code) }
}

extension ComposableInputValidationError: CustomStringConvertible {
    public var description: String { "\(field.rawValue): \(code)" }
}
