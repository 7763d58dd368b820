extension ACR122UFirmware {
    /// The ATR that the reader constructs (PC/SC part 3, 3.1.3.2.3; ACS API v2.04, 3.1).
    static func atr(_ target: SoftwarePN532.Target, style: ACR122UProfile.ATRStyle) -> [UInt8] {
        let historicalBytes: [UInt8] =
            switch target.radio {
            case .typeA(_, _, let sak, _) where !target.speaksISODEP:
                storageCard(name: storageCardName(sak: sak, style: style))
            case .typeA(_, _, _, let ats):
                switch style {
                case .acs: ats ?? []
                case .standard: self.historicalBytes(ats ?? [])
                }
            case .typeB(let atqb):
                switch style {
                case .acs: atqb
                // Application data and protocol info, then the MBLI of the answer to ATTRIB.
                case .standard: atqb.dropFirst(5).prefix(7) + [0x00]
                }
            case .felica:
                switch style {
                // F0 11 at 212 kbit/s, F0 12 at 424, of the standard of all storage cards.
                case .acs: storageCard(name: [0xF0, 0x10 | target.rate])
                case .standard: storageCard(standard: 0x11, name: [0x00, 0x3B])
                }
            }
        let h = historicalBytes.prefix(15)
        let checked = [0x80 | UInt8(truncatingIfNeeded: h.count), 0x80, 0x01] + h
        return [0x3B] + checked + [checked.reduce(0, ^)]
    }

    /// The names by SAK that the firmware knows, and `FF SAK` for all others.
    private static func storageCardName(sak: UInt8, style: ACR122UProfile.ATRStyle) -> [UInt8] {
        let names: [UInt8: [UInt8]] = [
            0x08: [0x00, 0x01], 0x88: [0x00, 0x01],
            0x18: [0x00, 0x02],
            0x00: [0x00, 0x03],
            0x09: [0x00, 0x26],
        ]
        switch style {
        case .acs: return names[sak] ?? [0xFF, sak]
        case .standard: return names[sak] ?? [0x00, 0x00]
        }
    }

    /// `80 4F 0C`, the RID of the PC/SC workgroup, the standard, 03 for ISO 14443 A part 3, the name.
    private static func storageCard(standard: UInt8 = 0x03, name: [UInt8]) -> [UInt8] {
        [0x80, 0x4F, 0x0C, 0xA0, 0x00, 0x00, 0x03, 0x06, standard] + name + [0x00, 0x00, 0x00, 0x00]
    }

    /// Returns the bytes after TL, T0 and the interface bytes that T0 announces (ISO/IEC 14443-4, 5.2).
    private static func historicalBytes(_ ats: [UInt8]) -> [UInt8] {
        guard ats.count > 1 else { return [] }
        return Array(ats.dropFirst(2 + (ats[1] & 0x70).nonzeroBitCount))
    }
}
