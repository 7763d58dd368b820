import CSmartCardPCSC
public import SmartCard
import Synchronization
import Waiting

/// A reader that pcscd drives, identified by its name.
///
/// This value holds no connection.  It may name a reader that has left or has not arrived yet.
public struct PCSCReader: CardReader, Hashable {
    /// The name in pcscd: `ACS ACR122U PICC Interface 00 00`, with the numbers of the reader and of the slot.
    public let name: String

    public init(name: String) { self.name = name }

    /// The identity by name only; ``details()`` asks the driver for the rest.
    public var identity: ReaderIdentity { ReaderIdentity(name: name, backend: .pcsc) }

    /// Returns the name, vendor and serial number, as far as the driver reports them.
    ///
    /// - Throws: `CardError`, as a direct ``connect(sharing:protocols:sharingTimeout:)`` does.
    public func details() async throws -> ReaderIdentity {
        let direct = try await connect(sharing: .direct)
        var identity = identity
        identity.vendor = try await direct.attribute(.vendorName)
        identity.serialNumber = try await direct.attribute(.serialNumber)
        await direct.disconnect(.leave)
        return identity
    }

    /// The states of the slot: the present state first, then each change as it happens, without polling.
    ///
    /// pcsc-lite reports no change when a program begins to hold a card exclusively; the stream reports it with the
    /// next change.
    public func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        ReaderWatch.shared.slotStates(of: name)
    }

    /// Connects in shared mode with T=0 or T=1, as ``connect(sharing:protocols:sharingTimeout:)`` does.
    public func connect() async throws -> any CardConnection {
        try await connect(sharing: .shared)
    }

    /// Connects to the card, or to the reader itself if `sharing` is direct.
    ///
    /// pcscd powers an unpowered card.  While another connection is in a transaction, pcscd makes a new connection
    /// wait, at most 10 seconds longer than `sharingTimeout`.
    ///
    /// - Parameters:
    ///   - sharing: with other programs, alone, or a direct connection without a card.
    ///   - protocols: ignored for a direct connection.
    ///   - sharingTimeout: the longest wait, in steps of at most 50 ms, for a card that another program holds
    ///     exclusively; also the default for calls on the connection.
    /// - Throws: `CardError`; `CancellationError`, at once, when the task is cancelled.
    public func connect(
        sharing: CardSharing, protocols: CardProtocols = .any, sharingTimeout: Duration = .seconds(2)
    ) async throws -> PCSCCard {
        try await whileHeldByOthers(atMost: sharingTimeout) {
            try await PCSCCard(
                reader: self, sharing: sharing, protocols: protocols, sharingTimeout: sharingTimeout)
        }
    }
}

extension PCSCReader: MuteCardReader {
    /// Connects, which makes pcscd power the card, and leaves.  While other programs use the reader, it tries for some seconds.
    package func powerMuteCard() async {
        for _ in 0..<5 {
            do {
                await (try await connect(sharing: .shared)).disconnect(.leave)
                // pcscd does not tell those who wait that a connection powered the card.
                return ReaderWatch.shared.verify()
            } catch let error as CardError where error.kind == .sharing {
                continue
            } catch {
                // It stays mute, or left.
                return
            }
        }
    }
}

// MARK: - Commands to the reader itself

/// The route of a command to the reader itself.
public enum PCSCRoute: String, Hashable, Sendable {
    /// SCardTransmit on this process's open connection to the card.
    case cardConnection
    /// SCardTransmit with SCARD_PCI_RAW on a direct connection.  It needs neither card nor configuration, but a driver
    /// of short or extended APDU level.
    case directConnection
    /// SCardControl with the escape code.  libccid requires ifdDriverOptions 0x0001.
    case escape
}

