import Crypto
import EMVContactless
package import Foundation
import Logging
import SmartCard

/// The terminal's storing and forwarding.
extension PaymentTerminal {
    /// True if payments may be stored, or ever were.
    nonisolated var mayHaveStored: Bool {
        configuration.storeAndForward != nil || RecordStore.exists(in: configuration.folder)
    }

    // MARK: Preparing

    /// Records an online preparation, after which payments may be stored.
    ///
    /// A token that the reader was prepared with before, or an older one, does not prove that there is a network.
    func notePreparation(_ token: ReaderToken) async {
        guard configuration.storeAndForward != nil else { return }
        guard token.isForStoring else {
            logger.warning(
                "payments cannot be stored after this token: it has no typ \(TokenVerifier.Purpose.reading.rawValue), aud or iat"
            )
            return
        }
        do {
            let hash = Data(SHA256.hash(data: Data((token.token?.rawValue ?? "").utf8))).hex
            if let last = try await store.preparation() {
                guard last.tokenHash != hash, last.tokenIssued ?? .distantPast <= token.issued ?? .distantFuture else {
                    logger.notice("the token is no newer than the last; payments may be stored as long as with that")
                    return
                }
            }
            try await store.add(
                Preparation(
                    issuer: token.issuer, merchant: token.merchant, terminalProfile: token.terminalProfile,
                    cardDataKey: token.cardDataKey, tokenExpiration: token.expiration, tokenIssued: token.issued,
                    tokenHash: hash, time: configuration.now(),
                    uptime: configuration.uptime() / .seconds(1), boot: configuration.bootIdentifier(),
                    reader: try await readerIdentifier()))
        } catch {
            // Online payments do not need the store.
            logger.error("payments cannot be stored: \(StoreFailure(error))")
        }
    }

    /// Returns the preparation after which payments may be stored now, and the end of that time.
    func storingTerms() async throws -> (preparation: Preparation, end: Date) {
        guard let policy = configuration.storeAndForward else {
            throw PaymentCardReaderError.storeAndForwardNotAllowed
        }
        do {
            guard let preparation = try await store.preparation() else {
                throw PaymentCardReaderError.storeAndForwardNotAllowed
            }
            if let error = storingEnd(preparation, latest: try await store.latest()) {
                // There is no session yet that could have expired.
                if case .storeAndForwardSessionExpired = error {
                    throw PaymentCardReaderError.storeAndForwardNotAllowed
                }
                throw error
            }
            guard try await store.storedIssuer().map({ $0 == preparation.issuer }) ?? true else {
                throw PaymentCardReaderError.storeAndForwardTokenIssuerChanged
            }
            return (preparation, policy.end(of: preparation))
        } catch let failure as StoreFailure {
            throw PaymentCardReaderError(failure)
        }
    }

    /// Returns the reason for which no payment may be stored any more after `preparation`; nil as long as it may.
    ///
    /// - Parameter latest: the latest known time.
    func storingEnd(_ preparation: Preparation, latest: Date = .distantPast) -> PaymentCardReaderError? {
        let admission = configuration.storeAndForward?.admits(
            preparation, at: configuration.now(), latest: latest, uptime: configuration.uptime() / .seconds(1),
            boot: configuration.bootIdentifier())
        return switch admission {
        case .good: nil
        case .clockWentBack: .storeAndForwardSessionInvalidated
        case .expired: .storeAndForwardSessionExpired
        case .restarted, nil: .storeAndForwardNotAllowed
        }
    }

    // MARK: Reading

    /// Checks whether a purchase could be stored now, as far as that is known without its card.
    ///
    /// - Parameter amount: in the currency's major unit.
    /// - Throws: the reason for which it could not: `ReadError` or ``PaymentCardReaderError``.
    package func checkStoring(_ amount: Decimal, _ currency: String) async throws {
        let (preparation, end) = try await storingTerms()
        let session = TerminalSession(try ReaderToken(preparation), end: end, storingAfter: preparation)
        try await admit(
            .transaction(PaymentCardTransactionRequest(amount: amount, currencyCode: currency)), to: session)
    }

    /// Checks whether the payment may be stored, as far as that is known without the card.
    ///
    /// - Throws: the reason for which it may not.
    func admit(_ request: CardRequest, to session: TerminalSession) async throws {
        guard session.preparation != nil, let policy = configuration.storeAndForward else { return }
        guard case .transaction(let payment) = request, payment.type == .purchase else {
            throw PaymentCardReaderSession.ReadError.readNotAllowed
        }
        do {
            try await store.admit(payment.amount, payment.currencyCode.uppercased(), under: policy)
        } catch let failure as StoreFailure {
            throw PaymentCardReaderSession.ReadError.of(failure)
        }
    }

    /// Stores a payment, which is on the disk when this returns.  Does nothing in an online session.
    func keep(_ result: PaymentCardReadResult, _ card: CardRead, of request: ReadRequest) async throws {
        let session = request.session
        guard let preparation = session.preparation, let policy = configuration.storeAndForward,
            case .transaction(let payment) = request.card
        else { return }
        guard let sealed = result.paymentCardData else { throw PaymentCardReaderSession.ReadError.paymentReadFailed }
        let currency = payment.currencyCode.uppercased()
        do {
            // The wait for the card may have been long.
            if let error = storingEnd(preparation, latest: try await store.latest()) { throw error }
            var (findings, stored) = (card.findings, StoredCard?.none)
            if let number = card.accountNumber {
                let known = StoredCard(number, key: try await store.cardKey())
                findings.formUnion(
                    policy.findings(
                        on: number, sequenceNumber: card.sequenceNumber, paying: payment.amount, currency,
                        after: try await store.payments(of: known), at: configuration.now()))
                stored = known
            } else {
                findings.insert(.iccDataMissing)
            }
            try policy.admit(result, card.cvm, findings)
            try await store.add(
                RecordStore.Payment(
                    id: result.id, paymentCardData: sealed, generalCardData: result.generalCardData ?? "",
                    amount: payment.amount, currency: currency, issuer: session.token.issuer,
                    merchant: session.token.merchant, card: stored,
                    facts: Data(card.outcome.receiptFacts?.encoded ?? []), attachment: request.attachment))
        } catch let failure as StoreFailure {
            throw PaymentCardReaderSession.ReadError.of(failure)
        }
    }

    func declineLast(in session: TerminalSession) async throws {
        guard has(session) else { throw PaymentCardReaderSession.ReadError.noReaderSession }
        do {
            try await store.withdrawLast()
        } catch let failure as StoreFailure {
            throw PaymentCardReaderSession.ReadError.of(failure)
        }
    }

    func status(of session: TerminalSession) async throws -> StoreAndForwardStatus {
        do {
            return StoreAndForwardStatus(readCount: try await store.count(), expiration: session.end)
        } catch let failure as StoreFailure {
            throw PaymentCardReaderError(failure)
        }
    }

    // MARK: Forwarding

    func resolveBatch(_ token: StoreAndForwardBatchDeletionToken) async throws -> Int {
        let token = try await DeletionToken(
            token, by: configuration.tokenVerifier, issuer: configuration.tokenIssuer, at: configuration.now())
        return try await inStore { try await $0.resolve(token) }
    }

    /// Runs a store operation, and maps its errors.
    ///
    /// - Throws: `StoreError`.
    nonisolated func inStore<Value: Sendable>(
        _ body: @Sendable (RecordStore) async throws -> Value
    ) async throws -> Value {
        do {
            return try await body(store)
        } catch let failure as StoreFailure {
            throw PaymentCardReaderStore.StoreError(failure)
        }
    }
}
