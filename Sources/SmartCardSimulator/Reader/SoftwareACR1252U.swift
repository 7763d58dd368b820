import Synchronization

/// An ACS ACR1252U in software, with one CCID interface for cards and one for a SAM, which is absent.
///
/// Its descriptors are those that libccid quotes (readers/ACS_ACR1252_Dual_Reader.txt), except the endpoint numbers,
/// which libccid omits.  Reader commands are escape commands, `E0 00 00 …`.
public final class SoftwareACR1252U: SoftwareReader {
    /// Bulk OUT, bulk IN and interrupt IN of each interface.
    public enum Endpoint {
        public static let bulkOut: UInt8 = 0x02
        public static let bulkIn: UInt8 = 0x82
        public static let interruptIn: UInt8 = 0x81
        public static let samBulkOut: UInt8 = 0x04
        public static let samBulkIn: UInt8 = 0x84
        public static let samInterruptIn: UInt8 = 0x83
    }

    struct State: ObservedState {
        var firmware: ACR1252UFirmware
        var assembler = CCIDAssembler(maximumData: ACR1252UFirmware.maximumData)
        var samAssembler = CCIDAssembler(maximumData: ACR1252UFirmware.maximumSAMData)
        var isPluggedIn = true
        /// The last state that the interrupt endpoint reported.
        var reportedPresence = false
        var observer: (@Sendable (SoftwareUSBEvent) -> Void)?
        var events: [SoftwareUSBEvent] = []
        var isDelivering = false
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - firmware: the answer to escape command 18.
    ///   - refusesLongAPDUs: true if commands longer than one CCID message, 512 bytes, fail with bError C3, as
    ///     observed.
    ///   - faults: the faults that the reader shows.
    public init(
        firmware: String = "ACR1252U_V101.0", refusesLongAPDUs: Bool = false, faults: [SoftwareReaderFault] = []
    ) {
        var firmware = ACR1252UFirmware(firmwareString: firmware, refusesLongAPDUs: refusesLongAPDUs)
        firmware.picc.faults.list = faults
        state = Mutex(State(firmware: firmware))
    }

    // MARK: SoftwareReader

    public var cards: [any VirtualCard] { state.withLock { $0.firmware.picc.chip.cards } }

    public var faults: [SoftwareReaderFault] {
        get { state.withLock { $0.firmware.picc.faults.list } }
        set { state.withLock { $0.firmware.picc.faults.list = newValue } }
    }

    public func insert(_ card: any VirtualCard) {
        state.change { state in
            guard !state.firmware.picc.chip.cards.contains(where: { $0 === card }) else { return }
            card.reset()
            state.firmware.picc.setCards(state.firmware.picc.chip.cards + [card])
        }
    }

    public func remove(_ card: (any VirtualCard)? = nil) {
        state.change { state in
            state.firmware.picc.setCards(
                card == nil ? [] : state.firmware.picc.chip.cards.filter { $0 !== card })
        }
    }

    // MARK: SoftwareUSBDevice

    public var deviceDescriptor: [UInt8] {
        [
            0x12, 0x01,  // bLength, DEVICE
            0x00, 0x02,  // bcdUSB 2.00
            0x00, 0x00, 0x00,  // class, subclass, protocol: see the interfaces
            0x40,
            0x2F, 0x07, 0x3B, 0x22,  // idVendor 072F, idProduct 223B
            0x00, 0x01,  // bcdDevice 1.00
            0x01, 0x02, 0x00,  // iManufacturer, iProduct, no serial number
            0x01,  // bNumConfigurations
        ]
    }

