/// The differences between one ACR122U and another: a firmware version, or a manufacturing fault for a test.
///
/// Begin with a version and change individual properties:
///
///     var profile = ACR122UProfile.firmware214
///     profile.atrStyle = .standard
public struct ACR122UProfile: Hashable, Sendable {
    /// The ATR that IccPowerOn returns for a card (PC/SC part 3, 3.1.3.2.3).
    public enum ATRStyle: String, Hashable, Sendable, CaseIterable {
        /// The ACR122U's: the whole ATS or ATQB in place of the historical bytes, up to fifteen of them; `FF SAK` names
        /// a storage card that has no name.
        case acs
        /// The ATR of PC/SC part 3.
        case standard
    }

    /// The slot status in the reader's answers while no card is powered.
    public enum IdleSlotStatus: String, Hashable, Sendable, CaseIterable {
        /// `00`, active, as firmware 2.14.
        case active
        /// `02`, absent, except in the answer to IccPowerOn, as firmware 2.16.
        case absentExceptPowerOn
        /// `02`, absent, as firmware 2.15.
        case absent
    }

    /// The version as people know it: `2.14`.
    public var version: String
    /// The answer to `FF 00 48 00 00`, ten characters with genuine readers.
    public var firmwareString: String
    /// bcdDevice of the device descriptor.
    public var deviceRelease: UInt16
    /// bMaxPacketSize0 of the device descriptor.
    public var controlPacketSize: UInt8
    /// Rev of the PN532's GetFirmwareVersion.
    public var chipRevision: UInt8 = 0x06
    /// The ACR122U knows presence only by polling and reports it less than faithfully: see ``IdleSlotStatus``.
    public var idleSlotStatus: IdleSlotStatus = .active
    /// True if `FF 00 51` returns the parameter alone, without `90` before it.
    public var answersParameterAlone = false
    /// True if the reader supports `FF 00 52`, buzzer on detection.
    public var hasDetectionBuzzer = true
    /// True if the reader supports PC_to_RDR_Escape.
    public var hasEscape = true
    /// True if SET_INTERFACE fails, as on clones.
    public var stallsSetInterface = false
    /// True if the reader answers the class requests for clock and data rates, with zeros.
    public var answersRateRequests = false
    public var atrStyle = ATRStyle.acs
    /// The PICC operating parameter after power-up (ACS API v2.04, 6.5).
    public var operatingParameter: UInt8 = 0xFF
    /// The time between a card's arrival and its report; nil for the polling interval of the operating parameter, 250
    /// or 500 ms.
    public var detectionDelay: Duration?
    /// Slots that the descriptor claims.  Beyond the first they are empty.
    public var slotCount: UInt8 = 1
    /// iManufacturer and iProduct.
    public var names = ["ACS", "ACR122U PICC Interface"]
    /// iSerialNumber; nil with genuine readers.
    public var serialNumber: String?

    init(version: String, string: String, release: UInt16, controlPacketSize: UInt8) {
        self.version = version
        firmwareString = string
        deviceRelease = release
        self.controlPacketSize = controlPacketSize
    }
}

extension ACR122UProfile {
    public static let firmware207 = {
        var profile = ACR122UProfile(
            version: "2.07", string: "ACR122U207", release: 0x0207, controlPacketSize: 8)
        profile.chipRevision = 0x04
        profile.hasDetectionBuzzer = false
        return profile
    }()

    public static let firmware214 = {
        var profile = ACR122UProfile(
            version: "2.14", string: "ACR122U214", release: 0x0214, controlPacketSize: 64)
        profile.answersRateRequests = true
        return profile
    }()

    public static let firmware215 = {
        var profile = ACR122UProfile(
            version: "2.15", string: "ACR122U215", release: 0x0215, controlPacketSize: 64)
        profile.idleSlotStatus = .absent
        profile.answersParameterAlone = true
        return profile
    }()

    public static let firmware216 = {
        var profile = ACR122UProfile(
            version: "2.16", string: "ACR122U216", release: 0x0216, controlPacketSize: 64)
        profile.idleSlotStatus = .absentExceptPowerOn
        return profile
    }()

    /// Every version, oldest first.
    public static let all = [firmware207, firmware214, firmware215, firmware216]

    /// A copy with two slots and a serial number, as acsccid#28 has it.
    public static let twoSlotClone = {
        var profile = firmware207
        (profile.slotCount, profile.serialNumber) = (2, "A02014090501")
        profile.stallsSetInterface = true
        return profile
    }()

    /// A copy whose names and firmware string are its own.
    public static let renamedClone = {
        var profile = ACR122UProfile(
            version: "1.00", string: "CCIDRDV100", release: 0x0100, controlPacketSize: 8)
        profile.names = ["NFC", "CCID USB Reader"]
        profile.hasDetectionBuzzer = false
        profile.hasEscape = false
        profile.stallsSetInterface = true
        return profile
    }()

    /// The profile of a firmware version: `2.07`, `2.14`, `2.15`, `2.16`; nil for others.
    public init?(version: String) {
        guard let profile = Self.all.first(where: { $0.version == version }) else { return nil }
        self = profile
    }
}
