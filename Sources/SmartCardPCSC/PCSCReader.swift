import CSmartCardPCSC
public import SmartCard
import Synchronization
import Waiting

/// A reader that pcscd drives, by its name.
///
/// A value: it holds no connection, and may name a reader that has left or not come yet.
public struct PCSCReader: CardReader, Hashable {
    /// As pcscd calls it: `ACS ACR122U PICC Interface 00 00`, with the numbers of the reader and of the slot.
    public let name: String

    public init(name: String) { self.name = name }

    /// The name; ``details()`` asks the driver for the rest.
    public var identity: ReaderIdentity { ReaderIdentity(name: name, backend: .pcsc) }

    /// The name, vendor and serial number, as far as the driver tells.
    ///
    /// - Throws: `CardError`, as ``connect(sharing:protocols:sharingTimeout:)`` with direct sharing does.
    public func details() async throws -> ReaderIdentity {
        let direct = try await connect(sharing: .direct)
        var identity = identity
        identity.vendor = try await direct.attribute(.vendorName)
        identity.serialNumber = try await direct.attribute(.serialNumber)
        await direct.disconnect(.leave)
        return identity
    }

    /// The state of the slot: the present one first, then each change as it happens, without polling.
    ///
    /// pcsc-lite wakes nobody when somebody begins to hold a card exclusively; that is told with the next change.
    public func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        ReaderWatch.shared.slotStates(of: name)
    }

    /// Connects shared, with T=0 or T=1, as ``connect(sharing:protocols:sharingTimeout:)`` does.
    public func connect() async throws -> any CardConnection {
        try await connect(sharing: .shared)
    }

    /// Connects to the card, or to the reader itself if `sharing` is direct.
    ///
    /// pcscd powers the card when it is not powered.  While another connection is inside a transaction, pcscd keeps
    /// a new one waiting, 10 seconds longer than `sharingTimeout` at most.
    ///
    /// - Parameters:
    ///   - protocols: without meaning for a direct connection.
    ///   - sharingTimeout: how long to wait, in turns of at most 50 ms, for a card that somebody holds exclusively;
    ///     the default for the calls on the connection, too.
    /// - Throws: `CardError`.  `CancellationError`, at once, when the task is cancelled.
    public func connect(
        sharing: CardSharing, protocols: CardProtocols = .any, sharingTimeout: Duration = .seconds(2)
    ) async throws -> PCSCCard {
        try await whileHeldByOthers(atMost: sharingTimeout) {
            try await PCSCCard(
                reader: self, sharing: sharing, protocols: protocols, sharingTimeout: sharingTimeout)
        }
    }
}

// MARK: - Commands to the reader itself

/// How a command reached the reader itself.
public enum PCSCRoute: String, Hashable, Sendable {
    /// SCardTransmit on a connection to the card that this process has open.
    case cardConnection
    /// SCardTransmit with SCARD_PCI_RAW on a direct connection: needs neither card nor configuration, and a driver of
    /// short or extended APDU level.
    case directConnection
    /// SCardControl with the escape code.  libccid wants ifdDriverOptions 0x0001 for it.
    case escape
}

extension PCSCReader {
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try await transmitToReaderWithRoute(command).answer
    }

    /// As ``transmitToReader(_:)``, and tells which way the command went.
    ///
    /// A command of class FF is tried on the ways in the order of ``PCSCRoute``; another goes by escape.  It is sent once: the
    /// next way is taken only where the one before has sent nothing.  A driver that refuses raw commands says the same as a
    /// reader that fails one, so a driver is asked first, once in the life of the process, by a command that changes nothing.
    ///
    /// - Throws: `CardError`: what became of the command on its way; of kind `unsupported` if there is none.
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
    /// - Parameter exclusively: whether the link is one transaction, so that pcscd has other connections wait.
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

