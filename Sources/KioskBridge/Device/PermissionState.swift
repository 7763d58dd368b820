// An import of this module includes this one: an application knows `CameraDetector` as a part of its bridge.
@_exported public import Cameras

/// The permission for a device, as a page sees it.
public enum PermissionState: String, Hashable, Sendable, CaseIterable {
    case granted
    /// The service may not open the device.
    case denied
    /// A person will be asked when the device is used.
    case prompt
    /// There is no device to permit.
    case unavailable
}

extension CameraDetector.Result {
    /// `granted` if a camera may be opened, `denied` if none may, `unavailable` without a camera.
    public var permissionState: PermissionState {
        !(cameras.isEmpty && inUse.isEmpty) ? .granted : notPermitted.isEmpty ? .unavailable : .denied
    }
}
