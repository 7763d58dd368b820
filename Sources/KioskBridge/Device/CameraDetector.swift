/// A look for cameras.
public enum CameraDetector {
    /// The result of a look.
    public struct Result: Hashable, Sendable {
        public let hardwareAvailable: Bool
        public let permissionState: PermissionState
    }

    public static func check() -> Result { Result(hardwareAvailable: false, permissionState: .unavailable) }
}
