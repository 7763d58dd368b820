public import CardEncryption

/// A fault of a ``PassConfiguration``, with its place.
public struct PassConfigurationError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// None, or more than ``PassConfiguration/maximumMerchants``.
        case merchantCount(Int)
        /// The merchant is not in the configuration.
        case unknownMerchant
        /// Empty, or longer than 255 bytes.
        case identifier
        /// Named before.
        case duplicate
        /// Neither Apple's nor Google's.
        case noWallet
        case noKey
        case noService
        case apple(VASMerchant.Fault)
        /// Zero.
        case collector
        /// Empty, or longer than 32 bytes.
        case text
        /// More services and texts than a command has room for.
        case tooLong
        /// The tolerance is not 1 second to a day.
        case tolerance
        /// JSON that is not one, or a member that is missing, unknown or of another type: what is due there.
        case json(String)
        case keyFile(KeyFileError)
    }

    public let reason: Reason
    /// The member, such as `merchants[1].google.collectorID`.
    public let place: String

    init(_ reason: Reason, _ place: String) { (self.reason, self.place) = (reason, place) }
}

extension PassConfigurationError: CustomStringConvertible {
    /// `merchants[1].google.collectorID: a collector identifier is not 0`
    public var description: String { (place.isEmpty ? "" : place + ": ") + reason.text }
}

extension PassConfigurationError.Reason {
    fileprivate var text: String {
        switch self {
        case .merchantCount(let count):
            "\(count) merchants; there must be 1 to \(PassConfiguration.maximumMerchants)"
        case .unknownMerchant: "no merchant of this name is configured"
        case .identifier: "a merchant's id has 1 to 255 bytes"
        case .duplicate: "named twice"
        case .noWallet: "a merchant without a wallet; give apple or google"
        case .noKey: "no private key"
        case .noService: "no kind of pass"
        case .apple(let fault): fault.description
        case .collector: "a collector identifier is not 0"
        case .text: "1 to 32 bytes of text"
        case .tooLong: "more services and texts than one command has room for"
        case .tolerance: "a tolerance of the clock is 1 to 86400 seconds"
        case .json(let due): "\(due) is due"
        case .keyFile(let error): "\(error)"
        }
    }
}
