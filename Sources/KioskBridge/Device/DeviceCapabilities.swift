public import Foundation

/// The devices of this kiosk, as an application asks for them before it starts a journey.
public struct DeviceCapabilities: Sendable {
    public let nfcAvailable: Bool
    public let cameraResult: CameraDetector.Result

    public init(nfcAvailable: Bool, cameraResult: CameraDetector.Result) {
        self.nfcAvailable = nfcAvailable
        self.cameraResult = cameraResult
    }

    /// Looks for the devices.  It reads directories of the kernel, and waits for no device.
    public static func detect() -> DeviceCapabilities {
        DeviceCapabilities(
            nfcAvailable: NFCTagReaderSession.readingAvailable, cameraResult: CameraDetector.check())
    }

    public var cameraAvailable: Bool { cameraResult.hardwareAvailable }

    /// True if this machine has what a capability needs: `camera.document`, `camera.selfie` or `nfc.read`.
    public func isSupported(_ capability: String) -> Bool {
        switch capability {
        case "camera.document", "camera.selfie": cameraAvailable
        case "nfc.read": nfcAvailable
        default: false
        }
    }
}

/// A journey: its page, and what it cannot do without.
public struct JourneyConfig: Hashable, Sendable {
    public let url: URL
    /// The names of the capabilities without which the journey may not complete.
    public let requiredCapabilities: [String]
    /// The version of the application, which the page is told.
    public let hostVersion: String

    public init(url: URL, requiredCapabilities: [String], hostVersion: String) {
        self.url = url
        self.requiredCapabilities = requiredCapabilities
        self.hostVersion = hostVersion
    }

    /// Returns the required capabilities that `device` lacks, in the order of the requirement.
    public func missingCapabilities(on device: DeviceCapabilities) -> [String] {
        requiredCapabilities.filter { !device.isSupported($0) }
    }
}

extension JourneyConfig {
    /// Returns the required capabilities that a host does not offer now, in the order of the requirement.
    @MainActor public func missingCapabilities(of host: BridgeHost) -> [String] {
        let states = host.capabilities
        return requiredCapabilities.filter { states[$0]?.isSupported != true }
    }

    /// Returns what to ask a customer before the journey starts although something is missing; nil if nothing is.
    ///
    /// - Parameter missing: the names of the missing capabilities.
    public static func warning(about missing: [String]) -> String? {
        guard !missing.isEmpty else { return nil }
        let names = missing.joined(separator: ", ")
        return
            "This journey requires \(names) which \(missing.count == 1 ? "is" : "are") not available on this device. "
            + "The journey may not complete successfully."
    }
}
