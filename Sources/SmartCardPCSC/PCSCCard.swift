import CSmartCardPCSC
public import SmartCard
import Synchronization

/// A connection to a card through pcscd, or to the reader itself if it is direct.
///
/// Each connection has its own thread and context; calls from several tasks take turns.  A call whose task is canceled
/// throws `CancellationError` at once; its exchange with the card continues, and the next call waits for it.  A
/// connection that is released disconnects and leaves the card as it is.
public final class PCSCCard: CardConnection {
    public let reader: PCSCReader
    /// The longest wait for a program that holds the card in a transaction.
    public let sharingTimeout: Duration

    private let thread: BlockingThread<CardLink>
    private let session: Mutex<Session>

    private struct Session: Sendable {
        var atr: ATR
        var transmissionProtocol: TransmissionProtocol
        var sharing: CardSharing
        var protocols: CardProtocols
    }

    init(
        reader: PCSCReader, sharing: CardSharing, protocols: CardProtocols, sharingTimeout: Duration
    ) async throws {
        self.reader = reader
        self.sharingTimeout = sharingTimeout
        thread = BlockingThread { CardLink() }
        let (atr, active) = try await thread.run(
            timeout: (
                sharingTimeout + .seconds(10),
                CardError(.sharing, "pcscd did not answer; somebody seems to be inside a transaction")
            )
        ) { link in
            try link.connect(reader.name, sharing, protocols)
        } abandoned: { link, _ in
            link.disconnect(.leave)
        }
        session = Mutex(Session(atr: atr, transmissionProtocol: active, sharing: sharing, protocols: protocols))
        OpenCards.add(self)
    }

    /// The answer to reset; empty for a direct connection to an empty slot.
    public var atr: ATR { session.withLock { $0.atr } }
    public var transmissionProtocol: TransmissionProtocol { session.withLock { $0.transmissionProtocol } }
    /// True for a connection to the reader itself.
    fileprivate var isDirect: Bool { session.withLock { $0.sharing == .direct } }

