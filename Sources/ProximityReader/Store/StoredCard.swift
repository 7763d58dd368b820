package import Crypto
package import EMVContactless
import Foundation
import SmartCard

/// What the store knows a card by: nothing that tells its number.
package struct StoredCard: Codable, Hashable, Sendable {
    /// HMAC-SHA-256 of the account number's digits, the first half, in hexadecimal digits.
    let reference: String
    /// `476173******0010`; of numbers that have less than 13 digits, `*******0010`.
    let masked: String

    init(reference: String, masked: String) {
        self.reference = reference
        self.masked = masked
    }

    /// - Parameter key: the device's.
    package init(_ number: PAN, key: SymmetricKey) {
        reference = Data(HMAC<SHA256>.authenticationCode(for: number.ascii, using: key)).prefix(16).hex
        let digits = number.ascii
        let shown = digits.count < 13 ? 0 : 6
        let hidden = [UInt8](repeating: UInt8(ascii: "*"), count: digits.count - shown - 4)
        masked = String(decoding: digits.prefix(shown) + hidden + digits.suffix(4), as: UTF8.self)
    }
}

extension CardRead {
    /// The account number; nil if the card did not give it.
    var accountNumber: PAN? {
        let record = outcome.dataRecord
        return record?[0x5A].flatMap { PAN(packed: $0) } ?? record?[0x57].flatMap { (try? Track2($0))?.pan }
    }

    /// Tag 5F34
    var sequenceNumber: UInt8? { outcome.dataRecord?[0x5F34].flatMap { $0.count == 1 ? $0[0] : nil } }

    /// What the kernel has found out about the card.
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
