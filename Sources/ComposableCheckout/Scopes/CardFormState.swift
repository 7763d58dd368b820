public import FoundationEssentials

/// The state of a form for a card, for everybody who shows it.  It has no secret: the number is masked, the security code
/// and the one-time code are always empty.
public struct CardFormState: Hashable, Codable, Sendable {
    /// The values of the fields that are shown.
    ///
    /// The number has `*` for each digit while it is typed.  Its first six and last four digits are shown when its field was
    /// left and it is valid: those of each length that it had meanwhile would together tell all of it.
    public var inputFields: [ComposableInputElementType: String]
    /// The errors of fields that were left, in the order of the fields.
    public var fieldErrors: [ComposableInputValidationError]
    /// True while a payment is under way.
    public var isLoading: Bool
    /// True if every required field of the card and of the billing address is valid, and nothing is loading.
    public var isSubmitEnabled: Bool
    /// The network that the customer pays through; nil: not known yet.
    public var cardNetwork: CardNetwork?
    /// The fields of the card that are shown, in order.
    public var cardFields: [ComposableInputElementType]
    /// The fields of the billing address that are shown, in order.
    public var billingFields: [ComposableInputElementType]
    /// The networks that the customer may choose from.
    public var availableNetworks: [CardNetwork]
    /// The amount added for the network, in the currency's major unit.
    public var surcharge: Decimal
}
