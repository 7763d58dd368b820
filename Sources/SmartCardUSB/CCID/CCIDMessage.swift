import SmartCard

/// A message from the host to a reader, without bSeq and length, which the pipe adds (USB CCID 1.10, 6.1).
struct CCIDCommand: Hashable, Sendable {
    /// bMessageType.
    struct Kind: RawRepresentable, Hashable, Sendable {
        let rawValue: UInt8

        static let setParameters = Kind(rawValue: 0x61)
        static let iccPowerOn = Kind(rawValue: 0x62)
        static let iccPowerOff = Kind(rawValue: 0x63)
        static let getSlotStatus = Kind(rawValue: 0x65)
        static let escape = Kind(rawValue: 0x6B)
        static let getParameters = Kind(rawValue: 0x6C)
        static let xfrBlock = Kind(rawValue: 0x6F)
        static let abort = Kind(rawValue: 0x72)

        /// The type of the answer (6.2).
        var answer: CCIDAnswer.Kind {
            switch self {
            case .iccPowerOn, .xfrBlock: .dataBlock
            case .setParameters, .getParameters: .parameters
            case .escape: .escape
            default: .slotStatus
            }
        }
    }

    var kind: Kind
    var slot: UInt8
    /// The three bytes whose meaning depends on the message.
    var parameters: SIMD3<UInt8>
    var data: [UInt8]

    init(
        _ kind: Kind, slot: UInt8 = 0, parameters: (UInt8, UInt8, UInt8) = (0, 0, 0), data: [UInt8] = []
    ) {
        self.kind = kind
        self.slot = slot
        self.parameters = SIMD3(parameters.0, parameters.1, parameters.2)
        self.data = data
    }

    /// Returns the encoded message with `sequence` as bSeq.
    func bytes(sequence: UInt8) -> [UInt8] {
        let length = UInt32(truncatingIfNeeded: data.count)
        func byte(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: length >> shift) }
        return [
            kind.rawValue, byte(0), byte(8), byte(16), byte(24), slot, sequence,
            parameters.x, parameters.y, parameters.z,
        ] + data
    }
}

extension CCIDCommand {
    /// - Parameter voltage: bPowerSelect: 0 automatic, 1 5 V, 2 3 V, 3 1.8 V.
    static func powerOn(voltage: UInt8) -> CCIDCommand { CCIDCommand(.iccPowerOn, parameters: (voltage, 0, 0)) }

    static func setParameters(_ parameters: ProtocolParameters) -> CCIDCommand {
        CCIDCommand(.setParameters, parameters: (parameters.protocolNumber, 0, 0), data: parameters.bytes)
    }

    /// The multiple of the usual time that this command may take: bBWI.
    var waitingTimes: Int { kind == .xfrBlock ? max(Int(parameters.x), 1) : 1 }

    /// - Parameter waitingIntegers: bBWI.
    /// - Parameter level: wLevelParameter.
    static func xfrBlock(_ data: [UInt8], waitingIntegers: UInt8 = 0, level: UInt16 = 0) -> CCIDCommand {
        CCIDCommand(
            .xfrBlock,
            parameters: (waitingIntegers, UInt8(truncatingIfNeeded: level), UInt8(truncatingIfNeeded: level >> 8)),
            data: data)
    }
}

/// A message from a reader to the host on its bulk endpoint (USB CCID 1.10, 6.2).
struct CCIDAnswer: Hashable, Sendable {
    static let headerSize = 10

    /// bMessageType.
    struct Kind: RawRepresentable, Hashable, Sendable {
        let rawValue: UInt8

        static let dataBlock = Kind(rawValue: 0x80)
        static let slotStatus = Kind(rawValue: 0x81)
        static let parameters = Kind(rawValue: 0x82)
        static let escape = Kind(rawValue: 0x83)
    }

    /// bmICCStatus, the two low bits of bStatus.
    enum CardStatus: UInt8, Sendable { case active, inactive, absent, unknown }

    /// bmCommandStatus, the two high bits of bStatus.
    enum CommandStatus: UInt8, Sendable {
        case done = 0x00
        case failed = 0x40
        case timeExtension = 0x80
    }

    let kind: Kind
    let slot: UInt8
    let sequence: UInt8
    let cardStatus: CardStatus
    let commandStatus: CommandStatus
    /// The bError.  Valid only after a failed command: readers keep their last error there.  In a time extension it
    /// multiplies the waiting time.
    let error: CCIDError
    /// The last header byte: bChainParameter, bClockStatus or bProtocolNum.
    let last: UInt8
    var data: [UInt8]

