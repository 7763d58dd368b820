struct MIFAREClassicMemory: Sendable {}
final class MIFAREClassicCard: VirtualCard {
    let radio: VirtualCardRadio
    init(radio: VirtualCardRadio, memory: MIFAREClassicMemory) { self.radio = radio }
    func reset() {}
}
extension CardFileReader {
    static func mifareClassic(_ body: inout Section, _ radio: VirtualCardRadio) throws(CardFileError)
        -> MIFAREClassicMemory
    { MIFAREClassicMemory() }
}