    /// Sends a command APDU, up to extended length.
    ///
    /// Waits while another connection is in a transaction, at most ``sharingTimeout``.
    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let answer = try await transmit(bytes: command.bytes)
        guard answer.count >= 2 else {
            throw CardError(.malformedAnswer, "one byte, where a status word is due")
        }
        return try ResponseAPDU(answer)
    }

    /// Sends bytes that need not be an APDU and returns the unmodified answer, with or without a status word.
    ///
    /// - Throws: `CardError` of kind `noAnswer` if the answer is empty: drivers report a silent card as a success.
    public func transmit(bytes command: [UInt8]) async throws -> [UInt8] {
        guard command.count <= cscard_max_buffer_size_extended() else {
            throw CardError(.tooLong, "\(command.count) bytes")
        }
        let stopwatch = ExchangeStopwatch.current
        let answer = try await whileHeldByOthers(atMost: sharingTimeout) {
            try await perform(.transmit) { handle throws(PCSCStatus) in try handle.transmit(command, stopwatch) }
        }
        guard !answer.isEmpty else { throw CardError(.noAnswer, "the driver reports success with no data") }
        return answer
    }

    // MARK: Transactions

    /// Runs `body` while no other connection can reach the card.
    ///
    /// The transaction ends with `body`, however `body` ends.  It keeps out other connections, including those of this
    /// process, but not other tasks on this connection.  Transactions nest.
    ///
    /// - Parameters:
    ///   - timeout: the longest wait for other transactions; nil for ``sharingTimeout``.
    ///   - disposition: the state of the card at the end.
    ///   - isolation: the actor on which `body` runs; nil for none.
    ///   - body: runs within the transaction.
    /// - Throws: the error of `body`; `CardError`; `CancellationError` if the task is cancelled while it waits to begin.
    public func withTransaction<R>(
        timeout: Duration? = nil, endingWith disposition: CardDisposition = .leave,
        isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> R
    ) async throws -> R {
        try await beginTransaction(timeout: timeout)
        let result: R
        do {
            result = try await body()
        } catch {
            _ = await end(disposition)
            throw error
        }
        // If the card may stay as it is, its absence at the end is no error.
        if let error = await end(disposition), disposition != .leave { throw error }
        return result
    }

    /// Begins a transaction, which ``disconnect(_:)`` ends at the latest.
    func beginTransaction(timeout: Duration? = nil, isolation: isolated (any Actor)? = #isolation) async throws {
        let timeout = timeout ?? sharingTimeout
        try await whileHeldByOthers(atMost: timeout) {
            let held = (after: timeout + .seconds(1), error: CardError(.sharing))
            try await perform(.transaction, timeout: held) { handle throws(PCSCStatus) in
                // SCardBeginTransaction always waits inside the library, so first ask whether it would wait.
                do throws(PCSCStatus) {
                    _ = try handle.attribute(PCSCAttribute<String>.friendlyName.id)
                } catch .sharingViolation {
                    throw .sharingViolation
                } catch {}
                try handle.beginTransaction()
            } abandoned: { handle in
                try? handle.endTransaction(.leave)
            }
        }
    }

    private func end(_ disposition: CardDisposition) async -> CardError? {
        let error = await thread.runToEnd { link -> CardError? in
            do throws(CardError) {
                try link.use(.transaction) { handle throws(PCSCStatus) in try handle.endTransaction(disposition) }
                return nil
            } catch {
                return error
            }
        }
        return error ?? nil
    }

    // MARK: Life of the connection

    public func reset() async throws {
        let (sharing, protocols) = session.withLock { ($0.sharing, $0.protocols) }
        try await reconnect(sharing: sharing, protocols: protocols, initialization: .powerOff)
    }

    /// Connects anew on the same connection, as required after `CardError.Kind.cardReset`.
    ///
    /// - Parameters:
    ///   - sharing: with other programs, or alone.
    ///   - protocols: the protocols to choose from.
    ///   - initialization: the action on the card: none, a warm reset, or power off and on.
    public func reconnect(
        sharing: CardSharing = .shared, protocols: CardProtocols = .any, initialization: CardDisposition = .leave
    ) async throws {
        let (atr, active) = try await whileHeldByOthers(atMost: sharingTimeout) {
            try await perform(.reconnect) { handle throws(PCSCStatus) in
                try handle.reconnect(sharing, protocols, initialization)
                return try handle.activeCard()
            }
        }
        session.withLock {
            $0 = Session(atr: atr, transmissionProtocol: active, sharing: sharing, protocols: protocols)
        }
    }

    /// Disconnects.  Waits for the exchange in progress, if any, even if it was canceled.
    public func disconnect(_ disposition: CardDisposition) async {
        _ = await thread.runToEnd { $0.disconnect(disposition) }
    }

    /// Returns pcscd's current view of the card.
    public func status() async throws -> PCSCCardStatus {
        let status = try await perform(.status) { handle throws(PCSCStatus) in try handle.status() }
        ReaderWatch.shared.verify()
        return PCSCCardStatus(
            state: PCSCCardStatus.State(rawValue: status.state & 0xFFFF),
            eventCount: UInt16(truncatingIfNeeded: status.state >> 16),
            transmissionProtocol: TransmissionProtocol(code: status.protocol), atr: ATR(status.atr))
    }

    // MARK: The reader

    /// Sends a control code to the driver, such as those of ``features()``.
    ///
    /// - Throws: `CardError` of kind `unsupported` if the driver does not accept the code.
    public func control(_ code: UInt32, _ input: [UInt8] = []) async throws -> [UInt8] {
        guard input.count <= cscard_max_buffer_size_extended() else {
            throw CardError(.tooLong, "\(input.count) bytes")
        }
        let stopwatch = ExchangeStopwatch.current
        return try await whileHeldByOthers(atMost: sharingTimeout) {
            try await perform(.control) { handle throws(PCSCStatus) in try handle.control(code, input, stopwatch) }
        }
    }

    /// Returns the raw value of an attribute; nil if the driver has none.
    public func attribute(_ id: UInt32) async throws -> [UInt8]? {
        do {
            return try await whileHeldByOthers(atMost: sharingTimeout) {
                try await perform(.attribute) { handle throws(PCSCStatus) in try handle.attribute(id) }
            }
        } catch let error as CardError where error.kind == .unsupported {
            return nil
        }
    }

    /// Sets an attribute of the driver.
    ///
    /// - Parameters:
    ///   - id: the tag of the attribute (`SCARD_ATTR_…`).
    ///   - value: 1 to 264 bytes.
    public func setAttribute(_ id: UInt32, to value: [UInt8]) async throws {
        guard value.count <= Int(MAX_BUFFER_SIZE) else { throw CardError(.tooLong, "\(value.count) bytes") }
        try await perform(.attribute) { handle throws(PCSCStatus) in try handle.setAttribute(id, value) }
    }

    private func perform<T: Sendable>(
        _ operation: PCSCOperation, timeout: (after: Duration, error: CardError)? = nil,
        isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable (inout SCardHandle) throws(PCSCStatus) -> T,
        abandoned: @escaping @Sendable (inout SCardHandle) -> Void = { _ in }
    ) async throws -> T {
        try await thread.run(timeout: timeout) { link in
            try link.use(operation, body)
        } abandoned: { link, _ in
            try? link.use(operation) { handle throws(PCSCStatus) in abandoned(&handle) }
        }
    }
}

