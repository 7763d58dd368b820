import Crypto

/// A merchant whose passes are read, by their pass type identifier.
public struct VASMerchant: Hashable, Sendable {
    /// A merchant that cannot be asked for.
    public enum Fault: Error, Hashable, Sendable {
        /// The pass type identifier is not `pass.` and a name in reverse DNS order, or is longer than 255 bytes.
        case passTypeIdentifier
        /// The URL is not `https`, or has more bytes than ``longestURL``.
        case signUpURL
    }

    /// The longest URL in bytes: with it, GET DATA fits an ACR122U's frame for its PN532.
    public static let longestURL = 194

    /// The pass type identifier, for example `pass.com.example.loyalty`.
    public let passTypeIdentifier: String
    /// A page where a customer without a pass can get one; nil: none is offered.
    public let signUpURL: String?
    /// True to offer the page without asking for a pass.
    public let sendsURLOnly: Bool

    public init(
        passTypeIdentifier: String, signUpURL: String? = nil, sendsURLOnly: Bool = false
    ) throws(Fault) {
        let parts = passTypeIdentifier.split(separator: ".", omittingEmptySubsequences: false)
        guard passTypeIdentifier.utf8.count <= 255, parts.first == "pass", parts.count > 1,
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(Self.isNameCharacter) })
        else { throw .passTypeIdentifier }
        if let signUpURL {
            guard signUpURL.hasPrefix("https://"), signUpURL.utf8.count <= Self.longestURL,
                signUpURL.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else { throw .signUpURL }
        }
        guard !sendsURLOnly || signUpURL != nil else { throw .signUpURL }
        (self.passTypeIdentifier, self.signUpURL, self.sendsURLOnly) = (passTypeIdentifier, signUpURL, sendsURLOnly)
    }

    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// The merchant in GET DATA, and in the key of a cryptogram: SHA-256 of the identifier in UTF-8.
    var identifierHash: [UInt8] { Array(SHA256.hash(data: Array(passTypeIdentifier.utf8))) }
}

extension VASMerchant.Fault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .passTypeIdentifier:
            "a pass type identifier is pass. and a name in reverse DNS order, at most 255 characters"
        case .signUpURL: "a sign-up URL begins with https:// and has at most \(VASMerchant.longestURL) characters"
        }
    }
}
