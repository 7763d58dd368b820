import CardEncryption
import FoundationEssentials

/// A form for a card: fields, their errors and the network.  It has no copies, as it owns secrets.
struct CardFormMachine: ~Copyable {
    enum Event: Sendable {
        /// The session's configuration, at first and whenever it changes.
        case configured(CardConfiguration, PaymentMethod, country: String?)
        case edited(ComposableInputElementType, String)
        case left(ComposableInputElementType)
        case chose(CardNetwork)
        case submitted
        /// The payment that began with ``Action/pay(_:_:)`` has ended; with an error if it was not made.
        case ended(CheckoutError?)
        /// The customer has canceled or is gone.
        case wiped
    }

    enum Action: Sendable {
        case publish(CardFormState)
        /// Pay with the card; with the billing address.
        case pay(CardPaymentData, [ComposableInputElementType: String])
    }

    /// The maximum number of characters that are kept of a field; its rule has fewer.
    private static let longestText = 128

    private var configuration: CardConfiguration
    private var method: PaymentMethod
    private var sessionCountry: String?
    private var number = SecretDigits()
    private var securityCode = SecretDigits()
    private var oneTimeCode = SecretDigits()
    private var texts: [ComposableInputElementType: String] = [:]
    private var leftFields: Set<ComposableInputElementType> = []
    /// The payment service's errors, by field, until it is edited.
    private var refusals: [ComposableInputElementType: ComposableInputValidationError] = [:]
    private var chosen: CardNetwork?
    private var isNumberLeft = false
    private var isLoading = false
    /// The masked number of the payment that is under way.
    private var submittedNumber: String?
    private var cardFields: [ComposableInputElementType] = []
    private var billingFields: [ComposableInputElementType] = []
    private var published: CardFormState?
    private let required = GetRequiredFieldsInteractor()

    init(_ configuration: CardConfiguration, method: PaymentMethod, country: String?) {
        (self.configuration, self.method, sessionCountry) = (configuration, method, country)
        layOut()
    }

