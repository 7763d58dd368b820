import SmartCard

/// The decisions before the request for a cryptogram (EMV Contactless Book C-2, 6.10, S456.12 to S456.50, and 7.1,
/// 7.5, 7.7 and 7.8).
extension Kernel2 {
    mutating func manageRisk() throws(Termination) -> KernelStep {
        // S456.14 and S456.15
        guard amount <= transactionLimit else {
            throw selectNext(.maximumLimitExceeded, "the amount is above the limit")
        }
        // S456.16 and S456.17
        for tag in [.applicationExpirationDate, .pan, .cdol1] as [TLVTag] where data[tag] == nil {
            throw notThisCard(.cardDataMissing, "the card does not give \(tag)")
        }
        // No book has this rule for Kernel 2; Book C-3, Annex A, has it for Kernel 3.
        if let track = data[.track2EquivalentData].flatMap({ try? Track2($0) }),
            track.pan != data[.pan].flatMap({ PAN(packed: $0) })
        {
            throw notThisCard(.cardDataError, "5A and 57 have different account numbers")
        }
        // S456.18 to S456.20
        if readsDataStorage, data[.dsID] != dataStorageIdentifier {
            throw notThisCard(.cardDataError, "the data storage is of another account")
        }
        // S456.21 to S456.23
        collectAllReadTags()
        // S456.24 to S456.29
        if requiresCDA { try prepareAuthentication() }
        // S456.30 to S456.33
        if exceedsCVMLimit { receipt = true }
        data[.terminalCapabilities] = [
            data.byte(.cardDataInputCapability),
            data.byte(exceedsCVMLimit ? .cvmCapabilityRequired : .cvmCapabilityNotRequired),
            data.byte(.securityCapability),
        ]
        // S456.34 (BR1.1 to BR1.3)
        if applicationCapabilities.contains(.readsBalance), data.isPresent(.balanceReadBeforeGenAC) {
            return send(.getData(.offlineAccumulatorBalance), then: .waitingForBalanceBeforeCryptogram)
        }
        return try manageRiskAfterBalance()
    }

    /// S16.4 to S16.9: a card without a balance in its answer has none.
    mutating func takeBalanceBeforeCryptogram(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        data[.balanceReadBeforeGenAC] = Self.balance(response) ?? []
        return try manageRiskAfterBalance()
    }

    /// Tag 9F50 with six bytes.
    static func balance(_ response: ResponseAPDU) -> [UInt8]? {
        guard response.status == .success, response.data.count == 9, response.data.starts(with: [0x9F, 0x50, 0x06])
        else { return nil }
        return Array(response.data.dropFirst(3))
    }

    private static let signatureData: [TLVTag] = [
        .certificationAuthorityPublicKeyIndex, .issuerPublicKeyCertificate, .issuerPublicKeyExponent,
        .iccPublicKeyCertificate, .iccPublicKeyExponent, .staticDataAuthenticationTagList,
    ]

    /// Checks that the card's signature can be verified at all.
    private mutating func prepareAuthentication() throws(Termination) {
        // S456.25
        if Self.signatureData.contains(where: { data[$0] == nil }) {
            verificationResults.insert([.iccDataMissing, .cdaFailed])
        }
        if let index = data[.certificationAuthorityPublicKeyIndex]?.first,
            !activation.offlineDataAuthentication.hasKey(index: index)
        {
            verificationResults.insert(.cdaFailed)
        }
        // S456.26 and S456.27: the AIP is always signed.
        guard data[.staticDataAuthenticationTagList] == [0x82] else {
            throw notThisCard(.cardDataError, "the static data authentication tag list is not 82")
        }
    }

    private mutating func manageRiskAfterBalance() throws(Termination) -> KernelStep {
        let transaction = activation.transaction
        // S456.35 and 7.7
        verificationResults.formUnion(
            ProcessingRestrictions.check(transaction, card: { data[$0] }, terminal: { data[$0] }))
        // S456.36 and 7.5
        let verification = verifyCardholder()
        data[.cvmResults] = verification.results.bytes
        verificationResults.formUnion(verification.findings)
        cvm = verification.method
        if cvm == .signature { receipt = true }
        // S456.37 and S456.38
        if amount > data.amount(.readerContactlessFloorLimit) ?? 0 { verificationResults.insert(.floorLimitExceeded) }
        // S456.39 and 7.8
        cryptogramType = analyze()
        // S456.42 and S456.50
        if let command = Self.putData(&toWriteBefore) {
            return send(command, then: .waitingForPutDataBeforeCryptogram)
        }
        return try requestCryptogram()
    }

    /// 7.5
    private func verifyCardholder() -> CardholderVerification {
        // CVM.1 to CVM.4
        if verifiesOnDevice { return .onDevice(isRequired: exceedsCVMLimit) }
        // CVM.5 and CVM.6
        guard interchangeProfile.contains(.cardholderVerification) else { return .unsupported }
        // CVM.7 to CVM.25
        return CardholderVerification(
            data[.cvmList].flatMap { CVMList($0) }, for: activation.transaction,
            applicationCurrency: data[.applicationCurrencyCode],
            terminalType: data[.terminalType]?.first,
            capability: CVMCapability(rawValue: data.byte(.terminalCapabilities, at: 1)),
            procedure: .kernel2)
    }

    /// 7.8
    private func analyze() -> ApplicationCryptogramType {
        func code(_ tag: TLVTag) -> TerminalVerificationResults {
            data[tag].flatMap { TerminalVerificationResults($0) } ?? []
        }
        var issuer = ActionCodes(issuer: { data[$0] })
        // TAA.8, TAA.14: a card without action codes goes online for all bits but those of the relay resistance
        // protocol's having been performed or not.
        let anything = TerminalVerificationResults(rawValue: 0xFF_FFFF_FFFC)
        if data[.issuerActionCodeOnline] == nil { issuer.online = anything }
        if data[.issuerActionCodeDefault] == nil { issuer.default = anything }
        return TerminalActionAnalysis.request(
            for: verificationResults,
            terminal: ActionCodes(
                denial: code(.terminalActionCodeDenial), online: code(.terminalActionCodeOnline),
                default: code(.terminalActionCodeDefault)),
            issuer: issuer,
            capability: .init(terminalType: data.byte(.terminalType)) ?? .offlineWithOnlineCapability)
    }

    /// S12.2 to S12.12: the first failure ends it.
    mutating func takePutDataBeforeCryptogram(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        guard response.status == .success else { return try requestCryptogram() }
        if let command = Self.putData(&toWriteBefore) {
            return send(command, then: .waitingForPutDataBeforeCryptogram)
        }
        if toWriteBefore.isEmpty { data[.preGenACPutDataStatus] = Self.putDataCompleted }
        return try requestCryptogram()
    }
}