extension PCSCReader {
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try await transmitToReaderWithRoute(command).answer
    }

    /// Sends a command as ``transmitToReader(_:)`` does, and also returns its route.
    ///
    /// A command of class FF tries the routes in the order of ``PCSCRoute``; other commands go by escape.  The command
    /// is sent only once: the next route is taken only if the previous one sent nothing.  A driver that refuses raw
    /// commands and a reader that fails one report the same error.  A command without effect therefore probes the
    /// driver first, once for each process.
    ///
    /// - Throws: `CardError` of the route that failed; of kind `unsupported` if there is no route.
    public func transmitToReaderWithRoute(
        _ command: [UInt8]
    ) async throws -> (answer: [UInt8], route: PCSCRoute) {
        let link = PCSCReaderLink(self)
        let result = try await link.transmitWithRoute(command)
        await link.close()
        return result
    }

    /// Connects to the reader itself, once for all commands of the link.
    ///
    /// - Parameter exclusively: if true, the link is one transaction, and pcscd makes other connections wait.
    public func open(exclusively: Bool) async throws -> any ReaderLink {
        let link = PCSCReaderLink(self)
        guard exclusively else { return link }
        do {
            try await link.begin()
            return link
        } catch {
            await link.close()
            throw error
        }
    }
}

/// A direct connection, made by the first command that needs it and renewed after a card has come or gone.
package actor PCSCReaderLink: ReaderLink {
    private let reader: PCSCReader
    private var card: PCSCCard?
    private var isClosed = false
    private var isExclusive = false
    /// The turn of tasks that want to connect.
    private let turn = Turn()

    package init(_ reader: PCSCReader) { self.reader = reader }

    package func transmit(_ command: [UInt8]) async throws -> [UInt8] {
        try await transmitWithRoute(command).answer
    }

    /// Sends a command as ``PCSCReader/transmitToReaderWithRoute(_:)`` does.
    package func transmitWithRoute(_ command: [UInt8]) async throws -> (answer: [UInt8], route: PCSCRoute) {
        guard !isClosed else { throw CardError(.disconnected) }
        // A command of a class other than FF would go to the card (PC/SC part 3, 3.2).
        guard command.first == 0xFF else { return (try await whileDirect { try await $0.escape(command) }, .escape) }
        for card in OpenCards.on(reader.name) {
            do {
                return (try await card.transmit(bytes: command), .cardConnection)
            } catch let error as CardError where error.saysThatNothingWasSent {
                continue
            }
        }
        return try await whileDirect { direct in
            if let refusal = try await direct.refusalOfRawCommands() {
                return (try await direct.escape(command, insteadOf: refusal), .escape)
            }
            return (try await direct.transmit(bytes: command), .directConnection)
        }
    }

    /// Repeats `body` over a new connection if the old one has sent nothing.
    private func whileDirect<Result: Sendable>(
        _ body: (PCSCCard) async throws -> Result
    ) async throws -> Result {
        var attempts = 1
        while true {
            let direct = try await direct()
            do {
                return try await body(direct)
            } catch let error as CardError where error.saysThatNothingWasSent && attempts < Self.mostAttempts {
                // A card has come or gone, for example because the chip's field was switched: pcscd then ends direct
                // connections.
                attempts += 1
                await letGo(direct)
            }
        }
    }

    private static let mostAttempts = 8

    /// Makes the link one transaction, including on connections that it makes later.
    package func begin() async throws {
        isExclusive = true
        _ = try await direct()
    }

    private func letGo(_ direct: PCSCCard) async {
        if card === direct { card = nil }
        await direct.disconnect(.leave)
    }

    package func releaseCard() async {
        guard let direct = try? await direct() else { return }
        // A card that pcscd has not found is left alone: pcscd would say from then on that a card is there, without an answer to
        // reset and after the card has left, until it finds another one.
        let holdsCard = (try? await direct.status())?.atr.bytes.isEmpty == false
        if card === direct { card = nil }
        await direct.disconnect(holdsCard ? .powerOff : .leave)
    }

    package func close() async {
        isClosed = true
        // Disconnecting also ends a transaction.
        await card?.disconnect(.leave)
        card = nil
    }

    private func direct() async throws -> PCSCCard {
        if let card { return card }
        try await turn.take()
        defer { turn.pass() }
        if let card { return card }
        let new = try await reader.connect(sharing: .direct)
        guard !isClosed else {
            await new.disconnect(.leave)
            throw CardError(.disconnected)
        }
        if isExclusive {
            do { try await new.beginTransaction() } catch {
                await new.disconnect(.leave)
                throw error
            }
        }
        card = new
        return new
    }
}

