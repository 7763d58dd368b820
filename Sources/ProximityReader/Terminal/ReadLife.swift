import Foundation

/// The life of a read, from the call to its result: events go in, actions come out.  It does no I/O.
///
/// A read first waits for its turn, then for a card.  Once there is a card, it is read to its end; only a reader that
/// hangs is abandoned.  The application learns of the end before its caller gets the result.
struct ReadLife: Sendable {
    typealias ReadError = PaymentCardReaderSession.ReadError

    enum Event: Sendable {
        /// The store's policy admits the read.
        case admitted(cardIsLeft: Bool)
        /// The card of the previous read is gone.
        case turnCame
        case field(PaymentCardReader.Event)
        /// The caller, the machine's sleep or the reader's loss ends the read, as long as there is no card.
        case interrupted(ReadError)
        case timeOver(Timer)
        /// The card has paid, and its data is sealed: the payment may be stored.
        case sealed
        case completed(TapResult)
        /// The read cannot continue; a `CancellationError` for a read that was stopped.
        case failed(any Error)
        case cardGone
    }

    enum Action: Sendable {
        case tell(PaymentCardReader.Event)
        /// Stop the work that is under way for the read.
        case stop
        case start(Timer)
        /// Abandon the reader, which hangs.
        case abandonReader
        /// Have the next read wait until the card is gone.
        case leaveCard
        /// Let the next read begin.
        case makeRoom
        /// Check the session, which may have ended during the wait for the card.
        case checkSession
        /// Refuse the event.
        case refuse(any Error)
        case answer(TapResult)
        case fail(any Error)
    }

    enum Timer: Sendable {
        /// The time for the reader to end a wait.
        case answer(ReadError)
        /// The time to read a card: the first that is presented, the second …
        case transaction(Int)
        /// The time to remove the card, before the result no longer waits for it.
        case removal
    }

    private enum State: Sendable {
        /// The read waits for its turn, or for a card.
        case waiting
        case reading
        /// The outcome is known, and shown until the card is gone.
        case showing(TapResult)
        case over
    }

    private let returnsAtOnce: Bool
    private var state = State.waiting
    /// True if the application knows of the read.
    private var isShown = false
    /// The number of cards that were presented, or presented again.
    private var cards = 0
    /// True if the payment may be stored.
    private var isSealed = false
    /// The error with which the read ends as soon as there is no card.
    private var interruption: ReadError?

    init(returnsAtOnce: Bool) { self.returnsAtOnce = returnsAtOnce }

    /// True if there is no card, so that the read can be ended.
    var isWaiting: Bool { if case .waiting = state { true } else { false } }
    /// True if the outcome is known.
    var hasEnded: Bool {
        switch state {
        case .waiting, .reading: false
        case .showing, .over: true
        }
    }

    mutating func next(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.showing(let result), .cardGone), (.showing(let result), .timeOver(.removal)):
            state = .over
            return [.tell(.userInterfaceDismissed)] + (returnsAtOnce ? [] : [.answer(result)])
        case (.showing, _), (.over, _): return refusal(of: event)
        case (_, .admitted(let cardIsLeft)):
            return refusal(of: event, or: cardIsLeft ? tell(.removeCard) : [])
        case (_, .turnCame): return refusal(of: event)
        case (_, .field(.readyForTap)):
            guard interruption == nil else { return refusal(of: event) }
            state = .waiting
            return tell(.readyForTap)
        case (_, .field(.cardDetected)):
            let isNew = isWaiting
            if isNew { cards += 1 }
            guard interruption == nil else { return refusal(of: event) }
            state = .reading
            return tell(.cardDetected) + (isNew ? [.start(.transaction(cards))] : []) + [.checkSession]
        case (_, .field(.removeCard)):
            // It has to be presented again.
            state = .waiting
            return tell(.removeCard)
        case (_, .field(let event)): return tell(event)
        case (_, .interrupted(let error)):
            guard interruption == nil else { return [] }
            interruption = error
            return isWaiting ? [.stop, .start(.answer(error))] : []
        case (_, .timeOver(.answer(let error))): return isSealed ? [] : [.stop, .abandonReader] + failure(error)
        case (_, .timeOver(.transaction(let card))):
            guard !isSealed, !isWaiting, card == cards else { return [] }
            return [.stop, .abandonReader] + failure(ReadError.readerServiceError)
        case (_, .sealed):
            isSealed = true
            return []
        case (_, .completed(let result)):
            state = .showing(result)
            return end(with: result.isSuccess ? .readCompleted : .readNotCompleted)
                + (returnsAtOnce ? [.answer(result)] : []) + [.start(.removal)]
        case (_, .failed(let error)): return failure(error)
        case (_, .timeOver(.removal)), (_, .cardGone): return []
        }
    }

    /// Returns a refusal of the event if the read is over or is to end.  An event that has already happened is
    /// ignored.
    private func refusal(of event: Event, or others: [Action] = []) -> [Action] {
        switch event {
        case .admitted, .turnCame, .field(.readyForTap), .field(.cardDetected), .sealed, .completed:
            if hasEnded { return [.refuse(CancellationError())] }
            return interruption.map { [.refuse($0)] } ?? others
        default: return []
        }
    }

    private mutating func tell(_ event: PaymentCardReader.Event) -> [Action] {
        isShown = true
        return [.tell(event)]
    }

    private mutating func failure(_ error: any Error) -> [Action] {
        let isStopped = error is CancellationError
        let given: any Error = isStopped ? ReadError.readCancelled : error
        let error: any Error = (isWaiting || isStopped ? interruption : nil) ?? given
        defer { state = .over }
        guard isShown || interruption != nil else { return [.makeRoom, .fail(error)] }
        let event: PaymentCardReader.Event =
            switch error {
            case ReadError.readCancelled, ReadError.readFromBackgroundError: .readCancelled
            default: .readNotCompleted
            }
        return end(with: event) + [.tell(.userInterfaceDismissed), .fail(error)]
    }

    private func end(with event: PaymentCardReader.Event) -> [Action] {
        (cards > 0 ? [.leaveCard, .tell(.removeCard)] : []) + [.tell(event), .makeRoom]
    }
}
