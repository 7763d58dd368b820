/// The bits of the data objects that direct the kernel (EMV Contactless Book C-2, Annex A.1).
extension Kernel2 {
    /// Kernel Configuration, DF811B.
    struct Configuration: OptionSet {
        let rawValue: UInt8
        static let withoutMagStripeMode = Self(rawValue: 0x80)
        static let withoutEMVMode = Self(rawValue: 0x40)
        static let onDeviceVerification = Self(rawValue: 0x20)
        static let relayResistance = Self(rawValue: 0x10)
    }

    /// IDS Status, DF8128.
    struct IDSStatus: OptionSet {
        let rawValue: UInt8
        static let read = Self(rawValue: 0x80)
        static let write = Self(rawValue: 0x40)
    }

    /// The data storage version in Application Capabilities Information, 9F5D, byte 1.
    enum DataStorageVersion {
        static let mask: UInt8 = 0x0F
    }

    /// Application Capabilities Information, 9F5D, byte 2.
    struct ApplicationCapabilities: OptionSet {
        let rawValue: UInt8
        static let detectsFieldOff = Self(rawValue: 0x04)
        static let readsBalance = Self(rawValue: 0x02)
        static let signsEveryCryptogram = Self(rawValue: 0x01)
    }

    /// POS Cardholder Interaction Information, DF4B, bytes 2 and 3.
    struct CardholderInteraction: OptionSet {
        let rawValue: UInt16
        static let verifiedOnDevice = Self(rawValue: 0x1000)
        /// The bits for which the cardholder has to act and present the device again: 00030F.
        static let secondTap = Self(rawValue: 0x030F)
    }

    /// DS ODS Info For Reader, DF810A.
    struct ODSInfoForReader: OptionSet {
        let rawValue: UInt8
        static let usableForTC = Self(rawValue: 0x80)
        static let usableForARQC = Self(rawValue: 0x40)
        static let usableForAAC = Self(rawValue: 0x20)
        static let stopsWithoutODSTerm = Self(rawValue: 0x04)
        static let stopsIfWriteFailed = Self(rawValue: 0x02)
    }

    /// DS Slot Management Control, 9F6F.
    struct SlotControl: OptionSet {
        let rawValue: UInt8
        static let permanent = Self(rawValue: 0x80)
        static let locked = Self(rawValue: 0x10)
    }

    /// DS ODS Info, DF62.
    struct ODSInfo: OptionSet {
        let rawValue: UInt8
        static let volatile = Self(rawValue: 0x40)
    }

    /// DS Summary Status, DF810B.
    struct SummaryStatus: OptionSet {
        let rawValue: UInt8
        static let successfulRead = Self(rawValue: 0x80)
        static let successfulWrite = Self(rawValue: 0x40)
    }

    /// Terminal Capabilities, 9F33: the bits that the kernel asks for.
    struct TerminalCapabilities: OptionSet {
        let rawValue: UInt32
        static let contacts = Self(rawValue: 0x200000)
        static let cda = Self(rawValue: 0x000008)
    }

    /// Mag-stripe CVM Capability, DF811E and DF812C, the high half byte.
    enum MagStripeCVM: UInt8 {
        case noCVM = 0x00
        case signature = 0x10
        case onlinePIN = 0x20

        init?(capability: UInt8) { self.init(rawValue: capability & 0xF0) }
    }

    /// Mobile Support Indicator, 9F7E.
    struct MobileSupport: OptionSet {
        let rawValue: UInt8
        static let cvmRequired = Self(rawValue: 0x02)
    }

    /// The bit of the Reference Control Parameter, DF8114, that requests a signature: CDA.
    static let cdaRequested: UInt8 = 0x10
    /// Pre-Gen AC and Post-Gen AC Put Data Status, DF810F and DF810E: all data have been written.
    static let putDataCompleted: [UInt8] = [0x80]

    var interchangeProfile: ApplicationInterchangeProfile {
        ApplicationInterchangeProfile(data[.applicationInterchangeProfile] ?? [])
    }
    var idsStatus: IDSStatus {
        get { IDSStatus(rawValue: data.byte(.idsStatus)) }
        set { data[.idsStatus] = [newValue.rawValue] }
    }
    var applicationCapabilities: ApplicationCapabilities {
        ApplicationCapabilities(rawValue: data.byte(.applicationCapabilitiesInformation, at: 1))
    }
    var cardholderInteraction: CardholderInteraction {
        CardholderInteraction(
            rawValue: UInt16(data.byte(.posCardholderInteractionInformation, at: 1)) << 8
                | UInt16(data.byte(.posCardholderInteractionInformation, at: 2)))
    }
    var hasVerifiedOnDevice: Bool { cardholderInteraction.contains(.verifiedOnDevice) }
    var odsInfoForReader: ODSInfoForReader { ODSInfoForReader(rawValue: data.byte(.dsODSInfoForReader)) }
    var slotControl: SlotControl { SlotControl(rawValue: data.byte(.dsSlotManagementControl)) }
    var terminalCapabilities: TerminalCapabilities {
        TerminalCapabilities(
            rawValue: (0..<3).reduce(0) { $0 << 8 | UInt32(data.byte(.terminalCapabilities, at: $1)) })
    }
}
