/// A card that the PN532 has found and selected, with its own description (UM0701-02, 7.3.5).
public struct PN532Target: Hashable, Sendable {
    /// Tg, the chip's number for the card: 1 or 2.
    public let number: UInt8
    public let card: Card

    public enum Card: Hashable, Sendable {
        /// ISO/IEC 14443 type A.  `atqa` is most significant byte first, whatever order the reader used; `uid` has 4, 7
        /// or 10 bytes without cascade tags; `ats` includes its length byte and is nil if RATS was not sent.
        case typeA(uid: [UInt8], atqa: UInt16, sak: UInt8, ats: [UInt8]?)
        /// ISO/IEC 14443 type B.  `atqb` has 12 bytes and begins with `50`; `attribResponse` has no checksum.
        case typeB(atqb: [UInt8], attribResponse: [UInt8])
        /// JIS X 6319-4.  The system code is present only if it was requested.
        case felica(idm: [UInt8], pmm: [UInt8], systemCode: UInt16?)
    }

    /// True if the card accepts APDUs: type B, or type A with an ATS.
    public var speaksISODEP: Bool {
        switch card {
        case .typeA(_, _, _, let ats): ats != nil
        case .typeB: true
        case .felica: false
        }
    }

    /// The identifier shown during anticollision: UID, PUPI or IDm.
    public var identifier: [UInt8] {
        switch card {
        case .typeA(let uid, _, _, _): uid
        case .typeB(let atqb, _): Array(atqb.dropFirst().prefix(4))
        case .felica(let idm, _, _): idm
        }
    }
}

/// A kind of card: modulation and bit rate (BrTy, UM0701-02, 7.3.5).
public enum PollingTechnology: Hashable, Sendable, CaseIterable {
    /// ISO/IEC 14443 type A, 106 kbit/s.
    case typeA
    /// ISO/IEC 14443 type B, 106 kbit/s, all application families.
    case typeB
    /// FeliCa at 212 kbit/s, all systems.
    case felica212
    /// FeliCa at 424 kbit/s, all systems.
    case felica424

    var modulation: UInt8 {
        switch self {
        case .typeA: 0x00
        case .felica212: 0x01
        case .felica424: 0x02
        case .typeB: 0x03
        }
    }

    /// Returns the request: an AFI of 00, or the FeliCa polling command for all systems, with the system code
    /// requested, in one time slot or four.
    func initiatorData(most: UInt8) -> [UInt8] {
        switch self {
        case .typeA: []
        case .typeB: [0x00]
        case .felica212, .felica424: [0x00, 0xFF, 0xFF, 0x01, most > 1 ? 0x03 : 0x00]
        }
    }
}

extension PN532Target {
    /// Parses all targets of a response to InListPassiveTarget.
    ///
    /// - Returns: nil for an invalid response.
    static func list(_ output: [UInt8], _ technology: PollingTechnology) -> [PN532Target]? {
        guard let count = output.first, count <= 2 else { return nil }
        return parse(output.dropFirst(), Int(count), technology)
    }

    /// Parses type A cards.  A card with ISO/IEC 14443-4 comes with or without its ATS; only the remaining bytes tell
    /// which.
    private static func parse(
        _ bytes: ArraySlice<UInt8>, _ count: Int, _ technology: PollingTechnology
    ) -> [PN532Target]? {
        guard count > 0 else { return bytes.isEmpty ? [] : nil }
        guard let number = bytes.first, (1...2).contains(number) else { return nil }
        for (card, length) in candidates(bytes.dropFirst(), technology) {
            guard let others = parse(bytes.dropFirst(1 + length), count - 1, technology) else { continue }
            return [PN532Target(number: number, card: card)] + others
        }
        return nil
    }

    private static func candidates(
        _ bytes: ArraySlice<UInt8>, _ technology: PollingTechnology
    ) -> [(card: Card, length: Int)] {
        let b = Array(bytes)
        switch technology {
        case .typeA:
            // SENS_RES SEL_RES NFCIDLength NFCID [ATS]
            guard b.count >= 4, [4, 7, 10].contains(Int(b[3])), b.count >= 4 + Int(b[3]) else { return [] }
            let end = 4 + Int(b[3])
            let uid = Array(b[4..<end])
            let atqa = atqa(b[0], b[1], uid)
            let bare = (card: Card.typeA(uid: uid, atqa: atqa, sak: b[2], ats: nil), length: end)
            // Bit 6 of the SAK (ISO/IEC 14443-3).  TL counts itself (ISO/IEC 14443-4, 5.2.2).
            guard b[2] & 0x20 != 0, end < b.count, b[end] >= 1, end + Int(b[end]) <= b.count else { return [bare] }
            let ats = Array(b[end..<(end + Int(b[end]))])
            return [(.typeA(uid: uid, atqa: atqa, sak: b[2], ats: ats), end + ats.count), bare]
        case .typeB:
            // ATQB ATTRIB_RES_Length ATTRIB_RES
            guard b.count >= 13, b[0] == 0x50, b.count >= 13 + Int(b[12]) else { return [] }
            let end = 13 + Int(b[12])
            return [(.typeB(atqb: Array(b[..<12]), attribResponse: Array(b[13..<end])), end)]
        case .felica212, .felica424:
            // POL_RES with its length, which includes itself: 01 NFCID2 PAD [SYST]
            guard b.count >= 18, b[0] == 18 || b[0] == 20, b[1] == 0x01, b.count >= Int(b[0]) else { return [] }
            let systemCode = b[0] == 20 ? UInt16(b[18]) << 8 | UInt16(b[19]) : nil
            return [(.felica(idm: Array(b[2..<10]), pmm: Array(b[10..<18]), systemCode: systemCode), Int(b[0]))]
        }
    }

    /// The PN532 returns SENS_RES most significant byte first; some readers swap the bytes.  In the low byte, bits 7
    /// and 8 give the size of the UID and bits 1 to 5 are not all zero (ISO/IEC 14443-3, ATQA).
    private static func atqa(_ first: UInt8, _ second: UInt8, _ uid: [UInt8]) -> UInt16 {
        func isLow(_ byte: UInt8) -> Bool { byte & 0x1F != 0 && Int(byte >> 6) * 3 + 4 == uid.count }
        let isTurned = !isLow(second) && isLow(first)
        return isTurned ? UInt16(second) << 8 | UInt16(first) : UInt16(first) << 8 | UInt16(second)
    }
}
