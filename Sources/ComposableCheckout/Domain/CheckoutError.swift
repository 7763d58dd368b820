/// An error of a checkout, by the layer that it comes from.
public enum CheckoutError: Error, Hashable, Sendable {
    /// The payment service was not reached, or its answer was lost or malformed.
    ///
    /// - Parameters:
    ///   - reason: for staff.
    ///   - mayHaveHappened: true if the request may have had its effect.
    case transport(reason: String, mayHaveHappened: Bool)
    /// The payment service refused the request, which had no effect.
    ///
    /// - Parameters:
    ///   - code: the service's code, as `already_paid`.
    ///   - message: for staff.
    case refused(code: String, message: String)
    /// Fields have values that are not accepted.
    case validation([ComposableInputValidationError])
    /// The session or the composition lacks something, with a text for staff.
    case configuration(String)
}

/// The way on after an error.
public enum CheckoutRecovery: String, Hashable, Codable, Sendable {
    /// The same again: a repetition has the same idempotency key, and nobody pays twice.
    case retry
    /// Another card or another method.
    case otherMethod
    /// The fields that have errors.
    case correctFields
    /// Nothing that a customer can do.
    case askStaff
}

extension CheckoutError {
    /// The error of a payment that the customer has ended before it was made.
    public static let cancelled = CheckoutError.refused(code: "cancelled", message: "the payment was canceled")

    /// The refusals after which a customer can do nothing; after any other one they try another card or method.
    private static let finalRefusals: Set<String> = [
        "already_paid", "wrong_amount", "unknown_session", "not_found", "unauthorized", "invalid_request",
    ]

    /// The way on for the customer.
    public var recovery: CheckoutRecovery {
        switch self {
        case .transport: .retry
        case .refused(let code, _): Self.finalRefusals.contains(code) ? .askStaff : .otherMethod
        case .validation: .correctFields
        case .configuration: .askStaff
        }
    }
}

extension CheckoutError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .transport(let reason, mayHaveHappened: true):
            "The payment service did not answer: \(reason). Ask it for the payment before the customer pays again."
        case .transport(let reason, mayHaveHappened: false):
            "The payment service was not reached: \(reason). See that it runs, and try again."
        case .refused(let code, let message): "The payment service refused: \(message) (\(code))."
        case .validation(let errors):
            "These fields have to be corrected: \(errors.map(\.description).joined(separator: ", "))."
        case .configuration(let text): "The checkout is not configured for this: \(text)."
        }
    }
}
