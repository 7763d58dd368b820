import CardReaders
import EMVContactless
import SmartCard

@main
struct FirstProgram {
    static func main() async throws {
        let machine = Machine()
        let reader = try await machine.reader()
        print("Put a card on \(reader.identity.name)…")
        let atr = try await reader.waitForCard()
        print("ATR \(atr)")

        let card = try await reader.connect()
        let directory = try await Stack(for: reader).over(card).transmit(.select(Array("2PAY.SYS.DDF01".utf8)))
        for object in try TLVList(directory.data).flattened {
            let name = DataElement[object.tag]?.name ?? "?"
            print(object.tag, name, object.tag.isConstructed ? "" : SensitiveData.masked(object.value, of: object.tag))
        }
        await card.disconnect(.leave)
        await machine.close()
    }
}
