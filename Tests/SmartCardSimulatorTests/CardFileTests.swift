import SmartCard
import SmartCardSimulator
import Testing

@Suite struct CardFileTests {
    static let names = [
        "visa", "mastercard", "two-applications", "blocked", "mifare-classic-1k", "ntag213", "iso-dep", "type-b",
    ]

    @Test func builtIn() throws {
        #expect(VirtualCards.all.map(\.name) == Self.names)
        for card in VirtualCards.all {
            do {
                #expect(try !card.file().summary.isEmpty)
            } catch {
                Issue.record("\(card.name): \(error)")
            }
            #expect(VirtualCards.named(card.name) != nil)
        }
        #expect(VirtualCards.named("no such card") == nil)
    }
}
