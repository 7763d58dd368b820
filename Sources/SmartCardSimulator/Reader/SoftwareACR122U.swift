import Synchronization

/// An ACS ACR122U in software: CCID messages in, CCID messages out, as its USB endpoints carry them.
///
/// It matches captures of real readers byte for byte.  Other behavior is the plainest reading of the ACS API v2.04, USB
/// CCID 1.10 and the PN532 manual.  Cards lie on it until they are removed:
///
///     let reader = SoftwareACR122U(profile: .firmware214)
///     reader.observe { event in … }
///     reader.insert(card)
///     reader.transferOut(endpoint: 0x02, [0x62, 0, 0, 0, 0, 0, 0, 0, 0, 0])
///
/// It answers before a call returns, or during another thread's call to it.  An answer that takes time carries its
/// delay in the event.
public final class SoftwareACR122U: SoftwareReader {
    /// Bulk OUT, bulk IN and interrupt IN.
    public enum Endpoint {
        public static let bulkOut: UInt8 = 0x02
        public static let bulkIn: UInt8 = 0x82
        public static let interruptIn: UInt8 = 0x81
    }

    public let profile: ACR122UProfile

    struct State: ObservedState {
        var firmware: ACR122UFirmware
        var assembler = CCIDAssembler(maximumData: ACR122UFirmware.maximumData)
        var isPluggedIn = true
        /// The last state that the interrupt endpoint reported.
        var reportedPresence = false
        var observer: (@Sendable (SoftwareUSBEvent) -> Void)?
        var events: [SoftwareUSBEvent] = []
        var isDelivering = false
    }

    private let state: Mutex<State>

    public init(profile: ACR122UProfile = .firmware216, faults: [SoftwareReaderFault] = []) {
        self.profile = profile
        var firmware = ACR122UFirmware(profile: profile)
        firmware.faults.list = faults
        state = Mutex(State(firmware: firmware))
    }

    // MARK: Cards and plug

    /// The cards on the reader, in the order in which they came.
    public var cards: [any VirtualCard] { state.withLock { $0.firmware.chip.cards } }

    /// Puts a card on the reader, next to any cards already there.  Does nothing if the card is already there.
    public func insert(_ card: any VirtualCard) {
        state.change { state in
            guard !state.firmware.chip.cards.contains(where: { $0 === card }) else { return }
            card.reset()
            state.firmware.setCards(state.firmware.chip.cards + [card])
        }
    }

    /// Removes `card`, or all cards for nil.
    public func remove(_ card: (any VirtualCard)? = nil) {
        state.change { state in
            state.firmware.setCards(card == nil ? [] : state.firmware.chip.cards.filter { $0 !== card })
        }
    }

    /// Unplugs the reader, which does nothing from then on.
    public func unplug() {
        state.change { $0.unplug() }
    }

    /// True until the reader leaves the bus, by ``unplug()`` or a fault.
    public var isPluggedIn: Bool { state.withLock { $0.isPluggedIn } }

    /// The active faults.  Setting them restarts their counts.
    public var faults: [SoftwareReaderFault] {
        get { state.withLock { $0.firmware.faults.list } }
        set { state.withLock { $0.firmware.faults.list = newValue } }
    }

    /// The transmissions to all cards since this was last emptied.
    package var radioRecords: [RadioRecord] {
        get { state.withLock { $0.firmware.chip.records } }
        set { state.withLock { $0.firmware.chip.records = newValue } }
    }

    // MARK: SoftwareUSBDevice

    public var deviceDescriptor: [UInt8] {
        [
            0x12, 0x01,  // bLength, DEVICE
            0x10, 0x01,  // bcdUSB 1.10
            0x00, 0x00, 0x00,  // class, subclass, protocol: see the interface
            profile.controlPacketSize,
            0x2F, 0x07, 0x00, 0x22,  // idVendor 072F, idProduct 2200
            UInt8(truncatingIfNeeded: profile.deviceRelease), UInt8(truncatingIfNeeded: profile.deviceRelease >> 8),
            0x01, 0x02, profile.serialNumber == nil ? 0x00 : 0x03,  // iManufacturer, iProduct, iSerialNumber
            0x01,  // bNumConfigurations
        ]
    }

