public import SmartCard
import SmartCardPCSC
public import SmartCardPN532
import SmartCardUSB
import USBDevices

/// A reader of this machine and its driver.
public struct MachineReader: CardReader, MuteCardReader {
    /// The identifier that survives unplugging: the serial number, or model and place, `072F:2200@1-2#0`; the name if
    /// the reader is not on USB.
    public let id: String
    /// The name without the numbers that depend on earlier devices: `ACS ACR122U PICC Interface`.
    public let name: String
    /// Vendor and product, `072F:2200`; nil if no USB device was found for the reader.
    public let usbID: String?
    /// The firmware version, if the device reports it: `2.14`.
    public let version: String?
    /// The reader's model; nil if it is unknown.
    public let model: Model?
    /// The reason why this backend drives the reader.
    public let reason: Reason
    public let identity: ReaderIdentity
    /// The backend's reader.
    public let driver: any CardReader

    /// The reason why a backend drives a reader.
    public enum Reason: Hashable, Sendable, CustomStringConvertible {
        /// Pcscd has the reader, and would lose it to a program that claims it over USB.
        case pcscdHasIt
        /// No USB device was found for the reader.
        case notOnUSB
        /// Pcscd answers without this reader: its driver does not know the reader, or could not open it.
        case pcscdHasItNot
        /// Pcscd does not answer.
        case pcscdDoesNotAnswer(CardError.Kind)
        /// No other backend was requested.
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
    package func powerMuteCard() async { await (driver as? any MuteCardReader)?.powerMuteCard() }
    /// Opens a link that restores the settings that its commands change, by the model's table, however it ends.
    ///
    /// ``transmitToReader(_:)`` restores nothing.
    public func open(exclusively: Bool) async throws -> any ReaderLink {
        RestoringLink(over: try await driver.open(exclusively: exclusively), model?.settings ?? [])
    }

    /// Releases the reader if only this process drives it; the next call opens it anew.
    public func close() async {
        await (driver as? USBReader)?.close()
        if driver is PN532Reader { await SerialBoards.ofThisProcess.close(id) }
    }
}

extension CardReader {
    /// The reader's model: from all known facts for a ``MachineReader``, from the name for other readers.
    public var model: Model? {
        // A trace answers only the commands that were recorded.
        guard identity.backend != .replay else { return nil }
        if let reader = self as? MachineReader { return reader.model }
        return Model.of(name: identity.name, id: (self as? USBReader)?.device.modelID)
    }

    /// The reader's slot in its model; nil if neither the driver nor the name tells.
    public var slot: Model.Slot? {
        guard let slots = model?.slots else { return nil }
        if slots.count == 1 { return slots[0] }
        if let reader = (self as? MachineReader)?.driver as? USBReader ?? self as? USBReader {
            // A reader numbers either slots or interfaces.
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

    /// Returns the reader's identity, including the facts that its driver must be asked for.
    ///
    /// Waits at most five seconds for the driver; a fact that it does not report is nil.
    public func details() async -> ReaderIdentity {
        guard identity.vendor == nil,
            let reader = (self as? MachineReader)?.driver as? PCSCReader ?? self as? PCSCReader
        else { return identity }
        return (try? await withTimeLimit(.seconds(5)) { try await reader.details() }) ?? identity
    }

    /// Lends the chip behind the reader to `body` over one link, and restores the reader afterwards, however `body`
    /// ends: see `ACR122U.withChip(_:)`.
    ///
    /// - Throws: the error of `body`; `CardError`, of kind `unsupported` for a reader whose chip cannot be reached.
    public func withChip<Result: Sendable>(
        _ body: (PN532) async throws -> Result
    ) async throws -> Result {
        if let board = (self as? MachineReader)?.driver as? PN532Reader ?? self as? PN532Reader {
            return try await board.withChip(body)
        }
        guard model?.commands == .pseudoAPDUs, model?.chip == .pn532 else {
            throw CardError(.unsupported, "\(identity.name) passes nothing on to its chip")
        }
        // The driver's own link restores by itself.
        let driver = (self as? MachineReader)?.driver ?? self
        return try await driver.withLink { try await ACR122U(over: $0).withChip(body) }
    }
}

extension CardReader {
    /// Lends the field of the chip behind the reader to `body`, as ``withChip(_:)`` lends the chip.  This field detects
    /// more than one card.
    ///
    /// - Parameters:
    ///   - patience: the longest wait for a card; nil: no limit.
    ///   - broadcast: the frame without checksum that is sent between the polls while the field waits for a card, 1 to
    ///     `BroadcastFrame.maximumLength` bytes; nil for none.
    ///   - body: uses the field, and must not keep it.
    /// - Throws: the error of `body`; `CardError`, of kind `unsupported` for a reader whose chip cannot be reached, and
    ///   of kind `tooLong` for a frame of another length.
    public func withChipField<Result: Sendable>(
        patience: Duration? = nil, broadcast: [UInt8]? = nil, _ body: (any ContactlessField) async throws -> Result
    ) async throws -> Result {
        let frame = try broadcast.map { bytes in
            guard let frame = BroadcastFrame(bytes) else {
                throw CardError(.tooLong, "a frame to broadcast has 1 to \(BroadcastFrame.maximumLength) bytes")
            }
            return frame
        }
        return try await withChip { try await body(PN532Field($0, patience: patience, broadcast: frame)) }
    }

    /// Returns true if commands reach the chip behind the reader: some drivers and copies of readers do not pass them
    /// on.
    ///
    /// - Throws: `CardError` if the reader does not answer at all.
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

    /// Checks the firmware of a reader that has commands of its own.
    ///
    /// - Throws: `CardError`, of kind `unsupported` for unusable firmware.
    public func checkFirmware() async throws {
        guard let model, !model.unusableFirmware.isEmpty else { return }
        try model.check(firmware: try await ACR122U(over: self).firmwareVersion())
    }
}

extension USBDevice {
    var modelID: UInt32 { UInt32(vendorID) << 16 | UInt32(productID) }
}
