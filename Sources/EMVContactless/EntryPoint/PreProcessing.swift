/// The pre-processing indicators of a combination, determined before a card is present (EMV Contactless Book B, 3.1
/// and table 3-1).
public struct PreProcessingIndicators: Hashable, Sendable {
    /// A single unit of the currency is requested, to check the state of the account (Book B, 3.1.1.3).
    public var statusCheckRequested = false
    /// The combination must not be used for this transaction (Book B, 3.1.1.4, 3.1.1.5 and 3.1.1.11).
    public var contactlessApplicationNotAllowed = false
    /// The amount is zero, and the combination allows that (Book B, 3.1.1.4).
    public var zeroAmount = false
    /// The amount reaches the limit from which the cardholder must be verified (Book B, 3.1.1.8).
    public var cvmRequiredLimitExceeded = false
    /// The amount exceeds the limit up to which the transaction may stay offline (Book B, 3.1.1.6 and 3.1.1.7).
    public var floorLimitExceeded = false
    /// The combination's TTQ, with the bits that depend on the transaction (Book B, 3.1.1.2 and 3.1.1.9 to 3.1.1.12);
    /// nil if the combination has none.
    public var terminalTransactionQualifiers: TerminalTransactionQualifiers?

    /// Creates the indicators without pre-processing: the TTQ as configured (Book B, 3.2.1.1).
    public init(withoutPreProcessing combination: Combination) {
        terminalTransactionQualifiers = combination.terminalTransactionQualifiers
    }

    /// Pre-processes one combination (Book B, 3.1.1.1 to 3.1.1.12).
    public init(_ combination: Combination, _ transaction: Transaction) {
        let amount = transaction.amount
        // 3.1.1.2
        var qualifiers = combination.terminalTransactionQualifiers?.subtracting([
            .onlineCryptogramRequired, .cvmRequired,
        ])
        // 3.1.1.3: a single unit of the currency, 1.00 EUR or 1 JPY.
        if combination.statusCheck == true, amount == transaction.currency.unit { statusCheckRequested = true }
        // 3.1.1.4
        if amount == 0 {
            if combination.zeroAmountAllowed == false {
                contactlessApplicationNotAllowed = true
            } else {
                zeroAmount = true
            }
        }
        // 3.1.1.5
        if let limit = combination.transactionLimit, amount >= limit { contactlessApplicationNotAllowed = true }
        // 3.1.1.6, 3.1.1.7: the terminal's floor limit replaces a missing reader limit.
        if let limit = combination.floorLimit ?? combination.terminalFloorLimit, amount > limit {
            floorLimitExceeded = true
        }
        // 3.1.1.8
        if let limit = combination.cvmRequiredLimit, amount >= limit { cvmRequiredLimitExceeded = true }

        if qualifiers != nil {
            // 3.1.1.9, 3.1.1.10
            if floorLimitExceeded || statusCheckRequested { qualifiers?.insert(.onlineCryptogramRequired) }
            // 3.1.1.11
            if zeroAmount {
                if qualifiers?.contains(.offlineOnlyReader) == true {
                    contactlessApplicationNotAllowed = true
                } else {
                    qualifiers?.insert(.onlineCryptogramRequired)
                }
            }
            // 3.1.1.12
            if cvmRequiredLimitExceeded { qualifiers?.insert(.cvmRequired) }
        }
        terminalTransactionQualifiers = qualifiers
    }
}

extension Currency {
    /// One unit of the currency in its minor unit: 100 for EUR, 1 for JPY.
    var unit: UInt64 { (0..<(exponent ?? 0)).reduce(1) { unit, _ in unit * 10 } }
}
