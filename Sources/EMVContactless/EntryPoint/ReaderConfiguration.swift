public import SmartCard

/// The configuration of a reader (EMV Contactless Book A, 5.3 to 5.5): the terminal's data and, for each application,
/// kernel and type of transaction, limits and options.
///
/// Write a configuration in code, or decode it from JSON with any decoder.  Decoding validates it; call ``validate()``
/// for one that you wrote or changed.
///
///     {
///       "environment": "test",
///       "abilities": ["pinPad", "paper", "contacts"],
///       "terminal": { "9F1A": "0276", "9F35": "22" },
///       "combinations": [
///         { "aid": "A0000000031010", "kernel": "03", "transactionTypes": ["purchase", "refund"],
///           "transactionLimit": 100000, "cvmRequiredLimit": 5000, "floorLimit": 0,
///           "terminalTransactionQualifiers": "30004000",
///           "kernel3": { "checksUsageAtATM": true,
///             "dynamicReaderLimits": [ { "applicationProgramIdentifier": "3102682620", "floorLimit": 1000 } ] } }
///       ]
///     }
///
/// Tags, AIDs, kernel identifiers (as in tag 9F2A) and values are hexadecimal digits.  Amounts are numbers in the
/// currency's minor unit.  An omitted setting is absent, which differs from zero or false.  `kernel3` has the properties
/// of ``Kernel3/Options`` and ``Kernel3/DynamicReaderLimits``, with their initializers' defaults.  An unknown key is an
/// error.
///
/// `abilities` (``Ability``) lists what the reader has.  With the Terminal Type, 9F35, they imply bits 5 to 2 of byte 1 of the TTQ,
/// the Terminal Capabilities, 9F33, the Additional Terminal Capabilities, 9F40, and for Kernel 2 DF8117 to DF8119, DF811E and
/// DF812C.  A signature and an attendant's display or printer require an attended terminal type; an online PIN requires one that
/// goes online.  These values may be set to less, except for the TTQ; setting more is an error, which names tag and bit.  Without
/// `abilities` the reader has only its antenna: consumer devices verify their cardholders, or nobody does.  The code tables of 9F40
/// are advertised only if they are set.
///
/// Kernel 3 requires the Terminal Country Code, 9F1A.  Kernel 2 also requires the Terminal Type, 9F35.  Set them in `terminal`,
/// or in the `data` of each combination of the kernel.  Data that a card or an issuer sends cannot be set.
///
/// A repeated key in an object is not detected: the decoder uses one of the two, `JSONDecoder` the first.  Bits of the
/// TTQ without a name in ``TerminalTransactionQualifiers`` are sent to the card unchanged, since a scheme may use them.
public struct ReaderConfiguration: Hashable, Sendable {
    /// The environment of the trusted certification authority keys.
    public var environment: CAPublicKey.Environment
    /// The equipment of the reader, which limits what it advertises.
    public var abilities: Set<Ability>
    /// The terminal's data objects, by tag.
    public var terminal: [TLVTag: [UInt8]]
    /// The combinations, in any order: the card's priorities decide.
    public var combinations: [Combination]

    public init(
        environment: CAPublicKey.Environment, abilities: Set<Ability> = [], terminal: [TLVTag: [UInt8]],
        combinations: [Combination]
    ) throws(ConfigurationError) {
        self.environment = environment
        self.abilities = abilities
        self.terminal = terminal
        self.combinations = combinations
        try validate()
    }
}

/// An application that the reader accepts, with its kernel and its types of transactions (Book A, 5.4; Book B, 3.1).
public struct Combination: Hashable, Sendable {
    /// The AID, or the common beginning of the AIDs of several applications.
    public var aid: AID
    public var kernel: KernelIdentifier
    public var transactionTypes: Set<Transaction.Kind>
    /// Reader Contactless Transaction Limit: amounts from this one on are not accepted.  All limits are in the minor
    /// unit of the transaction's currency; nil means no limit.
    public var transactionLimit: UInt64?
    /// Reader Contactless Floor Limit: amounts above it go online.  If nil, the terminal's floor limit applies: tag
    /// 9F1B of ``data``, otherwise of ``ReaderConfiguration/terminal``.
    public var floorLimit: UInt64?
    /// Reader CVM Required Limit: from this amount on the cardholder must be verified.
    public var cvmRequiredLimit: UInt64?
    /// The TTQ; nil for kernels without them.
    public var terminalTransactionQualifiers: TerminalTransactionQualifiers?
    /// Status Check Support flag: true if a single unit of the currency goes online.
    public var statusCheck: Bool?
    /// Zero Amount Allowed flag.
    public var zeroAmountAllowed: Bool?
    /// Extended Selection Support flag: true if tag 9F29 extends the name by which the application is selected.
    public var extendedSelection: Bool?
    /// The terminal's data for this combination, which has precedence over ``ReaderConfiguration/terminal``.
    public var data: [TLVTag: [UInt8]]
    /// The options of Kernel 3, ignored by other kernels.
    public var kernel3: Kernel3.Options

