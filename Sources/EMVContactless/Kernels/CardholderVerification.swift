import SmartCard

/// Cardholder verification, as far as a contactless kernel takes part in it (EMV Book 3, 10.5): the selected method,
/// and its results.
///
/// An offline PIN is recognized but never selected, whatever the terminal's capabilities: only contact cards verify
/// it.
public struct CardholderVerification: Hashable, Sendable {
    /// The rules to apply.  They differ if the terminal does not support what the card requests.
    public enum Procedure: Hashable, Sendable, CaseIterable {
        /// EMV Book 3, 10.5: "fail" is final, and a PIN that cannot be entered sets a bit of the terminal verification
        /// results.
        case book3
        /// EMV Contactless Book C-2, 7.5, CVM.9 to CVM.25: the rule after "fail" is tried if the card permits it, and
        /// PIN pads have no bits.
        case kernel2
    }

    /// The method that was or will be performed; also ``Outcome/CVM/none`` if verification was not successful.
    public let method: Outcome.CVM
    /// The CVM Results, tag 9F34 (EMV Book 4, 6.3.4.5).
    public let results: CVMResults
    /// The bits to add to the terminal verification results, tag 95.
    public let findings: TerminalVerificationResults
    /// The bits to add to the transaction status information, tag 9B.
    public let status: TransactionStatusInformation

    private init(
        _ method: Outcome.CVM, _ results: CVMResults, _ findings: TerminalVerificationResults = [],
        status: TransactionStatusInformation = .cardholderVerification
    ) {
        self.method = method
        self.results = results
        self.findings = findings
        self.status = status
    }

    /// The result for a card that does not support cardholder verification: AIP byte 1 bit 5 is 0.
    public static let unsupported = Self(.none, CVMResults(.notPerformed, .unknown), status: [])

    /// Returns the result for a consumer device that verifies its cardholder (EMV Contactless Book C-2, 7.5, CVM.1 to
    /// CVM.4): AIP byte 1 bit 2 is set, and the kernel is configured for it.
    ///
    /// - Parameter isRequired: true if the amount exceeds the reader's CVM required limit.
    public static func onDevice(isRequired: Bool) -> Self {
        isRequired
            ? Self(.deviceCVM, CVMResults(CVMList.Rule(code: 0x01, condition: 0x00), .successful))
            : Self(.none, CVMResults(.notPerformed, .successful))
    }

    /// Applies the card's CVM list (EMV Book 3, 10.5), for a card that supports cardholder verification.
    ///
    /// - Parameters:
    ///   - list: tag 8E; nil if the card does not supply it.
    ///   - transaction: the amounts, the type and the currency.
    ///   - applicationCurrency: tag 9F42, the currency of the list's amounts; nil if the card does not supply it.
    ///   - terminalType: tag 9F35; without it conditions on cash are not satisfied.
    ///   - capability: the methods that the terminal supports for this transaction.
    ///   - procedure: the book whose rules apply.
    public init(
        _ list: CVMList?, for transaction: Transaction, applicationCurrency: [UInt8]?, terminalType: UInt8?,
        capability: CVMCapability, procedure: Procedure = .book3
    ) {
        // A list without rules counts as absent.  EMV Book 3, 7.5: absence sets a bit.
        guard let list, !list.rules.isEmpty else {
            self.init(.none, CVMResults(.notPerformed, .unknown), .iccDataMissing, status: [])
            return
        }
        let conditions = Conditions(
            list: list, transaction: transaction, applicationCurrency: applicationCurrency, terminalType: terminalType)
        var findings: TerminalVerificationResults = []
        var failure = CVMResults(.notPerformed, .failed)
        for rule in list.rules {
            failure = CVMResults(.notPerformed, .failed)
            let method = Method(rule)
            let isSupported = method.map { capability.supports($0) } ?? false
            guard conditions.satisfy(rule.condition, isSupported: isSupported) else { continue }
            switch method {
            case .onlinePIN where isSupported:
                self.init(.onlinePIN, CVMResults(rule, .unknown), findings.union(.onlineCVMCaptured))
                return
            case .signature where isSupported:
                self.init(.signature, CVMResults(rule, .unknown), findings)
                return
            case .noCVM where isSupported:
                self.init(.none, CVMResults(rule, .successful), findings)
                return
            case .fail: failure = CVMResults(rule, .failed)
            case .onlinePIN, .offlinePIN:
                if procedure == .book3 { findings.insert(.pinPadNotPresentOrNotWorking) }
            case .signature, .noCVM: break
            case nil: findings.insert(.unrecognizedCVM)
            }
            if !rule.continuesOnFailure || method == .fail && procedure == .book3 { break }
        }
        self.init(.none, failure, findings.union(.cardholderVerificationNotSuccessful))
    }
}

