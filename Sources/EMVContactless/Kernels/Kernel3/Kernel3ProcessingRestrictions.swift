import SmartCard

/// Processing restrictions (EMV Contactless Book C-3, 5.5).
extension Kernel3 {
    func restrict(_ decision: CardDecision, _ disposition: inout Disposition) throws(Termination) {
        checkExpiration(decision, &disposition)
        checkExceptionFile(decision, &disposition)
        try checkUsage(decision, &disposition)
        try checkUsageAtATM(decision, &disposition)
    }

    /// Book C-3, 5.5.1.1: of cards that approve offline.
    private func checkExpiration(_ decision: CardDecision, _ disposition: inout Disposition) {
        guard decision.cryptogram == .tc else { return }
        // A card that has no date, or none that can be, counts as expired.
        let expiration = card[0x5F24].flatMap { CalendarDate(packed: $0) }
        if let expiration, expiration >= activation.transaction.time.date { return }
        if decision.qualifiers?.contains(.goOnlineIfApplicationExpired) == true, isOnlineCapable {
            disposition.requireOnline("the application has expired")
        } else {
            disposition.requireDecline("the application has expired")
        }
    }

    /// Book C-3, 5.5.1.2: of cards that approve offline.
    private func checkExceptionFile(_ decision: CardDecision, _ disposition: inout Disposition) {
        guard options.checksExceptionFile, decision.cryptogram == .tc else { return }
        let sequenceNumber = card[0x5F34].flatMap { $0.count == 1 ? $0[0] : nil }
        if activation.exceptionFile.contains(decision.pan, sequenceNumber: sequenceNumber) {
            disposition.requireDecline("the account number stands in the exception file")
        }
    }

    /// Book C-3, 5.5.1.3 and 5.5.1.4.
    private func checkUsage(_ decision: CardDecision, _ disposition: inout Disposition) throws(Termination) {
        let domestic: ApplicationUsageControl
        let international: ApplicationUsageControl
        let switchInterface: CardTransactionQualifiers
        switch activation.transaction.kind {
        case .cash where options.checksUsageForCash:
            (domestic, international) = (.domesticCash, .internationalCash)
            switchInterface = .switchInterfaceForCash
        case .purchaseWithCashback where options.checksUsageForCashback:
            (domestic, international) = (.domesticCashback, .internationalCashback)
            switchInterface = .switchInterfaceForCashback
        default: return
        }
        // A card that does not say what it is for, or where it comes from, is not for this.
        if let usage = card[0x9F07].flatMap({ ApplicationUsageControl($0) }), let issuer = card[0x5F28],
            let terminal = terminalValue(0x9F1A), usage.contains(issuer == terminal ? domestic : international)
        {
            return
        }
        let reason = "the card is not for this type of transaction here"
        if decision.qualifiers?.contains(switchInterface) == true {
            throw .tryAnotherInterface(.insertOrSwipeCard, reason)
        }
        disposition.requireDecline(reason)
    }

    /// Book C-3, 5.5.1.5: what a card approves offline is paid out by an ATM only after it went online, and only if the
    /// card is for that.
    private func checkUsageAtATM(_ decision: CardDecision, _ disposition: inout Disposition) throws(Termination) {
        guard options.checksUsageAtATM, decision.cryptogram == .tc,
            let terminalType = terminalValue(0x9F35)?.first, (0x14...0x16).contains(terminalType)
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
