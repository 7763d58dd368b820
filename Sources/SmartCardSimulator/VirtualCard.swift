/// A contactless card in software, lying in the field of a reader.  It knows nothing of the reader.
///
/// A card is shared with whoever put it there, who may look at it or change it while it is read; so it guards its own
/// state.
public protocol VirtualCard: AnyObject, Sendable {
    /// How it shows itself in the anticollision loop.
    var radio: VirtualCardRadio { get }

    /// The field has come up, or the card was selected anew: all volatile state is gone.
    func reset()

    /// An ISO-DEP exchange (ISO/IEC 14443-4): the command APDU, whole, and the response APDU, whole.
    ///
    /// - Returns: nil if the card stays mute, as every card without ISO-DEP does.
    func exchange(_ command: [UInt8]) -> [UInt8]?

    /// A native exchange below ISO-DEP, without checksum: `30 04`, `A2 04 …` (ISO/IEC 14443-3; NFC Forum Type 2 Tag;
    /// MIFARE Classic, where `60`/`61` block, key, UID stands for the whole authentication as it does for a PN532);
    /// `10 06 …`, the length first (FeliCa).
    ///
    /// After a refusal a card of type A is silent until `reset()`, that is until the reader selects it anew, as the
    /// chips fall back to IDLE.
    ///
    /// - Returns: what the card answers, empty for an acknowledgement; nil for a refusal or silence.
    func exchangeNative(_ command: [UInt8]) -> [UInt8]?

    /// How long the card takes for an ISO-DEP exchange, beyond what any card takes.  `exchange` does not wait; whoever
    /// hands the answer on lets so much time pass.
    func processingTime(of command: [UInt8]) -> Duration
}

/// What a card tells of itself before it is selected.
public enum VirtualCardRadio: Hashable, Sendable {
    /// ISO/IEC 14443-3 type A.  `atqa` in the order of the PN532's SENS_RES, most significant byte first; `ats` with
    /// its length byte TL, nil where bit 6 of the SAK is zero.
    case typeA(uid: [UInt8], atqa: [UInt8], sak: UInt8, ats: [UInt8]?)
    /// ISO/IEC 14443-3 type B: the ATQB, 12 bytes from `50` on, without checksum.
    case typeB(atqb: [UInt8])
    /// JIS X 6319-4, FeliCa, at 212 and 424 kbit/s: IDm and PMm, 8 bytes each, and the codes of the card's systems, at
    /// most 16.  The upper four bits of the IDm are the number of the system that it is asked by, 0 in `idm`.
    case felica(idm: [UInt8], pmm: [UInt8], systemCodes: [UInt16])

    /// What a reader gives as the card's UID (PC/SC part 3, 3.2.2.1.3): UID, PUPI or IDm.
    public var identifier: [UInt8] {
        switch self {
        case .typeA(let uid, _, _, _): uid
        case .typeB(let atqb): Array(atqb.dropFirst().prefix(4))
        case .felica(let idm, _, _): idm
        }
    }
}

extension VirtualCard {
    public func exchange(_ command: [UInt8]) -> [UInt8]? { nil }
    public func exchangeNative(_ command: [UInt8]) -> [UInt8]? { nil }
    public func processingTime(of command: [UInt8]) -> Duration { .zero }
}
