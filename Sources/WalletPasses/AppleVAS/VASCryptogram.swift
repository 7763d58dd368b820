import CardEncryption
public import Crypto
public import Foundation

/// The answer of Apple Wallet with a pass, encrypted to its merchant's key (tag 9F27).
public struct VASCryptogram: Hashable, Sendable {
    /// Identifies the merchant's key: the first four bytes of SHA-256 over the X coordinate of its public key.
    public let keyIdentifier: [UInt8]
    /// The X coordinate of the phone's ephemeral key, 32 bytes.
    let ephemeralX: [UInt8]
    /// AES-GCM's ciphertext, and its tag of 16 bytes.
    let sealed: [UInt8]

    /// Key identifier, coordinate, timestamp and tag.
    private static let leastLength = 4 + 32 + 4 + 16
    /// A message has at most 64 characters.
    private static let greatestLength = leastLength + 64 * 4

    /// - Returns: nil for bytes that are too few or too many.
    public init?(_ bytes: some Collection<UInt8>) {
        guard (Self.leastLength...Self.greatestLength).contains(bytes.count) else { return nil }
        keyIdentifier = Array(bytes.prefix(4))
        ephemeralX = Array(bytes.dropFirst(4).prefix(32))
        sealed = Array(bytes.dropFirst(36))
    }

    /// A decrypted pass.
    public struct Message: Hashable, Sendable {
        /// The phone's clock when it was tapped.
        public let date: Date
        public let data: PassData
        /// True if it was encrypted as phones did before VAS 1.0 was final.
        public let isOlderVariant: Bool
    }

    /// A cryptogram that none of the keys opens.
    public enum Fault: Error, Hashable, Sendable {
        /// The pass has the public key of none of them.
        case unknownKey(identifier: [UInt8])
        /// The coordinate is that of no point on P-256.
        case ephemeralKey
        /// Changed on its way, or made for another pass type or key.
        case notAuthentic
    }

    /// Decrypts the pass.
    ///
    /// - Parameters:
    ///   - keys: the merchant's private keys; the identifier chooses.
    ///   - merchant: the one that was asked for.
    public func open(
        with keys: [P256.KeyAgreement.PrivateKey], for merchant: VASMerchant
    ) throws(Fault) -> Message {
        let candidates = keys.filter { $0.publicKey.vasKeyIdentifier == keyIdentifier }
        guard !candidates.isEmpty else { throw .unknownKey(identifier: keyIdentifier) }
        // Both points with this X have the same X after multiplication; either sign will do.
        guard let phone = try? P256.KeyAgreement.PublicKey(compressedRepresentation: [0x02] + ephemeralX) else {
            throw .ephemeralKey
        }
        for key in candidates {
            guard let secret = try? key.sharedSecretFromKeyAgreement(with: phone) else { continue }
            for variant in Variant.allCases {
                guard let clear = variant.open(sealed, secret, merchant.identifierHash), clear.bytes.count >= 4
                else {
                    continue
                }
                return clear.withUnsafeBytes { clear in
                    let seconds = clear.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
                    return Message(
                        // Seconds since 2001-01-01, universal time.
                        date: Date(timeIntervalSinceReferenceDate: TimeInterval(seconds)),
                        data: PassData(copying: clear.dropFirst(4)), isOlderVariant: variant == .older)
                }
            }
        }
        throw .notAuthentic
    }

    private enum Variant: CaseIterable {
        case current, older

        private static let label = Array("ApplePay encrypted VAS data".utf8)

        func open(_ sealed: [UInt8], _ secret: SharedSecret, _ identifierHash: [UInt8]) -> WipedStorage? {
            let info: [UInt8]
            let additional: [UInt8]
            switch self {
            // The party information of NIST SP 800-56A: algorithm, party U, party V.
            case .current: (info, additional) = ([0x0D] + Array("id-aes256-GCM".utf8) + Self.label + identifierHash, [])
            case .older: (info, additional) = (Self.label, identifierHash)
            }
            let key = secret.x963DerivedSymmetricKey(using: SHA256.self, sharedInfo: info, outputByteCount: 32)
            // 16 bytes, where GCM usually has 12.
            guard let nonce = try? AES.GCM.Nonce(data: [UInt8](repeating: 0, count: 16)),
                let box = try? AES.GCM.SealedBox(
                    nonce: nonce, ciphertext: sealed.dropLast(16), tag: sealed.suffix(16))
            else { return nil }
            guard var clear = try? AES.GCM.open(box, using: key, authenticating: additional) else { return nil }
            return WipedStorage(moving: &clear)
        }
    }
}

extension P256.KeyAgreement.PublicKey {
    /// Names the key in a cryptogram: the first four bytes of SHA-256 over its X coordinate.
    public var vasKeyIdentifier: [UInt8] { Array(SHA256.hash(data: rawRepresentation.prefix(32)).prefix(4)) }
}

extension VASCryptogram.Fault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownKey(let identifier):
            "the pass is encrypted to another key, \(identifier.map { String($0, radix: 16) }.joined(separator: " "))"
        case .ephemeralKey: "the phone's key is not on P-256"
        case .notAuthentic: "the pass does not decrypt: it was changed, or is for another pass type identifier"
        }
    }
}
