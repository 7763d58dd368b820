/// The key that opens the chip of a travel document: something that is printed on it, or that its holder knows.
///
/// It is a secret, and prints as its kind.
public struct AccessKey: Hashable, Sendable {
    /// The password's reference in PACE (ICAO 9303-11, 4.4.4.1, data object 83).
    public enum Kind: UInt8, Hashable, Sendable {
        /// The machine readable zone.  Basic Access Control knows no other.
        case machineReadableZone = 1
        /// The Card Access Number: six digits on the front.
        case cardAccessNumber = 2
        /// A number that the holder knows.
        case pin = 3
        /// A number that unblocks the PIN.
        case puk = 4
    }

    public let kind: Kind
    /// The secret K of PACE, and of Basic Access Control in its first 16 bytes.
    let secret: [UInt8]

    /// Makes a key of a zone.
    public init(_ zone: MachineReadableZone) {
        self.init(
            checkedDocumentNumber: zone.documentNumber, dateOfBirth: zone.dateOfBirth.characters,
            dateOfExpiry: zone.dateOfExpiry.characters)
    }

    /// Makes a key of the fields of a zone, for which its check digits are computed.
    ///
    /// - Parameters:
    ///   - documentNumber: all of its characters, without check digit and fillers.
    ///   - dateOfBirth: year, month and day, two characters each, `<<` for an unknown part.
    ///   - dateOfExpiry: year, month and day, two digits each.
    /// - Throws: ``AccessKeyError``.
    public init(documentNumber: String, dateOfBirth: String, dateOfExpiry: String) throws(AccessKeyError) {
        guard !documentNumber.isEmpty, documentNumber.utf8.count <= 22, CheckDigit.of(documentNumber) != nil else {
            throw .documentNumber
        }
        for date in [dateOfBirth, dateOfExpiry] where date.utf8.count != 6 || CheckDigit.of(date) == nil { throw .date }
        self.init(checkedDocumentNumber: documentNumber, dateOfBirth: dateOfBirth, dateOfExpiry: dateOfExpiry)
    }

    /// Makes a key of a Card Access Number, a PIN or a PUK: its digits as they are (ICAO 9303-11, 4.4.4.1).
    ///
    /// - Throws: ``AccessKeyError`` for another kind, or for anything but 1 to 32 digits.
    public init(_ digits: String, kind: Kind) throws(AccessKeyError) {
        let bytes = Array(digits.utf8)
        guard kind != .machineReadableZone, (1...32).contains(bytes.count),
            bytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { throw .digits }
        self.kind = kind
        secret = bytes
    }

    /// ICAO 9303-11, 4.3.2 and appendix D.2: the three fields with their check digits, hashed by SHA-1.
    private init(checkedDocumentNumber number: String, dateOfBirth: String, dateOfExpiry: String) {
        kind = .machineReadableZone
        let padded = number + String(repeating: "<", count: max(0, 9 - number.utf8.count))
        let fields = [padded, dateOfBirth, dateOfExpiry]
        let information = fields.map { $0 + (CheckDigit.of($0).map(String.init) ?? "") }.joined()
        secret = Digest.sha1.hash(Array(information.utf8))
    }
}

/// An access key that cannot be made.
public enum AccessKeyError: Error, Hashable, Sendable {
    case documentNumber
    case date
    case digits
}

extension AccessKeyError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .documentNumber: "a document number has 1 to 22 characters from A to Z, 0 to 9 and <"
        case .date: "a date has six characters: year, month and day, two each"
        case .digits: "a card access number, PIN or PUK consists of 1 to 32 digits"
        }
    }
}

extension AccessKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind alone.
    public var description: String {
        switch kind {
        case .machineReadableZone: "machine readable zone"
        case .cardAccessNumber: "card access number"
        case .pin: "PIN"
        case .puk: "PUK"
        }
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}
