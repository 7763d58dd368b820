public import Foundation
public import KioskKit
import Logging

/// Where payments and refunds are written down before the payment service is asked.
public enum JournalPlace: Sendable {
    /// Forgotten with the process: for apps under development, and their tests.
    case memory
    /// A folder of this service alone.
    case folder(URL)
}

/// What a payment service has decided, for the app's own books: told before whoever has called is, and at least once.
public enum CardReaderDecision: Sendable {
    /// One that is to be captured, or that has succeeded.
    case payment(PaymentIntent)
    /// One that has succeeded or is pending.
    ///
    /// - Parameter key: the same for the same refund.
    case refund(RefundParameters, RefundOutcome, key: String)
}

// What is on the disk of payments and refunds, from before the payment service is asked until its answer is told.
extension ContactlessReaderService {
    /// What the journal does not know by itself.  The app's own of an intent is left out.
    enum JournalNote: Codable {
        case payment(PaymentIntent)
        /// - Parameter amount: in the currency's minor unit.
        case refund(charge: String, amount: UInt)
    }

    /// What was asked for and is not known, the oldest first.
    public var unsettledPayments: [UnsettledPayment] {
        get async {
            await restore()
            return (activeEntries + leftovers + openRefunds.entries).map(\.payment).sorted { $0.time < $1.time }
        }
    }

    /// What a person has to look after: as it is now, then with each change.
    public nonisolated var journalAlarms: AsyncStream<[JournalAlarm]> { journal.alarmUpdates }

    /// Takes over, once, what a run of the program has left that is over.  The payment service is not asked: the app has it
    /// asked, by ``retryActivePaymentIntent()``, ``cancelPaymentIntent()``, or the same refund.
    func restore() async {
        let restoration =
            restoration
            ?? Task {
                do {
                    for open in try await journal.leftovers() { await take(open) }
                } catch {
                    Self.logger.error("payments of an earlier run cannot be looked for: \(type(of: error))")
                }
                takeNextLeftover()
            }
        self.restoration = restoration
        await restoration.value
    }

    private func take(_ open: OpenPayment) async {
        switch open.note.flatMap({ try? JSONDecoder().decode(JournalNote.self, from: $0) }) {
        case .payment: leftovers.append(open)
        case .refund(let charge, let amount):
            openRefunds.restore(open, of: charge, amount)
        case nil: Self.logger.critical("payment \(open.payment.id) of an earlier run is not this service's")
        }
    }

    private func takeNextLeftover() {
        guard active == nil, !leftovers.isEmpty else { return }
        let open = leftovers.removeFirst()
        guard case .payment(let intent)? = open.note.flatMap({ try? JSONDecoder().decode(JournalNote.self, from: $0) })
        else { return }
        active = ActivePayment(unanswered: intent, isBeingCancelled: open.isReversal)
        activeEntries = [open]
    }

    /// Writes down that a card is to be charged; once for each card.
    ///
    /// - Throws: ``UnderlyingError/notRecorded``
    func record(_ intent: PaymentIntent, _ card: CollectedCard) async throws {
        guard !activeEntries.contains(where: { $0.payment.id == card.id }) else { return }
        let plain = PaymentIntent(
            id: intent.id, status: intent.status, created: intent.created, amount: intent.amount,
            currency: intent.currency, offlineDetails: intent.offlineDetails)
        activeEntries.append(
            try await begin(.payment, card.id, intent.amount, intent.currency, .payment(plain)))
    }

    /// - Throws: ``UnderlyingError/notRecorded``
    func begin(
        _ kind: UnsettledPayment.Kind, _ key: String, _ amount: UInt, _ currency: String, _ note: JournalNote
    ) async throws -> OpenPayment {
        let payment = UnsettledPayment(
            id: key, kind: kind, amount: Decimal(amount) / (MinorUnits.multiplier(of: currency) ?? 1),
            currency: currency.uppercased())
        do {
            return try await journal.begin(payment, note: try JSONEncoder().encode(note))
        } catch {
            Self.logger.critical("a payment could not be written down: \(type(of: error))")
            throw UnderlyingError.notRecorded
        }
    }

    /// Of the active payment nothing is unknown any more.
    func settleActive() async {
        let entries = activeEntries
        activeEntries = []
        for entry in entries { await entry.settle() }
    }

    /// Forgets the active payment, of which nothing is unknown any more.
    func forgetActive() async {
        active = nil
        await settleActive()
        takeNextLeftover()
    }
}