    /// Takes an event.
    ///
    /// - Parameter now: the present month at the terminal.
    mutating func next(_ event: Event, now: YearMonth) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .configured(let configuration, let method, let country):
            (self.configuration, self.method, sessionCountry) = (configuration, method, country)
        case .edited(let field, let text):
            guard !isLoading, isShown(field) else { return [] }
            edit(field, text)
        case .left(let field):
            guard !isLoading, isShown(field) else { return [] }
            leftFields.insert(field)
            if field == .cardNumber { isNumberLeft = true }
        case .chose(let network):
            guard !isLoading, choice.available.contains(network) else { return [] }
            chosen = network
        case .submitted:
            guard state(now).isSubmitEnabled else { return [] }
            guard let card = card(now) else { return [] }
            let billing = texts.filter { billingFields.contains($0.key) && !$0.value.isEmpty }
            actions.append(.pay(card, billing))
            (isLoading, submittedNumber) = (true, card.masked)
            wipeSecrets()
        case .ended(let error):
            guard isLoading else { return [] }
            (isLoading, submittedNumber) = (false, nil)
            if error == nil { wipe() }
            if case .validation(let errors) = error {
                for error in errors where isShown(error.field) { refusals[error.field] = error }
            }
        case .wiped:
            // The data of a payment under way is sealed already.
            wipe()
        }
        layOut()
        let state = state(now)
        if state != published {
            published = state
            actions.append(.publish(state))
        }
        return actions
    }

    private func isShown(_ field: ComposableInputElementType) -> Bool {
        cardFields.contains(field) || billingFields.contains(field)
    }

    private mutating func edit(_ field: ComposableInputElementType, _ text: String) {
        refusals[field] = nil
        switch field {
        case .cardNumber:
            switch number.set(text) {
            case .none: return
            case .grown: break
            // Of another card.
            case .replaced: chosen = nil
            }
            isNumberLeft = false
        case .cvv: _ = securityCode.set(text)
        case .otpCode: _ = oneTimeCode.set(text)
        default: texts[field] = String(text.prefix(Self.longestText))
        }
    }

    /// Determines the fields that are shown, and drops whatever belongs to others.
    private mutating func layOut() {
        cardFields = required.cardFields(configuration)
        billingFields = required.billingFields(configuration, country: country)
        texts = texts.filter { isShown($0.key) }
        leftFields = leftFields.filter { isShown($0) }
        refusals = refusals.filter { isShown($0.key) }
        if !isShown(.cvv), !securityCode.isEmpty { securityCode.wipe() }
        if !isShown(.otpCode), !oneTimeCode.isEmpty { oneTimeCode.wipe() }
    }

    /// The billing country, as the customer chose it or as the session has it.
    private var country: String? {
        let isAsked = configuration.billingFields.contains(.countryCode) || configuration.fields.contains(.countryCode)
        return isAsked
            ? texts[.countryCode].flatMap { FieldRule.country(FieldRule.ascii($0).filter { $0 != " " }) }
            : sessionCountry
    }

    private var choice: CardNetworkDetection.Choice {
        number.withDigits { CardNetworkDetection.choice(of: $0, accepted: accepted, chosen: chosen) }
    }

    /// The networks that both the session and the method accept; nil: all.
    private var accepted: [CardNetwork]? {
        let lists = [configuration.networks, method.networks].filter { !$0.isEmpty }
        return lists.first?.filter { network in lists.allSatisfy { $0.contains(network) } }
    }

    private func error(
        of field: ComposableInputElementType, _ context: FieldContext
    ) -> ComposableInputValidationError? {
        let rule = FieldRule.of(field)
        return switch field {
        case .cardNumber: rule.error(of: number, context)
        case .cvv: rule.error(of: securityCode, context)
        case .otpCode: rule.error(of: oneTimeCode, context)
        default: rule.error(of: texts[field] ?? "", context)
        }
    }

    private func state(_ now: YearMonth) -> CardFormState {
        let choice = choice
        let context = FieldContext(country: country, network: choice.network, accepted: accepted, now: now)
        let fields = cardFields + billingFields
        var shown: [ComposableInputValidationError] = []
        var isValid = true
        for field in fields where !isLoading {
            let error = error(of: field, context)
            if error != nil { isValid = false }
            if let error = refusals[field] ?? error, leftFields.contains(field) || refusals[field] != nil {
                shown.append(error)
            }
        }
        var values = texts
        for field in fields where values[field] == nil { values[field] = "" }
        let isNumberValid = !shown.contains { $0.field == .cardNumber }
        values[.cardNumber] =
            submittedNumber
            ?? (isNumberLeft && isNumberValid
                ? number.withDigits(CardPaymentData.mask) : String(repeating: "*", count: number.count))
        return CardFormState(
            inputFields: values, fieldErrors: shown, isLoading: isLoading,
            isSubmitEnabled: isValid && !isLoading && refusals.isEmpty, cardNetwork: choice.network,
            cardFields: cardFields, billingFields: billingFields, availableNetworks: choice.available,
            surcharge: method.surcharge(for: choice.network))
    }

    /// The card of a valid form; nil if it has no expiry date.
    private func card(_ now: YearMonth) -> CardPaymentData? {
        let expiry = YearMonth(expiry: texts[.expiryDate] ?? "", now: now)
        let network = choice.network
        return number.withDigits { number in
            securityCode.withDigits { securityCode in
                try? CardPaymentData(
                    number: number, securityCode: securityCode, expiry: expiry,
                    cardholderName: texts[.cardholderName] ?? "", network: network)
            }
        }
    }

    private mutating func wipeSecrets() {
        number.wipe()
        securityCode.wipe()
        oneTimeCode.wipe()
        isNumberLeft = false
        leftFields.subtract([.cardNumber, .cvv, .otpCode])
    }

    private mutating func wipe() {
        wipeSecrets()
        (texts, leftFields, refusals, chosen) = ([:], [], [:], nil)
    }
}