/// A direct connection, made by the first command that needs one, and anew after a card has come or gone.
package actor PCSCReaderLink: ReaderLink {
    private let reader: PCSCReader
    private var card: PCSCCard?
    private var isClosed = false
    private var isExclusive = false
    /// Of those who would connect.
    private let turn = Turn()

    package init(_ reader: PCSCReader) { self.reader = reader }

    package func transmit(_ command: [UInt8]) async throws -> [UInt8] {
        try await transmitWithRoute(command).answer
    }

    /// As ``PCSCReader/transmitToReaderWithRoute(_:)``.
    package func transmitWithRoute(_ command: [UInt8]) async throws -> (answer: [UInt8], route: PCSCRoute) {
        guard !isClosed else { throw CardError(.disconnected) }
        // Of another class than FF a command would go to the card (PC/SC part 3, 3.2).
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

    /// Repeats `body` over a new connection where it has sent nothing over the one that was.
    private func whileDirect<Result: Sendable>(
        _ body: (PCSCCard) async throws -> Result
    ) async throws -> Result {
        var attempts = 1
        while true {
            let direct = try await direct()
            do {
                return try await body(direct)
            } catch let error as CardError where error.saysThatNothingWasSent && attempts < Self.mostAttempts {
                // A card has come or gone, as it does when the chip's field is switched: pcscd ends direct connections with it.
                attempts += 1
                await letGo(direct)
            }
        }
    }

    private static let mostAttempts = 8

    /// Makes the link one transaction, also over the connections that it makes later.
    package func begin() async throws {
        isExclusive = true
        _ = try await direct()
    }

    private func letGo(_ direct: PCSCCard) async {
        if card === direct { card = nil }
        await direct.disconnect(.leave)
    }

    package func close() async {
        isClosed = true
        // That ends a transaction, too.
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
    /// The readers whose drivers are known to pass on raw commands.
    private static let passingRawCommands = Mutex<Set<String>>([])

    /// Asks for a card's identifier (PC/SC part 3, 3.2.2.1.3), which any answer will do for.
    ///
    /// - Returns: nil if the driver passes on raw commands.
    fileprivate func refusalOfRawCommands() async throws -> CardError? {
        guard !Self.passingRawCommands.withLock({ $0.contains(reader.name) }) else { return nil }
        do {
            // Not a part of the exchange that somebody may be timing.
            try await ExchangeStopwatch.$current.withValue(nil) {
                _ = try await transmit(bytes: [0xFF, 0xCA, 0x00, 0x00, 0x00])
            }
        } catch let error as CardError where error.kind.isRefusal {
            return error
        } catch let error as CardError where error.kind == .noAnswer {
            // It has gone to the reader.
        }
        Self.passingRawCommands.withLock { _ = $0.insert(reader.name) }
        return nil
    }

    /// Sends an escape command.
    ///
    /// - Parameter refusal: of the same command on another way, if there was one.
    fileprivate func escape(_ command: [UInt8], insteadOf refusal: CardError? = nil) async throws -> [UInt8] {
        let listed = try? await features()[.escape]
        do {
            return try await control(listed ?? UInt32(cscard_ctl_code(1)), command)
        } catch let error as CardError where error.kind == .unsupported {
            // What the driver lists it takes: then it is the reader that failed.
            guard listed == nil else { throw CardError(.notTransacted, cause: error.cause) }
            throw CardError(
                .unsupported, "the driver passes no command on to the reader", cause: (refusal ?? error).cause,
                hint: error.hint)
        }
    }
}

extension CardError {
    /// pcscd and its library refuse so before they hand a command to the driver.
    fileprivate var saysThatNothingWasSent: Bool {
        guard let status = cause as? PCSCStatus else { return kind == .disconnected }
        return [
            .sharingViolation, .resetCard, .removedCard, .unpoweredCard, .invalidHandle, .protoMismatch,
        ].contains(status)
    }
}

extension CardError.Kind {
    /// The driver would not pass the command on.
    fileprivate var isRefusal: Bool {
        [.notTransacted, .unsupported, .protocolMismatch, .cardAbsent, .cardRemoved, .other].contains(self)
    }
}

// MARK: - Waiting for others

/// Repeats `attempt` while it fails because somebody else holds the card, in turns of 5 to 50 ms, until `timeout` has
/// passed.
///
/// pcscd tells nobody when a card becomes free, so libpcsclite would do the same, blocking, in turns of 100 ms.
func whileHeldByOthers<R>(
    atMost timeout: Duration, isolation: isolated (any Actor)? = #isolation,
    _ attempt: () async throws -> R
) async throws -> R {
    let deadline = ContinuousClock.now + timeout
    var pause = Duration.milliseconds(5)
    while true {
        do {
            return try await attempt()
        } catch let error as CardError where error.kind == .sharing && ContinuousClock.now < deadline {
            try await Task.sleep(for: min(pause, deadline - .now))
            pause = min(pause * 2, .milliseconds(50))
        }
    }
}

// MARK: - Terms of a connection

/// Whom a connection shares a card with.
public enum CardSharing: Hashable, Sendable {
    /// With everybody; transactions keep exchanges together.
    case shared
    /// With nobody.  Fails while anybody is connected.
    case exclusive
    /// The reader itself, with or without a card.  The card is neither powered nor given a protocol.
    case direct
}

/// The transmission protocols that a connection may use.
public struct CardProtocols: OptionSet, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let t0 = CardProtocols(rawValue: 1)
    public static let t1 = CardProtocols(rawValue: 2)
    /// What nearly everybody wants: contactless cards offer both and readers often have only T=1.
    public static let any: CardProtocols = [.t0, .t1]
}
