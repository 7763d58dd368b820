import SmartCard

/// Cardholder verification (EMV Contactless Book C-3, 5.7).
extension Kernel3 {
    /// Selects the method of cardholder verification.
    ///
    /// - Returns: the method, or ``Outcome/CVM/none``.
    func verifyCardholder(_ decision: CardDecision, _ disposition: inout Disposition) -> Outcome.CVM {
        guard disposition.decline == nil, !isRefundWithoutApproval(decision) else { return .none }
        let reader = terminalTransactionQualifiers

        guard let qualifiers = decision.qualifiers else {
            guard reader.contains(.cvmRequired) else { return .none }
            // Book C-3, 5.7.1.1: the card does not choose.  A reader that does not rely on devices (TTQ byte 3 bit 7)
            // verifies in the same way: a CVM is required of it, too.
            if reader.contains(.signature) { return .signature }
            if reader.contains(.onlinePIN) { return onlinePIN(&disposition) }
            disposition.requireDecline("the cardholder has to be verified, and the reader cannot")
            return .none
        }

        // Book C-3, 5.7.1.2
        if qualifiers.contains(.onlinePINRequired), reader.contains(.onlinePIN) { return onlinePIN(&disposition) }
        if qualifiers.contains(.consumerDeviceCVMPerformed) {
            if isConfirmed(qualifiers, decision) { return .deviceCVM }
            disposition.requireDecline("that the device has verified the cardholder cannot be relied on")
            return .none
        }
        if qualifiers.contains(.signatureRequired), reader.contains(.signature) { return .signature }

        // Book C-3, 5.7.1.3
        if reader.contains(.cvmRequired) {
            disposition.requireDecline("the cardholder has to be verified, and card and reader have no way in common")
        }
        return .none
    }

    private func onlinePIN(_ disposition: inout Disposition) -> Outcome.CVM {
        disposition.requireOnline("the PIN is verified online")
        return .onlinePIN
    }

    /// Returns true if the card signed the qualifiers, or the issuer will see them: bytes 6 and 7 of the card
    /// authentication related data repeat them; without that data only an ARQC suffices.
    private func isConfirmed(_ qualifiers: CardTransactionQualifiers, _ decision: CardDecision) -> Bool {
        guard let related = card[0x9F69] else { return decision.cryptogram == .arqc }
        return related.count >= 7 && Array(related[5..<7]) == qualifiers.bytes
    }
}
