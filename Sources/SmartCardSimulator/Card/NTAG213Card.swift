struct NTAG213Memory: Sendable {}
final class NTAG213Card: VirtualCard {
    let radio: VirtualCardRadio
    init(radio: VirtualCardRadio, memory: NTAG213Memory) { self.radio = radio }
    func reset() {}
}
extension CardFileReader {
    static func ntag213(_ body: inout Section, _ radio: VirtualCardRadio) throws(CardFileError) -> NTAG213Memory {
        NTAG213Memory()
    }
}
