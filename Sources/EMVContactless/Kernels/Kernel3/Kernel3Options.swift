public import SmartCard

extension Kernel3 {
    /// The options that Book C-3 leaves to the implementation, the acquirer and the merchant.
    public struct Options: Hashable, Sendable {
        /// Limits for the cards of a program, which replace the combination's limits (Book C-3, 5.1.2); of several
        /// matching ones the longest identifier counts.
        ///
        /// Before there is a card, Entry Point uses the combination's limits to decide whether the combination is
        /// allowed.  If a program has a higher transaction limit, the combination's limit must be as high.
        public var dynamicReaderLimits: [DynamicReaderLimits]
        /// True to show and hand out the card's available offline spending amount (Book C-3, 4.3.1.1).
        public var displaysAvailableOfflineSpendingAmount: Bool
        /// True to look up cards that approve offline in the exception file (Book C-3, 5.5.1.2).
        public var checksExceptionFile: Bool
        /// True to check the application usage control for manual cash (Book C-3, 5.5.1.3).
        public var checksUsageForCash: Bool
        /// True to check the application usage control for purchases with cashback (Book C-3, 5.5.1.4).
        public var checksUsageForCashback: Bool
        /// True to check, at an ATM by its terminal type, that the card may be used there (Book C-3, 5.5.1.5).
        public var checksUsageAtATM: Bool

        public init(
            dynamicReaderLimits: [DynamicReaderLimits] = [], displaysAvailableOfflineSpendingAmount: Bool = false,
            checksExceptionFile: Bool = true, checksUsageForCash: Bool = true, checksUsageForCashback: Bool = true,
            checksUsageAtATM: Bool = false
        ) {
            self.dynamicReaderLimits = dynamicReaderLimits
            self.displaysAvailableOfflineSpendingAmount = displaysAvailableOfflineSpendingAmount
            self.checksExceptionFile = checksExceptionFile
            self.checksUsageForCash = checksUsageForCash
            self.checksUsageForCashback = checksUsageForCashback
            self.checksUsageAtATM = checksUsageAtATM
        }
    }

    /// The limits of a card program (Book C-3, 5.1.2 and Annex A, Application Program Identifier).
    ///
    /// They have the meanings of ``Combination``.  A limit that is nil does not exist for the program, except for the
    /// floor limit, which the terminal's replaces.
    public struct DynamicReaderLimits: Hashable, Sendable {
        /// The required beginning of the card's Application Program Identifier, tag 9F5A: 1 to 16 bytes.
        public let applicationProgramIdentifier: [UInt8]
        public var transactionLimit: UInt64?
        public var floorLimit: UInt64?
        public var cvmRequiredLimit: UInt64?
        public var statusCheck: Bool?
        public var zeroAmountAllowed: Bool?

        /// Creates limits.
        ///
        /// - Returns: nil unless the identifier has 1 to 16 bytes.
        public init?(
            applicationProgramIdentifier: [UInt8], transactionLimit: UInt64? = nil, floorLimit: UInt64? = nil,
            cvmRequiredLimit: UInt64? = nil, statusCheck: Bool? = nil, zeroAmountAllowed: Bool? = nil
        ) {
            guard (1...16).contains(applicationProgramIdentifier.count) else { return nil }
            self.applicationProgramIdentifier = applicationProgramIdentifier
            self.transactionLimit = transactionLimit
            self.floorLimit = floorLimit
            self.cvmRequiredLimit = cvmRequiredLimit
            self.statusCheck = statusCheck
            self.zeroAmountAllowed = zeroAmountAllowed
        }
    }
}

extension Kernel3.Options {
    /// Returns the limits for a card (Book C-3, 5.1.2.1): the reader's identifier equals the card's, or begins it.
    func dynamicReaderLimits(for identifier: [UInt8]) -> Kernel3.DynamicReaderLimits? {
        dynamicReaderLimits.filter { identifier.starts(with: $0.applicationProgramIdentifier) }
            .max { $0.applicationProgramIdentifier.count < $1.applicationProgramIdentifier.count }
    }
}

extension Combination {
    /// Returns the combination with other limits.
    func with(_ limits: Kernel3.DynamicReaderLimits) -> Combination {
        var combination = self
        combination.transactionLimit = limits.transactionLimit
        combination.floorLimit = limits.floorLimit
        combination.cvmRequiredLimit = limits.cvmRequiredLimit
        combination.statusCheck = limits.statusCheck
        combination.zeroAmountAllowed = limits.zeroAmountAllowed
        return combination
    }
}

extension Kernel3 {
    /// The Terminal Country Code, which is compared with the issuer's country (Book C-3, 5.5.1).
    public static let mandatoryData: [TLVTag] = [0x9F1A]

    public static func validate(
        _ combination: Combination, _ options: Options, at path: String
    ) throws(ConfigurationError) {
        for (index, limits) in options.dynamicReaderLimits.enumerated() {
            let path = "\(path).options.dynamicReaderLimits[\(index)]"
            try combination.with(limits).validateLimits(path)
            let identifier = limits.applicationProgramIdentifier
            guard
                !options.dynamicReaderLimits[..<index].contains(where: { $0.applicationProgramIdentifier == identifier }
                )
            else { throw ConfigurationError(path: path, reason: "the identifier stands there before") }
        }
        guard let qualifiers = combination.terminalTransactionQualifiers else {
            throw ConfigurationError(
                path: "\(path).terminalTransactionQualifiers", reason: "Kernel 3 needs them (Book C-3, 2.4.1)")
        }
        guard qualifiers.contains(.emvMode), !qualifiers.contains(.magStripeMode) else {
            throw ConfigurationError(
                path: "\(path).terminalTransactionQualifiers", reason: "Kernel 3 has EMV mode, and no mag-stripe mode")
        }
    }
}
