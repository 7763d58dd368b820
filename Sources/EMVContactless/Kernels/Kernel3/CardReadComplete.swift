import SmartCard

/// The card's data, checked, with its decision (EMV Contactless Book C-3, 5.4).
struct CardDecision: Sendable {
    let pan: PAN
    let applicationInterchangeProfile: ApplicationInterchangeProfile
    /// The cryptogram's type; nil for the reserved value.
    let cryptogram: ApplicationCryptogramType?
    /// The card transaction qualifiers; nil if the card supplied none.
    let qualifiers: CardTransactionQualifiers?

}

extension CardDecision {
    init(_ card: TLVDatabase) throws(Kernel3.Termination) {
        /// Returns the value of a mandatory object (Book C-3, 5.4.2.1) with its required length.
        func mandatory(_ tag: TLVTag, _ length: ClosedRange<Int>) throws(Kernel3.Termination) -> [UInt8] {
            guard let value = try optional(tag, length) else { throw .missing(tag) }
            return value
        }
        func optional(_ tag: TLVTag, _ length: ClosedRange<Int>) throws(Kernel3.Termination) -> [UInt8]? {
            guard let value = card[tag] else { return nil }
            guard length.contains(value.count) else { throw .endApplication("\(tag) has \(value.count) bytes") }
            return value
        }

        let profile = try mandatory(0x82, 2...2)
        applicationInterchangeProfile = ApplicationInterchangeProfile(profile)
        if applicationInterchangeProfile.contains(.contactlessMode), card[0x9F26] == nil {
            throw .endApplication("the card is in mag-stripe mode (MSD)")
        }
        _ = try mandatory(0x9F26, 8...8)
        _ = try mandatory(0x9F36, 2...2)
        _ = try mandatory(0x9F10, 1...32)
        guard let track = try? Track2(try mandatory(0x57, 1...19)) else {
            throw card[0x57] == nil ? .missing(0x57) : .endApplication("57 is not a track")
        }
        pan = track.pan
        // Book C-3, Annex A, Application PAN: track 2 and 5A agree.
        if let number = card[0x5A], PAN(packed: number) != track.pan {
            throw .endApplication("5A and 57 have different account numbers")
        }

        _ = try optional(0x9F27, 1...1)
        guard let information = card.cryptogramInformationData else { throw .missing(0x9F27) }
        cryptogram = ApplicationCryptogramType(cryptogramInformationData: information)
        qualifiers = try optional(0x9F6C, 2...2).flatMap { CardTransactionQualifiers($0) }
    }
}

extension TLVDatabase.Rules {
    /// The rules of Book C-3 for the card's objects; it checks their lengths when they are used (5.4.2).
    static let kernel3 = Self(
        scope: .visa, nestedTemplates: .ignored, storesUnknownObjects: true, emptyObjectsMayFollow: false)
}

extension TLVDatabase {
    /// Tag 5F34; nil if the card supplies none of one byte.
    var panSequenceNumber: UInt8? { self[.panSequenceNumber].flatMap { $0.count == 1 ? $0[0] : nil } }

    /// Bits 6 and 5, where the cryptogram information data has bits 8 and 7.
    private static func cryptogramType(verificationResults byte: UInt8) -> UInt8 {
        let mask: UInt8 = 0x30
        return (byte & mask) << 2
    }

    /// Tag 9F27 (Book C-3, 5.4.3.1), or in its absence bits 6 and 5 of byte 5 of the issuer application data, the
    /// second byte of Visa's card verification results.
    var cryptogramInformationData: UInt8? {
        if let value = self[.cryptogramInformationData] { return value[0] }
        return self[.issuerApplicationData].flatMap {
            $0.count >= 5 ? Self.cryptogramType(verificationResults: $0[4]) : nil
        }
    }
}

/// The disposition of a transaction: the indicators of Book C-3, each with its reason.
struct Disposition: Sendable {
    /// Online Required by Reader.
    private(set) var online: String?
    /// Decline Required by Reader.
    private(set) var decline: String?
    /// The result of offline data authentication; nil if it was not performed.
    var isAuthentic: Bool?

    /// True if neither is required: the transaction may be approved offline.
    var isOffline: Bool { online == nil && decline == nil }

    mutating func requireOnline(_ reason: String) { online = online ?? reason }
    mutating func requireDecline(_ reason: String) { decline = decline ?? reason }
}

extension Kernel3 {
    /// Book C-3, 5.4.2 to 5.9.
    func decide() throws(Termination) -> Outcome {
        let decision = try CardDecision(card)
        var disposition = Disposition()
        setDisposition(decision, &disposition)
        try checkAuthenticationData(decision, disposition)
        try restrict(decision, &disposition)
        try authenticate(decision, &disposition)
        let cvm = verifyCardholder(decision, &disposition)

        // Book C-3, 5.8 and 5.9
        if let reason = disposition.decline { return declined(reason) }
        guard let reason = disposition.online else {
            // Book C-3, 3.4.1.2: with an AAC the card has approved nothing; the refund succeeds without an approval.
            let isRefund = isRefundWithoutApproval(decision)
            var outcome = approved(cvm, isRefund ? "a refund, which the card need not approve" : "approved offline")
            outcome.isAuthentic = disposition.isAuthentic
            return outcome
        }
        guard isOnlineCapable else { return declined("the reader is offline only: \(reason)") }
        var outcome = onlineRequest(decision, cvm, reason)
        outcome.isAuthentic = disposition.isAuthentic
        return outcome
    }

    var isOnlineCapable: Bool { !terminalTransactionQualifiers.contains(.offlineOnlyReader) }

    /// Returns true if the card only assists a refund, which it need not approve (Book C-3, 3.4.1.2).
    func isRefundWithoutApproval(_ decision: CardDecision) -> Bool {
        activation.transaction.kind == .refund && decision.cryptogram == .aac
    }

    /// Book C-3, 5.4.3.2.
    private func setDisposition(_ decision: CardDecision, _ disposition: inout Disposition) {
        switch decision.cryptogram {
        case .aac where isRefundWithoutApproval(decision): break
        case .aac: disposition.requireDecline("the card declines")
        case .arqc: disposition.requireOnline("the card asks to go online")
        case .tc: break
        case nil: disposition.requireDecline("the card's decision is not known")
        }
        // A refund that the card need not approve has no cryptogram for the issuer.
        if terminalTransactionQualifiers.contains(.onlineCryptogramRequired), !isRefundWithoutApproval(decision) {
            disposition.requireOnline("the reader requires an online cryptogram")
        }
    }
}
