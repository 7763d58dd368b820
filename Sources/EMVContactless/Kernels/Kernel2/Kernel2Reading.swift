import SmartCard

/// GET DATA and READ RECORD in EMV mode (EMV Contactless Book C-2, 6: S3R1, S4, S5, S6 and the beginning of S456).
extension Kernel2 {
    /// S3R1
    mutating func beginReading() throws(Termination) -> KernelStep {
        // S3R1.5 and S3R1.6
        guard records?.command != nil else { throw notThisCard(.cardDataError, "the AFL names no record") }
        // S3R1.10 to S3R1.13
        offerDataStorage()
        // S3R1.14 to S3R1.16
        collectReadTags()
        requestExchange()
        // S3R1.17 to S3R1.20: the card and the kernel support CDA, or the terminal reads the card's data storage.
        requiresCDA = interchangeProfile.contains(.cda) && terminalCapabilities.contains(.cda) || readsDataStorage
        if !requiresCDA { verificationResults.insert(.offlineDataAuthenticationNotPerformed) }
        return try proceedReading()
    }

    /// Takes the next step: GET DATA for the tags to read, READ RECORD, or the end of reading (S3R1.1 to S3R1.9, S4.15
    /// to S4.23, S5.9 to S5.18, S6.8 to S6.11, and S456.1 to S456.11).
    mutating func proceedReading() throws(Termination) -> KernelStep {
        if let tag = nextReadTag() {
            activeTag = tag
            return send(.getData(tag), then: .waitingForData)
        }
        if let command = records?.command {
            if state == .waitingForRecord || state == .waitingForData {
                collectReadTags()
                if !exchange.dataToSend.elements.isEmpty, tagsToRead.isEmpty { isExchangeDue = true }
            }
            return send(command, then: .waitingForRecord)
        }
        return isHeldBack ? waitForFirstWriteFlag(.waitingForFirstWriteFlag) : try manageRisk()
    }

    mutating func takeRecord(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        // S4.9 and S4.10
        guard response.status == .success else { throw notThisCard(response, to: "READ RECORD") }
        try storeRecord(response)
        // S4.28 and S4.29
        exchange.dataNeeded += newlyMissing(for: data[.cdol1])
        // S4.30 to S4.33: the slot is not locked.
        if readsDataStorage, !slotControl.contains(.locked) { exchange.dataNeeded += newlyMissing(for: data[.dsdol]) }
        return try proceedReading()
    }

    /// Returns the tags that the terminal has not been asked for.
    private func newlyMissing(for list: [UInt8]?) -> [TLVTag] {
        data.missing(for: list).filter { !exchange.dataNeeded.contains($0) }
    }

    /// S4.24 to S4.27, S4.34 and S4.35; S7.11 to S7.13
    mutating func storeRecord(_ response: ResponseAPDU) throws(Termination) {
        guard var reader = records, let file = reader.command.map({ $0.p2 >> 3 }) else { return }
        // A record of files 1 to 10 is one template 70, even if it is signed.
        if file <= 10, response.data.first != 0x70 { throw notThisCard(.parsingError, "record: not a template 70") }
        do {
            if let objects = try reader.take(response) { try data.store(objects) }
        } catch {
            throw notThisCard(.parsingError, (error as? MalformedCardData)?.reason ?? "\(error)")
        }
        records = reader
        // A signed record in any other form: its signature cannot be verified.
        if requiresCDA, !reader.signedRecords.isWhole { verificationResults.insert(.cdaFailed) }
    }

    /// S5.19 to S5.24
    mutating func takeData(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        guard let tag = activeTag else { throw timeOut }
        activeTag = nil
        var value: [UInt8] = []
        if response.status == .success, let objects = try? TLVList(response.data), objects.count == 1,
            let object = objects.first, object.tag == tag
        {
            value = Array(object.value)
            try? data.store(tag, value)
        }
        exchange.dataToSend[tag] = value
        return try proceedReading()
    }
}
