package import CardEncryption
import ContactlessMetrics
import Crypto
import Dispatch
package import Foundation
import GRDB
import Glibc
import Logging
import SmartCard
import Waiting

/// The payments of this machine, on its disk.
///
/// The folder has mode 0700.  `store.sqlite` contains a book of entries, to which entries are only ever added, each
/// with the keyed hash of all before it; beside the book, the stored payments until they may be deleted.  `store.head`
/// records the book's length, `store.key` contains the device's keys, `store.key.lock` keeps other processes out, and
/// `store.reserve` reserves space for forwarding.
///
/// The first call opens the store, and the end of this value closes it.  A call takes effect on the disk before it
/// returns, or not at all.
package actor RecordStore {
    /// A read to be stored.
    package struct Payment: Sendable {
        package let id: String
        package let paymentCardData: String
        package let generalCardData: String
        /// The amount in the currency's major unit.
        package let amount: Decimal
        package let currency: String
        package let issuer: String
        package let merchant: String
        package let card: StoredCard?
        /// The kernel's data for the receipt, in BER-TLV; empty if there is none.
        package let facts: Data
        /// The application's data, sealed on the disk like the card data.
        package let attachment: Data?

        package init(
            id: String, paymentCardData: String, generalCardData: String, amount: Decimal, currency: String,
            issuer: String, merchant: String, card: StoredCard? = nil, facts: Data = Data(), attachment: Data? = nil
        ) {
            self.id = id
            self.paymentCardData = paymentCardData
            self.generalCardData = generalCardData
            self.amount = amount
            self.currency = currency
            self.issuer = issuer
            self.merchant = merchant
            self.card = card
            self.facts = facts
            self.attachment = attachment
        }
    }

    private let folder: URL
    private let wrapping: WrappingKey?
    private let now: @Sendable () -> Date
    private var book: StoreBook?
    private var reserve: StoreReserve
    /// Payments that failed to be stored, until it is certain that they are not in the book.
    private var unwanted: Set<String> = []
    /// The time for which the first call waits for another process to release the store: at a restart the previous
    /// process may still run.
    private let patience: Duration
    private var wasOpen = false
    private var pause: ProximityReaderSystem.Ledger.Summary.Pause?
    private let outcomesChanged = Multicast<Void>((), keeping: .newest(1))

    /// Runs the blocking disk calls on its own thread.
    private let executor = StoreExecutor()
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    package init(
        folder: URL, wrapping: WrappingKey? = nil, patience: Duration = .seconds(5), now: @escaping @Sendable () -> Date
    ) {
        self.folder = folder
        self.patience = patience
        reserve = StoreReserve(folder.appending(path: "store.reserve").path)
        self.wrapping = wrapping
        self.now = now
    }

    /// Releases the store for other processes.  The next call opens it again.
    package func close() {
        book?.close()
        book = nil
    }

    /// Returns true if `folder` contains a store.
    static func exists(in folder: URL) -> Bool {
        FileManager.default.fileExists(atPath: folder.appending(path: "store.sqlite").path)
    }

    /// Returns the open book.
    ///
    /// - Throws: ``StoreFailure``.
    private func opened() throws -> StoreBook {
        if let book, !book.hasFailed { return book }
        // Close before reopening: only one holder is allowed.
        close()
        let opened = try waitingForIt { try StoreBook(folder, wrapping: wrapping, at: now()) }
        wasOpen = true
        try withdrawUnwanted(from: opened)
        book = opened
        opened.ledger.measure()
        return opened
    }

    /// Retries, the first time, while another process holds the store.
    private func waitingForIt(_ open: () throws -> StoreBook) throws -> StoreBook {
        let end = ContinuousClock.now + (wasOpen ? .zero : patience)
        while true {
            do { return try open() } catch StoreFailure.busy where .now < end {
                // On the store's own thread.
                usleep(50_000)
            }
        }
    }

    /// Withdraws payments that were perhaps not stored: the caller received an error, and the customer has paid in
    /// another way.
    private func withdrawUnwanted(from book: StoreBook) throws {
        for id in unwanted {
            if let payment = book.ledger.payments[id] {
                try book.write(
                    [.init(.withdrawn, id, detail: StoreDetail.Withdrawn(reason: "its storing failed"))], at: now(),
                    removing: [payment])
                logger.warning("payment \(id) was in the store though its storing had failed; it is taken back")
            }
            unwanted.remove(id)
        }
    }

    /// Writes even if the disk is full, by giving up reserved space.
    private func write(
        _ draft: StoreBook.Draft, removing payments: [StoreLedger.Payment] = [],
        remembering remembered: [StoreLedger.Payment] = [],
        deciding outcomes: [ProximityReaderSystem.Ledger.Outcome] = []
    ) throws {
        var book = try opened()
        var sequence = book.sequence
        while true {
            do {
                try book.write(
                    [draft], at: now(), removing: payments, remembering: remembered, deciding: outcomes)
                break
            } catch StoreFailure.full where reserve.giveUp() {
                // After reopening, each failed entry has either been written or not.
                book = try opened()
                if book.found.sequence != sequence, book.found.kind == draft.kind { break }
                sequence = book.sequence
            }
        }
        if let event = MetricTable.StoreEvent(draft.kind) {
            metrics.storedPayments.add(event, by: max(1, payments.count))
        }
        book.ledger.measure()
        // Compacting may have freed space.
        if !payments.isEmpty { reserve.restore(for: book.ledger.payments.count) }
        if !outcomes.isEmpty { outcomesChanged.send(()) }
    }

    // MARK: Storing

    package func add(_ preparation: Preparation) throws {
        try opened().write([.init(.prepared, detail: preparation)], at: now())
    }

    package func preparation() throws -> Preparation? { try opened().ledger.preparation }

    /// Returns the latest known time.
    package func latest() throws -> Date { try opened().ledger.latest }

    /// Returns the issuer of the stored payments.
    ///
    /// - Returns: nil if nothing is stored.
    package func storedIssuer() throws -> String? { try opened().ledger.payments.first?.issuer }

    func admit(
        _ amount: Decimal, _ currency: String, under policy: ProximityReaderSystem.StoreAndForwardPolicy
    ) throws {
        try policy.admit(amount, currency, to: opened().ledger, at: now())
    }

    package func add(_ payment: Payment) throws {
        let book = try opened()
        guard book.ledger.payments[payment.id] == nil else {
            throw StoreFailure.system(19, "payment \(payment.id) is stored already")
        }
        // Ensures that the stored payments can be forwarded even if the disk fills up.
        try reserve.keep(for: book.ledger.payments.count + 1)
        let form = StoredPaymentCardReadResult.canonicalForm(
            id: payment.id, paymentCardData: payment.paymentCardData, generalCardData: payment.generalCardData,
            attachment: payment.attachment.flatMap { $0.isEmpty ? nil : $0.base64EncodedString() })
        let digest = SHA256.hash(data: form)
        let content = StoredContent(payment, signature: try book.sign(digest).rawRepresentation)
        let detail = StoreDetail.Stored(
            amount: payment.amount, currency: payment.currency, issuer: payment.issuer, merchant: payment.merchant,
            payment: PaymentHash(digest), card: payment.card)
        do {
            try book.write([.init(payment.id, detail)], at: now(), adding: content)
        } catch {
            unwanted.insert(payment.id)
            do { _ = try opened() } catch {
                logger.critical(
                    "payment \(payment.id) was not stored, and may be in the store nevertheless: \(StoreFailure(error))"
                )
            }
            throw error
        }
        metrics.storedPayments.add(.stored)
        book.ledger.measure()
    }

    /// Returns the key of the hashes by which the store knows cards.
    func cardKey() throws -> SymmetricKey { try opened().cardKey }

    /// Returns the payments of a card, as far as they are remembered.
    package func payments(of card: StoredCard) throws -> [ProximityReaderSystem.Ledger.Payment] {
        let book = try opened()
        return try book.forwardedPayments(of: card)
            + book.ledger.payments.lazy.filter { $0.card?.reference == card.reference }.map { .init($0) }
    }

    /// Withdraws the last payment.
    ///
    /// - Throws: `ReadError`.
    package func withdrawLast() throws {
        typealias ReadError = PaymentCardReaderSession.ReadError
        let book = try opened()
        guard let last = book.ledger.last else { throw ReadError.storeAndForwardResultNotFound }
        // In milliseconds, as the book has it: a payment of just now would else be of later by what a `Date` rounds.
        guard let payment = book.ledger.payments[last], payment.state == .stored, payment.canBeWithdrawn,
            (0...60_000).contains((now().timeIntervalSince(payment.time) * 1000).rounded())
        else { throw ReadError.storeAndForwardDeclineFailed }
        try write(
            .init(.withdrawn, last, detail: StoreDetail.Withdrawn(reason: "declined by the application")),
            removing: [payment])
    }

    /// Withdraws a payment.
    ///
    /// - Returns: false for a payment that a payment service may have seen, which stays, and for one that is not
    ///   stored.
    package func withdraw(_ id: String, reason: String) throws -> Bool {
        guard let payment = try opened().ledger.payments[id], payment.canBeWithdrawn else { return false }
        try write(.init(.withdrawn, id, detail: StoreDetail.Withdrawn(reason: reason)), removing: [payment])
        return true
    }

    // MARK: Forwarding

    package func count() throws -> Int { try opened().ledger.payments.count }

    /// Returns the number of payments that may go into a batch.
    func waiting(without others: Set<String>) throws -> Int { try opened().ledger.waiting(without: others) }

    /// Returns a payment; resolved ones are available for 30 days.
    package func payment(_ id: String) throws -> ProximityReaderSystem.Ledger.Payment? {
        let book = try opened()
        return try book.ledger.payments[id].map { .init($0) } ?? book.forwardedPayments().last { $0.id == id }
    }

    /// Makes the oldest payments the batch.
    ///
    /// - Parameter others: payments to leave out.
    package func makeBatch(size: Int, without others: Set<String> = []) throws -> StoreAndForwardBatch {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try opened()
        guard size >= 0 else { throw StoreError.storeAndForwardBatchSizeInvalid }
        guard book.ledger.batch == nil else { throw StoreError.storeAndForwardBatchAlreadyExists }
        let waiting = book.ledger.waiting(without: others)
        // A payment is stored only after a preparation.
        guard waiting > 0, let reader = book.ledger.preparation?.reader else {
            throw StoreError.storeAndForwardResultsNotFound
        }
        guard size <= waiting else { throw StoreError.storeAndForwardBatchSizeInvalid }
        let count = size == 0 ? waiting : size
        // A small batch fits into the present reserve.
        if count > StoreReserve.smallBatch { try reserve.keep(for: book.ledger.payments.count, batch: count) }
        // The payments are for one payment service: the issuer may change only when everything is forwarded.
        let payments = book.ledger.next(count, without: others)
        let id = StoreAndForwardBatch.identifier(of: payments.map(\.id))
        let form = StoreAndForwardBatch.canonicalForm(id: id, payments: payments)
        let digest = SHA256.hash(data: form)
        let detail = StoreDetail.Batched(
            payments: payments.map(\.id), hash: Data(digest).hex,
            signature: try book.sign(digest).derRepresentation.base64EncodedString(), reader: reader,
            issuer: payments.first?.issuer ?? "")
        try write(.init(.batched, id, detail: detail))
        guard let batch = try batch() else { throw StoreError.storeAndForwardBatchNotFound }
        return batch
    }

    /// Returns the batch.
    ///
    /// - Returns: nil if there is none.
    package func batch() throws -> StoreAndForwardBatch? {
        let book = try opened()
        guard let batch = book.ledger.batch, let certificates = book.ledger.certificates else { return nil }
        return StoreAndForwardBatch(
            id: batch.id, count: batch.detail.payments.count, signature: batch.detail.signature,
            intermediateCertificate: [certificates.intermediateCertificate],
            leafCertificate: certificates.leafCertificate, payments: try book.contents(of: book.ledger.batched))
    }

    package func certificates() throws -> ProximityReaderSystem.Ledger.Certificates {
        guard let certificates = try opened().ledger.certificates else {
            throw StoreFailure.damaged("it has no certificates")
        }
        return .init(
            leafCertificate: certificates.leafCertificate,
            intermediateCertificate: [certificates.intermediateCertificate])
    }

    package func batchReader() throws -> String? { try opened().ledger.batch?.detail.reader }

    package func reset() throws {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try opened()
        guard let batch = book.ledger.batch else { throw StoreError.storeAndForwardBatchNotFound }
        guard !batch.isSent else { throw StoreError.notAllowed }
        try write(.init(.reset, batch.id))
    }

    package func willSend(batch id: String) throws {
        let book = try current(id)
        guard book.ledger.batch?.isSent == false else { return }
        try write(.init(.sent, id))
    }

    package func wasRefused(batch id: String) throws {
        let book = try current(id)
        // A batch with decided payments was not refused.
        guard !book.ledger.batched.contains(where: { $0.answer?.isFinal == true }) else {
            throw PaymentCardReaderStore.StoreError.notAllowed
        }
        guard book.ledger.batch?.isSent == true else { return }
        try write(.init(.refused, id))
    }

    private func current(_ id: String) throws -> StoreBook {
        let book = try opened()
        guard book.ledger.batch?.id == id else {
            throw PaymentCardReaderStore.StoreError.storeAndForwardBatchNotFound
        }
        return book
    }

    package func record(
        _ answers: [String: ProximityReaderSystem.Ledger.Answer],
        references: [String: ProximityReaderSystem.Ledger.Reference] = [:], deletionToken: String? = nil
    ) throws {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try opened()
        guard let batch = book.ledger.batch, batch.isSent else { throw StoreError.storeAndForwardBatchNotFound }
        let payments = book.ledger.batched.filter { answers[$0.id] != nil }
        guard payments.count == answers.count else { throw StoreError.storeAndForwardResultsNotFound }
        var new: [String: ProximityReaderSystem.Ledger.Answer] = [:]
        for payment in payments {
            // A missing answer does not revoke an earlier one.
            guard let answer = answers[payment.id], answer != payment.answer,
                answer.isFinal || payment.answer == nil
            else { continue }
            guard payment.allows(answer) else { throw StoreError.notAllowed }
            new[payment.id] = answer
        }
        let token = deletionToken.flatMap { $0.utf8.count <= DeletionToken.maximumLength ? $0 : nil }
        guard !new.isEmpty || token != nil && token != batch.deletionToken else { return }
        try write(
            .init(.answered, batch.id, detail: StoreDetail.Answered(answers: new, deletionToken: token)),
            deciding: try outcomes(new, references, in: book))
    }

    /// Returns the outcomes of decided payments.
    private func outcomes(
        _ answers: [String: ProximityReaderSystem.Ledger.Answer],
        _ references: [String: ProximityReaderSystem.Ledger.Reference], in book: StoreBook
    ) throws -> [ProximityReaderSystem.Ledger.Outcome] {
        let decided = book.ledger.batched.filter { $0.answer?.isFinal != true && answers[$0.id]?.isFinal == true }
        return try zip(decided, book.storedContents(of: decided)).map { payment, content in
            var payment = payment
            payment.answer = answers[payment.id]
            return .init(
                payment: .init(payment), time: now(), reference: references[payment.id],
                attachment: content.attachment.isEmpty ? nil : content.attachment)
        }
    }

    /// Returns the unacknowledged outcomes after `number`, the oldest first, and the number of the last one.
    package func outcomes(
        after number: Int64 = 0, limit: Int = .max
    ) throws -> [(number: Int64, outcome: ProximityReaderSystem.Ledger.Outcome)] {
        try opened().outcomes(after: number, limit: limit)
    }

    package func acknowledge(_ payment: String) throws { try opened().acknowledge(payment) }

    /// Yields at once, and whenever there are new outcomes.
    package nonisolated func newOutcomes() -> AsyncStream<Void> { outcomesChanged.stream() }

    /// Records the reason for a pause of forwarding; nil ends the pause.
    package func pause(_ reason: String?, for duration: Duration = .zero) {
        pause = reason.map { reason in
            .init(
                reason: reason, since: pause?.since ?? now(),
                until: now().addingTimeInterval(duration / .seconds(1)))
        }
        metrics.forwardingPaused.set(to: reason != nil)
    }

    /// Returns the receipt data of a stored payment; nil if it is not stored.
    package func receipt(of id: String) throws -> ProximityReaderSystem.Ledger.Receipt? {
        let book = try opened()
        guard let payment = book.ledger.payments[id] else { return nil }
        return try book.storedContents(of: [payment]).first.map { .init(.init(payment), facts: $0.facts) }
    }

    package func deletionToken() throws -> String? { try opened().ledger.batch?.deletionToken }

    package func release(
        _ id: String, _ findings: [String: ProximityReaderSystem.Ledger.Finding],
        references: [String: ProximityReaderSystem.Ledger.Reference] = [:], by person: String, reason: String
    ) throws {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try current(id)
        let payments = book.ledger.batched
        guard Set(findings.keys) == Set(payments.map(\.id)) else { throw StoreError.storeAndForwardResultsNotFound }
        guard book.ledger.batch?.isSent == true, book.ledger.fits(findings), !person.isEmpty, !reason.isEmpty else {
            throw StoreError.notAllowed
        }
        let detail = StoreDetail.Released(
            payments: findings,
            answers: Dictionary(
                uniqueKeysWithValues: payments.compactMap { payment in
                    payment.answer.map { (payment.id, $0) }
                }), person: person, reason: reason)
        let decided = payments.compactMap { payment -> StoreLedger.Payment? in
            guard let answer = findings[payment.id]?.answer else { return nil }
            var payment = payment
            (payment.answer, payment.reason) = (answer, "\(person): \(reason)")
            return payment
        }
        logger.notice("batch \(id) is dissolved by \(person): \(reason)")
        try write(
            .init(.released, id, detail: detail), removing: decided, remembering: decided,
            deciding: try outcomes(findings.compactMapValues(\.answer), references, in: book))
    }

    package func releases() throws -> [ProximityReaderSystem.Ledger.Release] { try opened().ledger.releases }

    /// Deletes the payments that a deletion token covers.
    ///
    /// - Parameter token: a token whose signature is valid and that has not expired.
    /// - Returns: the number of remaining payments.
    package func resolve(_ token: DeletionToken) throws -> Int {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try opened()
        guard book.ledger.usedTokens[token.id] == nil else { throw StoreError.storeAndForwardDeletionTokenInvalid }
        guard let batch = book.ledger.batch, batch.id == token.batch else {
            throw StoreError.storeAndForwardBatchNotFound
        }
        let detail = batch.detail
        let gone = Set(token.payments ?? detail.payments)
        guard token.issuer == detail.issuer, token.audience.contains(detail.reader),
            token.count == detail.payments.count, token.hash.hex == detail.hash, book.ledger.leaves(gone)
        else { throw StoreError.storeAndForwardDeletionTokenInvalid }
        let payments = book.ledger.batched.filter { gone.contains($0.id) }
        try write(
            .init(
                .resolved, batch.id,
                detail: StoreDetail.Resolved(
                    token: token.id, expiration: token.expiration, payments: token.payments)),
            removing: payments, remembering: payments)
        return try opened().ledger.payments.count
    }

    /// Keeps a payment out of the next batches.
    ///
    /// - Throws: `StoreError` of the case `storeAndForwardResultsNotFound` for a payment that is not in state
    ///   `stored`.
    package func setAside(_ payment: String, reason: String) throws {
        let book = try opened()
        guard book.ledger.payments[payment]?.state == .stored else {
            throw PaymentCardReaderStore.StoreError.storeAndForwardResultsNotFound
        }
        try write(.init(.setAside, payment, detail: StoreDetail.SetAside(reason: reason)))
    }

    /// Returns a payment to its place for the next batch.
    ///
    /// - Throws: `StoreError` of the case `storeAndForwardResultsNotFound` for a payment that is not set aside.
    package func putBack(_ payment: String) throws {
        let book = try opened()
        guard book.ledger.payments[payment]?.state == .setAside else {
            throw PaymentCardReaderStore.StoreError.storeAndForwardResultsNotFound
        }
        try write(.init(.putBack, payment))
    }

    // MARK: Inspecting

    /// Returns the readable payments of a damaged store.  The store is closed in the meantime.
    package func salvage() throws -> [StoredPaymentCardReadResult] {
        close()
        return try StoreBook.salvage(folder, wrapping: wrapping)
    }

    package func payments() throws -> [ProximityReaderSystem.Ledger.Payment] {
        try opened().ledger.payments.map { .init($0) }
    }

    /// Returns those of the payments `ids` that are not resolved, in the given order.
    package func payments(_ ids: [String]) throws -> [ProximityReaderSystem.Ledger.Payment] {
        let payments = try opened().ledger.payments
        return ids.compactMap { payments[$0].map { .init($0) } }
    }

    package func count(_ state: ProximityReaderSystem.Ledger.State) throws -> Int {
        try opened().ledger.count(state)
    }

    package func state(of payment: String) throws -> ProximityReaderSystem.Ledger.State? {
        let book = try opened()
        if let found = book.ledger.payments[payment] { return found.state }
        return try book.remembers(payment) ? .resolved : nil
    }

    /// Returns all payments, including the resolved ones.
    package func history() throws -> [ProximityReaderSystem.Ledger.Payment] {
        let book = try opened()
        return try book.forwardedPayments() + book.ledger.payments.map { .init($0) }
    }

    /// Returns the number of entries in the book.
    package func entryCount() throws -> Int { try opened().ledger.entries }

    package func summary(
        under policy: ProximityReaderSystem.StoreAndForwardPolicy?
    ) throws -> ProximityReaderSystem.Ledger.Summary {
        let book = try opened()
        return .init(
            of: book.ledger, under: policy, at: now(), outcomes: try book.countOutcomes(), pause: pause)
    }
}

/// An executor with one thread, which may block on the disk.
final class StoreExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "swift-contactless.store")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}
