/// What the terminal found out about card, cardholder and transaction: tag 95, 5 bytes (EMV Book 3, Annex C5; EMV
/// Contactless Book C-2, Annex A).  The terminal and issuer action codes have the same bits.
///
/// Kernel 3 leaves them all zero.
public struct TerminalVerificationResults: OptionSet, Hashable, Sendable {
    /// The five bytes, the first one most significant.
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    private init(_ byte: UInt64, _ bit: UInt64) { rawValue = bit << (8 * (5 - byte)) }

    /// Byte 1 bit 8: offline data authentication was not performed (EMV Book 3, 10.3).
    public static let offlineDataAuthenticationNotPerformed = Self(1, 0x80)
    /// Byte 1 bit 7: SDA failed (EMV Book 3, 10.3).
    public static let sdaFailed = Self(1, 0x40)
    /// Byte 1 bit 6: the card does not give what it has to give for what it supports (EMV Book 3, 7.5).
    public static let iccDataMissing = Self(1, 0x20)
    /// Byte 1 bit 5: the account number stands in the terminal's exception file (EMV Book 4, 6.3.5).
    public static let cardOnExceptionFile = Self(1, 0x10)
    /// Byte 1 bit 4: DDA failed (EMV Book 3, 10.3).
    public static let ddaFailed = Self(1, 0x08)
    /// Byte 1 bit 3: CDA failed (EMV Book 3, 10.3).
    public static let cdaFailed = Self(1, 0x04)
    /// Byte 1 bit 2: SDA was selected (EMV Book 3, 10.3).
    public static let sdaSelected = Self(1, 0x02)

    /// Byte 2 bit 8: card and terminal have different application versions (EMV Book 3, 10.4.1).
    public static let differentApplicationVersions = Self(2, 0x80)
    /// Byte 2 bit 7: the application has expired (EMV Book 3, 10.4.3).
    public static let expiredApplication = Self(2, 0x40)
    /// Byte 2 bit 6: the application is not yet effective (EMV Book 3, 10.4.3).
    public static let applicationNotYetEffective = Self(2, 0x20)
    /// Byte 2 bit 5: the card may not be used for this here (EMV Book 3, 10.4.2).
    public static let serviceNotAllowed = Self(2, 0x10)
    /// Byte 2 bit 4: the card has never been online (EMV Book 3, 10.6.3).
    public static let newCard = Self(2, 0x08)

    /// Byte 3 bit 8: no rule of the CVM list led to success (EMV Book 3, 10.5).
    public static let cardholderVerificationNotSuccessful = Self(3, 0x80)
    /// Byte 3 bit 7: a rule of the CVM list that applied has a method that is not known (EMV Book 3, 10.5).
    public static let unrecognisedCVM = Self(3, 0x40)
    /// Byte 3 bit 6: the card takes no more PINs (EMV Book 3, 10.5.1).
    public static let pinTryLimitExceeded = Self(3, 0x20)
    /// Byte 3 bit 5: a PIN was to be entered, and there is no PIN pad that works (EMV Book 3, 10.5).
    public static let pinPadNotPresentOrNotWorking = Self(3, 0x10)
    /// Byte 3 bit 4: a PIN was to be entered, and was not (EMV Book 3, 10.5.1 and 10.5.2).
    public static let pinNotEntered = Self(3, 0x08)
    /// Byte 3 bit 3: a PIN for the issuer was entered, or is going to be (EMV Book 3, 10.5.2).
    public static let onlineCVMCaptured = Self(3, 0x04)

    /// Byte 4 bit 8: the amount reaches the floor limit (EMV Book 3, 10.6.1).
    public static let floorLimitExceeded = Self(4, 0x80)
    /// Byte 4 bit 7: more transactions offline than the lower limit, tag 9F14 (EMV Book 3, 10.6.3).
    public static let lowerConsecutiveOfflineLimitExceeded = Self(4, 0x40)
    /// Byte 4 bit 6: more transactions offline than the upper limit, tag 9F23 (EMV Book 3, 10.6.3).
    public static let upperConsecutiveOfflineLimitExceeded = Self(4, 0x20)
    /// Byte 4 bit 5: selected at random to go online (EMV Book 3, 10.6.2).
    public static let selectedRandomlyForOnline = Self(4, 0x10)
    /// Byte 4 bit 4: the merchant wants it to go online (EMV Book 4, 6.3.5).
    public static let merchantForcedOnline = Self(4, 0x08)

