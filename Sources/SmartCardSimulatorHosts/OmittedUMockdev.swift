#if !UMockdev

public import SmartCardSimulator

/// The mock USB bus in a program without umockdev: it cannot be created.
public final class UMockdevHost: Sendable {
    public static let preloadLibrary = "libumockdev-preload.so.0"
    public static var isAvailable: Bool { false }

    public let environment: [String: String] = [:]
    public let root = ""
    public var isPlugged: Bool { false }
    package var isClaimed: Bool { false }

    /// - Throws: ``HostError``, always.
    public init() throws {
        throw HostError(
            "this program was built without umockdev", hint: "Build it with the trait UMockdev of swift-contactless.")
    }

    public func plug(_ device: any SoftwareUSBDevice) throws {}
    public func unplug() {}
    public func close() {}
    func keepListeners() {}
}

#endif