    public init(
        aid: AID, kernel: KernelIdentifier, transactionTypes: Set<Transaction.Kind> = Set(Transaction.Kind.allCases),
        transactionLimit: UInt64? = nil, floorLimit: UInt64? = nil, cvmRequiredLimit: UInt64? = nil,
        terminalTransactionQualifiers: TerminalTransactionQualifiers? = nil, statusCheck: Bool? = nil,
        zeroAmountAllowed: Bool? = nil, extendedSelection: Bool? = nil, data: [TLVTag: [UInt8]] = [:],
        kernel3: Kernel3.Options = Kernel3.Options()
    ) {
        self.aid = aid
        self.kernel = kernel
        self.transactionTypes = transactionTypes
        self.transactionLimit = transactionLimit
        self.floorLimit = floorLimit
        self.cvmRequiredLimit = cvmRequiredLimit
        self.terminalTransactionQualifiers = terminalTransactionQualifiers
        self.statusCheck = statusCheck
        self.zeroAmountAllowed = zeroAmountAllowed
        self.extendedSelection = extendedSelection
        self.data = data
        self.kernel3 = kernel3
    }

    /// Tag 9F1B, binary.
    var terminalFloorLimit: UInt64? { data[0x9F1B].map { $0.reduce(0) { $0 << 8 | UInt64($1) } } }
}

/// An error in a configuration.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The place of the error: `combinations[2].data.9F1B`.
    public let path: String
    public let reason: String

    public var description: String { "configuration: \(path): \(reason)" }
}

extension ReaderConfiguration {
    /// Checks the configuration.
    ///
    /// - Throws: ``ConfigurationError`` at the first error.
    public func validate() throws(ConfigurationError) {
        try Self.validate(terminal, "terminal")
        guard !combinations.isEmpty else { throw ConfigurationError(path: "combinations", reason: "there is none") }
        struct Key: Hashable {
            let aid: AID
            let kernel: KernelIdentifier
            let type: Transaction.Kind
        }
        var seen: Set<Key> = []
        for (index, combination) in combinations.enumerated() {
            let path = "combinations[\(index)]"
            try combination.validate(path)
            for tag in combination.mandatoryData where terminal[tag] == nil && combination.data[tag] == nil {
                let element = DataElement[tag].map { "\($0)" } ?? "\(tag)"
                throw ConfigurationError(
                    path: path, reason: "\(combination.kernel) needs \(element), in terminal or in data")
            }
            for type in combination.transactionTypes
            where !seen.insert(Key(aid: combination.aid, kernel: combination.kernel, type: type)).inserted {
                throw ConfigurationError(
                    path: path, reason: "\(combination.aid), \(combination.kernel) and \(type) stand there before")
            }
        }
        try validateAbilities()
    }

    /// The tags that must not be set, each with the origin of its value.
    private static let reserved: [TLVTag: String] = {
        let ofTransaction: [TLVTag] = [
            0x9F02, 0x9F03, 0x5F2A, 0x5F36, 0x9A, 0x9F21, 0x9C, 0x9F37, 0x9F41, 0x9F66, 0x95, 0x9B,
        ]
        var reasons = Dictionary(uniqueKeysWithValues: ofTransaction.map { ($0, "comes with each transaction") })
        reasons[0x9F06] = "is the AID of the combination"
        reasons[0x9F39] = "is set by the kernel, to contactless chip"
        return reasons
    }()

