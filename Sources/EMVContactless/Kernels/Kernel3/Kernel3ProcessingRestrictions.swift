import SmartCard

/// Processing restrictions (EMV Contactless Book C-3, 5.5).
extension Kernel3 {
    /// Performs the checks until one makes the reader decline; a card that declines is still checked.
    func restrict(_ decision: CardDecision, _ disposition: inout Disposition) throws(Termination) {
        let isDeclinedByCard = disposition.decline != nil
        checkExpiration(decision, &disposition)
        checkExceptionFile(decision, &disposition)
        guard isDeclinedByCard || disposition.decline == nil else { return }
        try checkUsage(decision, &disposition)
        guard isDeclinedByCard || disposition.decline == nil else { return }
        try checkUsageAtATM(decision, &disposition)
    }

    /// Book C-3, 5.5.1.1: for cards that approve offline.
    private func checkExpiration(_ decision: CardDecision, _ disposition: inout Disposition) {
        guard decision.cryptogram == .tc else { return }
        let date = activation.transaction.time.date
        guard !ProcessingRestrictions.expirationDate(card[0x5F24], on: date).isEmpty else { return }
        if decision.qualifiers?.contains(.goOnlineIfApplicationExpired) == true, isOnlineCapable {
            disposition.requireOnline("the application has expired")
        } else {
            disposition.requireDecline("the application has expired")
        }
    }

    /// Book C-3, 5.5.1.2: for cards that approve offline.
    private func checkExceptionFile(_ decision: CardDecision, _ disposition: inout Disposition) {
        guard options.checksExceptionFile, decision.cryptogram == .tc else { return }
        if activation.exceptionFile.contains(decision.pan, sequenceNumber: card.panSequenceNumber) {
            disposition.requireDecline("the account number stands in the exception file")
        }
    }

    /// Book C-3, 5.5.1.3 and 5.5.1.4.
    private func checkUsage(_ decision: CardDecision, _ disposition: inout Disposition) throws(Termination) {
        // A card that does not state its permitted uses or its country permits none of them.
        let usage = card[0x9F07].flatMap { ApplicationUsageControl($0) } ?? []
        var isDomestic: Bool?
        if let issuer = card[0x5F28], let terminal = terminalValue(0x9F1A) { isDomestic = issuer == terminal }
        let isAllowed: Bool?
        let switchInterface: CardTransactionQualifiers
        switch activation.transaction.kind {
        case .cash where options.checksUsageForCash:
            isAllowed = isDomestic.map { usage.allowsCash(isDomestic: $0) }
            switchInterface = .switchInterfaceForCash
        case .purchaseWithCashback where options.checksUsageForCashback:
            isAllowed = isDomestic.map { usage.allowsCashback(isDomestic: $0) }
            switchInterface = .switchInterfaceForCashback
        default: return
        }
        if isAllowed == true { return }
        let reason = "the card is not for this type of transaction here"
        if decision.qualifiers?.contains(switchInterface) == true {
            throw .tryAnotherInterface(.insertOrSwipeCard, reason)
        }
        disposition.requireDecline(reason)
    }

    /// Book C-3, 5.5.1.5: an ATM pays out an offline approval only after it went online, and only if the card permits
    /// ATMs.
    private func checkUsageAtATM(_ decision: CardDecision, _ disposition: inout Disposition) throws(Termination) {
        guard options.checksUsageAtATM, decision.cryptogram == .tc,
            let type = terminalValue(0x9F35)?.first, TerminalType(type).isUnattendedAtFinancialInstitution
        else { return }
        guard let qualifiers = decision.qualifiers else {
            return disposition.requireDecline("the card does not say whether it is for ATMs")
        }
        guard qualifiers.contains(.notValidForContactlessATM) else {
            return disposition.requireOnline("an ATM approves nothing offline")
        }
        let reason = "the card is not for contactless ATMs"
        if card[0x9F07].flatMap({ ApplicationUsageControl($0) })?.contains(.atms) == true {
            throw .tryAnotherInterface(.insertOrSwipeCard, reason)
        }
        disposition.requireDecline(reason)
    }
}