    public var configurationDescriptor: [UInt8] {
        [
            // Configuration: one interface, bus powered, 200 mA.
            0x09, 0x02, 0x5D, 0x00, 0x01, 0x01, 0x00, 0x80, 0x64,
            // Interface 0: three endpoints, smart card class.
            0x09, 0x04, 0x00, 0x00, 0x03, 0x0B, 0x00, 0x00, 0x00,
            // CCID 1.00: bMaxSlotIndex; 5 V, 3 V and 1.8 V,
            0x36, 0x21, 0x00, 0x01, profile.slotCount - 1, 0x07,
            0x02, 0x00, 0x00, 0x00,  // dwProtocols: T=1
            0xA0, 0x0F, 0x00, 0x00, 0xA0, 0x0F, 0x00, 0x00, 0x00,  // clock 4000 kHz
            0x00, 0x2A, 0x00, 0x00, 0x90, 0xD0, 0x03, 0x00, 0x00,  // 10752 to 250000 bit/s
            0x00, 0x01, 0x00, 0x00,  // dwMaxIFSD 256
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // dwSynchProtocols, dwMechanical
            0x40, 0x00, 0x02, 0x00,  // dwFeatures: automatic parameter negotiation, short APDU level
            0x0F, 0x01, 0x00, 0x00,  // dwMaxCCIDMessageLength 271
            0x00, 0x00, 0x00, 0x00, 0x00, 0x01,  // class bytes, LCD, PIN, bMaxCCIDBusySlots
            // Endpoints: interrupt IN, bulk OUT, bulk IN.
            0x07, 0x05, 0x81, 0x03, 0x08, 0x00, 0x02,
            0x07, 0x05, 0x02, 0x02, 0x40, 0x00, 0x00,
            0x07, 0x05, 0x82, 0x02, 0x40, 0x00, 0x00,
        ]
    }

    public var strings: [String] { profile.names + [profile.serialNumber].compactMap(\.self) }

    public func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        state.change { state in
            guard state.isPluggedIn, !state.unplugIfDue() else { return nil }
            guard setup.count == 8 else { return nil }
            let length = Int(setup[6]) | Int(setup[7]) << 8
            let answer: [UInt8]? =
                switch (setup[0], setup[1]) {
                case (0x80...0x82, 0x00): [0x00, 0x00]  // GET_STATUS
                case (0x80, 0x08): [0x01]  // GET_CONFIGURATION
                case (0x81, 0x0A): [0x00]  // GET_INTERFACE
                case (0x00, 0x09), (0x02, 0x01): []  // SET_CONFIGURATION, CLEAR_FEATURE of an endpoint
                case (0x01, 0x0B): profile.stallsSetInterface ? nil : []
                case (0xA1, 0x02), (0xA1, 0x03):  // GET_CLOCK_FREQUENCIES, GET_DATA_RATES
                    profile.answersRateRequests ? [UInt8](repeating: 0x00, count: min(length, 1024)) : nil
                default: nil
                }
            return answer.map { Array($0.prefix(length)) }
        }
    }

    public func transferOut(endpoint: UInt8, _ bytes: [UInt8]) {
        state.change { state in
            guard state.isPluggedIn, endpoint == Endpoint.bulkOut, !state.unplugIfDue(), !state.firmware.faults[.hung]
            else { return }
            state.receive(bytes)
        }
    }

    /// Discards partial messages; keeps cards and settings.
    public func reset() {
        state.change { state in
            state.assembler.clear()
            state.firmware.faults.reset()
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

extension SoftwareACR122U.State {
    mutating func receive(_ bytes: [UInt8]) {
        guard let (command, isWhole) = assembler.receive(bytes) else { return }
        guard isWhole else { return send(firmware.failure(command, CCIDError.badLength), to: command) }
        let (answer, delay) = firmware.answer(command)
        send(answer, to: command, delay: delay)
    }

    private mutating func send(_ answer: CCIDAnswer, to command: CCIDCommand, delay: Duration = .zero) {
        for frame in firmware.faults.frames(answer, to: command, delay: delay) {
            events.append(
                .ready(endpoint: SoftwareACR122U.Endpoint.bulkIn, bytes: frame.bytes, delay: frame.delay))
        }
    }

    /// NotifySlotChange (USB CCID 1.10, 6.3.1), when the firmware looks for cards and finds a change.
    mutating func reportPresence() {
        guard isPluggedIn, observer != nil, firmware.pollsByItself, firmware.seesCard != reportedPresence else {
            return
        }
        reportedPresence = firmware.seesCard
        events.append(
            .ready(
                endpoint: SoftwareACR122U.Endpoint.interruptIn, bytes: [0x50, reportedPresence ? 0x03 : 0x02],
                delay: firmware.detectionDelay))
    }

    mutating func unplug() {
        guard isPluggedIn else { return }
        isPluggedIn = false
        assembler.clear()
        events.append(.unplugged)
    }

    /// Unplugs the reader if the fault ``SoftwareReaderFault/Kind/unplug`` strikes at this transfer; returns true if it does.
    mutating func unplugIfDue() -> Bool {
        guard firmware.faults.unplugsAtThisTransfer() else { return false }
        unplug()
        return true
    }
}
