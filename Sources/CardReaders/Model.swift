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
    /// How the commands are made that it takes for itself.
    public let commands: Commands
    /// What it can be told to do, and the command for each.
    public let functions: [Function: Command]
    /// The chip behind it that takes commands of its own, if there is one.
    public let chip: Chip?
    /// Each with its bit in the byte that sets them.
    public let lights: [Light: UInt8]
    /// Its slots as pcscd numbers them, interface after interface.
    public let slots: [Slot]
    public let extendedAPDUs: ExtendedAPDUs
    /// Beginnings of firmware versions that cannot be used.
    public let unusableFirmware: [String]

    /// How the commands that a reader takes for itself are made.
    public enum Commands: Hashable, Sendable {
        case none
        /// `FF 00 …` by XfrBlock, with and without a card (ACS API v2.04, 6).
        case pseudoAPDUs
        /// `E0 00 …` by PC_to_RDR_Escape: four bytes, a length, and data; answered by `E1 00 00 00`, a length and data.
        case escape
        /// Those of the chip alone, from `D4` on (NXP UM0701-02, 7).
        case chip
    }

    /// What a reader can be told to do.
    public enum Function: String, Hashable, Sendable, CaseIterable {
        case firmware = "firmware version"
        case lights
        case buzzer
        /// Which cards it looks for.
        case operatingParameter = "PICC operating parameter"
        /// Whether and how often it looks for cards by itself.
        case automaticPolling = "automatic polling"
        case antenna
        /// What passes bytes on to its chip or to the card as they are.
        case transparentExchange = "transparent exchange"
    }

    /// A command of a reader's own, without its length and data.
    public struct Command: Hashable, Sendable {
        /// What asks for the present value; nil if nothing does.
        public let get: [UInt8]?
        /// What sets it; nil for what can only be asked for.
        public let set: [UInt8]?
        /// What it is when the reader is new or plugged in; nil where that is not known.
        public let initial: [UInt8]?
        /// The document and its section; else who says so.
        public let source: String
        /// Whether ``source`` is no document of the vendor's, and nobody else was found to say the same.
        public let isUnconfirmed: Bool

        init(
            get: [UInt8]? = nil, set: [UInt8]? = nil, initial: [UInt8]? = nil, _ source: String,
            isUnconfirmed: Bool = false
        ) {
            (self.get, self.set, self.initial) = (get, set, initial)
            (self.source, self.isUnconfirmed) = (source, isUnconfirmed)
        }
    }

    public enum Chip: Hashable, Sendable { case pn532 }

    public enum Light: String, Hashable, Sendable { case red, green, blue }

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
        functions: [Function: Command] = [:], chip: Chip? = nil, lights: [Light: UInt8] = [:],
        slots: [Slot] = [.contactless],
        extendedAPDUs: ExtendedAPDUs = .no, unusableFirmware: [String] = []
    ) {
        (self.name, self.ids, self.names, self.sharesItsIDs) = (name, ids, names, sharesItsIDs)
        (self.commands, self.functions, self.chip, self.lights) = (commands, functions, chip, lights)
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

    /// The longest command APDU in bytes that gets through; nil where the card alone limits it.
    public var longestCommand: Int? {
        switch extendedAPDUs {
        // Header, Lc, 255 bytes and Le (ISO/IEC 7816-3, 12.1).
        case .no: 261
        case .yes: nil
        case .failBeyond(let count): count
        }
    }

    /// - Throws: `CardError` of kind `unsupported` for firmware that cannot be used.
    public func check(firmware: String) throws {
        guard unusableFirmware.contains(where: firmware.hasPrefix) else { return }
        throw CardError(.unsupported, "firmware \(firmware)", hint: "Use a reader with firmware 2 or later.")
    }
}
