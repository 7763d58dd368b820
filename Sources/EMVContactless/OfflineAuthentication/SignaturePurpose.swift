/// The purpose of a card's signature, which its signed data format states.
public enum SignaturePurpose: Hashable, Sendable {
    /// An offline approval: 03 for static and 05 for dynamic data (EMV Book 2, tables 7 and 17).
    case offlineApproval
    /// Offline data authentication of a transaction that goes online: 93 for static and 95 for dynamic data (EMV
    /// Contactless Book C-3, Annex C).
    case onlineAuthorization

    func format(_ format: UInt8) -> UInt8 {
        switch self {
        case .offlineApproval: format
        case .onlineAuthorization: format | 0x90
        }
    }
}
