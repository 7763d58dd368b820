import Foundation
import Testing

@testable import ComposableCheckout

/// A checkout over a payment service in memory.
struct Fixture {
    let service: TestService
    let reader = TestReader()
    let root: CompositionRoot
    let checkout: CheckoutScope

    init(_ service: TestService = TestService(), permitsCardEntry: Bool = true, idleTime: Duration? = nil) async throws
    {
        self.service = service
        root = CompositionRoot(
            configurations: service, methods: service, tokens: service, payments: service, reader: reader,
            permitsCardEntry: permitsCardEntry,
            clock: CheckoutClock(timeZone: .gmt) { Date(timeIntervalSince1970: 1_764_072_000) }, idleTime: idleTime,
            pauses: [.milliseconds(1), .milliseconds(1)])
        checkout = try await root.checkout()
    }

    /// The state of the selection when it is ready.
    func ready(_ matches: @escaping @Sendable ([PaymentMethod]) -> Bool = { _ in true }) async -> [String] {
        let state = await first(checkout.paymentMethodSelection.state()) { state in
            if case .ready(let methods, _) = state { matches(methods) } else { false }
        }
        guard case .ready(let methods, _) = state else { return [] }
        return methods.map(\.id)
    }

    /// Goes to a method.
    func select(_ id: String) async throws {
        await checkout.start()
        _ = await ready()
        let method = try #require(service.now.configuration.methods.first { $0.id == id })
        await checkout.paymentMethodSelection.onPaymentMethodSelected(method)
    }

    /// The form, filled in.
    func form(_ number: String = "4242424242424242", cvv: String = "123") async throws -> CardFormScope {
        try await select("card")
        let form = try #require(await checkout.getPaymentMethodScope(CardFormScope.self))
        await form.updateCardNumber(number)
        await form.updateCvv(cvv)
        await form.updateExpiryDate("12/27")
        #expect(form.currentState?.isSubmitEnabled == true)
        return form
    }
}

/// Returns the error of a checkout; nil if there is none, or another.
func checkoutError(_ body: () async throws -> some Sendable) async -> CheckoutError? {
    do {
        _ = try await body()
        return nil
    } catch { return error as? CheckoutError }
}
