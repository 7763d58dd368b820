public import CardReceipts
public import Foundation
public import KioskKit
import Logging

/// The place in which payments and refunds are recorded before the payment service is asked.
public enum JournalPlace: Sendable {
    /// Memory, lost with the process: for apps under development and their tests.
    case memory
    /// A folder that only this service uses.
    case folder(URL)
}

/// A decision of a payment service, for the app's accounting: delivered before the caller's result, and at least once.
public enum CardReaderDecision: Sendable {
    /// A payment that is to be captured, or that has succeeded.
    case payment(PaymentIntent)
    /// A refund that has succeeded or is pending.
    ///
    /// - Parameter key: identical for the same refund.
    case refund(RefundParameters, RefundOutcome, key: String)
}

// The journal on the disk: payments and refunds, from before the payment service is asked until its answer is
// delivered.
extension ContactlessReaderService {
    /// The details that the journal itself does not have.  The app's own data in an intent is left out.
    enum JournalNote: Codable {
        case payment(PaymentIntent)
        /// A refund.
        ///
        /// - Parameter amount: in the currency's minor unit.
        case refund(charge: String, amount: UInt)
    }

    /// The payments and refunds that were requested and whose result is unknown, the oldest first.
    public var unsettledPayments: [UnsettledPayment] {
        get async {
            await restore()
            return (activeEntries + leftovers + openRefunds.entries).map(\.payment).sorted { $0.time < $1.time }
        }
    }

    /// The problems that a person has to look into: the present list first, then each change.
    public nonisolated var journalAlarms: AsyncStream<[JournalAlarm]> { journal.alarmUpdates }

    /// Takes over, once, the entries that an ended run of the program left.  It does not ask the payment service.  The
    /// app does that with ``retryActivePaymentIntent()``, ``cancelPaymentIntent()``, or the same refund.
    func restore() async {
        let restoration =
            restoration
            ?? Task {
                for open in await journal.leftovers() { await take(open) }
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

    /// Records that a card is to be charged; once for each card.
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

    /// Records that a payment or refund begins.
    ///
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

    /// Settles the entries of the active payment, whose result is known.
    func settleActive() async {
        let entries = activeEntries
        activeEntries = []
        for entry in entries { await entry.settle() }
    }

    /// Discards the active payment, whose result is known.
    func forgetActive() async {
        active = nil
        await settleActive()
        takeNextLeftover()
    }
}
