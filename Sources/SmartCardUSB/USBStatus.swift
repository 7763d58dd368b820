import CSmartCardUSB
import SmartCard

/// What libusb says went wrong, such as `LIBUSB_ERROR_BUSY -6`.
///
/// Open: a value without a name is kept and printed as it is.
public struct USBStatus: RawRepresentable, Error, Hashable, Sendable {
    /// An `enum libusb_error`.
    public var rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }

    private init(_ error: libusb_error) { rawValue = error.rawValue }

    public static let io = USBStatus(LIBUSB_ERROR_IO)
    public static let invalidParameter = USBStatus(LIBUSB_ERROR_INVALID_PARAM)
    public static let access = USBStatus(LIBUSB_ERROR_ACCESS)
    public static let noDevice = USBStatus(LIBUSB_ERROR_NO_DEVICE)
    public static let notFound = USBStatus(LIBUSB_ERROR_NOT_FOUND)
    public static let busy = USBStatus(LIBUSB_ERROR_BUSY)
    public static let timeout = USBStatus(LIBUSB_ERROR_TIMEOUT)
    public static let overflow = USBStatus(LIBUSB_ERROR_OVERFLOW)
    /// The endpoint stalled, or refuses the request.
    public static let pipe = USBStatus(LIBUSB_ERROR_PIPE)
    /// The transfer was cancelled.
    public static let interrupted = USBStatus(LIBUSB_ERROR_INTERRUPTED)
    public static let noMemory = USBStatus(LIBUSB_ERROR_NO_MEM)
    public static let notSupported = USBStatus(LIBUSB_ERROR_NOT_SUPPORTED)
    public static let other = USBStatus(LIBUSB_ERROR_OTHER)
}

extension USBStatus: CustomStringConvertible {
    /// libusb's name and the value.
    public var description: String { "\(String(cString: libusb_error_name(rawValue))) \(rawValue)" }
}

extension CardError {
    /// What a transfer that failed means.
    init(_ status: USBStatus) {
        switch status {
        case .noDevice: self.init(.readerGone, cause: status)
        case .timeout: self.init(.readerTimeout, cause: status)
        case .overflow: self.init(.malformedAnswer, "more than the reader said it would send", cause: status)
        case .access: self.init(.permissionDenied, cause: status)
        case .busy: self.init(.readerBusy, cause: status)
        case .interrupted: self.init(.disconnected, cause: status)
        case .notSupported: self.init(.unsupported, cause: status)
        default: self.init(.notTransacted, cause: status)
        }
    }
}
