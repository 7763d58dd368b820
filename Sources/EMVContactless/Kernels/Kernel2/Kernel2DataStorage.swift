import SmartCard

/// Integrated data storage (EMV Contactless Book C-2, 3.5, 4.6 and 8): the terminal's operator reads and writes a few
/// bytes in the card, along with GET PROCESSING OPTIONS and GENERATE AC.
extension Kernel2 {
    /// S1.16 to S1.20: the terminal requests it (DF810D and 9F5C), and the card supports it (9F5D and 9F5E).
    mutating func initiateDataStorage() {
        data[.idsStatus] = [0]
        guard data[.dsvnTerm] != nil, data.isPresent(.dsRequestedOperatorID) else { return }
        data[.dsSummaryStatus] = [0]
        for tag in [.dsID, .applicationCapabilitiesInformation] as [TLVTag] {
            exchange.dataToSend[tag] = data[tag] ?? []
        }
        if data[.applicationCapabilitiesInformation] != nil, data[.dsID] != nil, [1, 2].contains(dataStorageVersion) {
            readsDataStorage = true
        }
    }

    /// S3R1.10 to S3R1.13: sends the terminal the data of the slot from the answer to GET PROCESSING OPTIONS.
    mutating func offerDataStorage() {
        guard readsDataStorage else { return }
        for tag in [.dsSlotAvailability, .dsSummary1, .dsUnpredictableNumber, .dsSlotManagementControl] as [TLVTag] {
            if let value = data[tag] { exchange.dataToSend[tag] = value }
        }
        if data.isPresent(.dsODSCard) { exchange.dataToSend[.dsODSCard] = data[.dsODSCard] ?? [] }
        exchange.dataToSend[.unpredictableNumber] = data[.unpredictableNumber]
        let offersSlot =
            data[.dsSlotAvailability] != nil && data[.dsUnpredictableNumber] != nil && !data.isPresent(.dsODSCard)
        if data[.dsSummary1] == nil || !offersSlot && !data.isPresent(.dsODSCard) { readsDataStorage = false }
    }

    /// The required DS ID: the account number and its sequence number, digits in pairs (S456.19).
    var dataStorageIdentifier: [UInt8]? {
        guard let pan = data[.pan].flatMap({ PAN(packed: $0) }) else { return nil }
        let digits = pan.digits + [data.byte(.panSequenceNumber)].hex
        let length = max(16, digits.count + digits.count % 2)
        return try? [UInt8](hex: String(repeating: "0", count: length - digits.count) + digits)
    }

    /// The use of the card's data storage with GENERATE AC.
    enum DataStorageUse { case none, readOnly, write }

    /// GAC.1 to GAC.13
    mutating func useDataStorage() throws(Termination) -> DataStorageUse {
        guard readsDataStorage, !verificationResults.contains(.cdaFailed) else { return .none }
        // GAC.3 and GAC.4
        guard data[.dsODSInfo] != nil, data[.dsdol] != nil else { return .readOnly }
        // GAC.5 and GAC.6
        let information = odsInfoForReader
        guard let value = data[.dsACType]?.first, data[.dsODSInfoForReader]?.first != nil,
            let wanted = ApplicationCryptogramType(cryptogramInformationData: value)
        else {
            throw notThisCard(.dataStorageDataError, "the terminal gives not all that it takes to write")
        }
        // GAC.7 and GAC.8: the slot is written with the cryptogram that the terminal is about to request, or with a
        // lower one.
        if wanted == .aac || wanted == cryptogramType || wanted == .arqc && cryptogramType == .tc {
            cryptogramType = wanted
            return .write
        }
        // GAC.9: DS ODS Info For Reader bits 8 to 6, usable for TC, ARQC and AAC
        if cryptogramType == .aac && information.contains(.usableForAAC)
            || cryptogramType == .arqc && information.contains(.usableForARQC)
        {
            return .write
        }
        // GAC.10 to GAC.13: bit 3, stop if no DS ODS Term
        guard !information.contains(.stopsWithoutODSTerm) else {
            throw notThisCard(.dataStorageNoMatchingCryptogram, "the terminal does not write with this cryptogram")
        }
        return .readOnly
    }

    /// GAC.40 to GAC.47: the data after the data for CDOL1.
    mutating func dataStorageRelatedData() throws(Termination) -> [UInt8] {
        let list: DataObjectList
        do { list = try DataObjectList(data[.dsdol] ?? []) } catch {
            throw notThisCard(.cardDataError, "DSDOL: \(error)")
        }
        if list.contains(.dsDigestH), let input = data[.dsInputTerm] {
            data[.dsDigestH] =
                dataStorageVersion == 1
                ? DataStorageDigest.version1(input, dataStorageKey) : DataStorageDigest.version2(input, dataStorageKey)
        }
        writesDataStorage = true
        var related = list.value(scope: .mastercard) { data[$0] }
        // The last value is not padded.
        if let last = list.entries.last, let value = data[last.tag], value.count < last.length {
            related.removeLast(last.length - value.count)
        }
        return related
    }

    private var dataStorageKey: DataStorageDigest.Key {
        // 8.2: a volatile slot of a permanent type belongs to nobody.
        let isVolatile =
            slotControl.contains(.permanent) && ODSInfo(rawValue: data.byte(.dsODSInfo)).contains(.volatile)
        return DataStorageDigest.Key(
            identifier: data[.dsID] ?? [],
            operatorIdentifier: isVolatile ? [UInt8](repeating: 0, count: 8) : data[.dsRequestedOperatorID] ?? [])
    }

    /// S910.8 to S910.19, S11.47 to S11.61: checks that the card signed the data that was read and written.
    ///
    /// - Parameter summaries: the signed DS Summary 2 and 3.  Unsigned ones do not count.
    mutating func checkDataStorage(_ summaries: [[UInt8]]) throws(Termination) {
        // S11.47 to S11.49
        if let torn = recovering?.data, torn.mayHaveBeenWritten, torn[.dsSummary1] != data[.dsSummary1] {
            throw notThisCard(.dataStorageReadError, "the data storage is not as it was before")
        }
        guard let second = summaries.first else { throw notThisCard(.cardDataMissing, "DS Summary 2 is not signed") }
        data[.dsSummary2] = second
        guard second == data[.dsSummary1] else {
            throw notThisCard(.dataStorageReadError, "the data storage is not what was read")
        }
        var status = SummaryStatus.successfulRead
        data[.dsSummaryStatus] = [status.rawValue]
        guard writesDataStorage else { return }
        guard let third = summaries.dropFirst().first else {
            throw notThisCard(.cardDataMissing, "DS Summary 3 is not signed")
        }
        data[.dsSummary3] = third
        if third != second {
            status.insert(.successfulWrite)
            data[.dsSummaryStatus] = [status.rawValue]
        } else if odsInfoForReader.contains(.stopsIfWriteFailed) {
            // S910.18 and S910.19: stop if write failed
            throw writeFailed
        }
    }

    /// S910.61 and S910.62, S11.101: without a data record, and without a torn one.
    private var writeFailed: Termination {
        var kernel = self
        kernel.writesDataStorage = false
        kernel.forgotten = nil
        return kernel.notThisCard(.dataStorageWriteError, "the card has not written")
    }
}
