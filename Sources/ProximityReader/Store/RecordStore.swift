package import CardEncryption
import Crypto
import Dispatch
package import Foundation
import GRDB
import Logging
import SmartCard

/// The payments of this machine, on its disk.
///
/// In a folder of mode 0700: `store.sqlite`, which has a book of entries that are only ever added, each with the keyed hash
/// of all before it, and beside the book what is stored, until it may be deleted; `store.head`, how far the book has come;
/// `store.key`, the device's keys; `store.key.lock`, which keeps other processes out.
///
/// Opened by the first call, and closed with the value.  A call has its effect on the disk before it returns, or has none.
package actor RecordStore {
    /// What is stored of a read.
    package struct Payment: Sendable {
        package let id: String
        package let paymentCardData: String
        package let generalCardData: String
        /// In the currency's major unit.
        package let amount: Decimal
        package let currency: String
        package let issuer: String
        package let merchant: String
        package let card: StoredCard?

        package init(
            id: String, paymentCardData: String, generalCardData: String, amount: Decimal, currency: String,
            issuer: String, merchant: String, card: StoredCard? = nil
        ) {
            self.id = id
            self.paymentCardData = paymentCardData
            self.generalCardData = generalCardData
            self.amount = amount
            self.currency = currency
            self.issuer = issuer
            self.merchant = merchant
            self.card = card
        }
    }

    private let folder: URL
    private let wrapping: WrappingKey?
    private let now: @Sendable () -> Date
    private var book: StoreBook?

    /// Blocks for the disk, on a thread of its own.
    private let executor = StoreExecutor()
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    package init(folder: URL, wrapping: WrappingKey? = nil, now: @escaping @Sendable () -> Date) {
        self.folder = folder
        self.wrapping = wrapping
        self.now = now
    }

    /// Lets others have the store.  The next call opens it again.
    package func close() { book = nil }

    /// Whether there is one in `folder`.
    static func exists(in folder: URL) -> Bool {
        FileManager.default.fileExists(atPath: folder.appending(path: "store.sqlite").path)
    }

    /// - Throws: ``StoreFailure``.
    private func opened() throws -> StoreBook {
        if let book, !book.hasFailed { return book }
        // Closed before it is opened again: one at a time has it.
        book = nil
        let opened = try StoreBook(folder, wrapping: wrapping, at: now())
        book = opened
        return opened
    }

    // MARK: Storing

    package func add(_ preparation: Preparation) throws {
        try opened().write([.init(.prepared, detail: preparation)], at: now())
    }

    package func preparation() throws -> Preparation? { try opened().ledger.preparation }

    /// The latest time that is known.
    package func latest() throws -> Date { try opened().ledger.latest }

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
        let form = StoredPaymentCardReadResult.canonicalForm(
            id: payment.id, paymentCardData: payment.paymentCardData, generalCardData: payment.generalCardData)
        let content = StoredPaymentCardReadResult(
            id: payment.id, paymentCardData: payment.paymentCardData, generalCardData: payment.generalCardData,
            signature: try book.sign(form))
        let detail = StoreDetail.Stored(
            amount: payment.amount.description, currency: payment.currency, issuer: payment.issuer,
            merchant: payment.merchant, payment: PaymentHash(SHA256.hash(data: form)).description, card: payment.card)
        do {
            try book.write([.init(.stored, payment.id, detail: detail)], at: now(), adding: content)
        } catch {
            withdrawUnwanted(payment.id)
            throw error
        }
    }

    /// What could not be stored for sure must not turn up later: whoever was told of the error has paid in another way.
    private func withdrawUnwanted(_ id: String) {
        do {
            let book = try opened()
            guard let payment = book.ledger.payments[id] else { return }
            try book.write(
                [.init(.withdrawn, id, detail: StoreDetail.Withdrawn(reason: "its storing failed"))], at: now(),
                removing: [payment])
        } catch {
            logger.critical("payment \(id) was not stored, and may be in the store nevertheless: \(error)")
        }
    }

    /// What cards are known by.
    func cardKey() throws -> SymmetricKey { try opened().cardKey }

    /// What a card has paid, as far as it is remembered.
    package func payments(of card: StoredCard) throws -> [ProximityReaderSystem.Ledger.Payment] {
        let book = try opened()
        return try book.past(of: card)
            + book.ledger.payments.lazy.filter { $0.card?.reference == card.reference }.map { .init($0) }
    }

    /// Takes the last payment back.
    ///
    /// - Throws: `ReadError`.
    package func withdrawLast() throws {
        typealias ReadError = PaymentCardReaderSession.ReadError
        let book = try opened()
        guard let last = book.ledger.last else { throw ReadError.storeAndForwardResultNotFound }
        guard let payment = book.ledger.payments[last], payment.state == .stored,
            (0...60).contains(now().timeIntervalSince(payment.time))
        else { throw ReadError.storeAndForwardDeclineFailed }
        try book.write(
            [.init(.withdrawn, last, detail: StoreDetail.Withdrawn(reason: "declined by the application"))],
            at: now(), removing: [payment])
    }

    // MARK: Forwarding

    package func count() throws -> Int { try opened().ledger.payments.count }

    package func makeBatch(size: Int) throws -> StoreAndForwardBatch {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try opened()
        guard size >= 0 else { throw StoreError.storeAndForwardBatchSizeInvalid }
        guard book.ledger.batch == nil else { throw StoreError.storeAndForwardBatchAlreadyExists }
        let waiting = book.ledger.waiting
        // A payment is stored only after a preparation.
        guard waiting > 0, let reader = book.ledger.preparation?.reader else {
            throw StoreError.storeAndForwardResultsNotFound
        }
        guard size <= waiting else { throw StoreError.storeAndForwardBatchSizeInvalid }
        // Of one payment service: the issuer may change only after all is forwarded.
        let payments = book.ledger.next(size == 0 ? waiting : size)
        let id = StoreAndForwardBatch.identifier(of: payments.map(\.id))
        let form = StoreAndForwardBatch.canonicalForm(id: id, payments: payments)
        let detail = StoreDetail.Batched(
            payments: payments.map(\.id), hash: Data(SHA256.hash(data: form)).hex, signature: try book.sign(form),
            reader: reader, issuer: payments.first?.issuer ?? "")
        try book.write([.init(.batched, id, detail: detail)], at: now())
        guard let batch = try batch() else { throw StoreError.storeAndForwardBatchNotFound }
        return batch
    }

    /// - Returns: nil if there is none.
    package func batch() throws -> StoreAndForwardBatch? {
        let book = try opened()
        guard let batch = book.ledger.batch, let certificates = book.ledger.certificates else { return nil }
        return StoreAndForwardBatch(
            id: batch.id, count: batch.detail.payments.count, signature: batch.detail.signature,
            intermediateCertificate: [certificates.intermediateCertificate],
            leafCertificate: certificates.leafCertificate, payments: try book.contents(of: book.ledger.batched))
    }

    package func batchReader() throws -> String? { try opened().ledger.batch?.detail.reader }

    package func reset() throws {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try opened()
        guard let batch = book.ledger.batch else { throw StoreError.storeAndForwardBatchNotFound }
        guard !batch.isSent else { throw StoreError.notAllowed }
        try book.write([.init(.reset, batch.id)], at: now())
    }

    package func willSend(batch id: String) throws {
        let book = try current(id)
        guard book.ledger.batch?.isSent == false else { return }
        try book.write([.init(.sent, id)], at: now())
    }

    package func wasRefused(batch id: String) throws {
        let book = try current(id)
        // What was taken was not refused.
        guard !book.ledger.batched.contains(where: { $0.answer?.isFinal == true }) else {
            throw PaymentCardReaderStore.StoreError.notAllowed
        }
        guard book.ledger.batch?.isSent == true else { return }
        try book.write([.init(.refused, id)], at: now())
    }

    private func current(_ id: String) throws -> StoreBook {
        let book = try opened()
        guard book.ledger.batch?.id == id else {
            throw PaymentCardReaderStore.StoreError.storeAndForwardBatchNotFound
        }
        return book
    }

    package func record(_ answers: [String: ProximityReaderSystem.Ledger.Answer]) throws {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let book = try opened()
        guard book.ledger.batch?.isSent == true else { throw StoreError.storeAndForwardBatchNotFound }
        let payments = book.ledger.batched.filter { answers[$0.id] != nil }
        guard payments.count == answers.count else { throw StoreError.storeAndForwardResultsNotFound }
        var drafts: [StoreBook.Draft] = []
        for payment in payments {
            // That there was no answer this time takes nothing away from the one that there was.
            guard let answer = answers[payment.id], answer != payment.answer,
                answer.isFinal || payment.answer == nil
            else { continue }
            guard payment.allows(answer) else { throw StoreError.notAllowed }
            drafts.append(.init(.answered, payment.id, detail: StoreDetail.Answered(answer: answer)))
        }
        if !drafts.isEmpty { try book.write(drafts, at: now()) }
    }

    /// - Parameter token: one that is signed by the payment service, and has not expired.
    /// - Returns: the number of payments that are left.
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
        try book.write(
            [
                .init(
                    .resolved, batch.id,
                    detail: StoreDetail.Resolved(
                        token: token.id, expiration: token.expiration, payments: token.payments))
            ], at: now(), removing: payments, remembering: payments)
        return book.ledger.payments.count
    }

    /// - Throws: `StoreError` of the case `storeAndForwardResultsNotFound` for a payment that is not in state `stored`.
    package func setAside(_ payment: String, reason: String) throws {
        let book = try opened()
        guard book.ledger.payments[payment]?.state == .stored else {
            throw PaymentCardReaderStore.StoreError.storeAndForwardResultsNotFound
        }
        try book.write([.init(.setAside, payment, detail: StoreDetail.SetAside(reason: reason))], at: now())
    }

    /// - Throws: `StoreError` of the case `storeAndForwardResultsNotFound` for a payment that is not set aside.
    package func putBack(_ payment: String) throws {
        let book = try opened()
        guard book.ledger.payments[payment]?.state == .setAside else {
            throw PaymentCardReaderStore.StoreError.storeAndForwardResultsNotFound
        }
        try book.write([.init(.putBack, payment)], at: now())
    }

    // MARK: Looking

    /// What can still be read of a store that is damaged; nothing has it meanwhile.
    package func salvage() throws -> [StoredPaymentCardReadResult] {
        close()
        return try StoreBook.salvage(folder, wrapping: wrapping)
    }

    package func payments() throws -> [ProximityReaderSystem.Ledger.Payment] {
        try opened().ledger.payments.map { .init($0) }
    }

    package func state(of payment: String) throws -> ProximityReaderSystem.Ledger.State? {
        let book = try opened()
        if let found = book.ledger.payments[payment] { return found.state }
        return try book.remembers(payment) ? .resolved : nil
    }

    /// Those that are resolved among them.
    package func history() throws -> [ProximityReaderSystem.Ledger.Payment] {
        let book = try opened()
        return try book.past() + book.ledger.payments.map { .init($0) }
    }

    /// Of the book.
    package func entryCount() throws -> Int { try opened().ledger.entries }

    package func summary(
        under policy: ProximityReaderSystem.StoreAndForwardPolicy?
    ) throws -> ProximityReaderSystem.Ledger.Summary {
        .init(of: try opened().ledger, under: policy, at: now())
    }
}

/// What is on the disk of a payment, as it goes into a batch.
struct StoredContent: Codable {
    let id: String
    let paymentCardData: String
    let generalCardData: String
    let signature: String
}

extension StoredPaymentCardReadResult {
    func isSigned(by key: DeviceKey) -> Bool {
        guard let der = Data(base64Encoded: signature),
            let signature = try? P256.Signing.ECDSASignature(derRepresentation: der)
        else { return false }
        return key.signing.publicKey.isValidSignature(signature, for: canonicalForm)
    }
}

/// A thread of its own at a time, which may wait for the disk.
final class StoreExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "swift-contactless.store")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}