/// The part of a CVM code that matters to a contactless kernel (EMV Book 3, Annex C3, table 43).
private enum Method {
    case fail, onlinePIN, offlinePIN, signature, noCVM

    /// Recognizes a method.
    ///
    /// - Returns: nil for an unknown code, including biometric methods (EMV 4.4).
    init?(_ rule: CVMList.Rule) {
        switch rule.methodCode {
        case 0x00: self = .fail
        case 0x02: self = .onlinePIN
        case 0x01, 0x03, 0x04, 0x05: self = .offlinePIN
        case 0x1E: self = .signature
        case 0x1F: self = .noCVM
        default: return nil
        }
    }
}

/// The data for condition codes (EMV Book 3, Annex C3, table 44).
private struct Conditions {
    let list: CVMList
    let amount: UInt64
    /// True if the currencies agree; nil if one of them is unknown.
    let isInApplicationCurrency: Bool?
    let kind: Transaction.Kind
    /// True for an unattended terminal; nil if the terminal's type is unknown.
    let isUnattended: Bool?

    init(list: CVMList, transaction: Transaction, applicationCurrency: [UInt8]?, terminalType: UInt8?) {
        self.list = list
        amount = transaction.amount
        isInApplicationCurrency = applicationCurrency.map { $0 == transaction.dataObjects[0x5F2A] }
        kind = transaction.kind
        isUnattended = terminalType.flatMap { TerminalType($0).isUnattended }
    }

    /// Evaluates a condition code.
    ///
    /// - Returns: false also for an unknown condition, or if its data is missing.
    func satisfy(_ code: UInt8, isSupported: Bool) -> Bool {
        switch code {
        case 0x00: true
        case 0x01: kind == .cash && isUnattended == true
        case 0x02: isUnattended != nil && kind != .cash && kind != .purchaseWithCashback
        case 0x03: isSupported
        case 0x04: kind == .cash && isUnattended == false
        case 0x05: kind == .purchaseWithCashback
        case 0x06: isInApplicationCurrency == true && amount < list.amountX
        case 0x07: isInApplicationCurrency == true && amount > list.amountX
        case 0x08: isInApplicationCurrency == true && amount < list.amountY
        case 0x09: isInApplicationCurrency == true && amount > list.amountY
        default: false
        }
    }
}

extension CVMCapability {
    fileprivate func supports(_ method: Method) -> Bool {
        switch method {
        case .fail: true
        case .onlinePIN: contains(.onlinePIN)
        case .offlinePIN: false
        case .signature: contains(.signature)
        case .noCVM: contains(.noCVM)
        }
    }
}

extension CVMList.Rule {
    /// No CVM performed (EMV Book 4, Annex A4).
    fileprivate static let notPerformed = Self(code: 0x3F, condition: 0x00)
}

/// The cardholder verification methods of a terminal: byte 2 of the terminal capabilities, tag 9F33 (EMV Book 4, Annex
/// A2), and the CVM capabilities of Kernel 2, DF8118 and DF8119 (EMV Contactless Book C-2, A.1).
public struct CVMCapability: OptionSet, Hashable, Sendable {
    /// The value of the byte.
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Bit 8: a PIN that the card verifies in the clear.
    public static let plaintextOfflinePIN = Self(rawValue: 0x80)
    /// Bit 7: an enciphered PIN that the issuer verifies.
    public static let onlinePIN = Self(rawValue: 0x40)
    /// Bit 6: a signature on paper.
    public static let signature = Self(rawValue: 0x20)
    /// Bit 5: an enciphered PIN that the card verifies.
    public static let encipheredOfflinePIN = Self(rawValue: 0x10)
    /// Bit 4: no cardholder verification.
    public static let noCVM = Self(rawValue: 0x08)

    /// Parses tag 9F33.
    ///
    /// - Returns: nil unless there are 3 bytes.
    public init?(terminalCapabilities bytes: some Collection<UInt8>) {
        guard bytes.count == 3, let methods = bytes.dropFirst().first else { return nil }
        rawValue = methods
    }
}
