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
