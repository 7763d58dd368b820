import CSmartCardPCSC

/// The status of a PC/SC function, such as `SCARD_E_SHARING_VIOLATION 0x8010000B`.
///
/// Open: unknown values are kept and printed as numbers.
public struct PCSCStatus: RawRepresentable, Error, Hashable, Sendable {
    /// The 32 bits of the status.  pcsc-lite passes them as a positive `long` on 64-bit Linux.
    public var rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    init(_ status: LONG) { rawValue = UInt32(truncatingIfNeeded: status) }
}

extension PCSCStatus {
    public static let success = PCSCStatus(SCARD_S_SUCCESS)
    public static let internalError = PCSCStatus(SCARD_F_INTERNAL_ERROR)
    public static let cancelled = PCSCStatus(SCARD_E_CANCELLED)
    public static let invalidHandle = PCSCStatus(SCARD_E_INVALID_HANDLE)
    public static let invalidParameter = PCSCStatus(SCARD_E_INVALID_PARAMETER)
    public static let invalidTarget = PCSCStatus(SCARD_E_INVALID_TARGET)
    public static let noMemory = PCSCStatus(SCARD_E_NO_MEMORY)
    public static let waitedTooLong = PCSCStatus(SCARD_F_WAITED_TOO_LONG)
    public static let insufficientBuffer = PCSCStatus(SCARD_E_INSUFFICIENT_BUFFER)
    public static let unknownReader = PCSCStatus(SCARD_E_UNKNOWN_READER)
    public static let timeout = PCSCStatus(SCARD_E_TIMEOUT)
    public static let sharingViolation = PCSCStatus(SCARD_E_SHARING_VIOLATION)
    public static let noSmartcard = PCSCStatus(SCARD_E_NO_SMARTCARD)
    public static let unknownCard = PCSCStatus(SCARD_E_UNKNOWN_CARD)
    public static let cantDispose = PCSCStatus(SCARD_E_CANT_DISPOSE)
    public static let protoMismatch = PCSCStatus(SCARD_E_PROTO_MISMATCH)
    public static let notReady = PCSCStatus(SCARD_E_NOT_READY)
    public static let invalidValue = PCSCStatus(SCARD_E_INVALID_VALUE)
    public static let systemCancelled = PCSCStatus(SCARD_E_SYSTEM_CANCELLED)
    public static let commError = PCSCStatus(SCARD_F_COMM_ERROR)
    public static let unknownError = PCSCStatus(SCARD_F_UNKNOWN_ERROR)
    public static let invalidATR = PCSCStatus(SCARD_E_INVALID_ATR)
    public static let notTransacted = PCSCStatus(SCARD_E_NOT_TRANSACTED)
    public static let readerUnavailable = PCSCStatus(SCARD_E_READER_UNAVAILABLE)
    public static let shutdown = PCSCStatus(SCARD_P_SHUTDOWN)
    public static let pciTooSmall = PCSCStatus(SCARD_E_PCI_TOO_SMALL)
    public static let readerUnsupported = PCSCStatus(SCARD_E_READER_UNSUPPORTED)
    public static let duplicateReader = PCSCStatus(SCARD_E_DUPLICATE_READER)
    public static let cardUnsupported = PCSCStatus(SCARD_E_CARD_UNSUPPORTED)
    public static let noService = PCSCStatus(SCARD_E_NO_SERVICE)
    public static let serviceStopped = PCSCStatus(SCARD_E_SERVICE_STOPPED)
    public static let unsupportedFeature = PCSCStatus(SCARD_E_UNSUPPORTED_FEATURE)
    public static let iccInstallation = PCSCStatus(SCARD_E_ICC_INSTALLATION)
    public static let iccCreateOrder = PCSCStatus(SCARD_E_ICC_CREATEORDER)
    public static let dirNotFound = PCSCStatus(SCARD_E_DIR_NOT_FOUND)
    public static let fileNotFound = PCSCStatus(SCARD_E_FILE_NOT_FOUND)
    public static let noDir = PCSCStatus(SCARD_E_NO_DIR)
    public static let noFile = PCSCStatus(SCARD_E_NO_FILE)
    public static let noAccess = PCSCStatus(SCARD_E_NO_ACCESS)
    public static let writeTooMany = PCSCStatus(SCARD_E_WRITE_TOO_MANY)
    public static let badSeek = PCSCStatus(SCARD_E_BAD_SEEK)
    public static let invalidCHV = PCSCStatus(SCARD_E_INVALID_CHV)
    public static let unknownResMng = PCSCStatus(SCARD_E_UNKNOWN_RES_MNG)
    public static let noSuchCertificate = PCSCStatus(SCARD_E_NO_SUCH_CERTIFICATE)
    public static let certificateUnavailable = PCSCStatus(SCARD_E_CERTIFICATE_UNAVAILABLE)
    public static let noReadersAvailable = PCSCStatus(SCARD_E_NO_READERS_AVAILABLE)
    public static let commDataLost = PCSCStatus(SCARD_E_COMM_DATA_LOST)
    public static let noKeyContainer = PCSCStatus(SCARD_E_NO_KEY_CONTAINER)
    public static let serverTooBusy = PCSCStatus(SCARD_E_SERVER_TOO_BUSY)
    public static let unsupportedCard = PCSCStatus(SCARD_W_UNSUPPORTED_CARD)
    public static let unresponsiveCard = PCSCStatus(SCARD_W_UNRESPONSIVE_CARD)
    public static let unpoweredCard = PCSCStatus(SCARD_W_UNPOWERED_CARD)
    public static let resetCard = PCSCStatus(SCARD_W_RESET_CARD)
    public static let removedCard = PCSCStatus(SCARD_W_REMOVED_CARD)
    public static let securityViolation = PCSCStatus(SCARD_W_SECURITY_VIOLATION)
    public static let wrongCHV = PCSCStatus(SCARD_W_WRONG_CHV)
    public static let chvBlocked = PCSCStatus(SCARD_W_CHV_BLOCKED)
    public static let eof = PCSCStatus(SCARD_W_EOF)
    public static let cancelledByUser = PCSCStatus(SCARD_W_CANCELLED_BY_USER)
    public static let cardNotAuthenticated = PCSCStatus(SCARD_W_CARD_NOT_AUTHENTICATED)
}

