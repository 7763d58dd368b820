import CBaseline
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
        let texts = (1...number.count).map { String(number.prefix($0)) }
        var round = 0
        func type() async {
            await form.updateCardNumber(texts[round % texts.count])
            _ = await states.next()
            round += 1
        }
        let typing = await Allocations(rounds: 20 * texts.count, type)
        var keystrokes: [Double] = []
        for _ in 0..<(Limit.isGate ? 1 : 10_000) { keystrokes.append(await time { await type() }) }
        await form.cancel()

        let names = (0..<1000).map { "\($0)" }
        var resolutions: [Double] = []
        var resolving = 0
        for _ in 0..<(Limit.isGate ? 3 : 31) {
            let container = ComposableContainer()
            for (number, name) in names.enumerated() {
                await container.register(
                    Int.self, named: name, as: number.isMultiple(of: 2) ? .singleton : .transient
                ) { _ in number }
            }
            let before = baseline_allocations()
            resolutions.append(
                try await time { for name in names { _ = try await container.resolve(Int.self, named: name) } })
            resolving = (baseline_allocations() - before + 500) / 1000
        }
        print(
            """
            checkout: from a keystroke to the form's state \(microseconds(median(keystrokes))), p99 \
            \(microseconds(quantile(keystrokes, 0.99))), \(typing.verdict(atMost: 1000, unoptimized: 330)); a thousand \
            registrations resolved in \(microseconds(median(resolutions))), each with \(resolving) allocations\
            \(Limit.verdict(atMost: 20, unoptimized: 22, resolving))
            """)
    }
}
