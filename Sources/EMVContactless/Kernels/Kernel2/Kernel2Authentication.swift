import SmartCard

/// The processing of the cryptogram: combined data authentication, and the outcome (EMV Contactless Book C-2, 6:
/// S910).
extension Kernel2 {
    /// S910.1 to S910.7, S11.40 to S11.46
    mutating func authenticate() throws(Termination) {
        let verdict = activation.offlineDataAuthentication.iccKey(signing: signedRecords) { data[$0] }
            .flatMap {
                $0.cda(
                    response: cryptogramResponse,
                    transactionData: (data[.pdolRelatedData] ?? []) + (data[.cdol1RelatedData] ?? []),
                    unpredictableNumber: data[.unpredictableNumber] ?? [])
            }
        let signed: SignedCryptogram
        switch verdict {
        case .success(let cryptogram): signed = cryptogram
        case .failure(let failure): throw authenticationFailed("\(failure)")
        }
        // S910.3, S910.3.1, S910.4.1: further signed data.
        var rest = signed.dynamicData.rest[...]
        var summaries: [[UInt8]] = []
        if readsDataStorage {
            let length = dataStorageVersion == 1 ? 8 : 16
            let end = rest.count - (relayResistanceWasPerformed ? relayResistanceData.count : 0)
            while summaries.count < 2, (summaries.count + 1) * length <= end {
                summaries.append(Array(rest.prefix(length)))
                rest = rest.dropFirst(length)
            }
        }
        if relayResistanceWasPerformed, !rest.starts(with: relayResistanceData) {
            throw authenticationFailed("the relay resistance data are not those that were exchanged")
        }
        isAuthentic = true
        data[.iccDynamicNumber] = signed.dynamicData.iccDynamicNumber
        data[.applicationCryptogram] = signed.applicationCryptogram
        if readsDataStorage { try checkDataStorage(summaries) }
    }

    private var signedRecords: StaticDataToBeAuthenticated { records?.signedRecords ?? StaticDataToBeAuthenticated() }

    /// S910.7
    private mutating func authenticationFailed(_ reason: String) -> Termination {
        isAuthentic = false
        verificationResults.insert(.cdaFailed)
        return notThisCard(.authenticationFailed, "offline data authentication failed: \(reason)")
    }

    /// S910.30 to S910.39: the card has not signed.
    mutating func acceptWithoutSignature() throws(Termination) {
        guard data[.applicationCryptogram] != nil else {
            throw notThisCard(.cardDataMissing, "the card does not give 9F26")
        }
        let control = data.byte(.referenceControlParameter)
        let wasAsked = control & Self.cdaRequested != 0
        if ApplicationCryptogramType(cryptogramInformationData: data.byte(.cryptogramInformationData)) == .aac {
            // A card that declines need not sign, unless a signed cryptogram was requested.
            guard !readsDataStorage,
                !(ApplicationCryptogramType(cryptogramInformationData: control) == .aac && wasAsked)
            else {
                throw notThisCard(.cardDataError, "the card does not sign that it declines")
            }
            return
        }
        guard !wasAsked else { throw notThisCard(.cardDataError, "the card does not sign") }
        if relayResistanceWasPerformed { putRelayResistanceDataIntoTrack() }
    }

    /// S910.39: track 2 informs the issuer of data that is not signed.
    private mutating func putRelayResistanceDataIntoTrack() {
        guard let value = data[.track2EquivalentData], let track = try? Track2(value) else { return }
        let number = value.hex.prefix { $0 != "D" }
        let end = number.count + 8
        guard track.expiration != nil, track.serviceCode != nil else { return }
        let index = data.byte(.certificationAuthorityPublicKeyIndex)
        let entropy = (data[.deviceRelayResistanceEntropy] ?? []).map { Int($0) }
        guard entropy.count == 4 else { return }
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        var discretionary = data[.certificationAuthorityPublicKeyIndex] != nil && index < 10 ? "\(index)" : "0"
        discretionary += "\(data.byte(.rrpCounter))" + digits(entropy[2] << 8 | entropy[3], 5)
        if number.count <= 16 { discretionary += digits(entropy[1], 3) }
        discretionary += digits(min(data.number(.measuredRelayResistanceTime) / 10, 999), 3)
        var text = String(value.hex.prefix(end)) + discretionary
        if text.count % 2 != 0 { text += "F" }
        if let bytes = try? [UInt8](hex: text) { data[.track2EquivalentData] = bytes }
    }