extension PCSCStatus: CustomStringConvertible {
    /// The name in pcsclite.h and the value; only the value if there is no name.
    public var description: String {
        let digits = String(rawValue, radix: 16, uppercase: true)
        let value = "0x" + String(repeating: "0", count: 8 - digits.count) + digits
        return Self.names[self].map { "\($0) \(value)" } ?? value
    }

    private static let names: [PCSCStatus: String] = [
        .success: "SCARD_S_SUCCESS",
        .internalError: "SCARD_F_INTERNAL_ERROR",
        .cancelled: "SCARD_E_CANCELLED",
        .invalidHandle: "SCARD_E_INVALID_HANDLE",
        .invalidParameter: "SCARD_E_INVALID_PARAMETER",
        .invalidTarget: "SCARD_E_INVALID_TARGET",
        .noMemory: "SCARD_E_NO_MEMORY",
        .waitedTooLong: "SCARD_F_WAITED_TOO_LONG",
        .insufficientBuffer: "SCARD_E_INSUFFICIENT_BUFFER",
        .unknownReader: "SCARD_E_UNKNOWN_READER",
        .timeout: "SCARD_E_TIMEOUT",
        .sharingViolation: "SCARD_E_SHARING_VIOLATION",
        .noSmartcard: "SCARD_E_NO_SMARTCARD",
        .unknownCard: "SCARD_E_UNKNOWN_CARD",
        .cantDispose: "SCARD_E_CANT_DISPOSE",
        .protoMismatch: "SCARD_E_PROTO_MISMATCH",
        .notReady: "SCARD_E_NOT_READY",
        .invalidValue: "SCARD_E_INVALID_VALUE",
        .systemCancelled: "SCARD_E_SYSTEM_CANCELLED",
        .commError: "SCARD_F_COMM_ERROR",
        .unknownError: "SCARD_F_UNKNOWN_ERROR",
        .invalidATR: "SCARD_E_INVALID_ATR",
        .notTransacted: "SCARD_E_NOT_TRANSACTED",
        .readerUnavailable: "SCARD_E_READER_UNAVAILABLE",
        .shutdown: "SCARD_P_SHUTDOWN",
        .pciTooSmall: "SCARD_E_PCI_TOO_SMALL",
        .readerUnsupported: "SCARD_E_READER_UNSUPPORTED",
        .duplicateReader: "SCARD_E_DUPLICATE_READER",
        .cardUnsupported: "SCARD_E_CARD_UNSUPPORTED",
        .noService: "SCARD_E_NO_SERVICE",
        .serviceStopped: "SCARD_E_SERVICE_STOPPED",
        .unsupportedFeature: "SCARD_E_UNSUPPORTED_FEATURE",
        .iccInstallation: "SCARD_E_ICC_INSTALLATION",
        .iccCreateOrder: "SCARD_E_ICC_CREATEORDER",
        .dirNotFound: "SCARD_E_DIR_NOT_FOUND",
        .fileNotFound: "SCARD_E_FILE_NOT_FOUND",
        .noDir: "SCARD_E_NO_DIR",
        .noFile: "SCARD_E_NO_FILE",
        .noAccess: "SCARD_E_NO_ACCESS",
        .writeTooMany: "SCARD_E_WRITE_TOO_MANY",
        .badSeek: "SCARD_E_BAD_SEEK",
        .invalidCHV: "SCARD_E_INVALID_CHV",
        .unknownResMng: "SCARD_E_UNKNOWN_RES_MNG",
        .noSuchCertificate: "SCARD_E_NO_SUCH_CERTIFICATE",
        .certificateUnavailable: "SCARD_E_CERTIFICATE_UNAVAILABLE",
        .noReadersAvailable: "SCARD_E_NO_READERS_AVAILABLE",
        .commDataLost: "SCARD_E_COMM_DATA_LOST",
        .noKeyContainer: "SCARD_E_NO_KEY_CONTAINER",
        .serverTooBusy: "SCARD_E_SERVER_TOO_BUSY",
        .unsupportedCard: "SCARD_W_UNSUPPORTED_CARD",
        .unresponsiveCard: "SCARD_W_UNRESPONSIVE_CARD",
        .unpoweredCard: "SCARD_W_UNPOWERED_CARD",
        .resetCard: "SCARD_W_RESET_CARD",
        .removedCard: "SCARD_W_REMOVED_CARD",
        .securityViolation: "SCARD_W_SECURITY_VIOLATION",
        .wrongCHV: "SCARD_W_WRONG_CHV",
        .chvBlocked: "SCARD_W_CHV_BLOCKED",
        .eof: "SCARD_W_EOF",
        .cancelledByUser: "SCARD_W_CANCELLED_BY_USER",
        .cardNotAuthenticated: "SCARD_W_CARD_NOT_AUTHENTICATED",
    ]
}
