/// The terminal verification results (TVR), tag 95, 5 bytes: the terminal's findings about card, cardholder and
/// transaction (EMV Book 3, Annex C5; EMV Contactless Book C-2, Annex A).  The terminal and issuer action codes have
/// the same bits.
///
/// Kernel 3 leaves all bits zero.
public struct TerminalVerificationResults: OptionSet, Hashable, Sendable {
    /// The five bytes, most significant first.
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    private init(_ byte: UInt64, _ bit: UInt64) { rawValue = bit << (8 * (5 - byte)) }

    /// Byte 1 bit 8: offline data authentication was not performed (EMV Book 3, 10.3).
    public static let offlineDataAuthenticationNotPerformed = Self(1, 0x80)
    /// Byte 1 bit 7: SDA failed (EMV Book 3, 10.3).
    public static let sdaFailed = Self(1, 0x40)
    /// Byte 1 bit 6: the card does not supply data that its supported functions require (EMV Book 3, 7.5).
    public static let iccDataMissing = Self(1, 0x20)
    /// Byte 1 bit 5: the account number is on the terminal's exception file (EMV Book 4, 6.3.5).
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
    /// Byte 2 bit 5: the card does not permit this use here (EMV Book 3, 10.4.2).
    public static let serviceNotAllowed = Self(2, 0x10)
    /// Byte 2 bit 4: the card has never been online (EMV Book 3, 10.6.3).
    public static let newCard = Self(2, 0x08)

    /// Byte 3 bit 8: no rule of the CVM list succeeded (EMV Book 3, 10.5).
    public static let cardholderVerificationNotSuccessful = Self(3, 0x80)
    /// Byte 3 bit 7: an applicable rule of the CVM list has an unknown method (EMV Book 3, 10.5).
    public static let unrecognizedCVM = Self(3, 0x40)
    /// Byte 3 bit 6: the card accepts no more PINs (EMV Book 3, 10.5.1).
    public static let pinTryLimitExceeded = Self(3, 0x20)
    /// Byte 3 bit 5: a PIN was required, and there is no working PIN pad (EMV Book 3, 10.5).
    public static let pinPadNotPresentOrNotWorking = Self(3, 0x10)
    /// Byte 3 bit 4: a PIN was required, and was not entered (EMV Book 3, 10.5.1 and 10.5.2).
    public static let pinNotEntered = Self(3, 0x08)
    /// Byte 3 bit 3: a PIN for the issuer was or will be entered (EMV Book 3, 10.5.2).
    public static let onlineCVMCaptured = Self(3, 0x04)

    /// Byte 4 bit 8: the amount reaches the floor limit (EMV Book 3, 10.6.1).
    public static let floorLimitExceeded = Self(4, 0x80)
    /// Byte 4 bit 7: more transactions offline than the lower limit, tag 9F14 (EMV Book 3, 10.6.3).
    public static let lowerConsecutiveOfflineLimitExceeded = Self(4, 0x40)
    /// Byte 4 bit 6: more transactions offline than the upper limit, tag 9F23 (EMV Book 3, 10.6.3).
    public static let upperConsecutiveOfflineLimitExceeded = Self(4, 0x20)
    /// Byte 4 bit 5: selected at random to go online (EMV Book 3, 10.6.2).
    public static let selectedRandomlyForOnline = Self(4, 0x10)
    /// Byte 4 bit 4: the merchant forced the transaction online (EMV Book 4, 6.3.5).
    public static let merchantForcedOnline = Self(4, 0x08)

