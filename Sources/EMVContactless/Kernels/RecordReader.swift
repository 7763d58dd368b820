import SmartCard

/// A reader of the records that an application file locator names, one after the other (EMV Book 3, 10.2).
///
/// It is a value: it returns the next command, and takes the response.
struct RecordReader: Sendable {
    private var records: ArraySlice<ApplicationFileLocator.Record>
    /// The records for offline data authentication.
    private(set) var signedRecords = StaticDataToBeAuthenticated()

    /// Creates a reader.
    ///
    /// - Parameter locator: tag 94.
    init(_ locator: [UInt8]) throws(RecordReaderError) {
        let entries: [ApplicationFileLocator.Entry]
        do { entries = try ApplicationFileLocator(locator).entries } catch { throw .locator(error) }
        guard entries.reduce(0, { $0 + $1.records.count }) <= ApplicationFileLocator.maximumRecords else {
            throw .tooManyRecords
        }
        records = entries.flatMap(\.each)[...]
    }

    /// The READ RECORD command for the next record; nil when all have been read.
    var command: CommandAPDU? { records.first.map { .readRecord($0.number, sfi: $0.sfi) } }

    /// Takes the response to ``command``.
    ///
    /// - Returns: the objects of the record.
    mutating func take(_ response: ResponseAPDU) throws(RecordReaderError) -> TLVList? {
        guard let record = records.popFirst() else { return nil }
        // EMV Book 3, 10.2: anything but 9000 within the AFL ends the transaction.
        guard response.status == .success else { throw .status(response.status) }
        if record.isSigned { signedRecords.append(record: response.data, sfi: record.sfi) }
        let objects: TLVList
        do { objects = try TLVList(response.data) } catch {
            // EMV Book 3, 6.5.11.4: the contents of files 11 to 30 need not be BER-TLV.
            if record.sfi > 10 { return nil }
            throw .malformed(error)
        }
        if objects.count == 1, let template = objects.first, template.tag == 0x70 { return template.children }
        // EMV Book 3, 10.3: offline data authentication fails for it, and the transaction continues.
        if record.isSigned || record.sfi > 10 { return nil }
        throw .template
    }
}

/// The reason for which the records of an application cannot be read.
enum RecordReaderError: Error, Hashable, Sendable {
    case locator(ApplicationFileLocatorError)
    case tooManyRecords
    case status(StatusWord)
    case malformed(TLVError)
    /// A record of files 1 to 10 is not one template 70 (EMV Book 3, 6.5.11.4).
    case template
}

extension RecordReaderError: CustomStringConvertible {
    var description: String {
        switch self {
        case .locator(let error): "\(error)"
        case .tooManyRecords: "AFL: more than \(ApplicationFileLocator.maximumRecords) records"
        case .status(let status): "READ RECORD: \(status)"
        case .malformed(let error): "record: \(error)"
        case .template: "record: not one template 70"
        }
    }
}
