/// Terminal risk management (EMV Book 3, 10.6).  Each function returns bits to add to the terminal verification
/// results.
public enum TerminalRiskManagement {
    /// Checks the floor limit (EMV Book 3, 10.6.1), which an equal amount reaches.
    ///
    /// - Parameters:
    ///   - amount: the amount of this transaction, in the minor unit of its currency.
    ///   - earlier: the amount of the card's previous approvals in the terminal's log.
    ///   - limit: the floor limit, in the same unit.
    public static func floorLimit(
        amount: UInt64, earlier: UInt64 = 0, limit: UInt64
    ) -> TerminalVerificationResults {
        let (sum, overflow) = amount.addingReportingOverflow(earlier)
        return overflow || sum >= limit ? .floorLimitExceeded : []
    }

    /// The parameters of random transaction selection (EMV Book 3, 10.6.2): the share of transactions below the floor
    /// limit that go online.
    public struct RandomSelection: Hashable, Sendable {
        /// The share of transactions below the threshold, in percent.
        public let targetPercentage: Int
        /// The share of transactions just below the floor limit, in percent.
        public let maximumTargetPercentage: Int
        /// The amount from which the share grows, up to the maximum at the floor limit.
        public let threshold: UInt64

        /// Creates parameters.
        ///
        /// - Returns: nil unless 0 ≤ target ≤ maximum ≤ 99.
        public init?(targetPercentage: Int, maximumTargetPercentage: Int, threshold: UInt64) {
            guard 0 <= targetPercentage, targetPercentage <= maximumTargetPercentage, maximumTargetPercentage <= 99
            else { return nil }
            self.targetPercentage = targetPercentage
            self.maximumTargetPercentage = maximumTargetPercentage
            self.threshold = threshold
        }
    }

    /// Selects transactions at random.
    ///
    /// - Parameters:
    ///   - selection: the percentages and the threshold.
    ///   - amount: the amount, in the minor unit of its currency.
    ///   - floorLimit: the floor limit, in the same unit.
    ///   - randomNumber: 1 to 99; other values count as the nearest of these.
    public static func select(
        _ selection: RandomSelection, amount: UInt64, floorLimit: UInt64, randomNumber: Int
    ) -> TerminalVerificationResults {
        guard amount < floorLimit else { return [] }
        let excess = min(max(randomNumber, 1), 99) - selection.targetPercentage
        if excess <= 0 { return .selectedRandomlyForOnline }
        guard amount >= selection.threshold else { return [] }
        // target + (maximum - target) * (amount - threshold) / (floor limit - threshold), in whole numbers.
        let range = UInt64(selection.maximumTargetPercentage - selection.targetPercentage)
        let product = range.multipliedFullWidth(by: amount - selection.threshold)
        let needed = UInt64(excess).multipliedFullWidth(by: floorLimit - selection.threshold)
        return (needed.high, needed.low) <= (product.high, product.low) ? .selectedRandomlyForOnline : []
    }

    /// Checks the velocity (EMV Book 3, 10.6.3): the number of consecutive offline transactions, for cards that have
    /// both limits.
    ///
    /// - Parameters:
    ///   - transactionCounter: the ATC, tag 9F36; nil if the card does not supply it.
    ///   - lastOnline: the last online ATC register, tag 9F13; nil if the card does not supply it.
    ///   - lowerLimit: tag 9F14.
    ///   - upperLimit: tag 9F23.
    public static func velocity(
        transactionCounter: UInt16?, lastOnline: UInt16?, lowerLimit: UInt8, upperLimit: UInt8
    ) -> TerminalVerificationResults {
        var results: TerminalVerificationResults = lastOnline == 0 ? .newCard : []
        guard let transactionCounter, let lastOnline, transactionCounter > lastOnline else {
            return results.union([.lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded])
        }
        let count = transactionCounter - lastOnline
        if count > lowerLimit { results.insert(.lowerConsecutiveOfflineLimitExceeded) }
        if count > upperLimit { results.insert(.upperConsecutiveOfflineLimitExceeded) }
        return results
    }
}
