public import Foundation
import Logging
public import ProximityReader
import Waiting

/// What moves money: each payment is in the journal before the payment service is asked for it, and until its outcome is known.
extension TapToPayService {
    /// Waits for a card, and has the payment service charge it.
    ///
    /// - Returns: also for a payment that was declined.
    /// - Throws: ``TapToPayError``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`, ``PaymentServiceError``.
    public func charge(amount: Decimal, currency: String) async throws -> PaymentResult {
        try checkWritten()
        let card = try await read(PaymentCardTransactionRequest(amount: amount, currencyCode: currency))
        return try await authorise(card, amount: amount, currency: currency)
    }

    /// Waits for a card, and has the payment service give money back to it.  Otherwise as ``charge(amount:currency:)``.
    public func refund(amount: Decimal, currency: String) async throws -> RefundResult {
        try checkWritten()
        let card = try await read(
            PaymentCardTransactionRequest(amount: amount, currencyCode: currency, for: .refund))
        return try await giveBack(card, amount: amount, currency: currency)
    }

    /// Has the payment service charge a card that was read.
    ///
    /// The idempotency key is the read's `id`: however often this is called for one read, it is charged once.  It is on the
    /// disk before the service is asked, and until it has answered.  A service that does not answer, or not about this payment
    /// and for good (``PaymentResult/objection(of:_:_:)``), is asked again, each time after a pause.  Cancelling the task before
    /// the service is asked the first time keeps it from being asked; afterwards the answer to the call under way is awaited, and
    /// no other is made.
    ///
    /// - Throws: ``TapToPayError``; ``PaymentServiceError`` if nothing was done;
    ///   `PaymentCardReaderSession.ReadError.readCancelled`.
    public func authorise(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> PaymentResult {
        let (result, open) = try await ask(.payment, card, amount, currency)
        try await conclude(open, result)
        return result
    }

    /// Has the payment service give money to a card that was read for a refund.  Otherwise as
    /// ``authorise(_:amount:currency:)``.
    public func giveBack(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> RefundResult {
        let (result, open) = try await ask(.refund, card, amount, currency)
        try await conclude(open, result)
        return result
    }

    /// Has the payment service charge a card that was read, and completes the attempt with what it says.
    ///
    /// A payment that may have been made and that nobody waits for any more, because the attempt was cancelled or its time is
    /// over, is taken back: see ``reverse(_:)``.
    ///
    /// - Returns: whether the attempt was completed by this.
    @discardableResult
    public func authorise(_ payment: TapPayment, answering confirmation: TapConfirmation) async -> Bool {
        guard confirmation.isAwaited else { return false }
        do {
            let (result, open) = try await ask(.payment, payment.card, payment.amount, payment.currencyCode)
            // From here on the attempt has no other end, and nobody is told before the disk has it.
            guard confirmation.reserve() else {
                if result.status == .approved { await takeBackLater(payment.card.id) } else { await settle(open) }
                return false
            }
            let outcome: TapOutcome
            do {
                try await conclude(open, result)
                outcome = TapOutcome(result)
            } catch {
                outcome = TapOutcome(error)
            }
            confirmation.fulfill(outcome)
            return true
        } catch {
            let counts = confirmation.complete(TapOutcome(error))
            if !counts, case TapToPayError.outcomeUnknown = error { await takeBackLater(payment.card.id) }
            return counts
        }
    }

    /// Writes down what was decided, and then the application may be told.
    ///
    /// - Throws: ``TapToPayError/notRecorded(_:)``: an approval that cannot be written down is taken back, for the next run of
    ///   the program would; ``TapToPayError/takenBack``.
    private func conclude(_ open: OpenPayment, _ result: PaymentResult) async throws {
        do {
            try await open.decide(result)
        } catch TapToPayError.takenBack {
            throw TapToPayError.takenBack
        } catch {
            guard result.status == .approved else { return await settle(open) }
            await takeBackLater(open.payment.id)
            throw TapToPayError.notRecorded(PaymentJournal.Failure.reason(error))
        }
        await decided?(open.payment, result)
        guard !open.isReversal else { throw TapToPayError.takenBack }
        await settle(open)
    }

    /// Has a payment taken back that nobody is told of.
    private func takeBackLater(_ key: String) async {
        do { try await reverse(key) } catch {
            logger.critical("payment \(key) has to be taken back: \(type(of: error))")
        }
    }

    /// - Throws: ``TapToPayError/reversalNotRecorded(key:)``
    func checkWritten() throws {
        if let open = unsettled.values.first(where: \.isUnwritten) {
            throw TapToPayError.reversalNotRecorded(key: open.payment.id)
        }
    }

    /// - Returns: the answer, and the payment, which is to be settled.
    private func ask(
        _ kind: UnsettledPayment.Kind, _ card: PaymentCardReadResult, _ amount: Decimal, _ currency: String
    ) async throws -> (result: PaymentResult, open: OpenPayment) {
        guard let cardData = card.paymentCardData else { throw TapToPayError.noCardData }
        guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
        try checkWritten()
        let (key, currency) = (card.id, currency.uppercased())
        let open = try await opened(
            UnsettledPayment(id: key, kind: kind, amount: amount, currency: currency))
        guard !Task.isCancelled else {
            await settle(open)
            throw PaymentCardReaderSession.ReadError.readCancelled
        }
        var wasLost = false
        for pause in pauses.map(Optional.some) + [nil] {
            do {
                let result = try await answer { psp in
                    switch kind {
                    case .payment:
                        try await psp.processPayment(
                            cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
                    case .refund:
                        try await psp.processRefund(
                            cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
                    }
                }
                // Somebody has had it taken back meanwhile: the answer says nothing of that.
                guard !open.isReversal else { throw TapToPayError.takenBack }
                if let objection = result.objection(of: key, amount, currency) {
                    throw PaymentServiceError.noAnswer(objection)
                }
                return (result, open)
            } catch TapToPayError.takenBack {
                throw TapToPayError.takenBack
            } catch let error as PaymentServiceError where error.hasDoneNothing && !wasLost {
                await settle(open)
                throw error
            } catch {
                // What refuses this call tells nothing of one before it, whose answer was lost.
                wasLost = true
            }
            guard let pause else { break }
            // Who cancels now is told that nothing is known, as it is.
            do { try await Task.sleep(for: pause) } catch { break }
        }
        throw TapToPayError.outcomeUnknown(key: key)
    }

    private func opened(_ payment: UnsettledPayment) async throws -> OpenPayment {
        if let open = unsettled[payment.id] {
            // An answer to it would say nothing of the reversal.
            guard !open.isReversal else { throw TapToPayError.takenBack }
            return open
        }
        do {
            let open = try await journal.begin(payment)
            unsettled[payment.id] = open
            return open
        } catch {
            throw TapToPayError.notRecorded(PaymentJournal.Failure.reason(error))
        }
    }

    private func settle(_ open: OpenPayment) async {
        // Nobody else has made a reversal of it meanwhile.
        guard !open.isReversal else { return }
        await close(open)
    }

    private func close(_ open: OpenPayment) async {
        // Before anything is waited for: a reversal that is asked for meanwhile is written down anew.
        if unsettled[open.payment.id] === open { unsettled[open.payment.id] = nil }
        await open.settle()
    }

    // MARK: What is not known, and what has to be taken back

    /// What is not settled, and what a person has to look after.
    public struct UnsettledSummary: Hashable, Sendable {
        /// What the payment service was asked for and has not answered: ``TapToPayService/resolve(_:)`` and
        /// ``TapToPayService/reverse(_:)`` settle them, or the next run of the program.
        public let unanswered: [UnsettledPayment]
        /// What the payment service has to take back and has not said that it did: it is asked again and again.
        public let reversals: [UnsettledPayment]
        /// Whether the payment service is being asked in the background, about reversals or about what an earlier run has left.
        public let isAskingInBackground: Bool
        public let alarms: [JournalAlarm]
    }

    public var unsettledSummary: UnsettledSummary {
        let open = unsettled.values.sorted { $0.payment.time < $1.payment.time }
        return UnsettledSummary(
            unanswered: open.filter { !$0.isReversal }.map(\.payment),
            reversals: open.filter(\.isReversal).map(\.payment), isAskingInBackground: sweep != nil,
            alarms: journal.alarms)
    }

    /// Those of ``unsettledSummary``, the oldest first.
    public var unsettledPayments: [UnsettledPayment] {
        unsettled.values.map(\.payment).sorted { $0.time < $1.time }
    }

    /// What a person has to look after: as it is now, then with each change.
    public nonisolated var journalAlarms: AsyncStream<[JournalAlarm]> { journal.alarmUpdates }

    /// Finds out what became of a payment that the payment service has not answered.  Where it has decided nothing, the
    /// payment is taken back, so that it is not made afterwards.
    ///
    /// - Returns: what was decided; nil: the payment was not made and will not be.
    /// - Throws: ``PaymentServiceError``, and whatever else the payment service throws: nothing is known then;
    ///   ``TapToPayError/notRecorded(_:)``.
    public func resolve(_ key: String) async throws -> PaymentResult? {
        if unsettled[key]?.isReversal != true, let decision = try await answer({ try await $0.result(for: key) }) {
            let open = unsettled[key]
            if let objection = decision.objection(of: key, to: open?.payment) {
                throw PaymentServiceError.noAnswer(objection)
            }
            if let open { try await conclude(open, decision) }
            return decision
        }
        guard try await reverse(key) else { throw PaymentServiceError.noAnswer("the reversal was not confirmed") }
        return nil
    }

    /// Takes back what was approved under a key.  Where nothing was, nothing will be.
    ///
    /// That it is to be is on the disk before the payment service is asked, and it is asked until it has confirmed it: by this
    /// call a few times, then in the background, and by the next run of the program.  Cancelling the task leaves it to those.
    ///
    /// - Returns: whether the payment service has confirmed it.
    /// - Throws: ``TapToPayError/notRecorded(_:)`` if it could neither be written down nor was confirmed.  Both are tried again
    ///   in the background, and no payment begins until one of them succeeds: see ``journalAlarms``.
    @discardableResult public func reverse(_ key: String) async throws -> Bool {
        let open = unsettled[key] ?? journal.reversal(of: key)
        unsettled[key] = open
        var failure: (any Error)?
        do { try await open.willReverse() } catch { failure = error }
        // Without a disk it can be tried all the same.
        guard await isReversed(open.payment) else {
            sweepLater()
            if let failure { throw TapToPayError.notRecorded(PaymentJournal.Failure.reason(failure)) }
            return false
        }
        await close(open)
        return true
    }

    private func isReversed(_ payment: UnsettledPayment) async -> Bool {
        for pause in pauses.map(Optional.some) + [nil] {
            do {
                try await confirmReversal(payment)
                return true
            } catch {
                logger.warning("the reversal of \(payment.id) was not confirmed: \(type(of: error))")
            }
            guard let pause else { break }
            do { try await Task.sleep(for: pause) } catch { break }
        }
        return false
    }

    private func confirmReversal(_ payment: UnsettledPayment) async throws {
        try await answer {
            try await $0.reverse(idempotencyKey: payment.id, amount: payment.amount, currency: payment.currency)
        }
    }

    /// What the payment service answers within its time.  In a task of its own: whoever leaves does not break off a call that
    /// moves money.
    ///
    /// - Throws: also `PaymentServiceError.noAnswer`.
    private func answer<Answer: Sendable>(
        _ question: @escaping @Sendable (any PaymentServiceProvider) async throws -> Answer
    ) async throws -> Answer {
        try await Task { [psp, answerTime] in
            try await waiting(atMost: answerTime, or: PaymentServiceError.noAnswer("nothing within \(answerTime)")) {
                try await question(psp)
            }
        }.value
    }

    // MARK: Leftovers

    /// Settles what runs of the program have left that are over: as far as the payment service answers in time, and then in
    /// the background.
    func settleLeftovers() async {
        do {
            for open in try await journal.leftovers() {
                logger.notice("payment \(open.payment.id) of an earlier run is not settled")
                unsettled[open.payment.id] = open
            }
        } catch {
            logger.error("payments of an earlier run cannot be looked for: \(type(of: error))")
        }
        guard unsettled.values.contains(where: Self.isSwept) else { return }
        let (firstLook, look) = AsyncStream.makeStream(of: Void.self)
        sweep?.cancel()
        sweepLater(after: .zero) { look.finish() }
        try? await waiting(atMost: settlingTime) { for await _ in firstLook {} }
    }

    /// Whether this run has to settle it by itself.
    private static func isSwept(_ open: OpenPayment) -> Bool { open.isLeftover || open.isReversal }

    /// - Returns: whether nothing is left that this run has to settle by itself.
    private func settleAll() async -> Bool {
        for open in unsettled.values.filter(Self.isSwept).sorted(by: { $0.payment.time < $1.payment.time }) {
            do {
                try await settleLeftover(open)
            } catch {
                logger.warning("payment \(open.payment.id) is not settled yet: \(type(of: error))")
                // What it does not answer now it answers for no other.
                if case PaymentServiceError.noAnswer = error { return false }
            }
        }
        return !unsettled.values.contains(where: Self.isSwept)
    }

    private func settleLeftover(_ open: OpenPayment) async throws {
        let key = open.payment.id
        if case .decided(let result) = open.state {
            // Somebody may have been told: it stands.
            await decided?(open.payment, result)
            return await settle(open)
        }
        if !open.isReversal, decided != nil, let result = try await answer({ try await $0.result(for: key) }) {
            guard result.objection(of: key, to: open.payment) != nil else { return try await conclude(open, result) }
            // It is asked for later.  What is final and about something else is no answer, and nobody was told of it.
            guard result.status.isFinal else { throw TapToPayError.outcomeUnknown(key: key) }
        }
        // Nobody was told of it.  What the disk does not take, the payment service may.
        try? await open.willReverse()
        try await confirmReversal(open.payment)
        await close(open)
    }

    private func sweepLater(after pause: Duration? = nil, looked: @escaping @Sendable () -> Void = {}) {
        guard sweep == nil || sweep?.isCancelled == true else { return }
        sweep = Task { [weak self, reversalPause] in
            try? await Task.sleep(for: pause ?? reversalPause)
            while !Task.isCancelled, await self?.hasSwept() == false {
                looked()
                try? await Task.sleep(for: reversalPause)
            }
            looked()
        }
    }

    private func hasSwept() async -> Bool {
        guard await settleAll() else { return false }
        if !Task.isCancelled { sweep = nil }
        return true
    }
}

extension PaymentResult {
    /// Why this does not settle a payment of the journal; where it is known by its key alone, any amount that is named does.
    fileprivate func objection(of key: String, to payment: UnsettledPayment?) -> String? {
        objection(of: key, payment?.amount ?? amount ?? 0, payment?.currency ?? currency ?? "")
    }
}

extension PaymentServiceError {
    var hasDoneNothing: Bool {
        switch self {
        case .refused, .notAuthorised: true
        case .noAnswer, .unavailable, .tooLarge: false
        }
    }
}