    /// Byte 5 bit 8: the terminal's own TDOL was used (EMV Book 3, 9.2.2).
    public static let defaultTDOLUsed = Self(5, 0x80)
    /// Byte 5 bit 7: the card did not take the issuer's authentication data (EMV Book 3, 10.9).
    public static let issuerAuthenticationFailed = Self(5, 0x40)
    /// Byte 5 bit 6: a command of script 71 failed (EMV Book 3, 10.10).
    public static let scriptFailedBeforeFinalGenerateAC = Self(5, 0x20)
    /// Byte 5 bit 5: a command of script 72 failed (EMV Book 3, 10.10).
    public static let scriptFailedAfterFinalGenerateAC = Self(5, 0x10)
    /// Byte 5 bit 4, of Kernel 2: the card answered too late to be where it seems (EMV Contactless Book C-2, A.1).
    public static let relayResistanceThresholdExceeded = Self(5, 0x08)
    /// Byte 5 bit 3, of Kernel 2: it took the card another time than it says (EMV Contactless Book C-2, A.1).
    public static let relayResistanceTimeLimitsExceeded = Self(5, 0x04)
    /// Byte 5 bits 2 and 1, 10, of Kernel 2 (EMV Contactless Book C-2, A.1).
    public static let relayResistanceProtocolPerformed = Self(5, 0x02)
    /// Byte 5 bits 2 and 1, 01, of Kernel 2 (EMV Contactless Book C-2, A.1).
    public static let relayResistanceProtocolNotPerformed = Self(5, 0x01)

    /// Every bit, also those that are reserved.
    public static let all = Self(rawValue: 0xFF_FFFF_FFFF)

    /// - Returns: nil unless there are 5 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 5 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The five bytes, as tag 95 has them.
    public var bytes: [UInt8] { [32, 24, 16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) } }
}

/// What the terminal has done: tag 9B, 2 bytes (EMV Book 3, Annex C6).
public struct TransactionStatusInformation: OptionSet, Hashable, Sendable {
    /// The two bytes, the first one most significant.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Byte 1 bit 8: offline data authentication was performed (EMV Book 3, 10.3).
    public static let offlineDataAuthentication = Self(rawValue: 0x8000)
    /// Byte 1 bit 7: cardholder verification was performed (EMV Book 3, 10.5).
    public static let cardholderVerification = Self(rawValue: 0x4000)
    /// Byte 1 bit 6: the card was asked for a cryptogram (EMV Book 3, 10.8).
    public static let cardRiskManagement = Self(rawValue: 0x2000)
    /// Byte 1 bit 5: the issuer's authentication data were sent to the card (EMV Book 3, 10.9).
    public static let issuerAuthentication = Self(rawValue: 0x1000)
    /// Byte 1 bit 4: terminal risk management was performed (EMV Book 3, 10.6).
    public static let terminalRiskManagement = Self(rawValue: 0x0800)
    /// Byte 1 bit 3: a script of the issuer's was sent to the card (EMV Book 3, 10.10).
    public static let scriptProcessing = Self(rawValue: 0x0400)

    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }

    /// The two bytes, as tag 9B has them.
    public var bytes: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }
}

/// How the cardholder was verified: tag 9F34, 3 bytes (EMV Book 4, Annex A4).
public struct CVMResults: Hashable, Sendable {
    /// Byte 3 (EMV Book 4, Annex A4 and 6.3.4.5).
    public enum Result: UInt8, Hashable, Sendable, CaseIterable {
        /// For a signature or an online PIN, on which others decide.
        case unknown = 0x00
        /// None was performed, or the last one failed.
        case failed = 0x01
        /// For a method that the terminal or the card decides on, or where none is required.
        case successful = 0x02
    }

    /// Bytes 1 and 2: the rule of the CVM list that was performed last (EMV Book 3, Annex C3); 3F 00 where none was.
    public let rule: CVMList.Rule
    /// Byte 3: what came of it.
    public let result: Result

    public init(_ rule: CVMList.Rule, _ result: Result) {
        self.rule = rule
        self.result = result
    }

    /// - Returns: nil unless there are 3 bytes and the last one is a result.
    public init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == 3, let result = Result(rawValue: bytes[2]) else { return nil }
        self.init(CVMList.Rule(code: bytes[0], condition: bytes[1]), result)
    }

    /// The three bytes, as tag 9F34 has them.
    public var bytes: [UInt8] { [rule.code, rule.condition, result.rawValue] }
}
