import CardReaderCombine
import ComposableCheckout
import OpenCombine
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct PublisherTests {
    @Test("Publishers give the present state first, and then each further one, to every subscriber")
    func states() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        let counts = Mutex<[Int]>([])
        let subscriptions = (0..<2).map { _ in
            form.statePublisher.sink { state in
                counts.withLock { $0.append(state.inputFields[.cardNumber]?.count ?? 0) }
            }
        }
        while counts.withLock({ $0.count }) < 2 { await Task.yield() }
        await form.updateCardNumber("4242")
        while counts.withLock({ $0.count }) < 4 { await Task.yield() }
        #expect(counts.withLock { $0 } == [16, 16, 4, 4])
        let routes = Mutex<[CheckoutRoute]>([])
        let subscription = fixture.checkout.navigator.navigationPublisher.sink { route in
            routes.withLock { $0.append(route) }
        }
        while routes.withLock({ $0.isEmpty }) { await Task.yield() }
        #expect(routes.withLock { $0 } == [.method("card")])
        withExtendedLifetime((subscriptions, subscription)) {}
    }
}
