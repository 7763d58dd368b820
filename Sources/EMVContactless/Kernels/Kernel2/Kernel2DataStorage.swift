import SmartCard

/// Integrated data storage (EMV Contactless Book C-2, 3.5, 4.6 and 8): the terminal's operator reads and writes a few
/// bytes in the card, along with GET PROCESSING OPTIONS and GENERATE AC.
extension Kernel2 {
    /// S1.16 to S1.20: the terminal requests it (DF810D and 9F5C), and the card supports it (9F5D and 9F5E).
    mutating func initiateDataStorage() {
        data[0xDF8128] = [0]
        guard data[0xDF810D] != nil, data.isPresent(0x9F5C) else { return }
        data[0xDF810B] = [0]
        for tag in [0x9F5E, 0x9F5D] as [TLVTag] { exchange.dataToSend[tag] = data[tag] ?? [] }
        if data[0x9F5D] != nil, data[0x9F5E] != nil, [1, 2].contains(dataStorageVersion) { readsDataStorage = true }
    }

    /// S3R1.10 to S3R1.13: sends the terminal the data of the slot from the answer to GET PROCESSING OPTIONS.
    mutating func offerDataStorage() {
        guard readsDataStorage else { return }
        for tag in [0x9F5F, 0x9F7D, 0x9F7F, 0x9F6F] as [TLVTag] {
            if let value = data[tag] { exchange.dataToSend[tag] = value }
        }
        if data.isPresent(0x9F54) { exchange.dataToSend[0x9F54] = data[0x9F54] ?? [] }
        exchange.dataToSend[0x9F37] = data[0x9F37]
        let offersSlot = data[0x9F5F] != nil && data[0x9F7F] != nil && !data.isPresent(0x9F54)
        if data[0x9F7D] == nil || !offersSlot && !data.isPresent(0x9F54) { readsDataStorage = false }
    }

    /// The required DS ID: the account number and its sequence number, digits in pairs (S456.19).
    var dataStorageIdentifier: [UInt8]? {
        guard let pan = data[0x5A].flatMap({ PAN(packed: $0) }) else { return nil }
        let digits = pan.digits + [data.byte(0x5F34)].hex
        let length = max(16, digits.count + digits.count % 2)
        return try? [UInt8](hex: String(repeating: "0", count: length - digits.count) + digits)
    }

    /// The use of the card's data storage with GENERATE AC.
    enum DataStorageUse { case none, readOnly, write }

    /// GAC.1 to GAC.13
    mutating func useDataStorage() throws(Termination) -> DataStorageUse {
        guard readsDataStorage, !verificationResults.contains(.cdaFailed) else { return .none }
        // GAC.3 and GAC.4
        guard data[0xDF62] != nil, data[0x9F5B] != nil else { return .readOnly }
        // GAC.5 and GAC.6
        guard let value = data[0xDF8108]?.first, let information = data[0xDF810A]?.first,
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
        if cryptogramType == .aac && information & 0x20 != 0 || cryptogramType == .arqc && information & 0x40 != 0 {
            return .write
        }
        // GAC.10 to GAC.13: bit 3, stop if no DS ODS Term
        guard information & 0x04 == 0 else {
            throw notThisCard(.dataStorageNoMatchingCryptogram, "the terminal does not write with this cryptogram")
        }
        return .readOnly
    }

    /// GAC.40 to GAC.47: the data after the data for CDOL1.
    mutating func dataStorageRelatedData() throws(Termination) -> [UInt8] {
        let list: DataObjectList
        do { list = try DataObjectList(data[0x9F5B] ?? []) } catch {
            throw notThisCard(.cardDataError, "DSDOL: \(error)")
        }
        if list.contains(0xDF61), let input = data[0xDF8109] {
            data[0xDF61] =
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
        let isVolatile = data.byte(0x9F6F) & 0x80 != 0 && data.byte(0xDF62) & 0x40 != 0
        return DataStorageDigest.Key(
            identifier: data[0x9F5E] ?? [],
            operatorIdentifier: isVolatile ? [UInt8](repeating: 0, count: 8) : data[0x9F5C] ?? [])
    }

    /// S910.8 to S910.19, S11.47 to S11.61: checks that the card signed the data that was read and written.
    ///
    /// - Parameter summaries: the signed DS Summary 2 and 3.  Unsigned ones do not count.
    mutating func checkDataStorage(_ summaries: [[UInt8]]) throws(Termination) {
        // S11.47 to S11.49
        if let torn = recovering?.data, torn.mayHaveBeenWritten, torn[0x9F7D] != data[0x9F7D] {
            throw notThisCard(.dataStorageReadError, "the data storage is not as it was before")
        }
        guard let second = summaries.first else { throw notThisCard(.cardDataMissing, "DS Summary 2 is not signed") }
        data[0xDF8101] = second
        guard second == data[0x9F7D] else {
            throw notThisCard(.dataStorageReadError, "the data storage is not what was read")
        }
        var status: UInt8 = 0x80
        data[0xDF810B] = [status]
        guard writesDataStorage else { return }
        guard let third = summaries.dropFirst().first else {
            throw notThisCard(.cardDataMissing, "DS Summary 3 is not signed")
        }
        data[0xDF8102] = third
        if third != second {
            status |= 0x40
            data[0xDF810B] = [status]
        } else if data.byte(0xDF810A) & 0x02 != 0 {
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
