/// A message from the host to a CCID reader (USB CCID 1.10, 6.1): ten header bytes, then data.
struct CCIDCommand: Hashable, Sendable {
    static let headerSize = 10

    /// bMessageType.
    struct Kind: RawRepresentable, Hashable, Sendable {
        let rawValue: UInt8

        static let iccPowerOn = Kind(rawValue: 0x62)
        static let iccPowerOff = Kind(rawValue: 0x63)
        static let getSlotStatus = Kind(rawValue: 0x65)
        static let xfrBlock = Kind(rawValue: 0x6F)
        static let getParameters = Kind(rawValue: 0x6C)
        static let resetParameters = Kind(rawValue: 0x6D)
        static let setParameters = Kind(rawValue: 0x61)
        static let escape = Kind(rawValue: 0x6B)
        static let secure = Kind(rawValue: 0x69)
        static let setDataRateAndClockFrequency = Kind(rawValue: 0x73)

        /// The message that answers this one (6.2); a slot status for those that CCID does not know.
        var answer: CCIDAnswer.Kind {
            switch self {
            case .iccPowerOn, .xfrBlock, .secure: .dataBlock
            case .getParameters, .resetParameters, .setParameters: .parameters
            case .escape: .escape
            case .setDataRateAndClockFrequency: .dataRateAndClockFrequency
            default: .slotStatus
            }
        }
    }

    var kind: Kind
    var slot: UInt8 = 0
    var sequence: UInt8
    /// The three bytes that mean something else in each message.
    var parameters: [UInt8] = [0x00, 0x00, 0x00]
    var data: [UInt8] = []

    var bytes: [UInt8] {
        [kind.rawValue] + littleEndian(data.count) + [slot, sequence] + parameters.prefix(3) + data
    }
}

/// A message from a CCID reader to the host on its bulk endpoint (USB CCID 1.10, 6.2).
struct CCIDAnswer: Hashable, Sendable {
    /// bMessageType.
    struct Kind: RawRepresentable, Hashable, Sendable {
        let rawValue: UInt8

        static let dataBlock = Kind(rawValue: 0x80)
        static let slotStatus = Kind(rawValue: 0x81)
        static let parameters = Kind(rawValue: 0x82)
        static let escape = Kind(rawValue: 0x83)
        static let dataRateAndClockFrequency = Kind(rawValue: 0x84)
    }

    /// bmICCStatus, the two low bits of bStatus.
    enum CardStatus: UInt8, Sendable { case active, inactive, absent, unknown }

    /// bmCommandStatus, the two high bits of bStatus.
    enum CommandStatus: UInt8, Sendable {
        case done = 0x00
        case failed = 0x40
        case timeExtension = 0x80
    }

    var kind: Kind
    var slot: UInt8 = 0
    var sequence: UInt8
    /// bStatus, of which the two enumerations are parts.
    var status: UInt8
    /// bError: means something when the command failed, or is a multiplier in a time extension.
    var error: UInt8
    /// The last header byte: bChainParameter, bClockStatus or bProtocolNum.
    var last: UInt8 = 0x00
    var data: [UInt8] = []

    var bytes: [UInt8] {
        [kind.rawValue] + littleEndian(data.count) + [slot, sequence, status, error, last] + data
    }

    var cardStatus: CardStatus { CardStatus(rawValue: status & 0x03) ?? .unknown }
    var commandStatus: CommandStatus { CommandStatus(rawValue: status & 0xC0) ?? .failed }
}

extension CCIDAnswer {
    /// - Returns: nil unless there is a header and dwLength counts the bytes after it.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= CCIDCommand.headerSize, bytes[1..<5].elementsEqual(littleEndian(bytes.count - 10)) else {
            return nil
        }
        self.init(
            kind: Kind(rawValue: bytes[0]), slot: bytes[5], sequence: bytes[6], status: bytes[7], error: bytes[8],
            last: bytes[9], data: Array(bytes[10...]))
    }
}

/// bError values (USB CCID 1.10, table 6.2-2).
enum CCIDError {
    static let commandNotSupported: UInt8 = 0x00
    /// Values up to 7F name the offset of the bad header byte.
    static let badLength: UInt8 = 0x01
    static let badSlot: UInt8 = 0x05
    static let badProtocol: UInt8 = 0x07
    static let mute: UInt8 = 0xFE
}

/// A CCID dword, truncated to 32 bits.
func littleEndian(_ value: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}
