import Foundation
import Waiting

/// A session, created by a call of `prepare`: its token and its expiration.
package final class TerminalSession: Sendable {
    let id = UUID().uuidString
    let token: ReaderToken
    let end: Date
    /// The preparation after which payments are stored; nil for an online session.
    let preparation: Preparation?

    init(_ token: ReaderToken, end: Date, storingAfter preparation: Preparation? = nil) {
        self.token = token
        self.end = end
        self.preparation = preparation
    }
}

/// A card declined nothing, and has to be inserted or swiped: “try another interface” (EMV Contactless Book A, 6.2.4).
///
/// ``ProximityReaderSystem/messages(of:)`` has delivered the cardholder's message before.
package struct AnotherInterfaceNeeded: Error { package init() {} }

/// A session together with its terminal.  The terminal ends when no such value and no reader refers to it.
package struct HeldSession: Sendable {
    let session: TerminalSession
    let terminal: PaymentTerminal

    var id: String { session.id }

    /// Returns the session that replaces this one, with the same token, or after the same preparation.
    func next() async throws -> HeldSession {
        guard let token = session.token.token else { return try await terminal.prepareStoreAndForward() }
        return try await terminal.prepare(using: token)
    }

    var isGood: Bool { get async { await (try? terminal.check(session)) != nil } }

    var events: AsyncStream<PaymentCardReader.Event> { terminal.events.stream(of: nil) }

    /// Reads a card.
    ///
    /// - Throws: in addition ``AnotherInterfaceNeeded``.
    func read(
        _ request: CardRequest?, _ options: PaymentCardReader.Options, as id: UUID = UUID(), attachment: Data? = nil,
        passes: RequestedPasses? = nil, pricing: ReadRequest.Pricing? = nil
    ) async throws -> TapResult {
        try await terminal.read(
            ReadRequest(
                request, options, in: session, as: id, attachment: attachment, passes: passes, pricing: pricing))
    }

    func decline() async throws { try await terminal.declineLast(in: session) }

    func status() async throws -> StoreAndForwardStatus { try await terminal.status(of: session) }

    func cancelRead() async throws -> Bool { try await terminal.cancelRead(in: session) }

    /// Reads a card, and reports this read's events to `handler`, in the form of Apple's first version.
    @available(*, deprecated)
    func read(
        _ request: CardRequest?, _ options: PaymentCardReader.Options, passes: RequestedPasses? = nil,
        telling handler: ((PaymentCardReaderSession.Event) -> Void)?
    ) async throws -> TapResult {
        guard let handler else { return try await read(request, options, passes: passes) }
        let handle = Handler(call: handler)
        let id = UUID()
        // The end of the previous read may fall into this one.
        let events = terminal.events.stream(of: id)
        let watch = Task {
            for await event in events {
                if let event = PaymentCardReaderSession.Event(event) { handle.call(event) }
                if case .userInterfaceDismissed = event { return }
            }
        }
        do {
            let result = try await terminal.read(ReadRequest(request, options, in: session, as: id, passes: passes))
            await watch.value
            return result
        } catch {
            watch.cancel()
            throw error
        }
    }

    /// The caller's closure, called by one task at a time.
    @available(*, deprecated)
    private struct Handler: @unchecked Sendable {
        let call: (PaymentCardReaderSession.Event) -> Void
    }
}

@available(*, deprecated)
extension PaymentCardReaderSession.Event {
    /// Maps an event.
    ///
    /// - Returns: nil for an event that Apple's first version did not have.
    init?(_ event: PaymentCardReader.Event) {
        switch event {
        case .readyForTap: self = .readyForTap
        case .cardDetected: self = .cardDetected
        case .removeCard: self = .removeCard
        case .readCompleted: self = .completed
        case .readRetry: self = .retry
        case .readCancelled: self = .readCancelled
        case .readNotCompleted: self = .readNotCompleted
        case .updateProgress, .notReady, .pinEntryRequested, .pinEntryCompleted, .userInterfaceDismissed: return nil
        }
    }
}