    // MARK: Outcome

    /// S910.70 to S910.78
    mutating func concludeTransaction() -> KernelStep {
        if toWriteAfter.isEmpty { return concludeAfterCard() }
        guard let command = Self.putData(&toWriteAfter) else { return concludeAfterPutData() }
        return send(command, then: .waitingForPutDataAfterCryptogram)
    }

    /// S15.2 to S15.9: the first failure ends it.
    mutating func takePutDataAfterCryptogram(_ response: ResponseAPDU) -> KernelStep {
        guard response.status == .success else { return concludeAfterPutData() }
        if let command = Self.putData(&toWriteAfter) { return send(command, then: .waitingForPutDataAfterCryptogram) }
        if toWriteAfter.isEmpty { data[.postGenACPutDataStatus] = Self.putDataCompleted }
        return concludeAfterPutData()
    }

    /// S15.9.1 to S15.13
    mutating func concludeAfterPutData() -> KernelStep {
        // S15.10 and S15.11
        if asksForSecondTap { return seePhone(.cardReadSuccessfully) }
        shown.append(UserInterfaceRequest(.clearDisplay, .cardReadSuccessfully))
        return concludeAfterCard()
    }

    /// S910.71 to S910.75, and S910.78.1 to S910.81
    private mutating func concludeAfterCard() -> KernelStep {
        if asksForSecondTap { return seePhone() }
        let request: UserInterfaceRequest
        let kind: Outcome.Kind
        let reason: String
        switch ApplicationCryptogramType(cryptogramInformationData: data.byte(.cryptogramInformationData)) {
        case .tc:
            kind = .approved
            reason = "approved offline"
            request = UserInterfaceRequest(
                cvm == .signature ? .approvedSign : .approved, .notReady, holdTime: messageHoldTime,
                value: balance)
        case .arqc:
            kind = .onlineRequest
            reason = cryptogramType == .tc ? "the card asks to go online" : "the terminal requires an online cryptogram"
            request = UserInterfaceRequest(.authorizing, .notReady)
        case .aac, nil:
            (kind, request) = declined
            reason = cryptogramType == .aac ? "the terminal declines" : "the card declines"
        }
        return KernelStep(.outcome(outcome(kind, request: request, hasDataRecord: true, reason: reason)))
    }

    /// The outcome of an AAC (S910.74 and S910.75): another interface, if card and terminal have one.
    private var declined: (Outcome.Kind, UserInterfaceRequest) {
        guard activation.transaction.kind != .refund else {
            return (.endApplication, UserInterfaceRequest(.clearDisplay, .notReady))
        }
        let hasContacts = terminalCapabilities.contains(.contacts)
        return hasContacts && !ThirdPartyData(data[.thirdPartyData] ?? []).isDevice
            ? (.tryAnotherInterface, UserInterfaceRequest(.insertCard, .notReady, holdTime: messageHoldTime))
            : (.declined, UserInterfaceRequest(.notAuthorized, .notReady, holdTime: messageHoldTime))
    }

    /// Balance Read After Gen AC, with the currency of the application.
    private var balance: UserInterfaceRequest.Value? {
        guard data[.balanceReadAfterGenAC] != nil, let amount = data.amount(.balanceReadAfterGenAC) else { return nil }
        guard let code = data[.applicationCurrencyCode]?.hex,
            let currency = Currency.all.first(where: { code.hasSuffix($0.numericCode) })
        else { return nil }
        return .balance(amount, currency: currency)
    }
}
