/// What the terminal found out about card, cardholder and transaction: tag 95, 5 bytes (EMV Book 3, Annex C5; EMV
/// Contactless Book C-2, Annex A).  The terminal and issuer action codes have the same bits.
///
/// Kernel 3 leaves them all zero.
public struct TerminalVerificationResults: OptionSet, Hashable, Sendable {
    /// The five bytes, the first one most significant.
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    private init(_ byte: UInt64, _ bit: UInt64) { rawValue = bit << (8 * (5 - byte)) }

    public static let offlineDataAuthenticationNotPerformed = Self(1, 0x80)
    public static let sdaFailed = Self(1, 0x40)
    public static let iccDataMissing = Self(1, 0x20)
    public static let cardOnExceptionFile = Self(1, 0x10)
    public static let ddaFailed = Self(1, 0x08)
    public static let cdaFailed = Self(1, 0x04)
    public static let sdaSelected = Self(1, 0x02)

    public static let differentApplicationVersions = Self(2, 0x80)
    public static let expiredApplication = Self(2, 0x40)
    public static let applicationNotYetEffective = Self(2, 0x20)
    public static let serviceNotAllowed = Self(2, 0x10)
    public static let newCard = Self(2, 0x08)

    public static let cardholderVerificationNotSuccessful = Self(3, 0x80)
    public static let unrecognisedCVM = Self(3, 0x40)
    public static let pinTryLimitExceeded = Self(3, 0x20)
    public static let pinPadNotPresentOrNotWorking = Self(3, 0x10)
    public static let pinNotEntered = Self(3, 0x08)
    public static let onlineCVMCaptured = Self(3, 0x04)

    public static let floorLimitExceeded = Self(4, 0x80)
    public static let lowerConsecutiveOfflineLimitExceeded = Self(4, 0x40)
    public static let upperConsecutiveOfflineLimitExceeded = Self(4, 0x20)
    public static let selectedRandomlyForOnline = Self(4, 0x10)
    public static let merchantForcedOnline = Self(4, 0x08)

    public static let defaultTDOLUsed = Self(5, 0x80)
    public static let issuerAuthenticationFailed = Self(5, 0x40)
    public static let scriptFailedBeforeFinalGenerateAC = Self(5, 0x20)
    public static let scriptFailedAfterFinalGenerateAC = Self(5, 0x10)
    /// Of Kernel 2, as are the three that follow.
    public static let relayResistanceThresholdExceeded = Self(5, 0x08)
    public static let relayResistanceTimeLimitsExceeded = Self(5, 0x04)
    public static let relayResistanceProtocolPerformed = Self(5, 0x02)
    public static let relayResistanceProtocolNotPerformed = Self(5, 0x01)

    /// Every bit, also those that are reserved.
    public static let all = Self(rawValue: 0xFF_FFFF_FFFF)

    /// - Returns: nil unless there are 5 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 5 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    public var bytes: [UInt8] { [32, 24, 16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) } }
}

/// What the terminal has done: tag 9B, 2 bytes (EMV Book 3, Annex C6).
public struct TransactionStatusInformation: OptionSet, Hashable, Sendable {
    /// The two bytes, the first one most significant.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let offlineDataAuthentication = Self(rawValue: 0x8000)
    public static let cardholderVerification = Self(rawValue: 0x4000)
    public static let cardRiskManagement = Self(rawValue: 0x2000)
    public static let issuerAuthentication = Self(rawValue: 0x1000)
    public static let terminalRiskManagement = Self(rawValue: 0x0800)
    public static let scriptProcessing = Self(rawValue: 0x0400)

    /// - Returns: nil unless there are 2 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 2 else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt16($1) }
    }

    public var bytes: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }
}

/// How the cardholder was verified: tag 9F34, 3 bytes (EMV Book 4, Annex A4).
public struct CVMResults: Hashable, Sendable {
    public enum Result: UInt8, Hashable, Sendable, CaseIterable {
        /// For a signature or an online PIN, on which others decide.
        case unknown = 0x00
        case failed = 0x01
        case successful = 0x02
    }

    /// The rule of the CVM list that was performed last (EMV Book 3, Annex C3).
    public let rule: CVMList.Rule
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

    public var bytes: [UInt8] { [rule.code, rule.condition, result.rawValue] }
}
