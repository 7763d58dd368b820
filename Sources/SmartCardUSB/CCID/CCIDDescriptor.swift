public import SmartCard

/// The functional descriptor of a CCID interface, 54 bytes (USB CCID 1.10, 5.1): the reader's description of itself.
public struct CCIDDescriptor: Hashable, Sendable {
    /// dwFeatures.
    public struct Features: OptionSet, Hashable, Sendable {
        public var rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let automaticParameterConfiguration = Features(rawValue: 0x02)
        public static let automaticActivation = Features(rawValue: 0x04)
        public static let automaticVoltage = Features(rawValue: 0x08)
        public static let automaticClock = Features(rawValue: 0x10)
        public static let automaticBaudRate = Features(rawValue: 0x20)
        /// The reader negotiates protocol and parameters by itself.
        public static let automaticParameterNegotiation = Features(rawValue: 0x40)
        /// The reader exchanges PPS according to the parameters that it receives.
        public static let automaticPPS = Features(rawValue: 0x80)
        public static let clockStop = Features(rawValue: 0x100)
        public static let otherNAD = Features(rawValue: 0x200)
        public static let automaticIFSD = Features(rawValue: 0x400)
        public static let wakeUp = Features(rawValue: 0x10_0000)
    }

    /// The content of XfrBlock, the bits 7_0000 of dwFeatures.
    public enum ExchangeLevel: Hashable, Sendable {
        case character, tpdu, shortAPDU, extendedAPDU
    }

    /// bcdCCID.
    public let release: UInt16
    /// bMaxSlotIndex plus one.
    public let slotCount: Int
    /// bVoltageSupport: bit 0 5 V, bit 1 3 V, bit 2 1.8 V.
    public let voltages: UInt8
    /// dwProtocols: bit 0 T=0, bit 1 T=1.
    public let protocols: UInt32
    /// dwDefaultClock and dwMaximumClock, kHz.
    public let defaultClock: UInt32
    public let maximumClock: UInt32
    /// dwDataRate and dwMaxDataRate, bit/s.
    public let dataRate: UInt32
    public let maximumDataRate: UInt32
    /// dwMaxIFSD: the longest information field of a T=1 block that the reader accepts.
    public let maximumIFSD: UInt32
    public let features: Features
    /// dwMaxCCIDMessageLength, including the header of ten bytes.
    public let maximumMessageLength: UInt32
    /// bPINSupport: bit 0 verification, bit 1 modification.
    public let pinSupport: UInt8
    /// bMaxCCIDBusySlots.
    public let maximumBusySlots: UInt8

    /// Finds the descriptor among those after an interface or endpoint descriptor.
    ///
    /// - Returns: nil unless one of 54 bytes is present.  Its type byte is 21; vendor interfaces may use FF.
    public init?(extra: [UInt8]) {
        var rest = extra[...]
        while let length = rest.first.map(Int.init), length >= 2, rest.count >= length {
            let d = Array(rest.prefix(length))
            if length == 54, d[1] == 0x21 || d[1] == 0xFF {
                self.init(fields: d)
                return
            }
            rest = rest.dropFirst(length)
        }
        return nil
    }

    /// - Parameter d: 54 bytes.
    private init(fields d: [UInt8]) {
        func word(_ i: Int) -> UInt16 { UInt16(d[i]) | UInt16(d[i + 1]) << 8 }
        func dword(_ i: Int) -> UInt32 { UInt32(word(i)) | UInt32(word(i + 2)) << 16 }
        release = word(2)
        slotCount = Int(d[4]) + 1
        voltages = d[5]
        protocols = dword(6)
        defaultClock = dword(10)
        maximumClock = dword(14)
        dataRate = dword(19)
        maximumDataRate = dword(23)
        maximumIFSD = dword(28)
        features = Features(rawValue: dword(40))
        maximumMessageLength = dword(44)
        pinSupport = d[52]
        maximumBusySlots = d[53]
    }

    public var exchangeLevel: ExchangeLevel {
        switch features.rawValue & 0x7_0000 {
        case 0x1_0000: .tpdu
        case 0x2_0000: .shortAPDU
        case 0x4_0000: .extendedAPDU
        default: .character
        }
    }

    public func speaks(_ transmissionProtocol: TransmissionProtocol) -> Bool {
        switch transmissionProtocol {
        case .t0: protocols & 1 != 0
        case .t1: protocols & 2 != 0
        case .raw: false
        }
    }

    /// The data bytes in one message to the reader: at least a packet, even if the reader claims less; at most one
    /// extended APDU.
    var maximumData: Int { min(max(Int(maximumMessageLength), 64), 65_554) - CCIDAnswer.headerSize }

    /// The longest message from the reader.  Some readers claim less than they send.
    var maximumAnswer: Int { max(maximumData, 261) + CCIDAnswer.headerSize }
}