/// Pcscd's view of a card.
public struct PCSCCardStatus: Hashable, Sendable {
    /// The flags of SCardStatus: SCARD_PRESENT, SCARD_POWERED, ….
    public struct State: OptionSet, Hashable, Sendable {
        public var rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let absent = State(rawValue: UInt32(SCARD_ABSENT))
        public static let present = State(rawValue: UInt32(SCARD_PRESENT))
        /// In position, not powered; pcscd uses it for a mute card.
        public static let swallowed = State(rawValue: UInt32(SCARD_SWALLOWED))
        public static let powered = State(rawValue: UInt32(SCARD_POWERED))
        /// Reset, with no protocol chosen yet.
        public static let negotiable = State(rawValue: UInt32(SCARD_NEGOTIABLE))
        public static let specific = State(rawValue: UInt32(SCARD_SPECIFIC))
    }

    public let state: State
    /// The number of insertions and removals, modulo 65,536: a different number means a different card.
    public let eventCount: UInt16
    public let transmissionProtocol: TransmissionProtocol
    public let atr: ATR
}

/// The state of a ``PCSCCard``'s thread.
private struct CardLink: ~Copyable {
    private var handle: SCardHandle?

    mutating func connect(
        _ reader: String, _ sharing: CardSharing, _ protocols: CardProtocols
    ) throws(CardError) -> (ATR, TransmissionProtocol) {
        handle = try SCardHandle(reader, sharing, protocols)
        // Over a direct connection, no card can have caused the failure.
        return sharing == .direct
            ? (ATR([]), .raw) : try use(.connect) { handle throws(PCSCStatus) in try handle.activeCard() }
    }

    mutating func disconnect(_ disposition: CardDisposition) {
        try? use(.disconnect) { handle throws(PCSCStatus) in try handle.disconnect(disposition) }
        handle = nil
    }

    mutating func use<T>(
        _ operation: PCSCOperation, _ body: (inout SCardHandle) throws(PCSCStatus) -> T
    ) throws(CardError) -> T {
        guard var handle = handle.take() else { throw CardError(.disconnected) }
        do throws(PCSCStatus) {
            let result = try body(&handle)
            self.handle = consume handle
            return result
        } catch {
            if !handle.isBroken { self.handle = consume handle }
            throw CardError(error, during: operation)
        }
    }
}

extension SCardHandle {
    fileprivate mutating func activeCard() throws(PCSCStatus) -> (ATR, TransmissionProtocol) {
        let status = try status()
        return (ATR(status.atr), transmissionProtocol)
    }
}

/// The connections of this process, so that a command to the reader can use the one that holds the reader exclusively.
enum OpenCards {
    private struct Entry: Sendable {
        weak var card: PCSCCard?
    }

    private static let entries = Mutex<[Entry]>([])

    static func add(_ card: PCSCCard) {
        entries.withLock { entries in
            entries.removeAll { $0.card == nil }
            entries.append(Entry(card: card))
        }
    }

    /// Returns the connections to the card in `reader`.
    static func on(_ reader: String) -> [PCSCCard] {
        entries.withLock { $0.compactMap(\.card) }.filter { $0.reader.name == reader && !$0.isDirect }
    }
}
