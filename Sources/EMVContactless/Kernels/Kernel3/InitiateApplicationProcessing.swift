import SmartCard

/// Dynamic reader limits and GET PROCESSING OPTIONS (EMV Contactless Book C-3, 5.1 and 5.2).
extension Kernel3 {
    mutating func initiateApplicationProcessing() throws(Termination) -> CommandAPDU {
        guard let fci = activation.proprietaryTemplate else {
            throw .endApplication("the FCI cannot be read")
        }
        guard var qualifiers = activation.indicators.terminalTransactionQualifiers else {
            throw .endApplication("the combination has no terminal transaction qualifiers")
        }
        // Book C-3, 5.1.2.1
        if let identifier = fci[0xBF0C]?.children[0x9F5A]?.value,
            let limits = options.dynamicReaderLimits(for: Array(identifier))
        {
            let indicators = PreProcessingIndicators(activation.combination.with(limits), activation.transaction)
            // Book C-3, 5.1.2
            guard !indicators.contactlessApplicationNotAllowed else {
                throw Termination(
                    outcome: Outcome(.selectNext, start: .c, reason: "a limit for cards of this program is exceeded"))
            }
            qualifiers = indicators.terminalTransactionQualifiers ?? qualifiers
        }
        // Book C-3, A.2, Terminal Transaction Qualifiers: an online-only reader always requests an online cryptogram;
        // pre-processing has removed that bit from the configured qualifiers (Book B, 3.1.1.2).
        if isOnlineOnly { qualifiers.insert(.onlineCryptogramRequired) }
        terminalTransactionQualifiers = qualifiers

        // Book C-3, 5.4.2.1: the PDOL is mandatory.
        guard let list = fci[0x9F38]?.value, !list.isEmpty else { throw .missing(0x9F38) }
        do {
            let data = try DataObjectList(list).value(scope: .visa) { terminalValue($0) }
            // Book C-3, 5.2.2.1
            return .getProcessingOptions(data)
        } catch {
            throw .endApplication("PDOL: \(error)")
        }
    }

    /// True by the combination, or by the terminal type, 9F35 (EMV Book 4, Annex A1).
    private var isOnlineOnly: Bool {
        activation.combination.terminalTransactionQualifiers?.contains(.onlineCryptogramRequired) == true
            || activation.terminalData[0x9F35]?.first.flatMap {
                TerminalActionAnalysis.OnlineCapability(terminalType: $0)
            } == .onlineOnly
    }

    /// Returns the terminal's value for a card that requests it, and for the issuer.
    func terminalValue(_ tag: TLVTag) -> [UInt8]? {
        switch tag {
        case 0x9F66: terminalTransactionQualifiers.bytes
        // Book C-3, Annex A: a purchase with cashback has the transaction type of a purchase.
        case 0x9C where activation.transaction.kind == .purchaseWithCashback: [Transaction.Kind.purchase.rawValue]
        // Book C-3, Annex A: no bit of it is used.
        case 0x95: [UInt8](repeating: 0, count: 5)
        // Book C-3, Annex A: contactless chip (ISO 8583, POS entry mode), unless the configuration says otherwise.
        case 0x9F39: activation.terminalData[tag] ?? [0x07]
        default: activation.terminalData[tag]
        }
    }

    mutating func takeProcessingOptions(_ response: ResponseAPDU) throws(Termination) {
        // Book C-3, 5.2.2.2
        switch response.status {
        case .success: break
        case 0x6984: throw .tryAnotherInterface(.insertCard, "GET PROCESSING OPTIONS: \(response.status)")
        case 0x6985:
            throw Termination(
                outcome: Outcome(.selectNext, start: .c, reason: "GET PROCESSING OPTIONS: \(response.status)"))
        case 0x6986: throw .seePhone
        default: throw .endApplication("GET PROCESSING OPTIONS: \(response.status)")
        }

        let objects: [DataRecord.Element]
        do throws(MalformedCardData) {
            objects = try ResponseParser(format1: .processingOptions, nestedTemplates: card.rules.nestedTemplates)
                .objects(of: response)
        } catch {
            throw .endApplication("GET PROCESSING OPTIONS: \(error.reason)")
        }
        do throws(MalformedCardData) { try card.store(objects) } catch { throw .endApplication(error.reason) }
    }
}
