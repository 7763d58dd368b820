import SmartCard

/// The error code in the status byte of a PN532's response (NXP UM0701-02, 7.1).  Unknown values print as numbers.
public struct PN532Error: RawRepresentable, Error, Hashable, Sendable, ExpressibleByIntegerLiteral {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public init(integerLiteral value: UInt8) { rawValue = value }

    /// The card did not answer.
    public static let timeout: PN532Error = 0x01
    public static let crc: PN532Error = 0x02
    public static let parity: PN532Error = 0x03
    public static let bitCount: PN532Error = 0x04
    public static let framing: PN532Error = 0x05
    public static let collision: PN532Error = 0x06
    public static let bufferTooSmall: PN532Error = 0x07
    public static let bufferOverflow: PN532Error = 0x09
    public static let fieldTimeout: PN532Error = 0x0A
    public static let protocolViolation: PN532Error = 0x0B
    public static let temperature: PN532Error = 0x0D
    public static let internalOverflow: PN532Error = 0x0E
    public static let parameter: PN532Error = 0x10
    public static let unsupportedDEPCommand: PN532Error = 0x12
    public static let dataFormat: PN532Error = 0x13
    /// MIFARE: the key is wrong.
    public static let authentication: PN532Error = 0x14
    /// Defined for the PN533 (libnfc, chips/pn53x.h).
    public static let secureNotSupported: PN532Error = 0x18
    public static let uidCheckByte: PN532Error = 0x23
    public static let depState: PN532Error = 0x25
    public static let notAllowed: PN532Error = 0x26
    public static let wrongContext: PN532Error = 0x27
    public static let released: PN532Error = 0x29
    /// Another card replaced the selected one.
    public static let cardExchanged: PN532Error = 0x2A
    public static let cardDisappeared: PN532Error = 0x2B
    public static let nfcid3Mismatch: PN532Error = 0x2C
    public static let overCurrent: PN532Error = 0x2D
    public static let nadMissing: PN532Error = 0x2E

    /// The meaning of the code; nil if unknown.
    public var name: String? { Self.table[self]?.name }

    private static let table: [PN532Error: (name: String, kind: CardError.Kind)] = [
        .timeout: ("time-out, the card has not answered", .noAnswer),
        .crc: ("CRC error", .notTransacted),
        .parity: ("parity error", .notTransacted),
        .bitCount: ("wrong bit count during anticollision", .notTransacted),
        .framing: ("framing error", .notTransacted),
        .collision: ("bit collision during anticollision", .notTransacted),
        .bufferTooSmall: ("communication buffer too small", .tooLong),
        .bufferOverflow: ("RF buffer overflow", .tooLong),
        .fieldTimeout: ("the RF field was not switched on in time", .noAnswer),
        .protocolViolation: ("RF protocol error", .notTransacted),
        .temperature: ("overheated, the antenna drivers are off", .other),
        .internalOverflow: ("internal buffer overflow", .tooLong),
        .parameter: ("invalid parameter", .unsupported),
        .unsupportedDEPCommand: ("DEP command not supported", .unsupported),
        .dataFormat: ("data format does not match the specification", .malformedAnswer),
        .authentication: ("MIFARE authentication error", .other),
        .secureNotSupported: ("NFC secure not supported", .unsupported),
        .uidCheckByte: ("UID check byte is wrong", .notTransacted),
        .depState: ("invalid device state", .other),
        .notAllowed: ("operation not allowed in this configuration", .unsupported),
        .wrongContext: ("command not acceptable in the present context", .other),
        .released: ("released by the initiator", .disconnected),
        .cardExchanged: ("the card has been exchanged", .cardRemoved),
        .cardDisappeared: ("the card has disappeared", .cardRemoved),
        .nfcid3Mismatch: ("NFCID3 of initiator and target do not match", .malformedAnswer),
        .overCurrent: ("over-current, the antenna drivers are off", .other),
        .nadMissing: ("NAD missing", .malformedAnswer),
    ]

    /// The error to throw, with this as its cause.
    var error: CardError {
        let kind = Self.table[self]?.kind ?? .notTransacted
        return CardError(kind, kind == .other ? "the reader's radio chip reports an error" : nil, cause: self)
    }
}

extension PN532Error: CustomStringConvertible {
    /// `PN532 14 MIFARE authentication error`
    public var description: String { "PN532 \([rawValue].hex)" + (name.map { " " + $0 } ?? "") }
}
