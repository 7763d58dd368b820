/// Determines the fields that a customer has to see.
public struct GetRequiredFieldsInteractor: Sendable {
    public init() {}

    /// The fields of the card, in the configuration's order.  The number is always there.
    public func cardFields(_ configuration: CardConfiguration) -> [ComposableInputElementType] {
        let fields =
            configuration.fields.contains(.cardNumber) ? configuration.fields : [.cardNumber] + configuration.fields
        return Self.once(fields)
    }

    /// The fields of the billing address, in the configuration's order: without the postal code and the state where the
    /// country's addresses have none.
    ///
    /// - Parameters:
    ///   - configuration: the session's.
    ///   - country: an ISO 3166-1 alpha-2 code; nil: not known yet.
    public func billingFields(
        _ configuration: CardConfiguration, country: String?
    ) -> [ComposableInputElementType] {
        let cardFields = cardFields(configuration)
        return Self.once(configuration.billingFields).filter { field in
            guard !cardFields.contains(field) else { return false }
            guard let country else { return true }
            return switch field {
            case .postalCode: !PostalCodes.countriesWithoutCodes.contains(country[...])
            case .state: PostalCodes.countriesWithStates.contains(country[...])
            default: true
            }
        }
    }

    /// The fields among all that may not stay empty.
    public func requiredFields(
        _ configuration: CardConfiguration, country: String?
    ) -> [ComposableInputElementType] {
        (cardFields(configuration) + billingFields(configuration, country: country)).filter {
            !FieldRule.of($0).isOptional
        }
    }

    private static func once(_ fields: [ComposableInputElementType]) -> [ComposableInputElementType] {
        var seen: Set<ComposableInputElementType> = []
        return fields.filter { seen.insert($0).inserted }
    }
}

/// Judges values outside a form, by the rules of the form.
public struct ValidatePaymentDataInteractor: Sendable {
    private let clock: CheckoutClock

    public init(clock: CheckoutClock = CheckoutClock()) { self.clock = clock }

    /// Returns the error of a value; nil if it is accepted.
    ///
    /// - Parameters:
    ///   - field: the field with the value.
    ///   - text: as the customer typed it; the caller wipes it if it is a secret.
    ///   - country: the ISO 3166-1 alpha-2 code of the billing country; nil: not known.
    ///   - network: the network of the card, for the length of its security code; nil: not known.
    ///   - accepted: the networks that are accepted; empty: all.
    public func validate(
        _ field: ComposableInputElementType, _ text: String, country: String? = nil, network: CardNetwork? = nil,
        accepted: [CardNetwork] = []
    ) -> ComposableInputValidationError? {
        let rule = FieldRule.of(field)
        let accepted = accepted.isEmpty ? nil : accepted
        var context = FieldContext(country: country, network: network, accepted: accepted, now: clock.month)
        switch rule.check {
        case .digits:
            var digits = SecretDigits()
            _ = digits.set(text)
            if field == .cardNumber, network == nil {
                context.network = digits.withDigits {
                    CardNetworkDetection.choice(of: $0, accepted: accepted, chosen: nil).network
                }
            }
            return rule.error(of: digits, context)
        case .text:
            return rule.error(of: text, context)
        }
    }

    /// Returns the errors of several values, in the order of `fields`.
    ///
    /// - Parameters:
    ///   - fields: the fields that are shown; other values are not judged.
    ///   - values: what the customer typed.
    ///   - country: the billing country where no field has one.
    ///   - network: the network of the card, for the length of its security code; nil: not known.
    ///   - accepted: the networks that are accepted; empty: all.
    public func validate(
        _ fields: [ComposableInputElementType], _ values: [ComposableInputElementType: String], country: String? = nil,
        network: CardNetwork? = nil, accepted: [CardNetwork] = []
    ) -> [ComposableInputValidationError] {
        let chosen = fields.contains(.countryCode) ? values[.countryCode].flatMap(FieldRule.country) : nil
        return fields.compactMap {
            validate($0, values[$0] ?? "", country: chosen ?? country, network: network, accepted: accepted)
        }
    }
}

extension FieldRule {
    /// Returns the error of a text; an empty one is an error unless the field is optional.
    func error(of text: String, _ context: FieldContext) -> ComposableInputValidationError? {
        let trimmed = String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        guard !trimmed.isEmpty else {
            return isOptional ? nil : ComposableInputValidationError(field, "required-field")
        }
        guard case .text(let check) = check else { return nil }
        return check(trimmed, context).map { ComposableInputValidationError(field, $0) }
    }

    /// Returns the error of secret digits.
    func error(of digits: borrowing SecretDigits, _ context: FieldContext) -> ComposableInputValidationError? {
        guard !digits.isEmpty else { return ComposableInputValidationError(field, "required-field") }
        guard case .digits(let check) = check else { return nil }
        if digits.isMalformed {
            return ComposableInputValidationError(field, "invalid-" + field.key)
        }
        return digits.withDigits { check($0, context) }.map { ComposableInputValidationError(field, $0) }
    }
}

extension ComposableInputElementType {
    /// The field's part of keys and codes: `card-number`.
    var key: String { rawValue.lowercased().replacing("_", with: "-") }
    /// The key of its label in ``InputLocalizable``.
    public var labelKey: String { "field.\(key).label" }
    /// The key of its placeholder in ``InputLocalizable``.
    public var placeholderKey: String { "field.\(key).placeholder" }
}

extension ComposableInputValidationError {
    /// The key of its text in ``InputLocalizable``.
    public var messageKey: String { "error.\(code)" }
}
