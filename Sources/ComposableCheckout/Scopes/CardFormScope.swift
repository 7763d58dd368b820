import Waiting

/// A form for a card that the customer enters by hand.
///
/// The number and the security code are on wiped pages from the call that brings them to the moment they are sealed; the
/// strings that bring them are the caller's, and are gone from memory if the program links CWipedHeap.
public actor CardFormScope: PaymentMethodScope, ConfigurableScope {
    public nonisolated let method: PaymentMethod
    private nonisolated let states: Multicast<CardFormState>
    private let clock: CheckoutClock
    private let cards: ProcessCardPaymentInteractor
    private let settlement: PaymentSettlement
    private var configuration: CardConfiguration
    /// The method with its present surcharges.
    private var present: PaymentMethod
    private weak var checkout: CheckoutScope?
    private var machine: CardFormMachine

    init(
        method: PaymentMethod, configuration: CardConfiguration, country: String?, clock: CheckoutClock,
        cards: ProcessCardPaymentInteractor, settlement: PaymentSettlement, checkout: CheckoutScope?
    ) {
        (self.method, self.configuration, self.clock) = (method, configuration, clock)
        present = method
        (self.cards, self.settlement, self.checkout) = (cards, settlement, checkout)
        var machine = CardFormMachine(configuration, method: method, country: country)
        let first = machine.next(.configured(configuration, method, country: country), now: clock.month)
        self.machine = machine
        states = Multicast(keeping: .newest(16)) { state in { state } }
        for case .publish(let state) in first { states.send(state) }
    }

    /// The present state, and then each further one: a new stream for each access.
    public nonisolated var state: AsyncStream<CardFormState> { states.stream() }
    /// The present state.
    public nonisolated var currentState: CardFormState? { states.latest }

    // MARK: Fields

    public func updateCardNumber(_ text: String) { update(.cardNumber, text) }
    public func updateCvv(_ text: String) { update(.cvv, text) }
    public func updateExpiryDate(_ text: String) { update(.expiryDate, text) }
    public func updateCardholderName(_ text: String) { update(.cardholderName, text) }
    public func updatePostalCode(_ text: String) { update(.postalCode, text) }
    public func updateCountryCode(_ text: String) { update(.countryCode, text) }
    public func updateCity(_ text: String) { update(.city, text) }
    public func updateState(_ text: String) { update(.state, text) }
    public func updateAddressLine1(_ text: String) { update(.addressLine1, text) }
    public func updateAddressLine2(_ text: String) { update(.addressLine2, text) }
    public func updatePhoneNumber(_ text: String) { update(.phoneNumber, text) }
    public func updateFirstName(_ text: String) { update(.firstName, text) }
    public func updateLastName(_ text: String) { update(.lastName, text) }
    public func updateRetailOutlet(_ text: String) { update(.retailOutlet, text) }
    public func updateOtpCode(_ text: String) { update(.otpCode, text) }

    /// Takes the present text of a field.  A field that is not shown is ignored.
    public func update(_ field: ComposableInputElementType, _ text: String) {
        checkout?.noteActivity()
        take(.edited(field, text))
    }

    /// Notes that the customer has left a field: its error is shown from now on.
    public func leave(_ field: ComposableInputElementType) {
        checkout?.noteActivity()
        take(.left(field))
    }

    /// Chooses one of ``CardFormState/availableNetworks``.  The choice is kept while digits are added, and dropped when the
    /// number becomes another one.
    public func chooseNetwork(_ network: CardNetwork) {
        checkout?.noteActivity()
        take(.chose(network))
    }

    // MARK: Life

    public func start() {}

    /// Wipes everything that the customer entered.
    public func cancel() { take(.wiped) }

    /// Pays with the card.
    ///
    /// - Returns: nil if the form is not valid, if a payment is under way already, or if the application did not want it.
    /// - Throws: ``CheckoutError`` if nothing was paid.
    @discardableResult public func submit() async throws(CheckoutError) -> PaymentResult? {
        guard let checkout, let payment = submittedPayment() else { return nil }
        do throws(CheckoutError) {
            let result: PaymentResult? = try await checkout.pay(payment)
            // A card that is declined is followed by another one at the same address.
            let isOver = result.map { $0.status != .failed } ?? false
            take(.ended(isOver ? nil : .configuration("nothing was paid")))
            return result
        } catch {
            take(.ended(error))
            throw error
        }
    }

    /// The payment with the card that was entered; nil if the form is not valid.  Nothing but the payment keeps the card.
    private func submittedPayment() -> CheckoutPayment? {
        for case .pay(let card, let billing) in take(.submitted) {
            let payment = CardPayment(
                method: present, recipient: configuration.recipient, card: Lock(card), network: card.network,
                billing: billing, cards: cards, settlement: settlement)
            return CheckoutPayment(
                method: present, network: card.network, perform: payment.perform, resolve: payment.resolve,
                challenge: payment.challenge)
        }
        return nil
    }

    func configure(_ configuration: CheckoutConfiguration) {
        guard let card = configuration.card else { return }
        self.configuration = card
        present = configuration.methods.first { $0.id == method.id } ?? present
        take(.configured(card, present, country: configuration.country))
    }

    @discardableResult private func take(_ event: CardFormMachine.Event) -> [CardFormMachine.Action] {
        let actions = machine.next(event, now: clock.month)
        for case .publish(let state) in actions { states.send(state) }
        return actions
    }
}

/// A payment with a card: the card until there is a token for it, and then the token.
private struct CardPayment: Sendable {
    let method: PaymentMethod
    let recipient: String
    let card: Lock<CardPaymentData?>
    let network: CardNetwork?
    let billing: [ComposableInputElementType: String]
    let cards: ProcessCardPaymentInteractor
    let settlement: PaymentSettlement
    let token = Lock<PaymentToken?>(nil)

    @Sendable func perform(_ terms: CheckoutPayment.Terms) async throws(CheckoutError) -> PaymentResult {
        let new = try await exchanged(terms)
        token.withLock { $0 = new }
        return try await settle(terms, new, wasRequested: false)
    }

    @Sendable func resolve(_ terms: CheckoutPayment.Terms) async throws(CheckoutError) -> PaymentResult {
        guard let token = token.withLock({ $0 }) else { throw .configuration("there is no token") }
        return try await settle(terms, token, wasRequested: true)
    }

    @Sendable func challenge(_ result: PaymentResult) async throws(CheckoutError) -> PaymentResult {
        try await settlement.challenge(result.paymentID)
    }

    /// The card is released when this returns.
    private func exchanged(_ terms: CheckoutPayment.Terms) async throws(CheckoutError) -> PaymentToken {
        let card = card.withLock { card in
            defer { card = nil }
            return card
        }
        guard let card else { throw .configuration("the card was used already") }
        return try await cards.token(for: card, recipient: recipient, key: terms.key + "-token")
    }

    private func settle(
        _ terms: CheckoutPayment.Terms, _ token: PaymentToken, wasRequested: Bool
    ) async throws(CheckoutError) -> PaymentResult {
        let request = PaymentRequest(
            session: terms.session, method: method.id, token: token.id, network: network, amount: terms.amount,
            currency: terms.currency, billing: billing)
        var result = try await settlement.settle(
            request, method: method.kind, key: terms.key, wasRequested: wasRequested)
        if result.status == .pending { result = await settlement.decision(on: result, request, key: terms.key) }
        result.token = result.token ?? token
        return result
    }
}
