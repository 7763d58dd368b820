import EMVContactless
import SmartCard
import TestSupport
import Testing

@Suite struct VerificationResultsTests {
    /// EMV Book 3, Annex C5: each bit where the book has it, and as the dictionary names it.
    @Test(
        arguments: [
            (.offlineDataAuthenticationNotPerformed, "80 00 00 00 00", "Offline data authentication was not performed"),
            (.sdaFailed, "40 00 00 00 00", "SDA failed"), (.iccDataMissing, "20 00 00 00 00", "ICC data missing"),
            (.cardOnExceptionFile, "10 00 00 00 00", "Card appears on terminal exception file"),
            (.ddaFailed, "08 00 00 00 00", "DDA failed"), (.cdaFailed, "04 00 00 00 00", "CDA failed"),
            (.sdaSelected, "02 00 00 00 00", "SDA selected"),
            (
                .differentApplicationVersions, "00 80 00 00 00",
                "ICC and terminal have different application versions"
            ),
            (.expiredApplication, "00 40 00 00 00", "Expired application"),
            (.applicationNotYetEffective, "00 20 00 00 00", "Application not yet effective"),
            (.serviceNotAllowed, "00 10 00 00 00", "Requested service not allowed for card product"),
            (.newCard, "00 08 00 00 00", "New card"),
            (.cardholderVerificationNotSuccessful, "00 00 80 00 00", "Cardholder verification was not successful"),
            (.unrecognizedCVM, "00 00 40 00 00", "Unrecognised CVM"),
            (.pinTryLimitExceeded, "00 00 20 00 00", "PIN Try Limit exceeded"),
            (
                .pinPadNotPresentOrNotWorking, "00 00 10 00 00",
                "PIN entry required and PIN pad not present or not working"
            ),
            (.pinNotEntered, "00 00 08 00 00", "PIN entry required, PIN pad present, but PIN was not entered"),
            (.onlineCVMCaptured, "00 00 04 00 00", "Online CVM captured"),
            (.floorLimitExceeded, "00 00 00 80 00", "Transaction exceeds floor limit"),
            (.lowerConsecutiveOfflineLimitExceeded, "00 00 00 40 00", "Lower consecutive offline limit exceeded"),
            (.upperConsecutiveOfflineLimitExceeded, "00 00 00 20 00", "Upper consecutive offline limit exceeded"),
            (.selectedRandomlyForOnline, "00 00 00 10 00", "Transaction selected randomly for online processing"),
            (.merchantForcedOnline, "00 00 00 08 00", "Merchant forced transaction online"),
            (.defaultTDOLUsed, "00 00 00 00 80", "Default TDOL used"),
            (.issuerAuthenticationFailed, "00 00 00 00 40", "Issuer authentication failed"),
            (
                .scriptFailedBeforeFinalGenerateAC, "00 00 00 00 20",
                "Script processing failed before final GENERATE AC"
            ),
            (
                .scriptFailedAfterFinalGenerateAC, "00 00 00 00 10",
                "Script processing failed after final GENERATE AC"
            ),
            // EMV Contactless Book C-2, Annex A
            (.relayResistanceThresholdExceeded, "00 00 00 00 08", "Relay resistance threshold exceeded"),
            (.relayResistanceTimeLimitsExceeded, "00 00 00 00 04", "Relay resistance time limits exceeded"),
            (.relayResistanceProtocolPerformed, "00 00 00 00 02", "Relay resistance protocol performed"),
            (.relayResistanceProtocolNotPerformed, "00 00 00 00 01", "Relay resistance protocol not performed"),
        ] as [(TerminalVerificationResults, String, String)])
    func terminalVerificationResults(
        _ bit: TerminalVerificationResults, _ value: String, _ meaning: String
    ) throws {
        expectEqual(bit.bytes, try wire(value))
        expectEqual(TerminalVerificationResults(try wire(value)), bit)
        let scope: DataElement.Scope = try wire(value)[4] & 0x0F == 0 ? .common : .mastercard
        expectEqual(DataElement.bitMeanings(of: 0x95, value: bit.bytes, scope: scope).map(\.meaning), [meaning])
    }

    /// EMV Book 3, Annex C6
    @Test(
        arguments: [
            (.offlineDataAuthentication, "80 00", "Offline data authentication was performed"),
            (.cardholderVerification, "40 00", "Cardholder verification was performed"),
            (.cardRiskManagement, "20 00", "Card risk management was performed"),
            (.issuerAuthentication, "10 00", "Issuer authentication was performed"),
            (.terminalRiskManagement, "08 00", "Terminal risk management was performed"),
            (.scriptProcessing, "04 00", "Script processing was performed"),
        ] as [(TransactionStatusInformation, String, String)])
    func transactionStatusInformation(
        _ bit: TransactionStatusInformation, _ value: String, _ meaning: String
    ) throws {
        expectEqual(bit.bytes, try wire(value))
        expectEqual(TransactionStatusInformation(try wire(value)), bit)
        expectEqual(DataElement.bitMeanings(of: 0x9B, value: bit.bytes).map(\.meaning), [meaning])
    }

