import SmartCard

/// The facts of a transaction for a receipt and for a payment service: the application, the cryptogram, and the
/// cardholder verification.
///
/// Each kernel adds them to an outcome that approves, declines or goes online: ``Outcome/receiptFacts`` and
/// ``ContactlessTerminal/Report/receiptFacts``.  They contain no account number.  They name the card's application in
/// full, which a log must not, and so print as `receipt facts`.
///
/// ``encoded`` is their form for a payment service: BER-TLV with the tags 50, 9F12, 9F11, 84, 9F27, 9F26, 95 and 9F34,
/// as far as present, and DF8129, which replaces 9F34 for a kernel without it.  That is an Outcome Parameter Set (EMV
/// Contactless Book C-2, A.1) whose byte 4 is ``cardholderVerification``, with no other parameter.  `Codable` uses the
/// same bytes in hexadecimal digits.
public struct ReceiptFacts: Hashable, Sendable {
    /// The application label, tag 50; nil if the card supplies none.
    public let label: String?
    /// The preferred name, tag 9F12, which replaces the label if the receipt's characters permit; nil unless the card
    /// supplies it with 9F11, its part of ISO/IEC 8859 (EMV Book 4, 11.3).
    public let preferredName: String?
    private let codeTable: CodeTable?
    /// The name of the card's application, tag 84, 5 to 16 bytes.
    public let applicationIdentifier: [UInt8]
    /// Cryptogram Information Data, tag 9F27; nil in mag-stripe mode.
    public let cryptogramInformationData: UInt8?
    /// The application cryptogram, tag 9F26, 8 bytes; nil in mag-stripe mode.
    public let applicationCryptogram: [UInt8]?
    /// The terminal verification results, tag 95; nil in mag-stripe mode.
    public let terminalVerificationResults: TerminalVerificationResults?
    /// The method by which the cardholder was or will be verified.
    public let cardholderVerification: Outcome.CVM
    /// CVM Results, tag 9F34; nil from Kernel 3 and in mag-stripe mode, which have none.
    public let cvmResults: CVMResults?

    /// Creates facts.
    ///
    /// - Parameters:
    ///   - label: ISO/IEC 8859-1, at most 16 characters.
    ///   - preferredName: characters of the part of ISO/IEC 8859 that `codeTable` names, at most 16.
    ///   - codeTable: 1 to 10.
    ///   - applicationIdentifier: 5 to 16 bytes.
    ///   - cryptogramInformationData: tag 9F27; nil without a cryptogram.
    ///   - applicationCryptogram: 8 bytes.
    ///   - terminalVerificationResults: tag 95; nil if there are none.
    ///   - cardholderVerification: the method that was performed.
    ///   - cvmResults: tag 9F34; nil if there are none.
    /// - Returns: nil if an argument is invalid.
    public init?(
        label: String?, preferredName: String? = nil, codeTable: UInt8 = 1, applicationIdentifier: [UInt8],
        cryptogramInformationData: UInt8? = nil, applicationCryptogram: [UInt8]? = nil,
        terminalVerificationResults: TerminalVerificationResults? = nil, cardholderVerification: Outcome.CVM,
        cvmResults: CVMResults? = nil
    ) {
        let table = CodeTable(part: codeTable)
        guard (5...16).contains(applicationIdentifier.count), applicationCryptogram.map({ $0.count == 8 }) ?? true,
            label.map({ CodeTable.latin1.bytes($0)?.count ?? 0 }).map({ (1...16).contains($0) }) ?? true,
            preferredName.map({ table?.bytes($0)?.count ?? 0 }).map({ (1...16).contains($0) }) ?? true
        else { return nil }
        self.label = label
        self.preferredName = preferredName
        self.codeTable = preferredName == nil ? nil : table
        self.applicationIdentifier = applicationIdentifier
        self.cryptogramInformationData = cryptogramInformationData
        self.applicationCryptogram = applicationCryptogram
        self.terminalVerificationResults = terminalVerificationResults
        self.cardholderVerification = cardholderVerification
        self.cvmResults = cvmResults
    }

    /// Creates facts from a kernel's data.
    ///
    /// - Parameter name: replaces a missing tag 84.
    init?(name: [UInt8], _ cardholderVerification: Outcome.CVM, _ value: (TLVTag) -> [UInt8]?) {
        let table = value(0x9F11).flatMap { $0.count == 1 ? CodeTable(index: $0[0]) : nil }
        let cryptogram = value(0x9F26)
        func text(_ tag: TLVTag, _ table: CodeTable?) -> String? {
            let bytes = value(tag)?.reversed().drop { $0 == 0x00 || $0 == 0x20 }.reversed().prefix(16) ?? []
            return bytes.isEmpty ? nil : table?.text(bytes)
        }
        self.init(
            label: text(0x50, .latin1), preferredName: text(0x9F12, table), codeTable: table?.part ?? 1,
            applicationIdentifier: value(0x84) ?? Array(name.prefix(16)),
            cryptogramInformationData: value(0x9F27)?.first,
            applicationCryptogram: cryptogram?.count == 8 ? cryptogram : nil,
            terminalVerificationResults: value(0x95).flatMap { TerminalVerificationResults($0) },
            cardholderVerification: cardholderVerification, cvmResults: value(0x9F34).flatMap { CVMResults($0) })
    }
}

