import SmartCard

/// Data exchange with the terminal (EMV Contactless Book C-2, 3.4 and 4.2): the kernel sends data that the terminal
/// requested, and requests the data that it needs (DEK); the terminal answers (DET).
extension Kernel2 {
    /// Emits the signal DEK, which empties the lists.
    mutating func exchangeData() -> KernelStep {
        defer { exchange = DataExchange() }
        isExchangeDue = false
        return KernelStep(.exchange(exchange))
    }

    /// Sends the lists before the next command if necessary: data is needed, or all requested data has been read
    /// (S3R1.15, S3.77, S456.3).
    mutating func requestExchange() {
        if !exchange.dataNeeded.isEmpty || !exchange.dataToSend.elements.isEmpty && tagsToRead.isEmpty {
            isExchangeDue = true
        }
    }

    /// Handles the signal DET.
    mutating func takeTerminalData(_ objects: DataRecord) throws(Termination) -> KernelStep {
        switch state {
        case .waitingForPDOLData: return try takePDOLData(objects)
        case .waitingForFirstWriteFlag, .waitingForMagStripeFirstWriteFlag:
            return try takeFirstWriteFlag(objects)
        // S3.3, SR1.2, S4.3, S5.2, S7.2
        case .waitingForProcessingOptions, .waitingForRelayResistanceData, .waitingForRecord, .waitingForData,
            .waitingForMagStripeRecord:
            takeTerminalObjects(objects)
        // S9.4, S10.3, S11.4, S12.4, S13.8, S14.8, S15.4, S16.5, S17.4: it comes too late.
        default: break
        }
        guard let command = pendingCommand else { throw timeOut }
        pendingCommand = nil
        return KernelStep(.send(command))
    }

    /// Stores the objects that the terminal may set (UpdateWithDetData).
    mutating func takeTerminalObjects(_ objects: DataRecord) {
        for object in objects.elements where Self.mayBeSet(object) { data[object.tag] = object.value }
        let lists: Set<TLVTag> = [.tagsToRead, .tagsToWriteBeforeGenAC, .tagsToWriteAfterGenAC]
        if objects.elements.contains(where: { lists.contains($0.tag) }) { takeTerminalLists() }
    }

    /// Takes Tags To Read, Tags To Write Before Gen AC and Tags To Write After Gen AC, once.
    mutating func takeTerminalLists() {
        if let list = data[.tagsToRead] {
            tagsToRead += ((try? DataObjectList.tags(list)) ?? []).filter { !tagsToRead.contains($0) }
            data[.tagsToRead] = nil
        }
        func elements(_ tag: TLVTag) -> [DataRecord.Element] {
            defer { if data[tag] != nil { data[tag] = nil } }
            guard let list = data[tag], let objects = try? TLVList(list) else { return [] }
            return objects.map { .init($0.tag, Array($0.value)) }
        }
        toWriteBefore += elements(.tagsToWriteBeforeGenAC)
        toWriteAfter += elements(.tagsToWriteAfterGenAC)
    }

    /// Takes the first object off the list.
    ///
    /// - Returns: nil if there is none, or PUT DATA has no room for it: one or two bytes for the tag, 255 for the
    ///   value.  Such an object stays in the list with all that follow it, as if the card had refused it.
    static func putData(_ list: inout [DataRecord.Element]) -> CommandAPDU? {
        guard let object = list.first, object.tag.length <= 2, object.value.count <= 255 else { return nil }
        list.removeFirst()
        return .putData(object.tag, object.value)
    }

    /// Returns true if the terminal may set the object while the card is present: neither the transaction's data nor
    /// the kernel's configuration.
    private static func mayBeSet(_ object: DataRecord.Element) -> Bool {
        let fixed: Set<TLVTag> = [
            0x9F02, 0x9F03, 0x5F2A, 0x5F36, 0x9A, 0x9F06, 0x9F21, 0x9C, 0x9F37, 0x95, 0x9B, 0x9F34,
        ]
        if requestableData.contains(object.tag) { return true }
        guard !fixed.contains(object.tag), !mandatoryData.contains(object.tag), defaults[object.tag] == nil,
            let element = DataElement[object.tag, .mastercard], element.source == .terminal
        else { return false }
        return object.value.isEmpty || element.length.contains(object.value.count)
    }

    // MARK: Tags to read

    /// Adds the data that is already available to the data to send (S3R1.14, S456.2).
    mutating func collectReadTags() {
        for tag in tagsToRead {
            if let value = data[tag] { exchange.dataToSend[tag] = value }
        }
        tagsToRead.removeAll { data[$0] != nil }
    }

    /// Adds empty values for the remaining tags that the book knows: no more data will come (S456.21, S78.12).
    mutating func collectAllReadTags() {
        for tag in tagsToRead where data[tag] != nil || DataElement[tag, .mastercard] != nil {
            exchange.dataToSend[tag] = data[tag] ?? []
        }
        tagsToRead = []
        if !exchange.dataToSend.elements.isEmpty { isExchangeDue = true }
    }

    /// The tags that GET DATA can read: the offline accumulator balance, and the protected and unprotected data
    /// envelopes (Book C-2, 5.5).
    private static let readable: Set<TLVTag> = Set(
        [.offlineAccumulatorBalance]
            + (TLVTag.protectedDataEnvelope1.rawValue...TLVTag.unprotectedDataEnvelope5.rawValue).map {
                TLVTag(rawValue: $0)
            })

    /// Takes the next tag that GET DATA can read out of the list (GetNextGetDataTagFromList).
    mutating func nextReadTag() -> TLVTag? {
        guard let index = tagsToRead.firstIndex(where: { Self.readable.contains($0) }) else { return nil }
        return tagsToRead.remove(at: index)
    }

    // MARK: Proceed To First Write Flag

    /// True if the terminal holds the kernel back before writing: DF8110 is empty, or 00 (S456.5 to S456.11, S78.1 to
    /// S78.7).
    var isHeldBack: Bool { data.isEmpty(.proceedToFirstWriteFlag) || data[.proceedToFirstWriteFlag] == [0x00] }

    /// S456.6 to S456.10, S78.2 to S78.6
    mutating func waitForFirstWriteFlag(_ state: State) -> KernelStep {
        if data.isEmpty(.proceedToFirstWriteFlag) { exchange.dataNeeded.append(.proceedToFirstWriteFlag) }
        collectReadTags()
        self.state = state
        return exchangeData()
    }

    /// S6.5 to S6.12, S8.5 to S8.7
    private mutating func takeFirstWriteFlag(_ objects: DataRecord) throws(Termination) -> KernelStep {
        // Book C-2 waits until its timer expires.
        guard !objects.elements.isEmpty else { throw timeOut }
        takeTerminalObjects(objects)
        return state == .waitingForFirstWriteFlag ? try proceedReading() : try proceedMagStripe()
    }
}
