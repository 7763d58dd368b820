import SmartCard

extension PN532Target {
    /// The answer to reset that a reader makes up for the card (PC/SC part 3, 3.1.3.2.3).
    var atr: ATR {
        let historicalBytes: [UInt8] =
            switch card {
            case .typeA(_, _, _, let ats?): ATS(ats)?.historicalBytes ?? []
            case .typeA(_, _, let sak, nil): Self.storageCard(standard: 0x03, name: Self.name(sak: sak))
            // Application data and protocol info of the ATQB, then the MBLI of the ATTRIB response.
            case .typeB(let atqb, let attribResponse):
                Array(atqb.dropFirst(5).prefix(7)) + [(attribResponse.first ?? 0x00) & 0xF0]
            case .felica: Self.storageCard(standard: 0x11, name: 0x003B)
            }
        let h = historicalBytes.prefix(15)
        let checked = [0x80 | UInt8(truncatingIfNeeded: h.count), 0x80, 0x01] + h
        return ATR([0x3B] + checked + [checked.reduce(0, ^)])
    }

    private static func storageCard(standard: UInt8, name: UInt16) -> [UInt8] {
        [0x80, 0x4F, 0x0C, 0xA0, 0x00, 0x00, 0x03, 0x06, standard] + name.bigEndianBytes + [0x00, 0x00, 0x00, 0x00]
    }

    /// PC/SC part 3 supplement, table 2: the name for a SAK (NXP AN10833).
    private static func name(sak: UInt8) -> UInt16 {
        switch sak {
        case 0x08, 0x88: 0x0001  // MIFARE Classic 1K
        case 0x18: 0x0002  // MIFARE Classic 4K
        case 0x00: 0x0003  // MIFARE Ultralight, NTAG
        case 0x09: 0x0026  // MIFARE Mini
        default: 0x0000
        }
    }
}
