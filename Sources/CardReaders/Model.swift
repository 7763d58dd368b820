import SmartCard

/// A model of reader, or a family that takes the same commands: a row of ``all``.
public struct Model: Hashable, Sendable {
    /// For a person: `ACS ACR122U`.
    public let name: String
    /// Vendor in the high, product in the low 16 bits; empty for what is on no USB.
    public let ids: Set<UInt32>
    /// Parts of the names that drivers and copies give it.
    public let names: [String]
    /// Whether another model has the same ``ids``, so that only the name tells.
    public let sharesItsIDs: Bool
    /// The commands that it takes for itself.
    public let commands: Commands
    /// The chip behind it that takes commands of its own, if there is one.
    public let chip: Chip?
    public let lights: Lights
    public let hasBuzzer: Bool
    /// Its slots as pcscd numbers them, interface after interface.
    public let slots: [Slot]
    public let extendedAPDUs: ExtendedAPDUs
    /// Beginnings of firmware versions that cannot be used.
    public let unusableFirmware: [String]

    /// The commands that a reader takes for itself.
    public enum Commands: Hashable, Sendable {
        case none
        /// `FF 00 …` by XfrBlock, with and without a card (ACS API v2.04, 6).
        case pseudoAPDUs
        /// `E0 00 00 …` by PC_to_RDR_Escape, answered by `E1 00 00 00`, a length and the data.
        case escape(Escape)
        /// Those of the chip alone, from `D4` on (NXP UM0701-02, 7).
        case chip
    }

    /// The fourth byte of each `E0 00 00 …` command; nil for one that the model has not.
    public struct Escape: Hashable, Sendable {
        public let firmware: UInt8?
        public let lights: UInt8?
        public let buzzer: UInt8?
        /// Which cards it looks for.
        public let operatingParameter: UInt8?
        public let automaticPolling: UInt8?
        public let antenna: UInt8?
        /// What passes bytes on to its chip or to the card as they are.
        public let transparentExchange: UInt8?

        public init(
            firmware: UInt8? = nil, lights: UInt8? = nil, buzzer: UInt8? = nil, operatingParameter: UInt8? = nil,
            automaticPolling: UInt8? = nil, antenna: UInt8? = nil, transparentExchange: UInt8? = nil
        ) {
            (self.firmware, self.lights, self.buzzer) = (firmware, lights, buzzer)
            (self.operatingParameter, self.automaticPolling) = (operatingParameter, automaticPolling)
            (self.antenna, self.transparentExchange) = (antenna, transparentExchange)
        }
    }

    public enum Chip: Hashable, Sendable { case pn532 }

    public struct Lights: OptionSet, Hashable, Sendable {
        public var rawValue: UInt8

        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let red = Lights(rawValue: 0x01)
        public static let green = Lights(rawValue: 0x02)
        public static let blue = Lights(rawValue: 0x04)
    }

    /// What a slot is for.
    public enum Slot: Hashable, Sendable { case contactless, contact, sam }

    public enum ExtendedAPDUs: Hashable, Sendable {
        case no
        case yes
        /// Claimed by the descriptors and failing in fact, for commands of more bytes than this.
        case failBeyond(Int)
    }

    init(
        _ name: String, ids: Set<UInt32> = [], names: [String], sharesItsIDs: Bool = false, commands: Commands,
        chip: Chip? = nil, lights: Lights = [], hasBuzzer: Bool = false, slots: [Slot] = [.contactless],
        extendedAPDUs: ExtendedAPDUs = .no, unusableFirmware: [String] = []
    ) {
        (self.name, self.ids, self.names, self.sharesItsIDs) = (name, ids, names, sharesItsIDs)
        (self.commands, self.chip, self.lights, self.hasBuzzer) = (commands, chip, lights, hasBuzzer)
        (self.slots, self.extendedAPDUs, self.unusableFirmware) = (slots, extendedAPDUs, unusableFirmware)
    }

    /// The model with these ids; of one whose ids are unknown, or no row's, the one that the name tells, as copies do.
    ///
    /// - Parameters:
    ///   - name: the reader's, as a driver gives it.
    ///   - id: vendor in the high, product in the low 16 bits; nil where no USB device is known.
    /// - Returns: nil for a reader that nothing is known of.
    public static func of(name: String, id: UInt32?) -> Model? {
        func isNamed(_ model: Model) -> Bool { model.names.contains { name.contains($0) } }
        let byID = id.flatMap { id in all.first { $0.ids.contains(id) && (!$0.sharesItsIDs || isNamed($0)) } }
        return byID ?? all.first(where: isNamed)
    }

    /// - Throws: `CardError` of kind `unsupported` for firmware that cannot be used.
    public func check(firmware: String) throws {
        guard unusableFirmware.contains(where: firmware.hasPrefix) else { return }
        throw CardError(.unsupported, "firmware \(firmware)", hint: "Use a reader with firmware 2 or later.")
    }
}
