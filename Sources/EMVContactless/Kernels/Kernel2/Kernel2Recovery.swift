import SmartCard

/// Torn transactions (EMV Contactless Book C-2, 3.8 and 6: S9, S10 and S11): the card left while it generated its
/// cryptogram, and may return that later.
extension Kernel2 {
    /// True if DF811D is not 0, and the card has a DRDOL (S456.43, S9.5).
    var recoversTransactions: Bool { data.number(.maximumNumberOfTornRecords) > 0 && data[.drdol] != nil }

    /// FF8101 (Book C-2, table 4.2).
    var tornRecordData: DataRecord {
        DataRecord(Self.tornRecordTags.compactMap { tag in data[tag].map { DataRecord.Element(tag, $0) } })
    }

    private static let tornRecordTags: [TLVTag] = [
        0x9F02, 0x9F03, 0x5A, 0x5F34, 0xDF8104, 0xDF8107, 0x9F34, 0xDF8113, 0x9F7D, 0xDF8128, 0x9F1E, 0xDF8111,
        .referenceControlParameter,
        0x9F33, 0x9F1A, 0x9F35, 0x95, 0x9F53, 0x5F2A, 0x9A, 0x9F21, 0x9C, 0x9F37, 0xDF8301, 0xDF8302, 0xDF8303,
        .maximumRelayResistanceTime,
        .deviceEstimatedTransmissionTime, .measuredRelayResistanceTime, .rrpCounter,
    ]

    /// S9.5 to S9.15
    mutating func tornTransaction(_ error: CommunicationError) -> Termination {
        guard recoversTransactions else {
            // S9.6 to S9.10: data that the card may have written is handed out.
            guard writesDataStorage else { return presentAgain(error) }
            return notThisCard(.ok, l1: error, "the card left while it was written")
        }
        logTornTransaction()
        return presentAgain(error)
    }

    /// S11.11 to S11.16
    mutating func tornTransactionAfterRecovery(_ error: CommunicationError) -> Termination {
        // A record with which the card may have written stays in the log.
        if let recovering, !recovering.data.mayHaveBeenWritten { tornTransactions.remove(recovering) }
        logTornTransaction()
        return presentAgain(error)
    }

    /// S9.11 to S9.13, S11.13 to S11.15
    private mutating func logTornTransaction() {
        data[.drdolRelatedData] = try? data.related(to: data[.drdol] ?? [])
        let record = TornTransactionLog.Record(data: tornRecordData, time: activation.transaction.time)
        if let oldest = tornTransactions.add(record, maximum: data.number(.maximumNumberOfTornRecords)) {
            abandoned = oldest.data
        }
    }

    mutating func takeRecoveredCryptogram(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        // S10.7 to S10.9: the card has nothing to recover, and is asked for a new cryptogram.
        guard response.status == .success, let recovering else {
            return send(try prepareCryptogram(), then: .waitingForCryptogramAfterRecovery)
        }
        // S10.10 and S10.11: this is the transaction that was torn.
        tornTransactions.remove(recovering)
        for element in recovering.data.elements { data[element.tag] = element.value }
        self.recovering = nil
        // S10.12 to S10.14
        try store(response, to: "RECOVER AC")
        cryptogramResponse = response.data
        // S10.15 to S10.18
        try checkCryptogramType()
        // S10.19
        return try continueWithCryptogram()
    }

    mutating func takeCryptogramAfterRecovery(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        // S11.5
        if let recovering { tornTransactions.remove(recovering) }
        forgotten = recovering
        // S11.6 and S11.7
        guard response.status == .success else { throw notThisCard(response, to: "GENERATE AC") }
        try storeCryptogram(response)
        // S11.22
        return try continueWithCryptogram()
    }
}

extension DataRecord {
    /// True for a torn record whose IDS Status has Write set: the card was to write with the cryptogram that it did not return.
    var mayHaveBeenWritten: Bool { Kernel2.IDSStatus(rawValue: self[.idsStatus]?.first ?? 0).contains(.write) }
}
