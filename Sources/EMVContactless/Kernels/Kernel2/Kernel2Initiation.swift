import SmartCard

/// Kernel activation, GET PROCESSING OPTIONS and the choice of the mode (EMV Contactless Book C-2, 6: S1, S2 and S3).
extension Kernel2 {
    mutating func initiate() throws(Termination) -> KernelStep {
        if let tag = Self.mandatoryData.first(where: { data[$0] == nil }) {
            throw Termination(outcome: outcome(.endApplication, reason: "the terminal has no \(tag)"))
        }
        tornTransactions.removeAll(
            olderThan: data.number(.maximumLifetimeOfTornRecord), at: activation.transaction.time)
        // S1.7 and S1.8
        do {
            let fci = try TLVList(activation.selectResponse.data)
            guard let template = fci[.fciTemplate] else { throw MalformedCardData(reason: "the FCI is no template 6F") }
            try data.store(template.children)
        } catch {
            throw selectNext(.parsingError, "the FCI cannot be read")
        }
        guard data[.dedicatedFileName] != nil else { throw selectNext(.cardDataMissing, "the FCI has no name, 84") }
        if applicationCapabilities.contains(.detectsFieldOff) { fieldOff = holdTime }
        // S1.9
        data[.cvmResults] = [0, 0, 0]
        verificationResults = []
        data[.rrpCounter] = [0]
        data[.terminalCapabilities] = [data.byte(.cardDataInputCapability), 0, data.byte(.securityCapability)]
        // S1.10 and S1.16
        takeTerminalLists()
        for tag in [.tagsToRead, .tagsToWriteBeforeGenAC, .tagsToWriteAfterGenAC] as [TLVTag] where data.isEmpty(tag) {
            exchange.dataNeeded.append(tag)
        }
        // S1.16 to S1.20
        initiateDataStorage()
        // S1.11 to S1.13, and S1.21 to S1.23
        let missing = data.missing(for: data[.pdol])
        guard missing.isEmpty else {
            exchange.dataNeeded += missing
            collectReadTags()
            state = .waitingForPDOLData
            return exchangeData()
        }
        return try requestProcessingOptions()
    }

    /// S1.12 and S2.8
    private mutating func requestProcessingOptions() throws(Termination) -> KernelStep {
        let related: [UInt8]
        do throws(MalformedCardData) { related = try data.related(to: data[.pdol] ?? []) } catch {
            throw selectNext(.parsingError, "PDOL: \(error.reason)")
        }
        data[.pdolRelatedData] = related
        return send(.getProcessingOptions(related), then: .waitingForProcessingOptions)
    }

    /// S2.6 to S2.8: handles the data for the PDOL, or part of it.
    mutating func takePDOLData(_ objects: DataRecord) throws(Termination) -> KernelStep {
        let before = data.missing(for: data[.pdol])
        takeTerminalObjects(objects)
        let missing = data.missing(for: data[.pdol])
        if missing.isEmpty { return try requestProcessingOptions() }
        // Book C-2 waits until its timer expires.
        guard missing.count < before.count else { throw timeOut }
        exchange.dataNeeded = missing
        return exchangeData()
    }

    mutating func takeProcessingOptions(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        // S3.8 and S3.9
        guard response.status == .success else {
            throw selectNext(
                .statusBytes, status: response.status, "GET PROCESSING OPTIONS: \(response.status)")
        }
        // S3.10 to S3.12
        try store(response, to: "GET PROCESSING OPTIONS", format1: .processingOptionsWithLocator)
        guard (data[.applicationFileLocator]?.count ?? 0) % 4 == 0 else {
            throw notThisCard(.parsingError, "GET PROCESSING OPTIONS: the AFL has not four bytes an entry")
        }
        // S3.13 and S3.14
        guard data[.applicationInterchangeProfile] != nil, data[.applicationFileLocator] != nil else {
            throw notThisCard(.cardDataMissing, "the card does not give 82 and 94")
        }
        // S3.15 to S3.18
        if !configuration.contains(.withoutEMVMode), interchangeProfile.contains(.contactlessMode) {
            return try beginEMVMode()
        }
        guard !configuration.contains(.withoutMagStripeMode) else {
            throw notThisCard(.magStripeNotSupported, "the card is in mag-stripe mode")
        }
        return try beginMagStripeMode()
    }

    /// Stores the objects of a response that is one template.
    ///
    /// - Parameter format1: the values of template 80; nil if the response must be template 77.
    mutating func store(
        _ response: ResponseAPDU, to command: String, format1: ResponseFormat1? = nil
    ) throws(Termination) {
        do throws(MalformedCardData) {
            try data.store(
                ResponseParser(format1: format1, nestedTemplates: data.rules.nestedTemplates).objects(of: response))
        } catch {
            throw notThisCard(.parsingError, "\(command): \(error.reason)")
        }
    }

    /// The AFL entry of the mag-stripe data: file 1, record 1.
    private static let magStripeEntry: [UInt8] = [0x08, 0x01, 0x01, 0x00]

    private mutating func beginEMVMode() throws(Termination) -> KernelStep {
        mode = .emv
        // S3.30 to S3.32
        var locator = data[.applicationFileLocator] ?? []
        if locator.starts(with: Self.magStripeEntry), !configuration.contains(.withoutMagStripeMode) {
            locator.removeFirst(4)
        }
        try readRecords(locator)
        // S3.33 to S3.35
        transactionLimit =
            data.amount(verifiesOnDevice ? .transactionLimitWithOnDeviceCVM : .transactionLimitWithoutOnDeviceCVM) ?? 0
        // S3.60 to S3.65
        if interchangeProfile.contains(.relayResistance), configuration.contains(.relayResistance) {
            return exchangeRelayResistanceData()
        }
        verificationResults.insert(.relayResistanceProtocolNotPerformed)
        return try beginReading()
    }

    private mutating func beginMagStripeMode() throws(Termination) -> KernelStep {
        mode = .magStripe
        // S3.70 to S3.72
        let locator = data[.applicationFileLocator] ?? []
        try readRecords(locator.starts(with: Self.magStripeEntry) ? Self.magStripeEntry : locator)
        // S3.73 to S3.75
        transactionLimit =
            data.amount(verifiesOnDevice ? .transactionLimitWithOnDeviceCVM : .transactionLimitWithoutOnDeviceCVM) ?? 0
        // S3.76 to S3.78
        collectReadTags()
        requestExchange()
        // S3.80 and S3.81
        guard let command = records?.command else { throw notThisCard(.cardDataError, "the AFL names no record") }
        return send(command, then: .waitingForMagStripeRecord)
    }

    /// Active AFL.
    private mutating func readRecords(_ locator: [UInt8]) throws(Termination) {
        do throws(RecordReaderError) { records = try RecordReader(locator) } catch {
            throw notThisCard(.cardDataError, "\(error)")
        }
    }
}