    fileprivate static func validate(_ data: [TLVTag: [UInt8]], _ path: String) throws(ConfigurationError) {
        for (tag, value) in data.sorted(by: { $0.key < $1.key }) {
            let path = "\(path).\(tag)"
            if let origin = reserved[tag] {
                throw ConfigurationError(path: path, reason: "\(origin), and cannot be set")
            }
            // Present without a value, Kernel 2 requests or reads it.
            if value.isEmpty, Kernel2.requestable.contains(tag) { continue }
            guard !tag.isConstructed || Kernel2.requestable.contains(tag) else {
                throw ConfigurationError(path: path, reason: "is a template")
            }
            let meanings = DataElement.meanings(of: tag)
            if let source = meanings.first?.source, meanings.allSatisfy({ [.card, .issuer].contains($0.source) }) {
                throw ConfigurationError(path: path, reason: "comes from the \(source), and cannot be set")
            }
            // No single rule applies to a tag on which the schemes disagree.
            guard let element = DataElement[tag], meanings.count == 1 else { continue }
            guard element.length.contains(value.count) else {
                throw ConfigurationError(
                    path: path, reason: "\(value.count) bytes, where \(element.name) has \(element.length.text)")
            }
            if tag == 0x9F35, BitTable[tag]?.decode(value).first?.kind != .known {
                throw ConfigurationError(path: path, reason: "none of EMV Book 4, Annex A1")
            }
            if element.format == .numeric, value.hex.contains(where: { !$0.isNumber }) {
                throw ConfigurationError(path: path, reason: "\(element.name) has decimal digits only")
            }
        }
    }
}

extension Combination {
    /// The mandatory data that must be set for the kernel: 9F33 and 9F40 follow from the abilities.  Both kernels compare 9F1A
    /// with the issuer's country (Book C-3, 5.5.1; Book C-2, 7.7); Kernel 2 uses 9F35 (7.7 and 7.8).
    fileprivate var mandatoryData: [TLVTag] {
        switch kernel {
        case 2: Kernel2.mandatoryData.filter { ![0x9F33, 0x9F40].contains($0) }
        case 3: [0x9F1A]
        default: []
        }
    }

    fileprivate func validate(_ path: String) throws(ConfigurationError) {
        guard kernel != .any else { throw ConfigurationError(path: "\(path).kernel", reason: "no kernel") }
        guard !transactionTypes.isEmpty else {
            throw ConfigurationError(path: "\(path).transactionTypes", reason: "there is none")
        }
        try validateLimits(path)
        for (index, limits) in kernel3.dynamicReaderLimits.enumerated() {
            let path = "\(path).kernel3.dynamicReaderLimits[\(index)]"
            try with(limits).validateLimits(path)
            let identifier = limits.applicationProgramIdentifier
            guard
                !kernel3.dynamicReaderLimits[..<index].contains(where: { $0.applicationProgramIdentifier == identifier }
                )
            else { throw ConfigurationError(path: path, reason: "the identifier stands there before") }
        }
        if kernel == 3 {
            guard let qualifiers = terminalTransactionQualifiers else {
                throw ConfigurationError(
                    path: "\(path).terminalTransactionQualifiers", reason: "Kernel 3 needs them (Book C-3, 2.4.1)")
            }
            guard qualifiers.contains(.emvMode), !qualifiers.contains(.magStripeMode) else {
                throw ConfigurationError(
                    path: "\(path).terminalTransactionQualifiers",
                    reason: "Kernel 3 has EMV mode, and no mag-stripe mode")
            }
        }
        try ReaderConfiguration.validate(data, "\(path).data")
    }

    private func validateLimits(_ path: String) throws(ConfigurationError) {
        let limits = [
            ("transactionLimit", transactionLimit), ("floorLimit", floorLimit), ("cvmRequiredLimit", cvmRequiredLimit),
        ]
        for (name, limit) in limits where limit.map({ $0 > Transaction.maximumAmount }) == true {
            throw ConfigurationError(path: "\(path).\(name)", reason: "more than twelve digits")
        }
    }
}

extension ClosedRange<Int> {
    /// The range as text: `6 bytes`, `1 to 16 bytes`.
    fileprivate var text: String {
        count == 1 ? "\(lowerBound) byte\(lowerBound == 1 ? "" : "s")" : "\(lowerBound) to \(upperBound) bytes"
    }
}
