import ComposableCheckout
import Foundation

extension Benchmarks {
    /// Measures the way from a keystroke to the form's new state as a listener has it, and a thousand registrations that are
    /// resolved for the first time, a singleton and a transient one by turns.
    static func checkout() async throws {
        let service = try InMemoryCheckoutRepository(session: "benchmark", amount: 12.34, currency: "EUR")
        let root = CompositionRoot(
            configurations: service, methods: service, tokens: service, payments: service, permitsCardEntry: true,
            idleTime: nil)
        let checkout = try await root.checkout()
        await checkout.start()
        guard let form = await checkout.getPaymentMethodScope(CardFormScope.self) else {
            throw CheckoutError.configuration("no card form")
        }
        var states = form.state.makeAsyncIterator()
        _ = await states.next()
        // A published test number, typed and deleted again.
        let number = "4242424242424242"
        var keystrokes: [Double] = []
        for round in 0..<(Limit.isGate ? 320 : 10_000) {
            let typed = String(number.prefix(1 + round % number.count))
            keystrokes.append(
                await time {
                    await form.updateCardNumber(typed)
                    _ = await states.next()
                })
        }
        await form.cancel()

        var resolutions: [Double] = []
        for _ in 0..<(Limit.isGate ? 3 : 31) {
            let container = ComposableContainer()
            for number in 0..<1000 {
                await container.register(
                    Int.self, named: "\(number)", as: number.isMultiple(of: 2) ? .singleton : .transient
                ) { _ in number }
            }
            resolutions.append(
                try await time {
                    for number in 0..<1000 { _ = try await container.resolve(Int.self, named: "\(number)") }
                })
        }
        let (keystroke, resolution) = (quantile(keystrokes, 0.99), median(resolutions))
        print(
            """
            checkout: from a keystroke to the form's state \(microseconds(median(keystrokes))), p99 \
            \(microseconds(keystroke))\(Limit.verdict(.milliseconds(1), keystroke)); a thousand registrations resolved in \
            \(microseconds(resolution))\(Limit.verdict(.milliseconds(5), resolution))
            """)
    }
}