    /// EMV Contactless Book C-3, Annex A
    @Test(
        arguments: [
            (.onlinePINRequired, "80 00", "Online PIN Required"), (.signatureRequired, "40 00", "Signature Required"),
            (
                .goOnlineIfOfflineDataAuthenticationFails, "20 00",
                "Go Online if Offline Data Authentication Fails and Reader is online capable"
            ),
            (
                .switchInterfaceIfOfflineDataAuthenticationFails, "10 00",
                "Switch Interface if Offline Data Authentication fails and Reader supports contact chip"
            ),
            (.goOnlineIfApplicationExpired, "08 00", "Go Online if Application Expired"),
            (.switchInterfaceForCash, "04 00", "Switch Interface for Cash Transactions"),
            (.switchInterfaceForCashback, "02 00", "Switch Interface for Cashback Transactions"),
            (.notValidForContactlessATM, "01 00", "Not valid for contactless ATM transactions"),
            (.consumerDeviceCVMPerformed, "00 80", "Consumer Device CVM Performed"),
            (
                .issuerUpdateProcessingSupported, "00 40", "Card supports Issuer Update Processing at the POS"
            ),
        ] as [(CardTransactionQualifiers, String, String)])
    func cardTransactionQualifiers(_ bit: CardTransactionQualifiers, _ value: String, _ meaning: String) throws {
        expectEqual(bit.bytes, try wire(value))
        expectEqual(CardTransactionQualifiers(try wire(value)), bit)
        expectEqual(DataElement.bitMeanings(of: 0x9F6C, value: bit.bytes).map(\.meaning), [meaning])
    }

    /// EMV Book 3, Annex C2
    @Test(
        arguments: [
            (.domesticCash, "80 00", "Valid for domestic cash transactions"),
            (.internationalCash, "40 00", "Valid for international cash transactions"),
            (.domesticGoods, "20 00", "Valid for domestic goods"),
            (.internationalGoods, "10 00", "Valid for international goods"),
            (.domesticServices, "08 00", "Valid for domestic services"),
            (.internationalServices, "04 00", "Valid for international services"),
            (.atms, "02 00", "Valid at ATMs"),
            (.terminalsOtherThanATMs, "01 00", "Valid at terminals other than ATMs"),
            (.domesticCashback, "00 80", "Domestic cashback allowed"),
            (.internationalCashback, "00 40", "International cashback allowed"),
        ] as [(ApplicationUsageControl, String, String)])
    func applicationUsageControl(_ bit: ApplicationUsageControl, _ value: String, _ meaning: String) throws {
        expectEqual(ApplicationUsageControl(try wire(value)), bit)
        expectEqual(DataElement.bitMeanings(of: 0x9F07, value: try wire(value)).map(\.meaning), [meaning])
    }

    /// EMV Book 4, Annex A4: signature, if not cash, unknown; no CVM performed.
    @Test func cvmResults() throws {
        let signature = CVMResults(CVMList.Rule(code: 0x5E, condition: 0x02), .unknown)
        expectEqual(signature.bytes, [0x5E, 0x02, 0x00])
        expectEqual(CVMResults([0x3F, 0x00, 0x01]), CVMResults(CVMList.Rule(code: 0x3F, condition: 0x00), .failed))
        expectEqual(
            DataElement.bitMeanings(
                of: 0x9F34, value: CVMResults(CVMList.Rule(code: 0x1F, condition: 0), .successful).bytes
            )
            .map(\.meaning), ["No CVM required", "Always", "Successful"])
    }

    @Test func wrongLengths() {
        for length in 0...6 {
            let bytes = [UInt8](repeating: 0, count: length)
            expectEqual(TerminalVerificationResults(bytes) == nil, length != 5)
            expectEqual(TransactionStatusInformation(bytes) == nil, length != 2)
            expectEqual(CardTransactionQualifiers(bytes) == nil, length != 2)
            expectEqual(ApplicationUsageControl(bytes) == nil, length != 2)
            expectEqual(CVMResults(bytes) == nil, length != 3)
        }
        expectEqual(CVMResults([0x1F, 0x00, 0x03]), nil)
    }

    /// EMV Book 3, 6.5.5.4, table 15
    @Test(
        arguments: [(0x00, .aac), (0x40, .tc), (0x80, .arqc), (0xC0, nil), (0x0F, .aac), (0x88, .arqc)]
            as [(UInt8, ApplicationCryptogramType?)])
    func cryptogramTypes(_ information: UInt8, _ expected: ApplicationCryptogramType?) {
        expectEqual(ApplicationCryptogramType(cryptogramInformationData: information), expected)
    }
}
