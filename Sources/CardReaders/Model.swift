import SmartCard

/// A reader model, or a family that takes the same commands: a row of ``all``.
public struct Model: Hashable, Sendable {
    /// The name for people: `ACS ACR122U`.
    public let name: String
    /// USB identifiers: vendor in the high, product in the low 16 bits; empty for a reader that is not on USB.
    public let ids: Set<UInt32>
    /// Parts of the names that drivers and copies use.
    public let names: [String]
    /// True if another model has the same ``ids``, so that only the name tells them apart.
    public let sharesItsIDs: Bool
    /// The form of the reader's own commands.
    public let commands: Commands
    /// The supported functions with their commands.
    public let functions: [Function: Command]
    /// The chip behind the reader that takes commands of its own, if any.
    public let chip: Chip?
    /// The lights, each with its bit in the byte that sets them.
    public let lights: [Light: UInt8]
    /// The slots in pcscd's order, interface by interface.
    public let slots: [Slot]
    public let extendedAPDUs: ExtendedAPDUs
    /// The beginnings of unusable firmware versions.
    public let unusableFirmware: [String]

    /// The form of a reader's own commands.
    public enum Commands: Hashable, Sendable {
        case none
        /// `FF 00 …` by XfrBlock, with and without a card (ACS API v2.04, 6).
        case pseudoAPDUs
        /// `E0 00 …` by PC_to_RDR_Escape: four bytes, a length, and data.  The answer is `E1 00 00 00`, a length and
        /// data.
        case escape
        /// Only the chip's commands, beginning with `D4` (NXP UM0701-02, 7).
        case chip
    }

    /// A function of a reader that commands control.
    public enum Function: String, Hashable, Sendable, CaseIterable {
        case firmware = "firmware version"
        case lights
        case buzzer
        /// The kinds of card that the reader looks for.
        case operatingParameter = "PICC operating parameter"
        /// The automatic search for cards, and its interval.
        case automaticPolling = "automatic polling"
        case antenna
        /// The exchange of unmodified bytes with the chip or the card.
        case transparentExchange = "transparent exchange"
    }

    /// A reader's own command without its length and data.
    public struct Command: Hashable, Sendable {
        /// The command that reads the value; nil if there is none.
        public let get: [UInt8]?
        /// The command that sets the value; nil for a read-only function.
        public let set: [UInt8]?
        /// The value in a new or newly attached reader; nil if unknown.
        public let initial: [UInt8]?
        /// The document and section, or another source.
        public let source: String
        /// True if ``source`` is not a vendor document and no second source confirms it.
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

    /// The purpose of a slot.
    public enum Slot: Hashable, Sendable { case contactless, contact, sam }

    public enum ExtendedAPDUs: Hashable, Sendable {
        case no
        case yes
        /// The descriptors claim support, but commands longer than this many bytes fail.
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

    /// Returns the model with these identifiers.  If they are unknown or in no row, the name decides, as for copies.
    ///
    /// - Parameters:
    ///   - name: the reader's name from a driver.
    ///   - id: vendor in the high, product in the low 16 bits; nil if no USB device is known.
    /// - Returns: nil for an unknown reader.
    public static func of(name: String, id: UInt32?) -> Model? {
        func isNamed(_ model: Model) -> Bool { model.names.contains { name.contains($0) } }
        let byID = id.flatMap { id in all.first { $0.ids.contains(id) && (!$0.sharesItsIDs || isNamed($0)) } }
        return byID ?? all.first(where: isNamed)
    }

    /// The longest command APDU in bytes that the reader passes on; nil if only the card limits it.
    public var longestCommand: Int? {
        switch extendedAPDUs {
        // Header, Lc, 255 bytes and Le (ISO/IEC 7816-3, 12.1).
        case .no: 261
        case .yes: nil
        case .failBeyond(let count): count
        }
    }

    /// Checks a firmware version.
    public func check(firmware: String) throws {
        guard unusableFirmware.contains(where: firmware.hasPrefix) else { return }
        throw CardError(.unsupported, "firmware \(firmware)", hint: "Use a reader with firmware 2 or later.")
    }
}
