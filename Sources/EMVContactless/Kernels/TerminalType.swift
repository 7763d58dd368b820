/// The Terminal Type, tag 9F35: two digits, the operator and the environment (EMV Book 4, Annex A1).
struct TerminalType: Hashable {
    let code: UInt8

    init(_ code: UInt8) { self.code = code }

    /// The second digit: attended or not, and the online capability.
    private var environment: UInt8 { code & 0x0F }

    /// True for an unattended terminal; nil if the type does not say.
    var isUnattended: Bool? {
        switch environment {
        case 1...3: false
        case 4...6: true
        default: nil
        }
    }

    /// The online capability; nil if the type expresses none.
    var onlineCapability: TerminalActionAnalysis.OnlineCapability? {
        switch environment {
        case 1, 4: .onlineOnly
        case 2, 5: .offlineWithOnlineCapability
        case 3, 6: .offlineOnly
        default: nil
        }
    }

    /// True for an unattended terminal of a financial institution: with cash it is an ATM (EMV Book 4, Annex A1).
    var isUnattendedAtFinancialInstitution: Bool { (0x14...0x16).contains(code) }
}

/// Additional Terminal Capabilities, tag 9F40, byte 1: the transaction types (EMV Book 4, Annex A3).
struct TransactionTypeCapabilities: OptionSet {
    let rawValue: UInt8
    static let cash = Self(rawValue: 0x80)
}
