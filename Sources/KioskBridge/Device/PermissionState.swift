/// The page's permission to use a capability of the kiosk, as `capability.query` tells it.
public enum PermissionState: String, CaseIterable, Hashable, Sendable {
    /// The capability may be used.
    case granted
    /// The capability is there, and the host may not use it.
    case denied
    /// The customer is asked when it is first used.
    case prompt
    /// The capability is not there.
    case unavailable
}
