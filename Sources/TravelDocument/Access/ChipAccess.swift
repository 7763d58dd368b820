public import SmartCard

/// The way in which a chip was opened.
public struct ChipAccess: Hashable, Sendable {
    /// A protocol of access control.
    public enum Method: Hashable, Sendable, CustomStringConvertible {
        case basicAccessControl
        /// PACE in a variant that the chip offered.
        case pace(PACEInfo)

        public var description: String {
            switch self {
            case .basicAccessControl: "BAC"
            case .pace(let info): "PACE-\(info)"
            }
        }
    }

    public let method: Method
    /// The variants that failed before.
    public let failures: [AccessError.Failure]
    /// True if the chip offers PACE and was opened by Basic Access Control.
    public let isDowngraded: Bool
    /// The chip's statement that it is no copy, after PACE with chip authentication mapping.
    public let chipAuthenticationMapping: ChipAuthenticationMapping?
    /// EF.CardSecurity, which is read to judge that statement.  See ``CardSecurity``.
    public let cardSecurity: [UInt8]?
    /// The variants of PACE in EF.CardAccess, which is not signed; DG14 is, and ``DocumentReading/belief(trust:revocationLists:at:)``
    /// holds it against them.
    public internal(set) var offered: [PACEInfo] = []
}

/// A chip that no protocol opened.
public struct AccessError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A variant, and why it failed.
    public struct Failure: Hashable, Sendable {
        public let method: ChipAccess.Method
        public let refusal: AccessRefusal
    }

    /// In the order in which they were tried.
    public let failures: [Failure]

    public var description: String {
        failures.map { "\($0.method): \($0.refusal)" }.joined(separator: "; ")
    }
}

/// A chip that cannot be used as asked.
public enum ChipError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The chip does not have the application of travel documents.
    case notATravelDocument(StatusWord)
    /// Nobody has opened the chip.
    case notOpen
    /// The file contains fingerprints or irises, and opens with the issuing state's certificate only.
    case needsTerminalAuthentication(ElementaryFile)

    public var description: String {
        switch self {
        case .notATravelDocument(let status): "the chip is not that of a travel document: \(status)"
        case .notOpen: "the chip is not open. Open it with an access key first."
        case .needsTerminalAuthentication(let file):
            "\(file) opens for readers with a certificate of the issuing state only (terminal authentication)"
        }
    }
}
