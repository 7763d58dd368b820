import SmartCard

/// Offline data authentication (EMV Contactless Book C-3, 5.6 and Annex C).
extension Kernel3 {
    func authenticate(_ decision: CardDecision, _ disposition: inout Disposition) throws(Termination) {
        if disposition.isOffline, !isRefundWithoutApproval(decision) {
            try authenticateOffline(decision, &disposition)
        } else {
            authenticateOnline(decision, &disposition)
        }
    }

    /// Book C-3, 5.6.1.2: an offline approval must be authenticated, by fDDA.
    private func authenticateOffline(
        _ decision: CardDecision, _ disposition: inout Disposition
    ) throws(Termination) {
        let failure = fdda(.offlineApproval)
        disposition.isAuthentic = failure == nil
        guard let failure else { return }
        let reason = "offline data authentication failed: \(failure)"
        let qualifiers = decision.qualifiers ?? []
        if qualifiers.contains(.goOnlineIfOfflineDataAuthenticationFails), isOnlineCapable {
            disposition.requireOnline(reason)
        } else if qualifiers.contains(.switchInterfaceIfOfflineDataAuthenticationFails),
            terminalTransactionQualifiers.contains(.emvContactChip)
        {
            throw .tryAnotherInterface(.insertCard, reason)
        } else {
            disposition.requireDecline(reason)
        }
    }

    /// Book C-3, 5.6.1.1: an online transaction is authenticated, too, if reader and card support that.
    private func authenticateOnline(_ decision: CardDecision, _ disposition: inout Disposition) {
        guard disposition.decline == nil, decision.cryptogram == .arqc, authenticatesOnline(decision) else { return }
        let failure: AuthenticationFailure?
        if decision.applicationInterchangeProfile.contains(.dda) {
            failure = fdda(.onlineAuthorization)
        } else {
            let result = activation.offlineDataAuthentication.sda(
                of: signedRecords, for: .onlineAuthorization, data: authenticationData)
            failure = result.failure
        }
        disposition.isAuthentic = failure == nil
        if let failure { disposition.requireDecline("offline data authentication failed: \(failure)") }
    }

    /// Book C-3, 5.4.2.1: where reader and card authenticate online transactions, the card supplies the data for it,
    /// whether this transaction goes online or not; a card that declines need not.
    func checkAuthenticationData(_ decision: CardDecision, _ disposition: Disposition) throws(Termination) {
        guard disposition.decline == nil, decision.cryptogram != .aac, authenticatesOnline(decision) else { return }
        let needed: [TLVTag] =
            decision.applicationInterchangeProfile.contains(.dda)
            ? [0x9F4B, 0x8F, 0x90, 0x9F32, 0x9F46, 0x9F47, 0x9F69] : [0x93, 0x8F, 0x90, 0x9F32]
        for tag in needed where card[tag] == nil { throw .missing(tag) }
    }

    /// Returns true if both reader and card authenticate online transactions.
    private func authenticatesOnline(_ decision: CardDecision) -> Bool {
        terminalTransactionQualifiers.contains(.offlineDataAuthenticationForOnline)
            && !decision.applicationInterchangeProfile.isDisjoint(with: [.dda, .sda])
    }

    private func fdda(_ purpose: SignaturePurpose) -> AuthenticationFailure? {
        activation.offlineDataAuthentication.iccKey(signing: signedRecords, data: authenticationData)
            .flatMap { $0.fdda(for: purpose, data: authenticationData) }.failure
    }

    /// Book C-3, table C-1: three values are the terminal's.
    private func authenticationData(_ tag: TLVTag) -> [UInt8]? {
        switch tag {
        case 0x9F37, 0x9F02, 0x5F2A: terminalValue(tag)
        default: card[tag]
        }
    }
}

extension Result {
    fileprivate var failure: Failure? {
        switch self {
        case .success: nil
        case .failure(let failure): failure
        }
    }
}
