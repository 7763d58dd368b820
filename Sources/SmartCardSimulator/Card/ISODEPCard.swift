import SmartCard

/// A card that speaks ISO/IEC 14443-4 and holds nothing: no name can be selected, no instruction is known.
final class ISODEPCard: VirtualCard {
    let radio: VirtualCardRadio

    init(radio: VirtualCardRadio) { self.radio = radio }

    func reset() {}

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        guard let command = try? CommandAPDU(command) else { return ResponseAPDU(status: 0x6700).bytes }
        // ISO/IEC 7816-4, 5.1.3: the class is looked at first, then the instruction, then the name.
        let status: StatusWord =
            command.cla != 0x00 ? 0x6E00 : command.ins != 0xA4 ? 0x6D00 : .fileNotFound
        return ResponseAPDU(status: status).bytes
    }
}
