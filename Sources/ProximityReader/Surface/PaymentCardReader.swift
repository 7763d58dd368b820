public import EMVContactless
import Waiting

/// A contactless reader that reads payment cards.
///
/// All instances in a process share one device: that of ``ProximityReaderSystem/bootstrap(_:)``, or the first one
/// found.  Creating an instance opens nothing; call ``prepare(using:)``.
public class PaymentCardReader: @unchecked Sendable {
    /// True if a reader is present: the configured one of ``ProximityReaderSystem/bootstrap(_:)``, or any.
    ///
    /// Blocks the caller while it looks for readers, at most two seconds.  Within a second the previous answer is
    /// reused.
    public static var isSupported: Bool { look.findsReader(ProximityReaderSystem.readerChoice) }
    private static let look = ReaderLook()

    /// The reader's events, from now on.
    ///
    /// Each access returns a new stream, which buffers the last 1,024 events.  The events are for a user interface; a
    /// read returns its result.
    public var events: AsyncStream<Event> { terminal.events.stream(of: nil) }

    public let options: Options

    /// An identifier that differs each time the program runs.
    @available(*, deprecated, message: "Use readerIdentifier")
    public var id: String { terminal.runIdentifier }

    package let terminal: PaymentTerminal

    public convenience init(options: Options = .init()) { self.init(options: options, terminal: .shared) }

    package init(options: Options = .init(), terminal: PaymentTerminal) {
        self.options = options
        self.terminal = terminal
    }

    /// Returns true if the token's merchant has accepted the terms and conditions on this machine.
    ///
    /// - Throws: ``PaymentCardReaderError`` if the token is invalid.
    public func isAccountLinked(using token: Token) async throws -> Bool {
        try await terminal.isAccountLinked(using: token)
    }

    /// Records that the token's merchant accepts the terms and conditions: durably, with their version.
    ///
    /// - Throws: ``PaymentCardReaderError/accountAlreadyLinked``, and the errors of ``isAccountLinked(using:)``.
    public func linkAccount(using token: Token) async throws {
        try await terminal.linkAccount(using: token, again: false)
    }

    /// Records the acceptance as ``linkAccount(using:)`` does, also for a merchant that is already linked.
    public func relinkAccount(using token: Token) async throws {
        try await terminal.linkAccount(using: token, again: true)
    }

    /// A stable identifier of the reader on this machine, whatever else is plugged in: the reader's serial number, or,
    /// for a reader without one, a number of the machine.
    ///
    /// - Throws: ``PaymentCardReaderError`` if there is no reader.
    public var readerIdentifier: String {
        get async throws { try await terminal.readerIdentifier() }
    }

    /// Prepares the reader: verifies the token, and checks that the reader is present and answers.
    ///
    /// Call it again when the session has expired.  There is one session at a time: a new one ends the previous one.
    /// Unplugging the reader or putting the machine to sleep does not end the session.
    ///
    /// - Throws: ``PaymentCardReaderError``.
    public func prepare(using token: Token) async throws -> PaymentCardReaderSession {
        PaymentCardReaderSession(try await terminal.prepare(using: token), options: options)
    }

    /// Prepares the reader for payments without a network, which are stored and forwarded later.
    ///
    /// - Throws: ``PaymentCardReaderError/storeAndForwardNotAllowed`` if the configuration has no
    ///   ``ProximityReaderSystem/StoreAndForwardPolicy``, or if ``prepare(using:)`` has not succeeded within the last
    ///   24 hours and since the machine started; ``PaymentCardReaderError/storeAndForwardSessionInvalidated`` if the
    ///   clock has gone back since; ``PaymentCardReaderError/storeAndForwardTokenIssuerChanged`` if the stored
    ///   payments are for another payment service.
    public func prepareStoreAndForward() async throws -> StoreAndForwardPaymentCardReaderSession {
        StoreAndForwardPaymentCardReaderSession(try await terminal.prepareStoreAndForward(), options: options)
    }

    /// Returns the store of this machine's payments.
    ///
    /// - Throws: ``PaymentCardReaderError/storeAndForwardNotAllowed`` if nothing may be stored, and nothing ever was.
    public func fetchPaymentCardReaderStore() throws -> PaymentCardReaderStore {
        guard terminal.mayHaveStored else { throw PaymentCardReaderError.storeAndForwardNotAllowed }
        return PaymentCardReaderStore(terminal: terminal)
    }

    /// Prepares the reader, and reports its progress to a closure.
    ///
    /// - Parameters:
    ///   - token: the token that the payment service has signed.
    ///   - updateHandler: receives the progress during this call, and, as long as the session exists, an event when the
    ///     reader is no longer ready.
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

extension ProximityReaderSystem {
    /// Returns the kernels' messages for the people at a reader, from now on (EMV Contactless Book A, 9).  They
    /// include messages that ``PaymentCardReader/events`` lacks, such as 1D, “insert card”.
    ///
    /// Each call returns a new stream, which buffers the last 64 messages.
    public static func messages(of reader: PaymentCardReader) -> AsyncStream<UserInterfaceRequest> {
        reader.terminal.messages.stream()
    }

    /// Returns whether the terminal has its reader: first as it is now, and then each change.
    ///
    /// It has none while the reader is unplugged or does not answer, while the machine sleeps, and after the end of the
    /// terminal.  If it has none now, it looks for one before the first value; a reader that returns later is noticed
    /// while there is a session.  Each call returns a new stream, which buffers the last change.
    public static func presence(of reader: PaymentCardReader) -> AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream<Bool>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let changes = reader.terminal.presence.stream()
        let task = Task { [weak terminal = reader.terminal] in
            _ = try? await terminal?.attachedReader()
            for await isPresent in changes { continuation.yield(isPresent) }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }
}
