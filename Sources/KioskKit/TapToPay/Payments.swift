public import Foundation
import Logging
public import ProximityReader

/// What moves money: each payment is in the journal before the payment service is asked for it, and until its outcome is known.
extension TapToPayService {
    /// Waits for a card, and has the payment service charge it.
    ///
    /// - Returns: also for a payment that was declined.
    /// - Throws: ``TapToPayError``, `PaymentCardReaderSession.ReadError`, `PaymentCardReaderError`, ``PaymentServiceError``.
    public func charge(amount: Decimal, currency: String) async throws -> PaymentResult {
        let card = try await read(PaymentCardTransactionRequest(amount: amount, currencyCode: currency))
        return try await authorise(card, amount: amount, currency: currency)
    }

    /// Waits for a card, and has the payment service give money back to it.  Otherwise as ``charge(amount:currency:)``.
    public func refund(amount: Decimal, currency: String) async throws -> RefundResult {
        let card = try await read(
            PaymentCardTransactionRequest(amount: amount, currencyCode: currency, for: .refund))
        return try await giveBack(card, amount: amount, currency: currency)
    }

    /// Has the payment service charge a card that was read.
    ///
    /// The idempotency key is the read's `id`: however often this is called for one read, it is charged once.  It is on the
    /// disk before the service is asked, and until it has answered.  A service that does not answer is asked again, each time
    /// after a pause.  Cancelling the task before the service is asked the first time keeps it from being asked; afterwards the
    /// answer to the call under way is awaited, and no other is made.
    ///
    /// - Throws: ``TapToPayError``; ``PaymentServiceError`` if nothing was done;
    ///   `PaymentCardReaderSession.ReadError.readCancelled`.
    public func authorise(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> PaymentResult {
        let (result, open) = try await ask(.payment, card, amount, currency)
        await settle(open)
        return result
    }

    /// Has the payment service give money to a card that was read for a refund.  Otherwise as
    /// ``authorise(_:amount:currency:)``.
    public func giveBack(
        _ card: PaymentCardReadResult, amount: Decimal, currency: String
    ) async throws -> RefundResult {
        let (result, open) = try await ask(.refund, card, amount, currency)
        await settle(open)
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
        let outcome: TapOutcome
        var open: OpenPayment?
        do {
            let answer = try await ask(.payment, payment.card, payment.amount, payment.currencyCode)
            outcome = TapOutcome(answer.result)
            open = answer.open
        } catch {
            outcome = TapOutcome(error)
        }
        let counts = confirmation.complete(outcome)
        switch outcome {
        case .approved, .failed(.outcomeUnknown):
            if !counts {
                do {
                    try await reverse(payment.card.id)
                } catch {
                    logger.critical("payment \(payment.card.id) has to be taken back: \(error)")
                }
                return false
            }
        case .declined, .failed: break
        }
        if let open { await settle(open) }
        return counts
    }

    /// - Returns: the answer, and the payment, which is to be settled.
    private func ask(
        _ kind: UnsettledPayment.Kind, _ card: PaymentCardReadResult, _ amount: Decimal, _ currency: String
    ) async throws -> (result: PaymentResult, open: OpenPayment) {
        guard let cardData = card.paymentCardData else { throw TapToPayError.noCardData }
        guard !Task.isCancelled else { throw PaymentCardReaderSession.ReadError.readCancelled }
        let (key, currency) = (card.id, currency.uppercased())
        let open = try await opened(
            UnsettledPayment(id: key, kind: kind, amount: amount, currency: currency, time: Date()))
        guard !Task.isCancelled else {
            await settle(open)
            throw PaymentCardReaderSession.ReadError.readCancelled
        }
        var wasLost = false
        for pause in pauses.map(Optional.some) + [nil] {
            do {
                // A task of its own: whoever leaves does not break off a call that moves money.
                let result = try await Task { [psp] in
                    switch kind {
                    case .payment:
                        try await psp.processPayment(
                            cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
                    case .refund:
                        try await psp.processRefund(
                            cardData: cardData, amount: amount, currency: currency, idempotencyKey: key)
                    }
                }.value
                // Somebody has had it taken back meanwhile: the answer says nothing of that.
                guard !open.isReversal else { throw TapToPayError.takenBack }
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
            let open = try await journal.begin(payment, .asked)
            unsettled[payment.id] = open
            return open
        } catch {
            throw TapToPayError.notRecorded("\(error)")
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

    /// What the payment service was asked for and has not answered, and what it has to take back and has not said that it did.
    ///
    /// The first are those of ``TapToPayError/outcomeUnknown(key:)``: ``resolve(_:)`` and ``reverse(_:)`` settle them, or the
    /// next run of the program.  The others are asked for again and again.
    public var unsettledPayments: [UnsettledPayment] {
        unsettled.values.map(\.payment).sorted { $0.time < $1.time }
    }

    /// Finds out what became of a payment that the payment service has not answered.  Where it has decided nothing, the
    /// payment is taken back, so that it is not made afterwards.
    ///
    /// - Returns: what was decided; nil: the payment was not made and will not be.
    /// - Throws: ``PaymentServiceError``, and whatever else the payment service throws: nothing is known then.
    public func resolve(_ key: String) async throws -> PaymentResult? {
        if unsettled[key]?.isReversal != true, let decision = try await psp.result(for: key) {
            if let open = unsettled[key] { await settle(open) }
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
    /// - Throws: ``TapToPayError/notRecorded(_:)`` if it could neither be written down nor was confirmed.
    @discardableResult public func reverse(_ key: String) async throws -> Bool {
        do {
            if let open = unsettled[key] {
                try await open.willReverse()
                return await takeBack(open)
            }
            let payment = UnsettledPayment(id: key, kind: nil, amount: nil, currency: nil, time: Date())
            let open = try await journal.begin(payment, .reversal)
            unsettled[key] = open
            return await takeBack(open)
        } catch {
            // Without a disk it can be tried all the same.
            guard await isReversed(key) else { throw TapToPayError.notRecorded("\(error)") }
            if let open = unsettled[key] { await close(open) }
            return true
        }
    }

    /// - Returns: whether the payment service has confirmed it; if not, it is asked again later.
    private func takeBack(_ open: OpenPayment) async -> Bool {
        guard await isReversed(open.payment.id) else {
            sweepLater()
            return false
        }
        await close(open)
        return true
    }

    private func isReversed(_ key: String) async -> Bool {
        for pause in pauses.map(Optional.some) + [nil] {
            do {
                try await Task { [psp] in try await psp.reverse(idempotencyKey: key) }.value
                return true
            } catch {
                logger.warning("the reversal of \(key) was not confirmed: \(error)")
            }
            guard let pause else { break }
            do { try await Task.sleep(for: pause) } catch { break }
        }
        return false
    }

    // MARK: Leftovers

    /// Settles what runs of the program have left that are over.
    func settleLeftovers() async {
        do {
            for open in try await journal.leftovers() {
                logger.notice("payment \(open.payment.id) of an earlier run is not settled")
                unsettled[open.payment.id] = open
            }
        } catch {
            logger.error("payments of an earlier run cannot be looked for: \(error)")
        }
        await settleAll { $0.isLeftover }
    }

    /// - Returns: whether nothing is left that this run has to settle by itself.
    @discardableResult private func settleAll(where isWanted: (OpenPayment) -> Bool) async -> Bool {
        for open in unsettled.values.filter(isWanted).sorted(by: { $0.payment.time < $1.payment.time }) {
            do {
                if !open.isReversal, let decided, let decision = try await psp.result(for: open.payment.id) {
                    await decided(open.payment, decision)
                    await settle(open)
                } else {
                    try await open.willReverse()
                    try await psp.reverse(idempotencyKey: open.payment.id)
                    await close(open)
                }
            } catch {
                logger.warning("payment \(open.payment.id) is not settled yet: \(error)")
                sweepLater()
                // What it does not answer now it answers for no other.
                if case PaymentServiceError.noAnswer = error { return false }
            }
        }
        return !unsettled.values.contains(where: isWanted)
    }

    private func sweepLater() {
        guard sweep == nil else { return }
        sweep = Task { [weak self, reversalPause] in
            repeat {
                try? await Task.sleep(for: reversalPause)
            } while await self?.hasSwept() == false && !Task.isCancelled
        }
    }

    private func hasSwept() async -> Bool {
        guard await settleAll(where: { $0.isLeftover || $0.isReversal }) else { return false }
        sweep = nil
        return true
    }
}

extension PaymentServiceError {
    var hasDoneNothing: Bool {
        switch self {
        case .refused, .notAuthorised: true
        case .noAnswer: false
        }
    }
}
