public import SmartCard

/// What a reader is set up to accept (EMV Contactless Book A, 5.3 to 5.5): the terminal's own data and, for each
/// application, kernel and type of transaction, limits and options.
///
/// It is written in code, or read from JSON with any decoder.  A decoded one has been validated; ``validate()`` checks one
/// that was written or changed.
///
///     {
///       "environment": "test",
///       "abilities": ["pinPad", "paper"],
///       "terminal": { "9F1A": "0276", "9F35": "22", "9F40": "6000F0A001" },
///       "combinations": [
///         { "aid": "A0000000031010", "kernel": "03", "transactionTypes": ["purchase", "refund"],
///           "transactionLimit": 100000, "cvmRequiredLimit": 5000, "floorLimit": 0,
///           "terminalTransactionQualifiers": "30004000",
///           "kernel3": { "checksUsageAtATM": true,
///             "dynamicReaderLimits": [ { "applicationProgramIdentifier": "3102682620", "floorLimit": 1000 } ] } }
///       ]
///     }
///
/// Tags, AIDs, kernel identifiers (as tag 9F2A has them) and values are hexadecimal digits, amounts numbers in the
/// currency's minor unit.  What is left out is absent, which is not the same as zero or false.  `kernel3` has the properties
/// of ``Kernel3/Options`` and ``Kernel3/DynamicReaderLimits``; what is left out there has the value that their initialisers
/// give it.  A key that is not known is an error.
///
/// What `abilities` names, ``Ability``, is what the reader advertises that cardholders can be verified by: bits 3 and 2 of byte 1
/// of the TTQ, byte 2 of the Terminal Capabilities, 9F33, and for Kernel 2 DF8118, DF8119, DF811E and DF812C follow from it.
/// They may be set to less, but for the TTQ; to more is an error.  Where it is left out, cardholders are verified by their own
/// devices, or not at all.
///
/// Kernel 3 needs the Terminal Country Code, 9F1A, Kernel 2 the Terminal Type, 9F35, and the Additional Terminal Capabilities,
/// 9F40, as well: in `terminal`, or in the `data` of each of its combinations.  What a card or an issuer sends cannot be set.
///
/// A key that stands twice in an object is not seen: the decoder takes one of the two, `JSONDecoder` the first.  Bits of the
/// TTQ that have no name in ``TerminalTransactionQualifiers`` go to the card as they stand, since a scheme may use them.
public struct ReaderConfiguration: Hashable, Sendable {
    /// Whose certification authority keys are trusted.
    public var environment: CAPublicKey.Environment
    /// What the reader has to verify cardholders with.
    public var abilities: Set<Ability>
    /// The terminal's data objects, by tag.
    public var terminal: [TLVTag: [UInt8]]
    /// In no particular order: the card's priorities decide.
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

/// An application that the reader accepts, with the kernel that processes it, for some types of transactions
/// (Book A, 5.4; Book B, 3.1).
public struct Combination: Hashable, Sendable {
    /// The AID, or the beginning of it that all applications in question share.
    public var aid: AID
    public var kernel: KernelIdentifier
    public var transactionTypes: Set<Transaction.Kind>
    /// Reader Contactless Transaction Limit: amounts from this one on are not accepted.  All limits are in the minor
    /// unit of the transaction's currency; nil: there is none.
    public var transactionLimit: UInt64?
    /// Reader Contactless Floor Limit: amounts above it go online.  Where it is nil the terminal's floor limit counts: tag
    /// 9F1B of ``data``, or else of ``ReaderConfiguration/terminal``.
    public var floorLimit: UInt64?
    /// Reader CVM Required Limit: from this amount on the cardholder has to be verified.
    public var cvmRequiredLimit: UInt64?
    /// nil for kernels without TTQ.
    public var terminalTransactionQualifiers: TerminalTransactionQualifiers?
    /// Status Check Support flag: whether a single unit of the currency goes online.
    public var statusCheck: Bool?
    /// Zero Amount Allowed flag.
    public var zeroAmountAllowed: Bool?
    /// Extended Selection Support flag: whether tag 9F29 extends the name by which the application is selected.
    public var extendedSelection: Bool?
    /// The terminal's data for this combination, which go before ``ReaderConfiguration/terminal``.
    public var data: [TLVTag: [UInt8]]
    /// What Kernel 3 leaves to the reader; other kernels do not look at it.
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

/// A configuration that cannot be meant.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Where: `combinations[2].data.9F1B`.
    public let path: String
    public let reason: String

    public var description: String { "configuration: \(path): \(reason)" }
}

extension ReaderConfiguration {
    /// - Throws: ``ConfigurationError`` at the first thing that is wrong.
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

    /// What comes from elsewhere and may not be set, and from where.
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
            // Present without a value, Kernel 2 asks for it, or reads it.
            if value.isEmpty, Kernel2.requestable.contains(tag) { continue }
            guard !tag.isConstructed || Kernel2.requestable.contains(tag) else {
                throw ConfigurationError(path: path, reason: "is a template")
            }
            let meanings = DataElement.meanings(of: tag)
            if let source = meanings.first?.source, meanings.allSatisfy({ [.card, .issuer].contains($0.source) }) {
                throw ConfigurationError(path: path, reason: "comes from the \(source), and cannot be set")
            }
            // Where the schemes disagree on a tag there is no one rule for it.
            guard let element = DataElement[tag], meanings.count == 1 else { continue }
            guard element.length.contains(value.count) else {
                throw ConfigurationError(
                    path: path, reason: "\(value.count) bytes, where \(element.name) has \(element.length.text)")
            }
            if element.format == .numeric, value.hex.contains(where: { !$0.isNumber }) {
                throw ConfigurationError(path: path, reason: "\(element.name) has decimal digits only")
            }
        }
    }
}

extension Combination {
    /// What the terminal has to have for the kernel, beside 9F33, which it always has.  Both compare 9F1A with the issuer's
    /// country (Book C-3, 5.5.1; Book C-2, 7.7); Kernel 2 decides by 9F35 and 9F40 (7.7 and 7.8).
    fileprivate var mandatoryData: [TLVTag] {
        switch kernel {
        case 2: Kernel2.mandatoryData.filter { $0 != 0x9F33 }
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
    /// `6 bytes`, `1 to 16 bytes`
    fileprivate var text: String {
        count == 1 ? "\(lowerBound) byte\(lowerBound == 1 ? "" : "s")" : "\(lowerBound) to \(upperBound) bytes"
    }
}