    /// - Returns: nil unless there is a header and dwLength is the number of bytes after it.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headerSize, Self.length(bytes) == bytes.count else { return nil }
        kind = Kind(rawValue: bytes[0])
        slot = bytes[5]
        sequence = bytes[6]
        cardStatus = CardStatus(rawValue: bytes[7] & 0x03) ?? .unknown
        // The value with both bits set is reserved.
        commandStatus = CommandStatus(rawValue: bytes[7] & 0xC0) ?? .failed
        error = CCIDError(rawValue: bytes[8])
        last = bytes[9]
        data = Array(bytes[Self.headerSize...])
    }

    /// Returns the length of the whole message that begins with these ten bytes.
    static func length(_ header: [UInt8]) -> Int {
        headerSize + Int(header[1]) + Int(header[2]) << 8 + Int(header[3]) << 16 + Int(header[4]) << 24
    }
}

/// The bError of a failed command, such as `ICC mute FE` (USB CCID 1.10, table 6.2-2).
///
/// Open: unknown values are kept and printed as numbers.
public struct CCIDError: RawRepresentable, Error, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let aborted = CCIDError(rawValue: 0xFF)
    public static let mute = CCIDError(rawValue: 0xFE)
    public static let parity = CCIDError(rawValue: 0xFD)
    public static let overrun = CCIDError(rawValue: 0xFC)
    public static let hardware = CCIDError(rawValue: 0xFB)
    public static let badTS = CCIDError(rawValue: 0xF8)
    public static let badTCK = CCIDError(rawValue: 0xF7)
    public static let protocolNotSupported = CCIDError(rawValue: 0xF6)
    public static let classNotSupported = CCIDError(rawValue: 0xF5)
    public static let procedureByteConflict = CCIDError(rawValue: 0xF4)
    public static let deactivatedProtocol = CCIDError(rawValue: 0xF3)
    public static let busyWithAutoSequence = CCIDError(rawValue: 0xF2)
    public static let pinTimeout = CCIDError(rawValue: 0xF0)
    public static let pinCancelled = CCIDError(rawValue: 0xEF)
    public static let slotBusy = CCIDError(rawValue: 0xE0)
    public static let shortCircuit = CCIDError(rawValue: 0xA2)
    public static let atrTooLong = CCIDError(rawValue: 0xA3)
    public static let noDataExchanged = CCIDError(rawValue: 0xAB)
    public static let tooLongForEMVMode = CCIDError(rawValue: 0xB0)
    public static let protocolErrorInEMVMode = CCIDError(rawValue: 0xBB)
    public static let cardErrorDuringT1 = CCIDError(rawValue: 0xBD)
    public static let wrongAPDULength = CCIDError(rawValue: 0xBE)
    public static let commandNotSupported = CCIDError(rawValue: 0x00)
    /// The reader has no such slot: byte 5 of the message is bad.
    public static let noSuchSlot = CCIDError(rawValue: 0x05)

    /// The kind of `CardError` for this error.
    var kind: CardError.Kind {
        switch self {
        case .mute, .noDataExchanged: .noAnswer
        case .slotBusy, .busyWithAutoSequence: .readerBusy
        case .commandNotSupported, .noSuchSlot: .unsupported
        case .protocolNotSupported, .classNotSupported: .protocolMismatch
        case .tooLongForEMVMode: .tooLong
        case _ where rawValue < 0x80: .unsupported
        default: .notTransacted
        }
    }
}

extension CCIDError: CustomStringConvertible {
    public var description: String {
        let value = [rawValue].hex
        if let name = Self.names[self] { return "CCID \(name), bError \(value)" }
        return rawValue < 0x80 ? "CCID byte \(rawValue) is bad, bError \(value)" : "CCID bError \(value)"
    }

    private static let names: [CCIDError: String] = [
        .aborted: "command aborted",
        .mute: "card mute",
        .parity: "parity error",
        .overrun: "overrun",
        .hardware: "hardware error",
        .badTS: "bad ATR TS",
        .badTCK: "bad ATR TCK",
        .protocolNotSupported: "protocol not supported",
        .classNotSupported: "class not supported",
        .procedureByteConflict: "procedure byte conflict",
        .deactivatedProtocol: "deactivated protocol",
        .busyWithAutoSequence: "busy with automatic sequence",
        .pinTimeout: "PIN timeout",
        .pinCancelled: "PIN cancelled",
        .slotBusy: "slot busy",
        .shortCircuit: "short circuit",
        .atrTooLong: "ATR too long",
        .noDataExchanged: "no data exchanged",
        .tooLongForEMVMode: "too long for EMV mode",
        .protocolErrorInEMVMode: "protocol error in EMV mode",
        .cardErrorDuringT1: "card error during T=1",
        .wrongAPDULength: "wrong APDU length",
        .commandNotSupported: "command not supported",
    ]
}
