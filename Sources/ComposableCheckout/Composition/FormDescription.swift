/// A part of a form, as a description that a renderer walks.
public enum FormElement: Hashable, Codable, Sendable {
    /// A heading, by its key in ``InputLocalizable``, and what stands below it.
    case group(titleKey: String, [FormElement])
    case field(FormField)
    /// A choice among networks of a co-badged card, and the one that is chosen.
    case networks([CardNetwork], chosen: CardNetwork?)
    case button(FormButton)
}

/// A field of a form.
public struct FormField: Hashable, Codable, Sendable {
    public let type: ComposableInputElementType
    /// The key of its label in ``InputLocalizable``.
    public let labelKey: String
    /// The key of its placeholder in ``InputLocalizable``.
    public let placeholderKey: String
    public let isRequired: Bool
    /// The value that may be shown: masked, or empty for a secret.
    public let value: String
    /// The key of its error in ``InputLocalizable``; nil: none.
    public let errorKey: String?
    /// The maximum number of characters that a customer can type.
    public let maximumLength: Int
    /// The autofill field name (HTML Standard, 4.10.18.7.1).
    public let autocomplete: String
    /// The keyboard (HTML Standard, 6.8.6.2): `numeric`, `tel`, `text`.
    public let inputMode: String
    /// True if what is typed must not be shown to bystanders, logged or stored.
    public let isSecret: Bool
}

/// A button of a form.
public struct FormButton: Hashable, Codable, Sendable {
    /// The key of its text in ``InputLocalizable``.
    public let labelKey: String
    public let isEnabled: Bool
    public let isLoading: Bool
}

extension CardFormState {
    /// The fields of the card, and the choice of a network where there is one.
    public var cardDetails: FormElement {
        let choice: [FormElement] =
            availableNetworks.count > 1 ? [.networks(availableNetworks, chosen: cardNetwork)] : []
        return .group(titleKey: "card.details", cardFields.map { .field(field($0)) } + choice)
    }

    /// The fields of the billing address; nil if there are none.
    public var billingAddress: FormElement? {
        billingFields.isEmpty
            ? nil : .group(titleKey: "card.billing-address", billingFields.map { .field(field($0)) })
    }

    /// The button that pays.
    public var submitButton: FormElement {
        .button(FormButton(labelKey: "checkout.submit", isEnabled: isSubmitEnabled, isLoading: isLoading))
    }

    /// The whole form.
    public var elements: [FormElement] { [cardDetails] + (billingAddress.map { [$0] } ?? []) + [submitButton] }

    private func field(_ type: ComposableInputElementType) -> FormField {
        let rule = FieldRule.of(type)
        var maximumLength = rule.maximumLength
        if type == .cvv, let cardNetwork { maximumLength = cardNetwork.securityCodeLength }
        return FormField(
            type: type, labelKey: type.labelKey, placeholderKey: type.placeholderKey, isRequired: !rule.isOptional,
            value: inputFields[type] ?? "", errorKey: fieldErrors.first { $0.field == type }?.messageKey,
            maximumLength: maximumLength, autocomplete: rule.autocomplete, inputMode: rule.inputMode,
            isSecret: rule.isSecret)
    }
}
