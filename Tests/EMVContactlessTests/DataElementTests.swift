import EMVContactless
import SmartCard
import Testing

@Suite("Data elements")
struct DataElementTests {
    @Test("A tag with one meaning is found without context")
    func commonElement() throws {
        let amount = try #require(DataElement[0x9F02])
        #expect(amount.name == "Amount, Authorised (Numeric)")
        #expect(amount.format == .numeric)
        #expect(amount.length == 6...6)
        #expect(amount.source == .terminal)
    }
}
