import Waiting

/// A contactless reader that takes payment cards.
///
/// All readers of a process are one device: that of ``ProximityReaderSystem/bootstrap(_:)``, or the first that is found.
/// Making one opens nothing; ``prepare(using:)`` does.
public class PaymentCardReader: @unchecked Sendable {
    /// Whether a reader is there: the one of ``ProximityReaderSystem/bootstrap(_:)``, or any.
    ///
    /// Whoever asks is blocked while readers are looked for, for two seconds at most; within a second of a look the answer is that
    /// look's.
    public static var isSupported: Bool { look.findsReader(ProximityReaderSystem.readerChoice) }
    private static let look = ReaderLook()

    /// What the reader does, from now on.
    ///
    /// Each access gives a stream of its own, which holds the last 1,024 events until they are taken.  They are for a screen:
    /// how a read ends is what it returns.
    public var events: AsyncStream<Event> { terminal.events.stream(of: nil) }

    public let options: Options

    /// Not stable: another one each time the program runs.
    @available(*, deprecated, message: "Use readerIdentifier")
    public var id: String { terminal.runIdentifier }

    package let terminal: PaymentTerminal

    public convenience init(options: Options = .init()) { self.init(options: options, terminal: .shared) }

    package init(options: Options = .init(), terminal: PaymentTerminal) {
        self.options = options
        self.terminal = terminal
    }

    /// Whether the merchant of `token` has accepted the terms on this machine.
    ///
    /// - Throws: ``PaymentCardReaderError`` for a token that is not good.
    public func isAccountLinked(using token: Token) async throws -> Bool {
        try await terminal.isAccountLinked(using: token)
    }

    /// Records that the merchant of `token` accepts the terms: durable, with the terms' version.
    ///
    /// - Throws: ``PaymentCardReaderError/accountAlreadyLinked``, and what ``isAccountLinked(using:)`` throws.
    public func linkAccount(using token: Token) async throws {
        try await terminal.linkAccount(using: token, again: false)
    }

    /// As ``linkAccount(using:)``, also for a merchant that is linked already.
    public func relinkAccount(using token: Token) async throws {
        try await terminal.linkAccount(using: token, again: true)
    }

    /// The same for the same reader and machine, whatever is plugged in else: the reader's serial number, or if it has none a
    /// number of the machine's own.
    ///
    /// - Throws: ``PaymentCardReaderError`` if there is no reader.
    public var readerIdentifier: String {
        get async throws { try await terminal.readerIdentifier() }
    }

    /// Makes the reader ready: checks the token, and that the reader is there and answers.
    ///
    /// To be called again when the session's time is over.  There is one session: that of before is over.  A reader that was
    /// unplugged, or a machine that slept, ends none.
    ///
    /// - Throws: ``PaymentCardReaderError``.
    public func prepare(using token: Token) async throws -> PaymentCardReaderSession {
        PaymentCardReaderSession(try await terminal.prepare(using: token), options: options)
    }

    /// Makes the reader ready for payments while there is no network: they are stored, and forwarded later.
    ///
    /// - Throws: ``PaymentCardReaderError/storeAndForwardNotAllowed`` if the configuration has no
    ///   ``ProximityReaderSystem/StoreAndForwardPolicy``, or ``prepare(using:)`` has not succeeded within 24 hours and since
    ///   the machine was started; ``PaymentCardReaderError/storeAndForwardSessionInvalidated`` if the clock went back since;
    ///   ``PaymentCardReaderError/storeAndForwardTokenIssuerChanged`` if payments are stored for another payment service.
    public func prepareStoreAndForward() async throws -> StoreAndForwardPaymentCardReaderSession {
        StoreAndForwardPaymentCardReaderSession(try await terminal.prepareStoreAndForward(), options: options)
    }

    /// What this machine has stored.
    ///
    /// - Throws: ``PaymentCardReaderError/storeAndForwardNotAllowed`` if nothing may be stored, and nothing ever was.
    public func fetchPaymentCardReaderStore() throws -> PaymentCardReaderStore { try terminal.cardReaderStore() }

    /// - Parameter updateHandler: is told of progress while this call lasts, and afterwards, as long as the session is held,
    ///   when the reader is no longer ready.
    @available(*, deprecated, message: "Use prepare(using:) and events")
    public func prepare(
        using token: Token, updateHandler: ((UpdateEvent) -> Void)?
    ) async throws -> PaymentCardReaderSession {
        let handler = UpdateHandler(updateHandler)
        let events = events
        let progress = Task {
            for await event in events {
                guard case .updateProgress(let percentage) = event else { continue }
                handler.call(.progress(percentage))
                if percentage == 100 { return }
            }
        }
        do {
            let session = try await prepare(using: token)
            await progress.value
            session.watch = Task {
                for await event in events { if case .notReady = event { handler.call(.notReady) } }
            }
            return session
        } catch {
            progress.cancel()
            throw error
        }
    }

    /// The caller's closure, called by one task at a time.
    @available(*, deprecated)
    private struct UpdateHandler: @unchecked Sendable {
        let call: (UpdateEvent) -> Void
        init(_ handler: ((UpdateEvent) -> Void)?) { call = handler ?? { _ in } }
    }
}

extension PaymentCardReader {
    public enum Event: Sendable {
        /// How far ``PaymentCardReader/prepare(using:)`` is: 0 to 100.
        case updateProgress(Int)
        /// The reader was unplugged, the machine falls asleep, or the session's time is over.  Reads fail until that has
        /// changed; after the last, until the reader is prepared again.
        case notReady
        /// A card is awaited.
        case readyForTap
        /// A card is in the field, and must stay.
        case cardDetected
        /// The card may go; the next read waits until it has gone.
        case removeCard
        /// The card's data are read and sealed.
        case readCompleted
        /// The card is to be presented again, or alone.
        case readRetry
        case readCancelled
        /// Nothing came of the read.
        case readNotCompleted
        /// Does not come here: there is no PIN pad.
        case pinEntryRequested
        /// Does not come here: there is no PIN pad.
        case pinEntryCompleted
        /// The read is over, and whatever was shown for it may go.
        case userInterfaceDismissed

        /// The case's name.
        public var name: String {
            switch self {
            case .updateProgress: "updateProgress"
            case .notReady: "notReady"
            case .readyForTap: "readyForTap"
            case .cardDetected: "cardDetected"
            case .removeCard: "removeCard"
            case .readCompleted: "readCompleted"
            case .readRetry: "readRetry"
            case .readCancelled: "readCancelled"
            case .readNotCompleted: "readNotCompleted"
            case .pinEntryRequested: "pinEntryRequested"
            case .pinEntryCompleted: "pinEntryCompleted"
            case .userInterfaceDismissed: "userInterfaceDismissed"
            }
        }
    }

    @available(*, deprecated, message: "Use Event")
    public enum UpdateEvent: Sendable {
        case progress(Int)
        case notReady

        /// The case's name.
        public var name: String {
            switch self {
            case .progress: "progress"
            case .notReady: "notReady"
            }
        }
    }

    public struct Options: Sendable {
        /// Whether a read returns before ``Event/userInterfaceDismissed``, with the card still in the field.
        public var returnReadResultImmediately: Bool = false
        /// Whether a card that declines or fails comes back as a result with an outcome, instead of being thrown, so that
        /// the payment service sees its general card data.
        public var includeErrorInReadResult: Bool = false

        public init() {}
    }

    /// What the payment service has signed for one merchant: a JSON web token.
    public struct Token: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
    }
}
