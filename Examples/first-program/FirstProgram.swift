import EMVContactless
import SmartCard
import SmartCardPCSC

@main
struct FirstProgram {
    static func main() async throws {
        guard let reader = try await PCSCService().readers().first else { return print("No reader.") }
        print("Put a card on \(reader.identity.name)…")
        let atr = try await reader.waitForCard()
        print("ATR \(atr)")

        let card = try await reader.connect()
        let directory = try await card.layered().transmit(.select(Array("2PAY.SYS.DDF01".utf8)))
        for object in try TLVList(directory.data).flattened {
            let name = DataElement[object.tag]?.name ?? "?"
            print(object.tag, name, object.tag.isConstructed ? "" : SensitiveData.masked(object.value, of: object.tag))
        }
        await card.disconnect(.leave)
    }
}
