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

extension CardRead {
    /// The account number; nil if the card did not supply it.
    var accountNumber: PAN? {
        let record = outcome.dataRecord
        return record?[0x5A].flatMap { PAN(packed: $0) } ?? record?[0x57].flatMap { (try? Track2($0))?.pan }
    }

    /// The PAN sequence number, tag 5F34.
    var sequenceNumber: UInt8? { outcome.dataRecord?[0x5F34].flatMap { $0.count == 1 ? $0[0] : nil } }

    /// The kernel's findings about the card.
    var findings: TerminalVerificationResults {
        var findings = outcome.dataRecord?[0x95].flatMap { TerminalVerificationResults($0) } ?? []
        switch outcome.isAuthentic {
        case true?: break
        case false?: findings.insert(.ddaFailed)
        case nil: findings.insert(.offlineDataAuthenticationNotPerformed)
        }
        return findings
    }
}
