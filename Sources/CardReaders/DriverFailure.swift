import SmartCardPCSC
import SmartCardUSB
import USBDevices

/// The meaning of a driver's error code: one list for all drivers, where `CardError.Kind` says less than the underlying
/// code.
public enum DriverFailure: Hashable, Sendable {
    /// An internal failure of the driver or its service.
    case driver
    case noService
    case denied
    case noReader
    case readerGone
    /// Another program holds the reader.
    case inUse
    /// The reader is busy.
    case busy
    case readerUnsupported
    /// The reader or the card does not support this.
    case unsupported
    case communication
    case timeout
    case cardGone
    /// The card did not answer its reset correctly.
    case cardUnreadable
    case cancelled
    /// A person canceled at the reader.
    case cancelledByPerson
    /// An unexpected answer from the reader.
    case unexpected

    /// - Parameter status: a status of pcsc-lite, libusb or USB CCID: the `cause` of a `CardError`.
    /// - Returns: nil for another error, or a code without a row.
    public init?(_ status: (any Error)?) {
        let failure: DriverFailure? =
            switch status {
            case let status as PCSCStatus: Self.ofPCSC[status]
            case let status as USBStatus: Self.ofUSB[status]
            case let status as CCIDError: Self.ofCCID[status]
            default: nil
            }
        guard let failure else { return nil }
        self = failure
    }

    /// pcsclite.h.
    private static let ofPCSC: [PCSCStatus: DriverFailure] = [
        .internalError: .driver,
        .cancelled: .cancelled,
        .invalidHandle: .communication,
        .invalidParameter: .unexpected,
        .invalidTarget: .unexpected,
        .noMemory: .driver,
        .waitedTooLong: .communication,
        .insufficientBuffer: .communication,
        .unknownReader: .readerGone,
        .timeout: .timeout,
        .sharingViolation: .inUse,
        .noSmartcard: .cardGone,
        .unknownCard: .unsupported,
        .cantDispose: .communication,
        .protoMismatch: .unsupported,
        .notReady: .communication,
        .systemCancelled: .cancelled,
        .commError: .communication,
        .unknownError: .unexpected,
        .invalidATR: .communication,
        .notTransacted: .communication,
        .readerUnavailable: .readerGone,
        .shutdown: .noService,
        .pciTooSmall: .readerUnsupported,
        .readerUnsupported: .readerUnsupported,
        .duplicateReader: .driver,
        .cardUnsupported: .unsupported,
        .noService: .noService,
        .serviceStopped: .noService,
        .unsupportedFeature: .unsupported,
        .iccInstallation: .unexpected,
        .iccCreateOrder: .unexpected,
        .dirNotFound: .unexpected,
        .fileNotFound: .unexpected,
        .noDir: .unexpected,
        .noFile: .unexpected,
        .noAccess: .unexpected,
        .writeTooMany: .unexpected,
        .badSeek: .unexpected,
        .invalidCHV: .unexpected,
        .unknownResMng: .unexpected,
        .noSuchCertificate: .unexpected,
        .certificateUnavailable: .unexpected,
        .noReadersAvailable: .noReader,
        .commDataLost: .communication,
        .noKeyContainer: .unexpected,
        .serverTooBusy: .noService,
        .unsupportedCard: .unsupported,
        .unresponsiveCard: .cardUnreadable,
        .unpoweredCard: .communication,
        .resetCard: .communication,
        .removedCard: .cardGone,
        .securityViolation: .denied,
        .wrongCHV: .unexpected,
        .chvBlocked: .unexpected,
        .eof: .unexpected,
        .cancelledByUser: .cancelledByPerson,
        .cardNotAuthenticated: .unexpected,
        .invalidValue: .readerGone,
    ]

    /// libusb.h.
    private static let ofUSB: [USBStatus: DriverFailure] = [
        .io: .communication,
        .invalidParameter: .unexpected,
        .access: .denied,
        .noDevice: .readerGone,
        .notFound: .readerGone,
        .busy: .inUse,
        .timeout: .communication,
        .overflow: .communication,
        .pipe: .communication,
        .interrupted: .cancelled,
        .noMemory: .driver,
        .notSupported: .readerUnsupported,
        .other: .communication,
    ]

    /// USB CCID 1.10, table 6.2-2; the codes after the first gap are specific to drivers and readers.
    private static let ofCCID: [CCIDError: DriverFailure] = [
        .aborted: .cancelled,
        .mute: .cardUnreadable,
        .parity: .communication,
        .overrun: .communication,
        .hardware: .communication,
        .badTS: .cardUnreadable,
        .badTCK: .cardUnreadable,
        .protocolNotSupported: .unsupported,
        .classNotSupported: .unsupported,
        .procedureByteConflict: .communication,
        .deactivatedProtocol: .communication,
        .busyWithAutoSequence: .busy,
        .pinTimeout: .timeout,
        .pinCancelled: .cancelledByPerson,
        .slotBusy: .busy,
        .shortCircuit: .communication,
        .atrTooLong: .cardUnreadable,
        .noDataExchanged: .communication,
        .tooLongForEMVMode: .unsupported,
        .protocolErrorInEMVMode: .communication,
        .cardErrorDuringT1: .communication,
        .wrongAPDULength: .unsupported,
        .commandNotSupported: .unsupported,
        .noSuchSlot: .readerGone,
    ]
}
