public import SmartCard
import Synchronization

/// A reader that is a PN532 board on a serial line: a USB UART or a UART of the machine.
///
///     let reader = try await PN532Reader.open("/dev/ttyUSB0")
///     let card = try await reader.connect()
///     print(try await card.transmit(.select(Array("2PAY.SYS.DDF01".utf8))))
///
/// The board must be set to HSU (high speed UART); this type does not support I2C and SPI.  The chip implements
/// ISO-DEP, including chaining and waiting time extensions, so extended APDUs work.
///
/// The board does not announce cards.  It is queried five times a second while a task reads ``slotStates()``.  Storage
/// cards accept the commands of PC/SC part 3, as on other readers: `FF CA`, `FF 82`, `FF 86`, `FF B0`, `FF D6`, and `FF
/// B1` and `FF D7` for values.  Looking for a connected storage card would erase its keys, so its departure is noticed
/// only when a command fails.
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
    ///   - path: the path of the device.
    ///   - rate: the chip's rate after a reset, 115200 baud, or another rate to use until the board is closed.  All
    ///     rates are tried only for a board that was left at another one.
    /// - Throws: `CardError`: of kind `noReader`, `permissionDenied`, `readerBusy` or `unsupported` if the device
    ///   cannot be opened; `readerTimeout` if no PN532 answers.
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
        // The stream keeps the reader alive.
        slot.states { [self] in _ = self }
    }

    /// Selects a card from a cold start.  An earlier connection ends with `cardReset`.
    public func connect() async throws -> any CardConnection {
        let (target, session) = try await slot.activate()
        return PN532Connection(slot: slot, target: target, session: session)
    }

    /// Sends a command to the chip, beginning with `D4`, and returns its response, beginning with `D5`.
    ///
    /// - Throws: `CardError` of kind `unsupported` for other commands: the board has none of its own.
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        guard command.first == 0xD4, command.count >= 2 else {
            throw CardError(.unsupported, "the board knows the commands of its PN532 alone, which begin with D4")
        }
        return try await slot.transmitToChip(command)
    }

    /// Lends the chip to `body` with automatic RATS and few retries, as ``ACR122U/withChip(_:)`` does.  The reader does
    /// not look for cards meanwhile.  A connection to a card ends with `cardReset`.
    public func withChip<R: Sendable>(_ body: (PN532) async throws -> R) async throws -> R {
        try await slot.lend(body)
    }

    /// Switches the field off, returns the chip to 115200 baud, and closes the device.  Later calls throw.
    public func close() async { await slot.close() }
}

/// A connection to a card on a board, valid for one activation.
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
