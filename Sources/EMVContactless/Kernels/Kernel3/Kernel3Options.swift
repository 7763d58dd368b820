extension Kernel3 {
    /// What Book C-3 leaves to the implementation and to acquirer and merchant.
    public struct Options: Hashable, Sendable {
        /// Limits for the cards of a program, which take the place of the combination's (Book C-3, 5.1.2); of several that
        /// fit, the one with the longest identifier counts.
        ///
        /// Entry Point decides by the combination's own limits, before there is a card, whether the combination is
        /// allowed at all.  Where a program has a higher transaction limit, the combination's has to be as high.
        public var dynamicReaderLimits: [DynamicReaderLimits]
        /// Whether the card's available offline spending amount is shown and handed out (Book C-3, 4.3.1.1).
        public var displaysAvailableOfflineSpendingAmount: Bool
        /// Whether cards that approve offline are looked up in the exception file (Book C-3, 5.5.1.2).
        public var checksExceptionFile: Bool
        /// Whether the application usage control is checked for manual cash (Book C-3, 5.5.1.3).
        public var checksUsageForCash: Bool
        /// Whether the application usage control is checked for purchases with cashback (Book C-3, 5.5.1.4).
        public var checksUsageForCashback: Bool
        /// Whether an ATM, which is one by its terminal type, checks that the card may be used there (Book C-3, 5.5.1.5).
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

    /// The limits of one program of cards (Book C-3, 5.1.2 and Annex A, Application Program Identifier).
    ///
    /// They mean what those of ``Combination`` mean; one that is nil does not exist for the program, but for the floor
    /// limit, which the terminal's stands in for.
    public struct DynamicReaderLimits: Hashable, Sendable {
        /// The beginning that the card's Application Program Identifier, tag 9F5A, must have: 1 to 16 bytes.
        public let applicationProgramIdentifier: [UInt8]
        public var transactionLimit: UInt64?
        public var floorLimit: UInt64?
        public var cvmRequiredLimit: UInt64?
        public var statusCheck: Bool?
        public var zeroAmountAllowed: Bool?

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
    /// The limits for a card (Book C-3, 5.1.2.1): the reader's identifier is the whole of the card's, or its beginning.
    func dynamicReaderLimits(for identifier: [UInt8]) -> Kernel3.DynamicReaderLimits? {
        dynamicReaderLimits.filter { identifier.starts(with: $0.applicationProgramIdentifier) }
            .max { $0.applicationProgramIdentifier.count < $1.applicationProgramIdentifier.count }
    }
}

extension Combination {
    /// The combination with other limits.
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
