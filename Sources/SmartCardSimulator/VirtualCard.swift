/// A contactless card in software that lies in the field of a reader.  It does not know the reader.
///
/// A card is shared with its owner, who may inspect or change it while it is read.  A card therefore guards its own
/// state.
public protocol VirtualCard: AnyObject, Sendable {
    /// The card's identity in the anticollision loop.
    var radio: VirtualCardRadio { get }

    /// Resets all volatile state: the field has come up, or the card was selected again.
    func reset()

    /// An ISO-DEP exchange (ISO/IEC 14443-4): the command APDU, whole, and the response APDU, whole.
    ///
    /// - Returns: nil if the card stays mute, as every card without ISO-DEP does.
    func exchange(_ command: [UInt8]) -> [UInt8]?

    /// Performs a native exchange below ISO-DEP, without checksum.
    ///
    /// Commands are `30 04`, `A2 04 …` (ISO/IEC 14443-3; NFC Forum Type 2 Tag; MIFARE Classic, where `60`/`61` block,
    /// key, UID stands for the whole authentication, as for a PN532), and `10 06 …`, length first (FeliCa).
    ///
    /// After a refusal a card of type A is silent until `reset()`, that is until the reader selects it again, because
    /// the chips return to IDLE.
    ///
    /// - Returns: the card's answer, empty for an acknowledgment; nil for a refusal or silence.
    func exchangeNative(_ command: [UInt8]) -> [UInt8]?

    /// Returns the additional time that the card takes for an ISO-DEP exchange.
    ///
    /// `exchange` does not wait.  The caller that passes the answer on lets this time elapse.
    func processingTime(of command: [UInt8]) -> Duration

    /// Notices what happens in the field besides exchanges.
    ///
    /// - Returns: true if the card answers where the event is a request for cards of its type, as cards do.  A phone may
    ///   wait until it has heard what the reader wants.
    func notice(_ event: RadioEvent) -> Bool

    /// True if the card answers a reader that does no more than ask for cards, as cards do and some phones do not.
    var answersAnyReader: Bool { get }
}

/// A card's radio identity before it is selected.
public enum VirtualCardRadio: Hashable, Sendable {
    /// ISO/IEC 14443-3 type A.  `atqa` in the order of the PN532's SENS_RES, most significant byte first; `ats` with
    /// its length byte TL, nil where bit 6 of the SAK is zero.
    case typeA(uid: [UInt8], atqa: [UInt8], sak: UInt8, ats: [UInt8]?)
    /// ISO/IEC 14443-3 type B: the ATQB, 12 bytes from `50` on, without checksum.
    case typeB(atqb: [UInt8])
    /// JIS X 6319-4, FeliCa, at 212 and 424 kbit/s: IDm and PMm, 8 bytes each, and the codes of the card's systems, at
    /// most 16.  The upper four bits of the IDm are the number of the system that it is asked by, 0 in `idm`.
    case felica(idm: [UInt8], pmm: [UInt8], systemCodes: [UInt16])

    /// The card's UID as a reader reports it (PC/SC part 3, 3.2.2.1.3): UID, PUPI or IDm.
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
    public func notice(_ event: RadioEvent) -> Bool { true }
    public var answersAnyReader: Bool { true }
}
