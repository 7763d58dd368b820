import CardEncryption
import Crypto
import CryptoExtras
import Foundation
import SmartCard

/// The secure channel of Smart Tap: what the terminal signs, the keys, and what they open (kormax, Cryptography).
struct SmartTapChannel: Sendable {
    /// The data that the collector's key signs: reader nonce, device nonce, collector, reader's ephemeral key.
    static func signedData(
        readerNonce: [UInt8], deviceNonce: [UInt8], collectorID: UInt32, readerKey: [UInt8]
    ) -> [UInt8] {
        readerNonce + deviceNonce + collectorID.bigEndianBytes + readerKey
    }

    private let encryptionKey: SymmetricKey
    private let authenticationKey: SymmetricKey

    /// Agrees on keys.
    ///
    /// - Parameters:
    ///   - deviceKey: compressed, 33 bytes, as it came: its bytes are the salt.
    ///   - signature: DER, as it was sent.
    init(
        _ readerKey: P256.KeyAgreement.PrivateKey, deviceKey: [UInt8], signedData: [UInt8], signature: [UInt8]
    ) throws(SmartTapFault) {
        guard deviceKey.count == 33,
            let device = try? P256.KeyAgreement.PublicKey(compressedRepresentation: deviceKey),
            let secret = try? readerKey.sharedSecretFromKeyAgreement(with: device)
        else { throw .deviceKey }
        let keys = secret.hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: deviceKey, sharedInfo: signedData + signature, outputByteCount: 48)
        (encryptionKey, authenticationKey) = keys.withUnsafeBytes {
            (SymmetricKey(data: $0.prefix(16)), SymmetricKey(data: $0.dropFirst(16)))
        }
    }

    /// The counter's beginning, and HMAC-SHA256.
    private static let lengths = (iv: 12, code: 32)

    /// Opens IV, ciphertext and HMAC.  Nothing is decrypted that is not authentic.
    func open(_ sealed: [UInt8]) throws(SmartTapFault) -> [UInt8] {
        guard sealed.count > Self.lengths.iv + Self.lengths.code else { throw .missing(.bundle) }
        let authenticated = sealed.dropLast(Self.lengths.code)
        // In constant time.
        guard
            HMAC<SHA256>.isValidAuthenticationCode(
                sealed.suffix(Self.lengths.code), authenticating: authenticated, using: authenticationKey)
        else { throw .notAuthentic }
        // The counter of 32 bits begins at zero.
        guard let nonce = try? AES._CTR.Nonce(nonceBytes: authenticated.prefix(Self.lengths.iv)),
            var clear = try? AES._CTR.decrypt(
                authenticated.dropFirst(Self.lengths.iv), using: encryptionKey, nonce: nonce)
        else { throw .notAuthentic }
        return WipedStorage(moving: &clear).withUnsafeBytes { Array($0) }
    }
}

extension UInt32 {
    var bigEndianBytes: [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: self >> $0) } }
}
