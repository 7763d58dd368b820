import ContactlessMetrics
public import Foundation
import Logging
public import ProximityReader
import Waiting

/// The calls that move money: each payment is in the journal before the payment service is asked, and until its
/// outcome is known.
extension TapToPayService {
    /// Waits for a card, and has the payment service charge it.
    ///
    /// - Returns: the decision, whether approved or declined.
    /// - Throws: ``TapToPayError``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`,
    ///   ``PaymentServiceError``.
    public func charge(amount: Decimal, currency: String) async throws -> PaymentResult {
        try checkWritten()
        let card = try await read(PaymentCardTransactionRequest(amount: amount, currencyCode: currency))
        return try await authorize(card, amount: amount, currency: currency)
    }

    /// Waits for a card, and has the payment service refund to it; otherwise like ``charge(amount:currency:)``.
    public func refund(amount: Decimal, currency: String) async throws -> RefundResult {
        try checkWritten()
        let card = try await read(
            PaymentCardTransactionRequest(amount: amount, currencyCode: currency, for: .refund))
        return try await giveBack(card, amount: amount, currency: currency)
    }

    /// Has the payment service charge a card that was read.
    ///
    /// The idempotency key is the read's `id`: however often this is called for one read, the card is charged once.
    /// The payment is in the journal before the service is asked, and until it has answered.  If the service gives no
    /// answer, or none that is final and about this payment (``PaymentResult/objection(of:_:_:)``), it is asked again,
    /// each time after a pause.  Canceling the task before the first request prevents it; afterward the call waits for
    /// the answer to the present request, and makes no other.
    ///
    /// - Throws: ``TapToPayError``; ``PaymentServiceError`` if the request had no effect;
    ///   `PaymentCardReaderSession.ReadError.readCancelled`.
    public func authorize(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> PaymentResult {
        let (result, open) = try await ask(.payment, card, amount, currency)
        try await conclude(open, result)
        return result
    }

    /// Has the payment service refund to a card that was read for the purpose; otherwise like
    /// ``authorize(_:amount:currency:)``.
    public func giveBack(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> RefundResult {
        let (result, open) = try await ask(.refund, card, amount, currency)
        try await conclude(open, result)
        return result
    }

    /// Has the payment service charge a card that was read, and completes the attempt with the decision.
    ///
    /// If the attempt was canceled or has timed out, so that nobody waits for the result, a payment that may have been
    /// made is reversed: see ``reverse(_:)``.
    ///
    /// - Returns: true if this completed the attempt.
    @discardableResult
    public func authorize(_ payment: TapPayment, answering confirmation: TapConfirmation) async -> Bool {
        guard confirmation.isAwaited else { return false }
        do {
            let (result, open) = try await ask(.payment, payment.card, payment.amount, payment.currencyCode)
            // From here on the attempt has no other end, and nobody learns the result before it is on the disk.
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

    /// Records the decision, after which the application may learn of it.
    ///
    /// - Throws: ``TapToPayError/notRecorded(_:)``: an approval that cannot be recorded is reversed, as the next run
    ///   of the program would; ``TapToPayError/takenBack``.
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

    /// Has a payment reversed whose result nobody receives.
    private func takeBackLater(_ key: String) async {
        do { try await reverse(key) } catch {
            logger.critical("payment \(key) has to be taken back: \(type(of: error))")
        }
    }

    /// Checks that all reversals are on the disk.
    ///
    /// - Throws: ``TapToPayError/reversalNotRecorded(key:)``
    func checkWritten() throws {
        if let open = unsettled.values.first(where: \.isUnwritten) {
            throw TapToPayError.reversalNotRecorded(key: open.payment.id)
        }
    }

    /// Asks the payment service, and counts the result.
    ///
    /// - Returns: the answer, and the payment, which is to be settled.
    private func ask(
        _ kind: UnsettledPayment.Kind, _ card: PaymentCardReadResult, _ amount: Decimal, _ currency: String
    ) async throws -> (result: PaymentResult, open: OpenPayment) {
        let label = kind == .payment ? MetricTable.PaymentKind.payment : .refund
        do {
            let answer = try await answer(to: kind, card, amount, currency)
            metrics.payments.add(label, answer.result.status == .approved ? .approved : .declined)
            return answer
        } catch {
            switch error {
            case TapToPayError.outcomeUnknown: metrics.payments.add(label, .unknown)
            case is PaymentServiceError: metrics.payments.add(label, .refused)
            // The payment service was not asked, or another call had its answer reversed.
            default: break
            }
            tellUnsettled()
            throw error
        }
    }

    private func answer(
        to kind: UnsettledPayment.Kind, _ card: PaymentCardReadResult, _ amount: Decimal, _ currency: String
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
                var result = try await answer { psp in
                    switch kind {
                    case .payment:
                        try await psp.processPayment(
                            cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
                    case .refund:
                        try await psp.processRefund(
                            cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
                    }
                }
                // Another caller has had it reversed in the meantime: the answer does not reflect that.
                guard !open.isReversal else { throw TapToPayError.takenBack }
                if let objection = result.objection(of: key, amount, currency) {
                    throw PaymentServiceError.noAnswer(objection)
                }
                result.receiptFacts = card.facts
                return (result, open)
            } catch TapToPayError.takenBack {
                throw TapToPayError.takenBack
            } catch let error as PaymentServiceError where error.hasDoneNothing && !wasLost {
                await settle(open)
                throw error
            } catch {
                // A refusal of this call says nothing about an earlier one whose answer was lost.
                wasLost = true
            }
            guard let pause else { break }
            // After a cancellation the caller learns that the result is unknown.
            do { try await Time.sleep(for: pause) } catch { break }
        }
        throw TapToPayError.outcomeUnknown(key: key)
    }

    private func opened(_ payment: UnsettledPayment) async throws -> OpenPayment {
        if let open = unsettled[payment.id] {
            // An answer to it would not reflect the reversal.
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
        // Nobody else has requested a reversal in the meantime.
        guard !open.isReversal else { return }
        await close(open)
    }

    private func close(_ open: OpenPayment) async {
        // Before any wait: a reversal that is requested in the meantime is recorded anew.
        if unsettled[open.payment.id] === open { unsettled[open.payment.id] = nil }
        tellUnsettled()
        await open.settle()
    }

    /// Tells the metrics how many payments are not settled.  One that is being asked about is told when that has ended.
    private func tellUnsettled() { metrics.unsettledPayments.set(to: Double(unsettled.count)) }

    // MARK: Unknown results and reversals

    /// The payments that are not settled, and the state of the background requests.
    public struct UnsettledSummary: Hashable, Sendable {
        /// The requests that the payment service has not answered: ``TapToPayService/resolve(_:)`` and
        /// ``TapToPayService/reverse(_:)`` settle them, or the next run of the program.
        public let unanswered: [UnsettledPayment]
        /// The payments that the payment service has to reverse, without a confirmation so far: it is asked
        /// repeatedly.
        public let reversals: [UnsettledPayment]
        /// True while the payment service is asked in the background, about reversals or the leftovers of an earlier
        /// run.
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

    /// The payments of ``unsettledSummary``, the oldest first.
    public var unsettledPayments: [UnsettledPayment] {
        unsettled.values.map(\.payment).sorted { $0.time < $1.time }
    }

    /// The problems that a person has to look into: the present list first, then each change.
    public nonisolated var journalAlarms: AsyncStream<[JournalAlarm]> { journal.alarmUpdates }

    /// Finds out the result of a payment that the payment service has not answered.  If there is no decision, the
    /// payment is reversed, so that it is not made later.
    ///
    /// - Returns: the decision; nil if the payment was not made and will not be.
    /// - Throws: ``PaymentServiceError``, and other errors of the payment service: the result is then unknown;
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

    /// Reverses the payment that was approved under a key.  If there is none, there will be none.
    ///
    /// The request is on the disk before the payment service is asked.  It is repeated until the payment service
    /// confirms it: a few times by this call, then in the background, and by the next run of the program.  Canceling
    /// the task leaves it to those.
    ///
    /// - Returns: true if the payment service has confirmed the reversal.
    /// - Throws: ``TapToPayError/notRecorded(_:)`` if it could neither be recorded nor was confirmed.  Both are
    ///   retried in the background, and no payment begins until one of them succeeds: see ``journalAlarms``.
    @discardableResult public func reverse(_ key: String) async throws -> Bool {
        let open = unsettled[key] ?? journal.reversal(of: key)
        unsettled[key] = open
        tellUnsettled()
        var failure: (any Error)?
        do { try await open.willReverse() } catch { failure = error }
        // It can be attempted even without a disk.
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
                metrics.reversals.add(.confirmed)
                return true
            } catch {
                metrics.reversals.add(.unconfirmed)
                logger.warning("the reversal of \(payment.id) was not confirmed: \(type(of: error))")
            }
            guard let pause else { break }
            do { try await Time.sleep(for: pause) } catch { break }
        }
        return false
    }

    private func confirmReversal(_ payment: UnsettledPayment) async throws {
        try await answer {
            try await $0.reverse(idempotencyKey: payment.id, amount: payment.amount, currency: payment.currency)
        }
    }

    /// Returns the payment service's answer within its time.  It runs in its own task: a caller that leaves does not
    /// interrupt a call that moves money.
    ///
    /// - Throws: in addition `PaymentServiceError.noAnswer`.
    private func answer<Answer: Sendable>(
        _ question: @escaping @Sendable (any PaymentServiceProvider) async throws -> Answer
    ) async throws -> Answer {
        try await toTheEnd { [measured, answerTime] in
            try await waiting(atMost: answerTime, or: PaymentServiceError.noAnswer("nothing within \(answerTime)")) {
                try await question(measured)
            }
        }
    }

    // MARK: Leftovers

    /// Settles the entries of ended runs of the program: as far as the payment service answers in time, and then in
    /// the background.
    func settleLeftovers() async {
        for open in await journal.leftovers() {
            logger.notice("payment \(open.payment.id) of an earlier run is not settled")
            unsettled[open.payment.id] = open
        }
        tellUnsettled()
        guard unsettled.values.contains(where: Self.isSwept) else { return }
        let (firstLook, look) = AsyncStream.makeStream(of: Void.self)
        sweep?.cancel()
        sweepLater(after: .zero) { look.finish() }
        try? await waiting(atMost: settlingTime) { for await _ in firstLook {} }
    }

    /// Returns true if this run has to settle it without being asked.
    private static func isSwept(_ open: OpenPayment) -> Bool { open.isLeftover || open.isReversal }

    /// Settles all such entries.
    ///
    /// - Returns: true if none is left.
    private func settleAll() async -> Bool {
        for open in unsettled.values.filter(Self.isSwept).sorted(by: { $0.payment.time < $1.payment.time }) {
            do {
                try await settleLeftover(open)
            } catch {
                logger.warning("payment \(open.payment.id) is not settled yet: \(type(of: error))")
                // A service that does not answer now does not answer for another payment either.
                if case PaymentServiceError.noAnswer = error { return false }
            }
        }
        return !unsettled.values.contains(where: Self.isSwept)
    }

    private func settleLeftover(_ open: OpenPayment) async throws {
        let key = open.payment.id
        if case .decided(let result) = open.state {
            // The application may know of it: it stands.
            await decided?(open.payment, result)
            return await settle(open)
        }
        if !open.isReversal, decided != nil, let result = try await answer({ try await $0.result(for: key) }) {
            guard result.objection(of: key, to: open.payment) != nil else { return try await conclude(open, result) }
            // It is asked again later.  A final answer about something else is no answer, and nobody received it.
            guard result.status.isFinal else { throw TapToPayError.outcomeUnknown(key: key) }
        }
        // Nobody received it.  If the disk does not record it, the payment service may.
        try? await open.willReverse()
        try await confirmReversal(open.payment)
        await close(open)
    }

    private func sweepLater(after pause: Duration? = nil, looked: @escaping @Sendable () -> Void = {}) {
        guard sweep == nil || sweep?.isCancelled == true else { return }
        sweep = Task { [weak self, reversalPause] in
            try? await Time.sleep(for: pause ?? reversalPause)
            while !Task.isCancelled, await self?.hasSwept() == false {
                looked()
                try? await Time.sleep(for: reversalPause)
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
    /// Returns the reason for which this does not settle a payment of the journal; if only its key is known, any
    /// amount settles it.
    fileprivate func objection(of key: String, to payment: UnsettledPayment?) -> String? {
        objection(of: key, payment?.amount ?? amount ?? 0, payment?.currency ?? currency ?? "")
    }
}

extension PaymentServiceError {
    var hasDoneNothing: Bool {
        switch self {
        case .refused, .notAuthorized: true
        case .noAnswer, .unavailable, .tooLarge: false
        }
    }
}
