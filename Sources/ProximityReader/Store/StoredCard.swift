package import Crypto
package import EMVContactless
import Foundation
import SmartCard

/// The identity of a card in the store, which does not reveal its number.
package struct StoredCard: Codable, Hashable, Sendable {
    /// The first half of the HMAC-SHA-256 of the account number's digits, in hexadecimal digits.
    let reference: String
    /// The masked number, `PAN.masked`: `476173******0010`.
    let masked: String

    init(reference: String, masked: String) {
        self.reference = reference
        self.masked = masked
    }

    /// Derives a card's identity.
    ///
    /// - Parameter key: the device's key.
    package init(_ number: PAN, key: SymmetricKey) {
        reference = Data(HMAC<SHA256>.authenticationCode(for: number.ascii, using: key)).prefix(16).hex
        masked = number.masked
    }
}
