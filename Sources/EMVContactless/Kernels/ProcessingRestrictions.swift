public import SmartCard

/// Processing restrictions (EMV Book 3, 10.4): checks of version, usage and dates.  Each function returns bits to add
/// to the terminal verification results.
public enum ProcessingRestrictions {
    /// Performs all checks.
    ///
    /// - Parameters:
    ///   - transaction: the type and the date.
    ///   - card: the card's values by tag: 9F08, 9F07, 5F28, 5F25 and 5F24 are used.
    ///   - terminal: the terminal's values by tag: 9F09, 9F1A, 9F35 and 9F40 are used.
    public static func check(
        _ transaction: Transaction, card: (TLVTag) -> [UInt8]?, terminal: (TLVTag) -> [UInt8]?
    ) -> TerminalVerificationResults {
        let isATM = isATM(terminalType: terminal(0x9F35)?.first, additionalCapabilities: terminal(0x9F40)?.first)
        let isDomestic = card(0x5F28).map { $0 == terminal(0x9F1A) }
        return [
            applicationVersion(card: card(0x9F08), terminal: terminal(0x9F09)),
            usage(card(0x9F07), transaction, isDomestic: isDomestic, isATM: isATM),
            effectiveDate(card(0x5F25), on: transaction.time.date),
            expirationDate(card(0x5F24), on: transaction.time.date),
        ]
    }

    /// Checks the application version number (EMV Book 3, 10.4.1).  A card without one matches any terminal.
    ///
    /// - Parameters:
    ///   - card: tag 9F08.
    ///   - terminal: tag 9F09; a terminal without one does not match.
    public static func applicationVersion(card: [UInt8]?, terminal: [UInt8]?) -> TerminalVerificationResults {
        card == nil || card == terminal ? [] : .differentApplicationVersions
    }

    /// Checks the application usage control (EMV Book 3, 10.4.2).
    ///
    /// - Parameters:
    ///   - control: tag 9F07; without it a card may be used for everything, with a value of other than two bytes for
    ///     nothing.
    ///   - transaction: the type and the amounts.
    ///   - isDomestic: true if the issuer's country, tag 5F28, is the terminal's; nil if the card does not supply it:
    ///     then only the kind of terminal counts.
    ///   - isATM: true if the terminal is a cash dispenser.
    public static func usage(
        _ control: [UInt8]?, _ transaction: Transaction, isDomestic: Bool?, isATM: Bool
    ) -> TerminalVerificationResults {
        guard let control else { return [] }
        guard let usage = ApplicationUsageControl(control), usage.contains(isATM ? .atms : .terminalsOtherThanATMs)
        else { return .serviceNotAllowed }
        guard let isDomestic else { return [] }
        let isAllowed =
            switch transaction.kind {
            case .cash: usage.allowsCash(isDomestic: isDomestic)
            case .purchase, .purchaseWithCashback: usage.allowsPurchases(isDomestic: isDomestic)
            case .refund: true
            }
        guard isAllowed, transaction.amountOther == 0 || usage.allowsCashback(isDomestic: isDomestic) else {
            return .serviceNotAllowed
        }
        return []
    }

    /// Checks the application effective date (EMV Book 3, 10.4.3).
    ///
    /// - Parameters:
    ///   - date: tag 5F25; without it the application is effective, with an invalid date it never is.
    ///   - day: the day of the transaction.
    public static func effectiveDate(_ date: [UInt8]?, on day: CalendarDate) -> TerminalVerificationResults {
        guard let date else { return [] }
        guard let first = CalendarDate(packed: date), first <= day else { return .applicationNotYetEffective }
        return []
    }

    /// Checks the application expiration date (EMV Book 3, 10.4.3): the application is valid through that day.
    ///
    /// - Parameters:
    ///   - date: tag 5F24; without it, or with an invalid date, the application has expired.
    ///   - day: the day of the transaction.
    public static func expirationDate(_ date: [UInt8]?, on day: CalendarDate) -> TerminalVerificationResults {
        guard let date, let last = CalendarDate(packed: date), last >= day else { return .expiredApplication }
        return []
    }

    /// Returns true if a terminal is an ATM (EMV Book 4, Annex A1): unattended, run by a financial institution, with
    /// cash dispensing.
    ///
    /// - Parameters:
    ///   - terminalType: tag 9F35.
    ///   - additionalCapabilities: the first byte of tag 9F40.
    public static func isATM(terminalType: UInt8?, additionalCapabilities: UInt8?) -> Bool {
        guard let terminalType, let additionalCapabilities else { return false }
        return TerminalType(terminalType).isUnattendedAtFinancialInstitution
            && TransactionTypeCapabilities(rawValue: additionalCapabilities).contains(.cash)
    }
}
