import SmartCard

/// GENERATE AC (EMV Contactless Book C-2, 6: S9 and S11, and 7.6, Prepare GEN AC).
extension Kernel2 {
    /// S456.43 to S456.49, S12.13 to S12.19: a torn transaction of this account is recovered first.
    mutating func requestCryptogram() throws(Termination) -> KernelStep {
        if recoversTransactions, let record = tornTransactions.record(like: tornRecordData) {
            recovering = record
            return send(.recoverAC(record.data[.drdolRelatedData] ?? []), then: .waitingForRecoveredCryptogram)
        }
        return send(try prepareCryptogram(), then: .waitingForCryptogram)
    }

    /// 7.6
    mutating func prepareCryptogram() throws(Termination) -> CommandAPDU {
        let use = try useDataStorage()
        var isSigned = use != .none
        if use == .none {
            // GAC.20 to GAC.27
            if !requiresCDA || verificationResults.contains(.cdaFailed) {
                // GAC.22 and GAC.23: a device that verifies the cardholder has to authenticate itself.
                if verifiesOnDevice { cryptogramType = .aac }
            } else {
                isSigned = cryptogramType != .aac || applicationCapabilities.contains(.signsEveryCryptogram)
            }
        }
        // GAC.26, GAC.27, GAC.45
        let control = cryptogramType.rawValue | (isSigned ? Self.cdaRequested : 0)
        data[.referenceControlParameter] = [control]
        let storage = use == .write ? try dataStorageRelatedData() : []
        // GAC.29, GAC.47
        do throws(MalformedCardData) {
            let related = try data.related(to: data[.cdol1] ?? [])
            data[.cdol1RelatedData] = related
            guard related.count + storage.count <= 255 else {
                throw MalformedCardData(reason: "with the DSDOL it asks for more than a command holds")
            }
            return .generateAC(referenceControl: control, data: related + storage)
        } catch {
            throw notThisCard(.cardDataError, "CDOL1: \(error.reason)")
        }
    }

    mutating func takeCryptogram(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        // S9.16 and S9.17
        guard response.status == .success else { throw notThisCard(response, to: "GENERATE AC") }
        try storeCryptogram(response)
        return try continueWithCryptogram()
    }

    /// S9.18 to S9.24; S11.8 to S11.21
    mutating func storeCryptogram(_ response: ResponseAPDU) throws(Termination) {
        try store(response, to: "GENERATE AC", format1: .applicationCryptogram)
        cryptogramResponse = response.data
        try checkCryptogramType()
    }

    /// S9.21 to S9.24, S10.15 to S10.18, S11.18 to S11.21
    func checkCryptogramType() throws(Termination) {
        for tag in [.applicationTransactionCounter, .cryptogramInformationData] as [TLVTag] where data[tag] == nil {
            throw notThisCard(.cardDataMissing, "the card does not give \(tag)")
        }
        // The card may return the requested type, or a lower one.
        let requested = ApplicationCryptogramType(cryptogramInformationData: data.byte(.referenceControlParameter))
        let isAllowed =
            switch ApplicationCryptogramType(cryptogramInformationData: data.byte(.cryptogramInformationData)) {
            case .aac: true
            case .arqc: requested != .aac
            case .tc: requested == .tc
            case nil: false
            }
        guard isAllowed else { throw notThisCard(.cardDataError, "the card gives more than it was asked for") }
    }

    /// S9.25 (7.3, BR2.1 to BR2.3)
    mutating func continueWithCryptogram() throws(Termination) -> KernelStep {
        if applicationCapabilities.contains(.readsBalance), data.isPresent(.balanceReadAfterGenAC) {
            // S17 ends where the previous state would have: ``recovering`` tells whether a recovery has failed.
            return send(.getData(.offlineAccumulatorBalance), then: .waitingForBalanceAfterCryptogram)
        }
        return try concludeCryptogram()
    }

    /// S17.2 to S17.6
    mutating func takeBalanceAfterCryptogram(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        data[.balanceReadAfterGenAC] = Self.balance(response) ?? []
        return try concludeCryptogram()
    }

    /// S9.26 to S9.28, S10.20 to S10.22, S11.23 to S11.25
    mutating func concludeCryptogram() throws(Termination) -> KernelStep {
        if toWriteAfter.isEmpty { shown.append(UserInterfaceRequest(.clearDisplay, .cardReadSuccessfully)) }
        if data[.signedDynamicApplicationData] != nil { try authenticate() } else { try acceptWithoutSignature() }
        return concludeTransaction()
    }
}