    /// Byte 5 bit 8: the terminal's default TDOL was used (EMV Book 3, 9.2.2).
    public static let defaultTDOLUsed = Self(5, 0x80)
    /// Byte 5 bit 7: the card rejected the issuer authentication data (EMV Book 3, 10.9).
    public static let issuerAuthenticationFailed = Self(5, 0x40)
    /// Byte 5 bit 6: a command of script 71 failed (EMV Book 3, 10.10).
    public static let scriptFailedBeforeFinalGenerateAC = Self(5, 0x20)
    /// Byte 5 bit 5: a command of script 72 failed (EMV Book 3, 10.10).
    public static let scriptFailedAfterFinalGenerateAC = Self(5, 0x10)
    /// Byte 5 bit 4, Kernel 2: the card answered too late to be where it seems (EMV Contactless Book C-2, A.1).
    public static let relayResistanceThresholdExceeded = Self(5, 0x08)
    /// Byte 5 bit 3, Kernel 2: the card's time differs from the time that it states (EMV Contactless Book C-2, A.1).
    public static let relayResistanceTimeLimitsExceeded = Self(5, 0x04)
    /// Byte 5 bits 2 and 1, 10, Kernel 2 (EMV Contactless Book C-2, A.1).
    public static let relayResistanceProtocolPerformed = Self(5, 0x02)
    /// Byte 5 bits 2 and 1, 01, Kernel 2 (EMV Contactless Book C-2, A.1).
    public static let relayResistanceProtocolNotPerformed = Self(5, 0x01)

    /// All bits, including reserved ones.
    public static let all = Self(rawValue: 0xFF_FFFF_FFFF)

    /// Parses the TVR.
    ///
    /// - Returns: nil unless there are 5 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 5 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The five bytes of tag 95.
    public var bytes: [UInt8] { [32, 24, 16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) } }
}

/// The transaction status information (TSI), tag 9B, 2 bytes: the functions that the terminal performed (EMV Book 3,
/// Annex C6).
public struct TransactionStatusInformation: OptionSet, Hashable, Sendable {
    /// The two bytes, most significant first.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Byte 1 bit 8: offline data authentication was performed (EMV Book 3, 10.3).
    public static let offlineDataAuthentication = Self(rawValue: 0x8000)
    /// Byte 1 bit 7: cardholder verification was performed (EMV Book 3, 10.5).
    public static let cardholderVerification = Self(rawValue: 0x4000)
    /// Byte 1 bit 6: the card was asked for a cryptogram (EMV Book 3, 10.8).
    public static let cardRiskManagement = Self(rawValue: 0x2000)
    /// Byte 1 bit 5: the issuer authentication data was sent to the card (EMV Book 3, 10.9).
    public static let issuerAuthentication = Self(rawValue: 0x1000)
    /// Byte 1 bit 4: terminal risk management was performed (EMV Book 3, 10.6).
    public static let terminalRiskManagement = Self(rawValue: 0x0800)
    /// Byte 1 bit 3: an issuer script was sent to the card (EMV Book 3, 10.10).
    public static let scriptProcessing = Self(rawValue: 0x0400)

    /// Parses the TSI.
    ///
    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }

    /// The two bytes of tag 9B.
    public var bytes: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }
}

/// CVM Results, tag 9F34, 3 bytes: the cardholder verification that was performed (EMV Book 4, Annex A4).
public struct CVMResults: Hashable, Sendable {
    /// The result in byte 3 (EMV Book 4, Annex A4 and 6.3.4.5).
    public enum Result: UInt8, Hashable, Sendable, CaseIterable {
        /// The result is up to others: a signature or an online PIN.
        case unknown = 0x00
        /// No method was performed, or the last one failed.
        case failed = 0x01
        /// The terminal or the card verified the cardholder, or no verification is required.
        case successful = 0x02
    }

    /// Bytes 1 and 2: the rule of the CVM list that was performed last (EMV Book 3, Annex C3); 3F 00 for none.
    public let rule: CVMList.Rule
    /// Byte 3: the result.
    public let result: Result

    public init(_ rule: CVMList.Rule, _ result: Result) {
        self.rule = rule
        self.result = result
    }

    /// Parses CVM Results.
    ///
    /// - Returns: nil unless there are 3 bytes and the last one is a result.
    public init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == 3, let result = Result(rawValue: bytes[2]) else { return nil }
        self.init(CVMList.Rule(code: bytes[0], condition: bytes[1]), result)
    }

    /// The three bytes of tag 9F34.
    public var bytes: [UInt8] { [rule.code, rule.condition, result.rawValue] }
}