    public var configurationDescriptor: [UInt8] {
        let interfaces: [UInt8] = [
            // Interface 0: three endpoints, smart card class.
            0x09, 0x04, 0x00, 0x00, 0x03, 0x0B, 0x00, 0x00, 0x03,
            // CCID 1.00: one slot, 5 V, 3 V and 1.8 V,
            0x36, 0x21, 0x00, 0x01, 0x00, 0x07,
            0x02, 0x00, 0x00, 0x00,  // dwProtocols: T=1
            0xA0, 0x0F, 0x00, 0x00, 0xA0, 0x0F, 0x00, 0x00, 0x00,  // clock 4000 kHz
            0x00, 0x2A, 0x00, 0x00, 0x90, 0xD0, 0x03, 0x00, 0x00,  // 10752 to 250000 bit/s
            0xFE, 0x00, 0x00, 0x00,  // dwMaxIFSD 254
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // dwSynchProtocols, dwMechanical
            0x40, 0x00, 0x04, 0x00,  // dwFeatures: automatic parameter negotiation, short and extended APDU level
            0x0A, 0x02, 0x00, 0x00,  // dwMaxCCIDMessageLength 522
            0x00, 0x00, 0x00, 0x00, 0x00, 0x01,  // class bytes, LCD, PIN, bMaxCCIDBusySlots
            0x07, 0x05, Endpoint.interruptIn, 0x03, 0x08, 0x00, 0x02,
            0x07, 0x05, Endpoint.bulkOut, 0x02, 0x40, 0x00, 0x00,
            0x07, 0x05, Endpoint.bulkIn, 0x02, 0x40, 0x00, 0x00,
            // Interface 1, for the SAM.
            0x09, 0x04, 0x01, 0x00, 0x03, 0x0B, 0x00, 0x00, 0x04,
            // CCID 1.10: one slot, 5 V,
            0x36, 0x21, 0x10, 0x01, 0x00, 0x01,
            0x03, 0x00, 0x00, 0x00,  // dwProtocols: T=0, T=1
            0x5C, 0x0D, 0x00, 0x00, 0x5C, 0x0D, 0x00, 0x00, 0x00,  // clock 3420 kHz
            0xE9, 0x23, 0x00, 0x00, 0xF6, 0x42, 0x03, 0x00, 0x00,  // 9193 to 213750 bit/s
            0xFE, 0x00, 0x00, 0x00,  // dwMaxIFSD 254
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0xBA, 0x04, 0x02, 0x00,  // dwFeatures: all automatic, short APDU level
            0x20, 0x01, 0x00, 0x00,  // dwMaxCCIDMessageLength 288
            0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
            0x07, 0x05, Endpoint.samInterruptIn, 0x03, 0x08, 0x00, 0x02,
            0x07, 0x05, Endpoint.samBulkOut, 0x02, 0x40, 0x00, 0x00,
            0x07, 0x05, Endpoint.samBulkIn, 0x02, 0x40, 0x00, 0x00,
        ]
        // Configuration: two interfaces, bus powered, 200 mA.
        return [0x09, 0x02, UInt8(interfaces.count + 9), 0x00, 0x02, 0x01, 0x00, 0x80, 0x64] + interfaces
    }

    public var strings: [String] {
        ["ACS", "ACR1252 Dual Reader", "ACR1252 Dual Reader PICC", "ACR1252 Dual Reader SAM"]
    }

    public func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        state.change { state in
            guard state.isPluggedIn, !state.unplugIfDue(), setup.count == 8 else { return nil }
            // Everything standard is answered from the descriptors; SET_INTERFACE is all that is left.
            return setup[0] == 0x01 && setup[1] == 0x0B ? [] : nil
        }
    }

    public func transferOut(endpoint: UInt8, _ bytes: [UInt8]) {
        state.change { state in
            guard state.isPluggedIn, !state.unplugIfDue(), !state.firmware.picc.faults[.hung] else { return }
            switch endpoint {
            case Endpoint.bulkOut: state.receive(bytes)
            case Endpoint.samBulkOut: state.receiveForSAM(bytes)
            default: break
            }
        }
    }

    /// Discards partial messages; keeps cards and settings.
    public func reset() {
        state.change { state in
            state.assembler.clear()
            state.samAssembler.clear()
            state.firmware.picc.faults.reset()
        }
    }

    public func willTransferIn(endpoint: UInt8) {
        state.change { state in
            guard state.isPluggedIn else { return }
            _ = state.unplugIfDue()
        }
    }

    /// Sets the observer: the bus that the reader is plugged into.  A card that lies on the reader is reported again.
    public func observe(_ observer: @escaping @Sendable (SoftwareUSBEvent) -> Void) {
        state.change { state in
            state.observer = observer
            state.events = state.isPluggedIn ? [] : [.unplugged]
            state.reportedPresence = false
        }
    }
}

extension SoftwareACR1252U.State {
    mutating func receive(_ bytes: [UInt8]) {
        guard let (command, isWhole) = assembler.receive(bytes) else { return }
        let (answer, delay) =
            isWhole ? firmware.answer(command) : (firmware.picc.failure(command, CCIDError.badLength), .zero)
        for frame in firmware.picc.faults.frames(answer, to: command, delay: delay) {
            events.append(
                .ready(endpoint: SoftwareACR1252U.Endpoint.bulkIn, bytes: frame.bytes, delay: frame.delay))
        }
    }

    mutating func receiveForSAM(_ bytes: [UInt8]) {
        guard let (command, isWhole) = samAssembler.receive(bytes) else { return }
        let answer =
            isWhole
            ? firmware.answerOfSAM(command) : firmware.picc.failure(command, CCIDError.badLength, status: .absent)
        events.append(.ready(endpoint: SoftwareACR1252U.Endpoint.samBulkIn, bytes: answer.bytes, delay: .zero))
    }

    /// NotifySlotChange (USB CCID 1.10, 6.3.1) of the interface for cards.
    mutating func reportPresence() {
        let seesCard = firmware.picc.seesCard
        guard isPluggedIn, observer != nil, firmware.picc.pollsByItself, seesCard != reportedPresence else { return }
        reportedPresence = seesCard
        events.append(
            .ready(
                endpoint: SoftwareACR1252U.Endpoint.interruptIn, bytes: [0x50, seesCard ? 0x03 : 0x02],
                delay: firmware.picc.detectionDelay))
    }

    /// Unplugs the reader if the fault ``SoftwareReaderFault/Kind/unplug`` strikes at this transfer; returns true if it does.
    mutating func unplugIfDue() -> Bool {
        guard firmware.picc.faults.unplugsAtThisTransfer() else { return false }
        isPluggedIn = false
        events.append(.unplugged)
        return true
    }
}
