import Foundation

/// The life of one read, from the call to its answer: what has happened goes in, what is to be done comes out.  It does no I/O.
///
/// It begins with the wait for its turn, and waits for a card then.  A card that was found is read to its end, whatever comes
/// meanwhile; only a reader that hangs is given up.  An application is told of the end before its caller gets the answer.
struct ReadLife: Sendable {
    typealias ReadError = PaymentCardReaderSession.ReadError

    enum Event: Sendable {
        /// The store's policy has nothing against it.
        case admitted(cardIsLeft: Bool)
        /// The card of the read before is gone.
        case turnCame
        case field(PaymentCardReader.Event)
        /// The caller, the machine's sleep or a reader that has gone ends it, as long as there is no card.
        case interrupted(ReadError)
        case timeOver(Timer)
        /// The card has paid, and its data are sealed: the payment may be stored.
        case sealed
        case completed(PaymentCardReadResult)
        /// It cannot go on; a `CancellationError` for one that was stopped.
        case failed(any Error)
        case cardGone
    }

    enum Action: Sendable {
        case tell(PaymentCardReader.Event)
        /// What is under way for the read is to end.
        case stop
        case start(Timer)
        /// The reader hangs: nobody waits for it any more.
        case abandonReader
        /// The next read waits until the card is gone.
        case leaveCard
        /// The next read may begin.
        case makeRoom
        /// The session may have ended during the wait for the card.
        case checkSession
        /// What has happened must not go on.
        case refuse(any Error)
        case answer(PaymentCardReadResult)
        case fail(any Error)
    }

    enum Timer: Sendable {
        /// For the reader to end a wait.
        case answer(ReadError)
        /// For a card to be read.
        case transaction
        /// For a card to be taken away, before the answer no longer waits for it.
        case removal
    }

    private enum State: Sendable {
        /// For its turn, or for a card.
        case waiting
        case reading
        /// The outcome is known, and shown until the card is gone.
        case showing(PaymentCardReadResult)
        case over
    }

    private let returnsAtOnce: Bool
    private var state = State.waiting
    /// Whether the application has been told of it.
    private var isShown = false
    /// Whether there has been a card.
    private var hadCard = false
    /// Whether the payment may be stored.
    private var isSealed = false
    /// What it fails with as soon as there is no card.
    private var interruption: ReadError?

    init(returnsAtOnce: Bool) { self.returnsAtOnce = returnsAtOnce }

    /// Whether there is no card, so that it can be ended.
    var isWaiting: Bool { if case .waiting = state { true } else { false } }
    /// Whether its outcome is known.
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
            let isFirst = !hadCard
            hadCard = true
            guard interruption == nil else { return refusal(of: event) }
            state = .reading
            return tell(.cardDetected) + (isFirst ? [.start(.transaction)] : []) + [.checkSession]
        case (_, .field(let event)): return tell(event)
        case (_, .interrupted(let error)):
            guard interruption == nil else { return [] }
            interruption = error
            return isWaiting ? [.stop, .start(.answer(error))] : []
        case (_, .timeOver(.answer(let error))): return isSealed ? [] : [.stop, .abandonReader] + failure(error)
        case (_, .timeOver(.transaction)):
            return isSealed ? [] : [.stop, .abandonReader] + failure(ReadError.readerServiceError)
        case (_, .sealed):
            isSealed = true
            return []
        case (_, .completed(let result)):
            state = .showing(result)
            return end(with: result.outcome == .success ? .readCompleted : .readNotCompleted)
                + (returnsAtOnce ? [.answer(result)] : []) + [.start(.removal)]
        case (_, .failed(let error)): return failure(error)
        case (_, .timeOver(.removal)), (_, .cardGone): return []
        }
    }

    /// Why what was about to happen must not: the read is over, or is to end.  What has happened anyway is let be.
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
        (hadCard ? [.leaveCard, .tell(.removeCard)] : []) + [.tell(event), .makeRoom]
    }
}
