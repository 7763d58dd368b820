import Foundation

/// What one call of `prepare` has made: the token it was made with, and until when it is good.
package final class TerminalSession: Sendable {
    let id = UUID().uuidString
    let token: ReaderToken
    let end: Date
    /// What payments are stored after; nil for a session that is online.
    let preparation: Preparation?
    private let terminal: PaymentTerminal

    init(_ token: ReaderToken, end: Date, storingAfter preparation: Preparation? = nil, terminal: PaymentTerminal) {
        self.token = token
        self.end = end
        self.preparation = preparation
        self.terminal = terminal
    }

    /// The session that takes this one's place, with the same token, or after the same preparation.
    func next() async throws -> TerminalSession {
        guard let token = token.token else { return try await terminal.prepareStoreAndForward() }
        return try await terminal.prepare(using: token)
    }

    var events: AsyncStream<PaymentCardReader.Event> { terminal.events.stream() }

    func read(_ request: CardRequest, _ options: PaymentCardReader.Options) async throws -> PaymentCardReadResult {
        try await terminal.read(request, options, in: self)
    }

    func decline() async throws { try await terminal.declineLast(in: self) }

    func status() async throws -> StoreAndForwardStatus { try await terminal.status(of: self) }

    func cancelRead() async throws -> Bool { try await terminal.cancelRead(in: self) }

    /// Performs `read` while `handler` is told of its events, in the form that Apple had first.
    @available(*, deprecated)
    func telling(
        _ handler: ((PaymentCardReaderSession.Event) -> Void)?,
        _ read: () async throws -> PaymentCardReadResult
    ) async throws -> PaymentCardReadResult {
        guard let handler else { return try await read() }
        let handle = Handler(call: handler)
        let events = terminal.events.stream()
        let watch = Task {
            for await event in events {
                if let event = PaymentCardReaderSession.Event(event) { handle.call(event) }
                if case .userInterfaceDismissed = event { return }
            }
        }
        do {
            let result = try await read()
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
    /// - Returns: nil for an event that had no such form.
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
