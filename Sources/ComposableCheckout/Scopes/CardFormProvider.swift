/// The source of forms for cards.
struct CardFormProvider: PaymentMethodProvider {
    let clock: CheckoutClock
    let cards: ProcessCardPaymentInteractor
    let settlement: PaymentSettlement

    func scope(
        for method: PaymentMethod, _ configuration: CheckoutConfiguration, in checkout: CheckoutScope
    ) async throws(CheckoutError) -> any PaymentMethodScope {
        guard let card = configuration.card else { throw .configuration("the session has no cards entered by hand") }
        return CardFormScope(
            method: method, configuration: card, country: configuration.country, clock: clock, cards: cards,
            settlement: settlement, checkout: checkout)
    }
}
