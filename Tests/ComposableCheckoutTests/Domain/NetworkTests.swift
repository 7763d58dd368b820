import ComposableCheckout
import SmartCard
import Testing

@Suite struct NetworkTests {
    @Test("The networks are those of the one table, each with a name of its own")
    func names() {
        #expect(CardNetwork.known.count == IssuerNetwork.all.count)
        #expect(Set(CardNetwork.known.map(\.name)).count == CardNetwork.known.count)
    }
}
