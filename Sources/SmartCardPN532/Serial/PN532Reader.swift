public import SmartCard
import Synchronization

/// A PN532 board on a serial line, that is on a USB UART or a UART of the machine, as a reader.
///
///     let reader = try await PN532Reader.open("/dev/ttyUSB0")
///     let card = try await reader.connect()
///     print(try await card.transmit(.select(Array("2PAY.SYS.DDF01".utf8))))
///
/// The board has to be set to HSU (high speed UART); I2C and SPI are not for this type.  The chip does ISO-DEP itself, chaining
/// and waiting time extensions included, so that extended APDUs work too.
///
/// Nothing tells the host that a card has come: the board is asked five times a second, and only as long as somebody listens to
/// ``slotStates()``.  Storage cards take the commands of PC/SC part 3, as on other readers: `FF CA`, `FF 82`, `FF 86`, `FF B0`,
/// `FF D6`, and `FF B1` and `FF D7` for values.  Whether a storage card that is connected to is still there is found out
/// when a command fails: it forgets its keys when it is looked for.
public final class PN532Reader: CardReader {
    public let identity: ReaderIdentity
    public let firmware: PN532.FirmwareVersion
    private let slot: PN532Slot

    private init(identity: ReaderIdentity, firmware: PN532.FirmwareVersion, slot: PN532Slot) {
        (self.identity, self.firmware, self.slot) = (identity, firmware, slot)
    }

    deinit { slot.end() }

    /// Opens a board by its device, such as `/dev/ttyUSB0`, and holds it until ``close()``.
    ///
    /// - Parameters:
    ///   - path: of the device.
    ///   - rate: the chip's own rate after a reset, 115200 baud, or another that it is told to use until it is closed.  Only a
    ///     board that was left at another rate is looked for at all of them.
    /// - Throws: `CardError`: of kind `noReader`, `permissionDenied`, `readerBusy` or `unsupported` where the device cannot be
    ///   opened; `readerTimeout` where no PN532 answers.
    public static func open(_ path: String, rate: SerialRate = .baud115200) async throws -> PN532Reader {
        try await open(path, rate: rate, limits: HSUExchange.Limits())
    }

    static func open(_ path: String, rate: SerialRate, limits: HSUExchange.Limits) async throws -> PN532Reader {
        let line = try SerialLine(path)
        let slot = PN532Slot(line, limits: limits)
        do {
            let firmware = try await slot.begin(rate: rate)
            let name = "NXP PN532 v\(firmware.version).\(firmware.revision) on \(path)"
            return PN532Reader(
                identity: ReaderIdentity(name: name, backend: .serial, vendor: "NXP"), firmware: firmware, slot: slot)
        } catch {
            slot.end()
            throw error
        }
    }

    public func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        // The stream keeps the reader.
        slot.states { [self] in _ = self }
    }

    /// Selects a card from a cold start.  A connection made before ends with `cardReset`.
    public func connect() async throws -> any CardConnection {
        let (target, session) = try await slot.activate()
        return PN532Connection(slot: slot, target: target, session: session)
    }

    /// Sends a command to the chip, from `D4` on, and returns its response from `D5` on.
    ///
    /// - Throws: `CardError` of kind `unsupported` for anything else: the board has no commands of its own.
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        guard command.first == 0xD4, command.count >= 2 else {
            throw CardError(.unsupported, "the board knows the commands of its PN532 alone, which begin with D4")
        }
        return try await slot.transmitToChip(command)
    }

    /// Lends the chip to `body`, with automatic RATS and few tries for each card, as ``ACR122U/withChip(_:)`` does; the
    /// reader does not look for cards meanwhile.  A connection to a card ends with `cardReset`.
    public func withChip<R: Sendable>(_ body: (PN532) async throws -> R) async throws -> R {
        try await slot.lend(body)
    }

    /// Switches the field off, has the chip use 115200 baud again, and lets go of the device.  Afterwards every call throws.
    public func close() async { await slot.close() }
}

/// A card on a board, between one activation and the next.
private final class PN532Connection: CardConnection {
    let atr: ATR
    let transmissionProtocol: TransmissionProtocol
    private let slot: PN532Slot
    private let session: Mutex<Int?>

    init(slot: PN532Slot, target: PN532Target, session: Int) {
        self.slot = slot
        atr = target.atr
        transmissionProtocol = .t1
        self.session = Mutex(session)
    }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try await slot.transmit(command, session: openSession())
    }

    func reset() async throws {
        let new = try await slot.activate(insteadOf: openSession()).session
        session.withLock { if $0 != nil { $0 = new } }
    }

    func disconnect(_ disposition: CardDisposition) async {
        let session = session.withLock { session in
            defer { session = nil }
            return session
        }
        guard let session else { return }
        await slot.release(session: session, disposition)
    }

    private func openSession() throws -> Int {
        guard let session = session.withLock({ $0 }) else { throw CardError(.disconnected) }
        return session
    }
}
