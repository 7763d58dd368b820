import SmartCard

/// The records that the issuer signed, in the order of the AFL (EMV Book 3, 10.3).
///
/// The bytes are kept as the card sent them: they are hashed, never re-encoded.
public struct StaticDataToBeAuthenticated: Hashable, Sendable {
    private var bytes: [UInt8] = []
    /// True if every record was coded as a template 70.
    private(set) var isWhole = true

    public init() {}

    /// Adds a record for offline data authentication.
    ///
    /// A record that is not coded as a template 70 is remembered: authentication then fails, and the transaction
    /// continues.
    ///
    /// - Parameters:
    ///   - record: the data field of the response to READ RECORD, without status word.
    ///   - sfi: the short file identifier of the record's file.
    public mutating func append(record: some Collection<UInt8>, sfi: UInt8) {
        let record = Array(record)
        guard let start = Self.valueStart(record) else {
            isWhole = false
            return
        }
        // EMV Book 3, 10.3: for files 1 to 10 the tag and the length of the template are left out; all other bytes of
        // the response count, including padding.
        bytes += sfi <= 10 ? record[start...] : record[...]
    }

    /// Returns the offset of the value of template 70; nil if there is none, or if more than padding follows it.
    ///
    /// The length field is not hashed.  If more than padding were permitted after the value, a shorter length could
    /// hide signed data.
    private static func valueStart(_ record: [UInt8]) -> Int? {
        guard record.count >= 2, record[0] == 0x70 else { return nil }
        let lengthBytes = record[1] < 0x80 ? 0 : Int(record[1] & 0x7F)
        guard record[1] < 0x80 || (1...4).contains(lengthBytes), record.count >= 2 + lengthBytes else { return nil }
        let start = 2 + lengthBytes
        let length = lengthBytes == 0 ? Int(record[1]) : record[2..<start].reduce(0) { $0 << 8 | Int($1) }
        guard length <= record.count - start else { return nil }
        let isFilling = record[(start + length)...].allSatisfy { $0 == 0x00 || $0 == 0xFF }
        return isFilling ? start : nil
    }

    /// Returns the input to the hash: the records, followed by the AIP if the static data authentication tag list
    /// requests it.
    ///
    /// - Parameter data: returns the value of a data object of the card.
    func input(_ data: (TLVTag) -> [UInt8]?) throws(AuthenticationFailure) -> [UInt8] {
        // EMV Book 3, 10.3: records that are not coded with tag 70 make offline data authentication fail.
        guard isWhole else { throw AuthenticationFailure(.staticData, .template) }
        // EMV Book 2, 5.4 step 5 and 6.4 step 5: a list that contains any tag other than 82 makes it fail.
        guard let list = data(0x9F4A) else { return bytes }
        guard list == [0x82] else { throw AuthenticationFailure(.staticData, .tagList) }
        guard let profile = data(0x82) else { throw AuthenticationFailure(.staticData, .missing(0x82)) }
        return bytes + profile
    }
}

extension StaticDataToBeAuthenticated: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The number of bytes only: records contain account numbers and names.
    public var description: String { "\(bytes.count) bytes" + (isWhole ? "" : ", and a record that is no template 70") }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}
