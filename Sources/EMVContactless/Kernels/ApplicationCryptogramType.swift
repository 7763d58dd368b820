/// The type of cryptogram that a card generated: bits 8 and 7 of the cryptogram information data (EMV Book 3, 6.5.5.4,
/// table 15).
public enum ApplicationCryptogramType: UInt8, Hashable, Sendable, CaseIterable {
    /// The card declines.
    case aac = 0x00
    /// The card approves offline.
    case tc = 0x40
    /// The card requests the issuer's decision.
    case arqc = 0x80

    /// Reads the type from cryptogram information data.
    ///
    /// - Parameter information: tag 9F27.
    /// - Returns: nil for the value that is reserved for future use.
    public init?(cryptogramInformationData information: UInt8) { self.init(rawValue: information & 0xC0) }
}
