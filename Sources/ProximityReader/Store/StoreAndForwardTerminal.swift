import EMVContactless
import Foundation
import Logging

/// The terminal's part in storing and forwarding.
extension PaymentTerminal {
    /// - Throws: ``PaymentCardReaderError/storeAndForwardNotAllowed``
    nonisolated func cardReaderStore() throws -> PaymentCardReaderStore {
        guard configuration.storeAndForward != nil || RecordStore.exists(in: configuration.folder) else {
            throw PaymentCardReaderError.storeAndForwardNotAllowed
        }
        return PaymentCardReaderStore(terminal: self)
    }

    // MARK: Preparing

    /// Makes a note of an online preparation, which payments may be stored after.
    func notePreparation(_ token: ReaderToken) async {
        guard configuration.storeAndForward != nil else { return }
        do {
            try await store.add(
                Preparation(
                    issuer: token.issuer, merchant: token.merchant, terminalProfile: token.terminalProfile,
                    cardDataKey: token.cardDataKey, tokenExpiration: token.expiration, time: configuration.now(),
                    uptime: configuration.uptime() / .seconds(1), boot: configuration.bootIdentifier(),
                    reader: try await readerIdentifier()))
        } catch {
            // Payments online do not need the store.
            logger.error("payments cannot be stored: \(error)")
        }
    }

    /// What payments may be stored after now, and until when.
    func storingTerms() async throws -> (preparation: Preparation, end: Date) {
        guard let policy = configuration.storeAndForward else {
            throw PaymentCardReaderError.storeAndForwardNotAllowed
        }
        do {
            guard let preparation = try await store.preparation() else {
                throw PaymentCardReaderError.storeAndForwardNotAllowed
            }
            if let error = storingEnd(preparation) {
                // At this point there is no session yet that could have expired.
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

    /// Why nothing may be stored any more after `preparation`; nil while it may.
    func storingEnd(_ preparation: Preparation) -> PaymentCardReaderError? {
        let admission = configuration.storeAndForward?.admits(
            preparation, at: configuration.now(), uptime: configuration.uptime() / .seconds(1),
            boot: configuration.bootIdentifier())
        return switch admission {
        case .good: nil
        case .clockWentBack: .storeAndForwardSessionInvalidated
        case .expired: .storeAndForwardSessionExpired
        case .restarted, nil: .storeAndForwardNotAllowed
        }
    }

    // MARK: Reading

    /// - Throws: what keeps the payment from being stored, as far as it is known without the card.
    func admit(_ request: CardRequest, to session: TerminalSession) async throws {
        guard session.preparation != nil, let policy = configuration.storeAndForward else { return }
        guard case .transaction(let payment) = request, payment.type == .purchase else {
            throw PaymentCardReaderSession.ReadError.readNotAllowed
        }
        do {
            try await store.admit(payment.amount, payment.currencyCode.uppercased(), under: policy)
        } catch let failure as StoreFailure {
            throw PaymentCardReaderError(failure)
        }
    }

    /// Stores a payment, on the disk when this returns; in a session that does not store, does nothing.
    func keep(
        _ result: PaymentCardReadResult, _ cvm: Outcome.CVM?, of request: CardRequest, in session: TerminalSession
    ) async throws {
        guard let preparation = session.preparation, let policy = configuration.storeAndForward,
            case .transaction(let payment) = request
        else { return }
        // The wait for the card may have been long.
        if let error = storingEnd(preparation) { throw error }
        try policy.admit(result, cvm)
        guard let sealed = result.paymentCardData else { throw PaymentCardReaderSession.ReadError.paymentReadFailed }
        do {
            try await store.add(
                RecordStore.Payment(
                    id: result.id, paymentCardData: sealed, generalCardData: result.generalCardData ?? "",
                    amount: payment.amount, currency: payment.currencyCode.uppercased(),
                    issuer: session.token.issuer, merchant: session.token.merchant))
        } catch let failure as StoreFailure {
            throw PaymentCardReaderError(failure)
        }
    }

    func declineLast(in session: TerminalSession) async throws {
        guard has(session) else { throw PaymentCardReaderSession.ReadError.noReaderSession }
        do {
            try await store.withdrawLast()
        } catch let failure as StoreFailure {
            throw PaymentCardReaderError(failure)
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
            token, keys: configuration.tokenKeys, issuer: configuration.tokenIssuer, at: configuration.now())
        return try await inStore { try await $0.resolve(token) }
    }

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