// MARK: - As BER-TLV

extension ReceiptFacts {
    /// A length that ``encoded`` never exceeds.
    public static let maximumLength = 128

    /// An error in encoded receipt facts.
    public struct Malformed: Error, Hashable, Sendable, CustomStringConvertible {
        public let reason: String
        /// The offset of the error in the bytes, from zero.
        public let offset: Int

        public var description: String {
            "receipt facts: \(reason) (offset \(offset)); hand back the bytes as they were received"
        }
    }

    /// The facts as concatenated BER-TLV.
    public var encoded: [UInt8] {
        var objects = DataRecord()
        objects[0x50] = label.flatMap { CodeTable.latin1.bytes($0) }
        objects[0x9F12] = preferredName.flatMap { codeTable?.bytes($0) }
        objects[0x9F11] = codeTable.map { [$0.index] }
        objects[0x84] = applicationIdentifier
        objects[0x9F27] = cryptogramInformationData.map { [$0] }
        objects[0x9F26] = applicationCryptogram
        objects[0x95] = terminalVerificationResults?.bytes
        objects[0x9F34] = cvmResults?.bytes
        objects[0xDF8129] = Self.parameterSet(cardholderVerification)
        return objects.encoded
    }

    /// Parses the bytes of ``encoded``.
    ///
    /// - Throws: ``Malformed`` for an object that is unknown, repeated or missing, and for an invalid value.
    public init(encoded bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumLength else {
            throw Malformed(reason: "more than \(Self.maximumLength) bytes", offset: Self.maximumLength)
        }
        let objects: TLVList
        do throws(TLVError) { objects = try TLVList(bytes, padding: []) } catch {
            throw Malformed(reason: "no BER-TLV", offset: error.offset)
        }
        var values: [TLVTag: [UInt8]] = [:]
        var method: Outcome.CVM?
        for object in objects {
            let value = Array(object.value)
            let isSound: Bool
            switch object.tag {
            case 0x50, 0x9F12: isSound = (1...16).contains(value.count) && ![0x00, 0x20].contains(value.last)
            case 0x9F11: isSound = value.count == 1 && CodeTable(index: value[0]) != nil && objects[0x9F12] != nil
            case 0x84: isSound = (5...16).contains(value.count)
            case 0x9F27: isSound = value.count == 1
            case 0x9F26: isSound = value.count == 8
            case 0x95: isSound = value.count == 5
            case 0x9F34: isSound = CVMResults(value) != nil
            case 0xDF8129:
                method = Outcome.CVM.allCases.first { Self.parameterSet($0) == value }
                isSound = method != nil
            default: throw Malformed(reason: "\(object.tag) is none of them", offset: object.offset)
            }
            guard isSound else { throw Malformed(reason: "\(object.tag) cannot be that", offset: object.offset) }
            guard values.updateValue(value, forKey: object.tag) == nil else {
                throw Malformed(reason: "\(object.tag) occurs twice", offset: object.offset)
            }
        }
        guard let method, values[0x84] != nil, let facts = Self(name: [], method, { values[$0] }) else {
            throw Malformed(reason: "84 or DF8129 is missing", offset: bytes.count)
        }
        for (tag, text) in [(0x50, facts.label), (0x9F12, facts.preferredName)] as [(TLVTag, String?)]
        where text == nil && values[tag] != nil {
            throw Malformed(reason: "\(tag) cannot be read", offset: objects[tag]?.offset ?? 0)
        }
        self = facts
    }

    /// Returns DF8129 with a CVM, and all other parameters not applicable.
    private static func parameterSet(_ method: Outcome.CVM) -> [UInt8] {
        let byte: UInt8 =
            switch method {
            case .none: 0x00
            case .signature: 0x10
            case .onlinePIN: 0x20
            case .deviceCVM: 0x30
            }
        return [0xF0, 0xF0, 0xF0, byte, 0x00, 0xF0, 0xFF, 0x00]
    }
}

extension ReceiptFacts: Codable {
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        do {
            try self.init(encoded: [UInt8](hex: text))
        } catch {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "\(error)"))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(encoded.hex)
    }
}

/// A card may put anything after an AID.
extension ReceiptFacts: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `receipt facts`.
    public var description: String { "receipt facts" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension KernelActivation {
    /// Returns the facts from the card's FCI and the kernel's data.
    func receiptFacts(_ cvm: Outcome.CVM?, _ value: (TLVTag) -> [UInt8]?) -> ReceiptFacts? {
        let template = (try? TLVList(selectResponse.data))?[0x6F]?.children
        return ReceiptFacts(name: name, cvm ?? .none) { tag in
            value(tag) ?? (template?[tag] ?? template?[0xA5]?.children[tag]).map { Array($0.value) }
        }
    }
}
