import SmartCard

/// EF.ATR/INFO: what a chip tells of itself beside its answer to reset (ISO/IEC 7816-4, 12.2; ICAO 9303-10, 3.11.1).
///
/// Anybody may read it, and nobody signs it.
public struct ATRInfo: Hashable, Sendable {
    /// Object 41: the country of the issuer, and national data.
    public private(set) var countryData: [UInt8]?
    /// Object 42: the issuer of the chip, as the standard's issuer identification number.
    public private(set) var issuerIdentificationNumber: [UInt8]?
    /// Object 43.
    public private(set) var services: CardServices?
    /// Object 44: the command that recovers the initial data string.
    public private(set) var initialAccessData: [UInt8]?
    /// Object 45, which the issuer alone describes.
    public private(set) var issuerData: [UInt8]?
    /// Object 46, which the chip's manufacturer alone describes.
    public private(set) var preIssuingData: [UInt8]?
    /// Object 47.
    public private(set) var capabilities: CardCapabilities?
    /// Object 48: a life cycle status, a status word, or both.
    public private(set) var statusIndicator: [UInt8]?
    /// Object 4F: the application that is selected after a reset.
    public private(set) var applicationIdentifier: [UInt8]?
    /// Object 5F52: the historical bytes of the answer to reset.
    public private(set) var historicalBytes: [UInt8]?
    /// Object 7F66.
    public private(set) var extendedLengths: ExtendedLengths?
    /// Objects with other tags.
    public private(set) var otherObjects: [OtherObject] = []

    /// The lengths of APDUs that a chip takes and returns, in bytes (ISO/IEC 7816-4, 12.7.1).
    public struct ExtendedLengths: Hashable, Sendable {
        /// With header and length fields.
        public let longestCommand: Int
        /// With the status word.
        public let longestResponse: Int
    }

    /// Parses data objects one after the other, each once; padding between them is skipped.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .atrInfo)
        var seen: Set<TLVTag> = []
        while let object = content.take() {
            guard seen.insert(object.tag).inserted else {
                throw content.error(.singleObject(object.tag), at: object.offset)
            }
            try set(object, in: content)
        }
    }

    private mutating func set(_ object: TLV, in content: Template) throws(TravelDocumentFormatError) {
        switch object.tag {
        case 0x41: countryData = Array(object.value)
        case 0x42: issuerIdentificationNumber = Array(object.value)
        case 0x43: services = CardServices(rawValue: try content.bytes(object, 1...1)[0])
        case 0x44: initialAccessData = Array(object.value)
        case 0x45: issuerData = Array(object.value)
        case 0x46: preIssuingData = Array(object.value)
        case 0x47: capabilities = CardCapabilities(try content.bytes(object, 1...3))
        case 0x48: statusIndicator = try content.bytes(object, 1...3)
        case 0x4F: applicationIdentifier = try content.bytes(object, 1...16)
        case 0x5F52: historicalBytes = try content.bytes(object, 0...15)
        case 0x7F66: extendedLengths = try content.extendedLengths(object)
        default: otherObjects.append(OtherObject(object))
        }
    }
}

extension ATRInfo {
    /// READ BINARY of the file, all of it, by its short identifier.
    static let command = CommandAPDU(unchecked: (0x00, 0xB0, 0x81, 0x00), ne: Self.shortResponse)

    /// The data bytes of a short response.
    static let shortResponse = 256

    /// Returns the most data bytes of a response that both sides can do.
    ///
    /// Extended lengths need the capability, unless the chip does not tell its capabilities, and stated buffers
    /// (ICAO 9303-10, 3.6.4).
    ///
    /// - Parameter longestAPDU: that of the reader.
    func mostData(inResponseWithin longestAPDU: Int) -> Int {
        guard let extendedLengths, capabilities?.hasExtendedLengths != false else { return Self.shortResponse }
        return max(Self.shortResponse, min(extendedLengths.longestResponse, longestAPDU, 65_538) - 2)
    }
}

/// The services of a chip: a byte of card service data (ISO/IEC 7816-4, 12.1.1.5).
public struct CardServices: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Applications are selected by their full name.
    public static let selectionByFullName = CardServices(rawValue: 0x80)
    /// Applications are selected by the beginning of their name.
    public static let selectionByPartialName = CardServices(rawValue: 0x40)
    /// EF.DIR contains data objects.
    public static let objectsInDirectory = CardServices(rawValue: 0x20)
    /// EF.ATR/INFO contains data objects.
    public static let objectsInATRInfo = CardServices(rawValue: 0x10)
    /// Both files are read with READ BINARY; without it, with READ RECORD, or as the other bits tell.
    public static let readBinary = CardServices(rawValue: 0x08)
    /// The chip has no master file.
    public static let withoutMasterFile = CardServices(rawValue: 0x01)
}

/// The abilities of a chip: one to three bytes of card capabilities (ISO/IEC 7816-4, 12.1.1.9).
public struct CardCapabilities: Hashable, Sendable {
    /// The ways of selecting a file, the first byte.
    public struct Selection: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let fullName = Selection(rawValue: 0x80)
        public static let partialName = Selection(rawValue: 0x40)
        public static let path = Selection(rawValue: 0x20)
        public static let fileIdentifier = Selection(rawValue: 0x10)
        /// By the chip itself, without a command.
        public static let implicit = Selection(rawValue: 0x08)
        public static let shortIdentifier = Selection(rawValue: 0x04)
        public static let recordNumber = Selection(rawValue: 0x02)
        public static let recordIdentifier = Selection(rawValue: 0x01)
    }

    /// The bytes as the chip has them.
    public let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The ways of selecting a file.
    public var selection: Selection { Selection(rawValue: bytes.first ?? 0) }
    /// True if a command may come in parts; nil if the chip does not tell.
    public var hasCommandChaining: Bool? { bit(0x80) }
    /// True if Lc and Le may have the extended form; nil if the chip does not tell.
    public var hasExtendedLengths: Bool? { bit(0x40) }
    /// True if EF.ATR/INFO states how long APDUs may be; nil if the chip does not tell.
    public var statesLengths: Bool? { bit(0x20) }

    /// A bit of the third byte.
    private func bit(_ mask: UInt8) -> Bool? { bytes.count == 3 ? bytes[2] & mask != 0 : nil }
}

extension Template {
    /// The value of an object that has a number of bytes from a range.
    fileprivate func bytes(_ object: TLV, _ range: ClosedRange<Int>) throws(TravelDocumentFormatError) -> [UInt8] {
        guard range.contains(object.value.count) else { throw error(.length(range), at: object.value.startIndex) }
        return Array(object.value)
    }

    /// Takes `02 command, 02 response`: two numbers of one to four bytes, without a sign.
    fileprivate func extendedLengths(_ object: TLV) throws(TravelDocumentFormatError) -> ATRInfo.ExtendedLengths {
        var lengths = Template(object, in: file)
        let command = try lengths.takeLength()
        let response = try lengths.takeLength()
        try lengths.finish()
        return .init(longestCommand: command, longestResponse: response)
    }

    private mutating func takeLength() throws(TravelDocumentFormatError) -> Int {
        let object = try take(0x02)
        let number = try bytes(object, 1...4).reduce(0) { $0 << 8 | Int($1) }
        guard number > 0 else { throw error(.number(1...Int(UInt32.max)), at: object.value.startIndex) }
        return number
    }
}
