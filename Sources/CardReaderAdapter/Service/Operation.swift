import Foundation
import KioskKit
import Logging
import Synchronization
import Waiting

/// The one call that uses the reader or moves money: a payment, a refund, a cancellation, or an update.
struct Operation {
    enum Kind { case payment, refund, cancellation, update }
    enum Phase { case preparing, collecting, processing }

    let id = UUID()
    let kind: Kind
    var phase: Phase
    /// The party that canceled the operation; nil if nobody did.
    var cancelledBy: CancellationSource?
    var stop: @Sendable () -> Void = {}
    var waiters: [Delivery<Void>] = []
    /// The cancellation that takes the operation's place when it ends, so that nothing comes between the two.
    var successor: Delivery<Void>?

    init(_ kind: Kind, phase: Phase) { (self.kind, self.phase) = (kind, phase) }
}

// One operation at a time.
extension ContactlessReaderService {
    /// Performs an operation.
    ///
    /// - Parameters:
    ///   - needsReader: if false, the payment service is asked without a reader.
    ///   - name: the error with which `body`'s call fails.
    func perform<Result: Sendable>(
        _ kind: Operation.Kind, needsReader: Bool = true, as name: (UnderlyingError) -> CardReaderServiceError,
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        guard operation == nil else { throw name(.readerBusy) }
        guard !needsReader || connection != nil else { throw name(.notConnectedToReader) }
        operation = Operation(kind, phase: needsReader ? .preparing : .processing)
        return try await run(body)
    }

    /// Runs the operation that has begun to its end.
    func run<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) async throws -> Result {
        guard let id = operation?.id else { throw CardReaderServiceError.paymentCapture() }
        let task = Task { try await body() }
        operation?.stop = { task.cancel() }
        defer { endOperation() }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            Task { try? await self.cancelOperation(id) }
        }
    }

    private func endOperation() {
        guard let ended = operation else { return }
        operation = ended.successor == nil ? nil : Operation(.cancellation, phase: .processing)
        for waiter in ended.waiters { waiter.deliver(.success(())) }
        ended.successor?.deliver(.success(()))
    }

    func end(of id: UUID) async {
        guard operation?.id == id else { return }
        let ended = Delivery<Void>()
        operation?.waiters.append(ended)
        // No error is delivered.
        try? await ended.receiveToTheEnd()
    }

    /// Cancels the operation `id`, the present one, and begins a cancellation in its place.
    ///
    /// - Throws: the error of a reader that cannot cancel; `readerBusy`.
    func takeOver(from id: UUID) async throws {
        guard operation?.successor == nil else { throw UnderlyingError.readerBusy }
        // The place is reserved before the reader is asked: the operation may end before the reader's answer is here.
        let turn = Delivery<Void>()
        operation?.successor = turn
        do { try await cancelOperation(id) } catch {
            // The place is given up, or back if the operation has ended.
            if operation?.id == id { operation?.successor = nil } else { endOperation() }
            throw error
        }
        try await turn.receiveToTheEnd()
    }

    /// Cancels the operation as far as possible.  A request to the payment service is not canceled.
    func cancelOperation(_ id: UUID) async throws {
        guard operation?.id == id, let phase = operation?.phase, phase != .processing else { return }
        operation?.cancelledBy = .app
        if phase == .collecting, let link = connection?.link {
            do {
                // A card that is present is read to its end, and then not charged.
                _ = try await link.cancelCollection()
            } catch {
                if operation?.id == id { operation?.cancelledBy = nil }
                throw error
            }
        }
        if operation?.id == id { operation?.stop() }
    }

    private func checkNotCancelled() throws {
        if let source = operation?.cancelledBy { throw UnderlyingError.commandCancelled(from: source) }
    }

    /// Maps an error for the app, and logs it: no case has room for it.
    nonisolated func noted(_ error: any Error) -> UnderlyingError {
        let cause = UnderlyingError(cause: error)
        // Logs the type alone: the text may contain personal data.
        Self.logger.log(
            level: cause == .unexpectedSDKError ? .error : .notice, "\(cause)",
            metadata: ["cause": "\(type(of: error))"])
        return cause
    }

    static let logger = Logger(label: "CardReaderAdapter")

    // MARK: Steps of an operation

    /// Runs one step, and names its errors.
    func step<Result>(
        _ name: (UnderlyingError) -> CardReaderServiceError, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            let result = try await body()
            try checkNotCancelled()
            return result
        } catch {
            if let source = operation?.cancelledBy { throw name(.commandCancelled(from: source)) }
            if connection == nil, error is CancellationError { throw name(.readerDisconnected) }
            let cause = noted(error)
            // Either the link or the driver is the first to report that the reader is gone.
            if operation?.phase == .collecting, connection == nil || Self.meansGone.contains(cause) {
                throw name(.readerDisconnected)
            }
            throw name(cause)
        }
    }

    private static let meansGone: Set<UnderlyingError> = [.transportDisabled, .notConnectedToReader]

    func ask<Result: Sendable>(
        _ question: @escaping @Sendable (any PaymentProcessor) async throws -> Result
    ) async throws -> Result {
        try await waiting(atMost: limits.processor) { [processor] in try await question(processor) }
    }

    func collect(_ request: CollectionRequest) async throws -> CollectedCard {
        guard let link = connection?.link else { throw UnderlyingError.notConnectedToReader }
        let events = events
        operation?.phase = .collecting
        do {
            return try await link.collect(request) { events.send($0) }
        } catch {
            if UnderlyingError(cause: error) == .anotherInterfaceNeeded {
                events.send(.displayMessage(ReaderDisplayMessage.tryAnotherReadMethod.text))
            }
            throw error
        }
    }

    /// Waits until the reader has no card.
    ///
    /// - Throws: `readerDisconnected`, also before the reader's events say so; `CancellationError`.
    func waitForFreeReader() async throws {
        guard let link = connection?.link else { throw UnderlyingError.notConnectedToReader }
        let isFree = await removal(from: link, as: .cardRemoved)
        try Task.checkCancellation()
        guard isFree, connection != nil else { throw UnderlyingError.readerDisconnected }
    }

    public func waitForInsertedCardToBeRemoved() async {
        guard let link = connection?.link else { return }
        _ = await removal(from: link, as: .cardRemovedAfterClientSidePaymentCapture)
    }

    /// Waits until the reader has no card.
    ///
    /// - Parameter event: sent if there was a card, which is gone now.
    /// - Returns: false if the reader is gone or the task is canceled.
    private func removal(from link: any ReaderLink, as event: CardReaderEvent) async -> Bool {
        let events = events
        let wasThere = Mutex(false)
        let isFree = await link.waitForRemoval {
            wasThere.withLock { $0 = true }
            events.send(.displayMessage(ReaderDisplayMessage.removeCard.text))
        }
        if isFree, wasThere.withLock({ $0 }) { events.send(event) }
        return isFree
    }
}