extension PCSCCard {
    /// The readers whose drivers pass on raw commands.
    private static let passingRawCommands = Mutex<Set<String>>([])

    /// Requests a card's identifier (PC/SC part 3, 3.2.2.1.3); any answer proves that the command passed.
    ///
    /// - Returns: nil if the driver passes on raw commands.
    fileprivate func refusalOfRawCommands() async throws -> CardError? {
        guard !Self.passingRawCommands.withLock({ $0.contains(reader.name) }) else { return nil }
        do {
            // The probe must not count in an exchange that is being timed.
            try await ExchangeStopwatch.$current.withValue(nil) {
                _ = try await transmit(bytes: [0xFF, 0xCA, 0x00, 0x00, 0x00])
            }
        } catch let error as CardError where error.kind.isRefusal {
            return error
        } catch let error as CardError where error.kind == .noAnswer {
            // The command reached the reader.
        }
        Self.passingRawCommands.withLock { _ = $0.insert(reader.name) }
        return nil
    }

    /// Sends an escape command.
    ///
    /// - Parameter refusal: the error of the same command on another route, if any.
    fileprivate func escape(_ command: [UInt8], insteadOf refusal: CardError? = nil) async throws -> [UInt8] {
        let listed = try? await features()[.escape]
        do {
            return try await control(listed ?? UInt32(cscard_ctl_code(1)), command)
        } catch let error as CardError where error.kind == .unsupported {
            // The driver lists the feature and so accepts the command: the reader failed it.
            guard listed == nil else { throw CardError(.notTransacted, cause: error.cause) }
            throw CardError(
                .unsupported, "the driver passes no command on to the reader", cause: (refusal ?? error).cause,
                hint: error.hint)
        }
    }
}

extension CardError {
    /// True for statuses with which pcscd and its library refuse a command before the driver sees it.
    fileprivate var saysThatNothingWasSent: Bool {
        guard let status = cause as? PCSCStatus else { return kind == .disconnected }
        return [
            .sharingViolation, .resetCard, .removedCard, .unpoweredCard, .invalidHandle, .protoMismatch,
        ].contains(status)
    }
}

extension CardError.Kind {
    /// True if the driver refused to pass the command on.
    fileprivate var isRefusal: Bool {
        [.notTransacted, .unsupported, .protocolMismatch, .cardAbsent, .cardRemoved, .other].contains(self)
    }
}

// MARK: - Waiting for other programs

/// Repeats `attempt` while another program holds the card, in steps of 5 to 50 ms, until `timeout` has passed.
///
/// pcscd does not report when a card becomes free; libpcsclite would poll too, blocking, in steps of 100 ms.
func whileHeldByOthers<R>(
    atMost timeout: Duration, isolation: isolated (any Actor)? = #isolation,
    _ attempt: () async throws -> R
) async throws -> R {
    let deadline = Time.now + timeout
    var pause = Duration.milliseconds(5)
    while true {
        do {
            return try await attempt()
        } catch let error as CardError where error.kind == .sharing && Time.now < deadline {
            try await Time.sleep(for: min(pause, deadline - Time.now))
            pause = min(pause * 2, .milliseconds(50))
        }
    }
}

// MARK: - Connection parameters

/// The sharing mode of a connection.
public enum CardSharing: Hashable, Sendable {
    /// Shared with all programs; transactions keep exchanges together.
    case shared
    /// Exclusive access.  Connecting fails while any program is connected.
    case exclusive
    /// The reader itself, with or without a card.  The card is not powered and gets no protocol.
    case direct
}

/// The transmission protocols that a connection may use.
public struct CardProtocols: OptionSet, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let t0 = CardProtocols(rawValue: 1)
    public static let t1 = CardProtocols(rawValue: 2)
    /// T=0 and T=1, the usual choice: contactless cards offer both, and readers often have only T=1.
    public static let any: CardProtocols = [.t0, .t1]
}
