public import SmartCard
import SmartCardPCSC
public import SmartCardPN532
import SmartCardUSB
import USBDevices

/// A reader of this machine, with what drives it.
public struct MachineReader: CardReader {
    /// By which it is known again when it comes back: its serial number, or its model and place, `072F:2200@1-2#0`; on no USB
    /// its name.
    public let id: String
    /// Without the numbers that depend on what was plugged in before: `ACS ACR122U PICC Interface`.
    public let name: String
    /// Vendor and product, `072F:2200`; nil for one that no USB device was found for.
    public let usbID: String?
    /// Of the firmware as far as the device tells, `2.14`.
    public let version: String?
    /// Nil for a reader that nothing more is known of.
    public let model: Model?
    /// Why it is this backend that drives the reader.
    public let reason: Reason
    public let identity: ReaderIdentity
    /// The backend's own.
    public let driver: any CardReader

    /// Why a reader is driven by one backend and not by the other.
    public enum Reason: Hashable, Sendable, CustomStringConvertible {
        /// Pcscd has it, and would lose it to who claims it on the USB.
        case pcscdHasIt
        /// No USB device was found that it is.
        case notOnUSB
        /// Pcscd answers and has no such reader: its driver does not know it, or could not open it.
        case pcscdHasItNot
        /// Pcscd does not answer.
        case pcscdDoesNotAnswer(CardError.Kind)
        /// Only this backend was asked for.
        case chosen

        public var description: String {
            switch self {
            case .pcscdHasIt: "pcscd has it"
            case .notOnUSB: "it is on no USB that can be seen"
            case .pcscdHasItNot: "pcscd answers and does not have it"
            case .pcscdDoesNotAnswer(.permissionDenied): "pcscd refuses this user"
            case .pcscdDoesNotAnswer: "pcscd does not answer"
            case .chosen: "it was asked for"
            }
        }
    }

    public func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable { driver.slotStates() }
    public func connect() async throws -> any CardConnection { try await driver.connect() }
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try await driver.transmitToReader(command)
    }
    /// A link that puts back what its commands change of the reader, by the model's table, however it ends.
    ///
    /// ``transmitToReader(_:)`` puts nothing back.
    public func open(exclusively: Bool) async throws -> any ReaderLink {
        RestoringLink(over: try await driver.open(exclusively: exclusively), model?.settings ?? [])
    }

    /// Gives the reader back to the system, where this process drives it alone; the next call opens it anew.
    public func close() async {
        await (driver as? USBReader)?.close()
        if driver is PN532Reader { await SerialBoards.ofThisProcess.close(id) }
    }
}

extension CardReader {
    /// What the reader is: of one of the machine's by all that is known of it, of another by its name.
    public var model: Model? {
        // A trace has no answers but to what was asked when it was recorded.
        guard identity.backend != .replay else { return nil }
        if let reader = self as? MachineReader { return reader.model }
        return Model.of(name: identity.name, id: (self as? USBReader)?.device.modelID)
    }

    /// Which of its model's slots this is; nil where neither the driver nor the name tells.
    public var slot: Model.Slot? {
        guard let slots = model?.slots else { return nil }
        if slots.count == 1 { return slots[0] }
        if let reader = (self as? MachineReader)?.driver as? USBReader ?? self as? USBReader {
            // Either slots or interfaces are counted.
            let position = reader.id.interface + reader.id.slot
            return slots.indices.contains(position) ? slots[position] : nil
        }
        let words = identity.name.uppercased().split { !$0.isLetter }
        return words.contains("SAM")
            ? .sam
            : words.contains { ["PICC", "CL"].contains($0) }
                ? .contactless
                : words.contains("ICC") ? .contact : nil
    }

    /// Who the reader is, with what its driver has to be asked for.
    ///
    /// Waits for the driver, five seconds at most; what it does not tell is nil.
    public func details() async -> ReaderIdentity {
        guard identity.vendor == nil,
            let reader = (self as? MachineReader)?.driver as? PCSCReader ?? self as? PCSCReader
        else { return identity }
        return (try? await withTimeLimit(.seconds(5)) { try await reader.details() }) ?? identity
    }

    /// Lends the chip behind the reader to `body`, through one link, and puts the reader back as it was, however `body`
    /// ends: see `ACR122U.withChip(_:)`.
    ///
    /// - Throws: what `body` throws; `CardError`, of kind `unsupported` for a reader whose chip cannot be reached.
    public func withChip<Result: Sendable>(
        _ body: (PN532) async throws -> Result
    ) async throws -> Result {
        if let board = (self as? MachineReader)?.driver as? PN532Reader ?? self as? PN532Reader {
            return try await board.withChip(body)
        }
        guard model?.commands == .pseudoAPDUs, model?.chip == .pn532 else {
            throw CardError(.unsupported, "\(identity.name) passes nothing on to its chip")
        }
        // Which puts back by itself.
        let driver = (self as? MachineReader)?.driver ?? self
        return try await driver.withLink { try await ACR122U(over: $0).withChip(body) }
    }
}

extension CardReader {
    /// Lends the field of the chip behind the reader to `body`, as ``withChip(_:)`` lends the chip: a field that tells when
    /// there is more than one card.
    ///
    /// - Parameter patience: how long to wait for a card; nil: for ever.
    public func withChipField<Result: Sendable>(
        patience: Duration? = nil, _ body: (any ContactlessField) async throws -> Result
    ) async throws -> Result {
        try await withChip { try await body(PN532Field($0, patience: patience)) }
    }

    /// Whether commands reach the chip behind the reader: drivers, and copies of a reader, do not always pass them on.
    ///
    /// - Throws: `CardError` where the reader does not answer at all.
    public func reachesChip() async throws -> Bool {
        guard let model, model.chip == .pn532 else { return false }
        guard model.commands == .pseudoAPDUs else { return model.commands == .chip }
        do {
            _ = try await ACR122U(over: self).chip.firmwareVersion()
            return true
        } catch let error as CardError
            where [.unsupported, .notTransacted, .malformedAnswer, .noAnswer].contains(error.kind)
        {
            return false
        }
    }

    /// Asks a reader that has commands of its own for its firmware.
    ///
    /// - Throws: `CardError`, of kind `unsupported` for firmware that cannot be used.
    public func checkFirmware() async throws {
        guard let model, !model.unusableFirmware.isEmpty else { return }
        try model.check(firmware: try await ACR122U(over: self).firmwareVersion())
    }
}

extension USBDevice {
    var modelID: UInt32 { UInt32(vendorID) << 16 | UInt32(productID) }
}
