/// A libusb status, such as `LIBUSB_ERROR_BUSY -6`.
///
/// Open: unknown values are kept and printed as numbers.
public struct USBStatus: RawRepresentable, Error, Hashable, Sendable {
    /// An `enum libusb_error`.
    public var rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }

    public static let io = USBStatus(rawValue: -1)
    public static let invalidParameter = USBStatus(rawValue: -2)
    public static let access = USBStatus(rawValue: -3)
    public static let noDevice = USBStatus(rawValue: -4)
    public static let notFound = USBStatus(rawValue: -5)
    public static let busy = USBStatus(rawValue: -6)
    public static let timeout = USBStatus(rawValue: -7)
    public static let overflow = USBStatus(rawValue: -8)
    /// The endpoint stalled, or refuses the request.
    public static let pipe = USBStatus(rawValue: -9)
    /// The transfer was canceled.
    public static let interrupted = USBStatus(rawValue: -10)
    public static let noMemory = USBStatus(rawValue: -11)
    public static let notSupported = USBStatus(rawValue: -12)
    public static let other = USBStatus(rawValue: -99)
}

extension USBStatus: CustomStringConvertible {
    private static let names: [USBStatus: String] = [
        .io: "IO", .invalidParameter: "INVALID_PARAM", .access: "ACCESS", .noDevice: "NO_DEVICE",
        .notFound: "NOT_FOUND", .busy: "BUSY", .timeout: "TIMEOUT", .overflow: "OVERFLOW", .pipe: "PIPE",
        .interrupted: "INTERRUPTED", .noMemory: "NO_MEM", .notSupported: "NOT_SUPPORTED", .other: "OTHER",
    ]

    /// libusb's name and the value.
    public var description: String { "\(Self.names[self].map { "LIBUSB_ERROR_\($0)" } ?? "**UNKNOWN**") \(rawValue)" }
}
