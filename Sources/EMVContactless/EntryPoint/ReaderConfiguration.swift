public import SmartCard

/// The configuration of a reader (EMV Contactless Book A, 5.3 to 5.5): the terminal's data and, for each application,
/// kernel and type of transaction, limits and options.
///
/// Write a configuration in code, or decode it from JSON with any decoder.  Whoever takes one
/// validates it, or takes a ``Validated`` one, with the reader's kernels.
///
///     {
///       "environment": "test",
///       "abilities": ["pinPad", "paper", "contacts"],
///       "terminal": { "9F1A": "0276", "9F35": "22" },
///       "combinations": [
///         { "aid": "A0000000031010", "kernel": "03", "transactionTypes": ["purchase", "refund"],
///           "transactionLimit": 100000, "cvmRequiredLimit": 5000, "floorLimit": 0,
///           "terminalTransactionQualifiers": "30004000",
///           "options": { "checksUsageAtATM": true,
///             "dynamicReaderLimits": [ { "applicationProgramIdentifier": "3102682620", "floorLimit": 1000 } ] } }
///       ]
///     }
///
/// Tags, AIDs, kernel identifiers (as in tag 9F2A) and values are hexadecimal digits.  Amounts are numbers in the
/// currency's minor unit.  An omitted setting is absent, which differs from zero or false.  `options` belong to the
/// combination's kernel: those of Kernel 3 are the properties of ``Kernel3/Options`` and ``Kernel3/DynamicReaderLimits``, with
/// their initializers' defaults.  An unknown key is an error.  To decode options of other kernels, set the decoder's
/// `userInfo[.kernels]`.
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

    /// Creates a configuration and validates it.
    ///
    /// - Parameters:
    ///   - environment: the environment of the trusted certification authority keys.
    ///   - abilities: the equipment of the reader.
    ///   - terminal: the terminal's data objects, by tag.
    ///   - combinations: the combinations, in any order.
    ///   - kernels: the kernels of the reader.
    /// - Throws: the errors of ``validated(for:)``.
    public init(
        environment: CAPublicKey.Environment, abilities: Set<Ability> = [], terminal: [TLVTag: [UInt8]],
        combinations: [Combination], kernels: Kernels = .all
    ) throws(ConfigurationError) {
        self.environment = environment
        self.abilities = abilities
        self.terminal = terminal
        self.combinations = combinations
        try validate(for: kernels)
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
    /// The options of the kernel, of its type ``Kernel/Options``; nil for its default.
    public var options: (any KernelOptions)? {
        get { erasedOptions.value as? any KernelOptions }
        set { erasedOptions = Erased(newValue) }
    }
    private var erasedOptions: Erased

    public init(
        aid: AID, kernel: KernelIdentifier, transactionTypes: Set<Transaction.Kind> = Set(Transaction.Kind.allCases),
        transactionLimit: UInt64? = nil, floorLimit: UInt64? = nil, cvmRequiredLimit: UInt64? = nil,
        terminalTransactionQualifiers: TerminalTransactionQualifiers? = nil, statusCheck: Bool? = nil,
        zeroAmountAllowed: Bool? = nil, extendedSelection: Bool? = nil, data: [TLVTag: [UInt8]] = [:],
        options: (any KernelOptions)? = nil
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
        erasedOptions = Erased(options)
    }

    /// Tag 9F1B, binary.
    var terminalFloorLimit: UInt64? { data[0x9F1B].map { $0.reduce(0) { $0 << 8 | UInt64($1) } } }
}

/// An error in a configuration.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The place of the error: `combinations[2].data.9F1B`.
    public let path: String
    public let reason: String

    public init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }

    public var description: String { "configuration: \(path): \(reason)" }
}

extension ReaderConfiguration {
    func validate(for kernels: Kernels) throws(ConfigurationError) {
        let requestable = kernels.identifiers.reduce(into: Set<TLVTag>()) {
            $0.formUnion(kernels[$1]?.requestableData ?? [])
        }
        try Self.validate(terminal, "terminal", requestable)
        guard !combinations.isEmpty else { throw ConfigurationError(path: "combinations", reason: "there is none") }
        struct Key: Hashable {
            let aid: AID
            let kernel: KernelIdentifier
            let type: Transaction.Kind
        }
        var seen: Set<Key> = []
        for (index, combination) in combinations.enumerated() {
            let path = "combinations[\(index)]"
            let kernel = kernels[combination.kernel]
            try combination.validate(path, kernel)
            try Self.validate(combination.data, "\(path).data", requestable)
            // Those that the abilities advertise need not be set.
            for tag in kernel?.mandatoryData ?? []
            where terminal[tag] == nil && combination.data[tag] == nil && ![0x9F33, 0x9F40].contains(tag) {
                let element = DataElement[tag].map { "\($0)" } ?? "\(tag)"
                throw ConfigurationError(
                    path: path, reason: "\(combination.kernel) needs \(element), in terminal or in data")
            }
            for type in combination.transactionTypes
            where !seen.insert(Key(aid: combination.aid, kernel: combination.kernel, type: type)).inserted {
                throw ConfigurationError(
                    path: path,
                    reason: "\(combination.aid), \(combination.kernel) and \(type): duplicate of an earlier combination"
                )
            }
        }
        try validateAbilities(for: kernels)
    }

    /// The tags that must not be set, each with the origin of its value.
    private static let reserved: [TLVTag: String] = {
        let ofTransaction: [TLVTag] = [
            0x9F02, 0x9F03, 0x5F2A, 0x5F36, 0x9A, 0x9F21, 0x9C, 0x9F37, 0x9F41, 0x9F66, 0x95, 0x9B,
        ]
        var reasons = Dictionary(uniqueKeysWithValues: ofTransaction.map { ($0, "comes with each transaction") })
        reasons[0x9F06] = "is the AID of the combination"
        return reasons
    }()

    /// - Parameter requestable: the templates, and the objects that may be set without a value.
    private static func validate(
        _ data: [TLVTag: [UInt8]], _ path: String, _ requestable: Set<TLVTag>
    ) throws(ConfigurationError) {
        for (tag, value) in data.sorted(by: { $0.key < $1.key }) {
            let path = "\(path).\(tag)"
            if let origin = reserved[tag] {
                throw ConfigurationError(path: path, reason: "\(origin), and cannot be set")
            }
            if value.isEmpty, requestable.contains(tag) { continue }
            guard !tag.isConstructed || requestable.contains(tag) else {
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
    fileprivate func validate(_ path: String, _ type: (any Kernel.Type)?) throws(ConfigurationError) {
        guard kernel != .any else { throw ConfigurationError(path: "\(path).kernel", reason: "no kernel") }
        guard !transactionTypes.isEmpty else {
            throw ConfigurationError(path: "\(path).transactionTypes", reason: "there is none")
        }
        try validateLimits(path)
        guard let type else {
            guard options == nil else {
                throw ConfigurationError(path: "\(path).options", reason: "this reader does not have \(kernel)")
            }
            return
        }
        func check<K: Kernel>(_ type: K.Type) throws(ConfigurationError) {
            guard options == nil || options is K.Options else {
                throw ConfigurationError(path: "\(path).options", reason: "are those of another kernel than \(kernel)")
            }
            try K.validate(self, options as? K.Options ?? K.Options(), at: path)
        }
        try check(type)
    }

    /// Checks the number of digits of the limits.
    ///
    /// - Parameter path: the place of the combination, the beginning of the error's path.
    func validateLimits(_ path: String) throws(ConfigurationError) {
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
