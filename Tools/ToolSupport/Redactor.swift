import Foundation
package import SmartCard

/// Removes a card's account numbers and names from all output, wherever the card repeats them: in a label, a log
/// record, or an unknown object.
package struct Redactor {
    /// A limit above the numbers and names of any card; a card with thousands must not stall the search.
    private static let maximumSecrets = 32

    private var replacements: [(secret: String, shown: String)] = []

    package init() {}

    package init(hiding objects: [(tag: TLVTag, value: [UInt8])]) {
        for (tag, value) in objects {
            switch SensitiveData.exposures[tag] {
            case .accountNumber:
                hide(digits: String(value.hex.prefix { ("0"..."9").contains($0) }))
            case .nothing where SensitiveData.names.contains(tag):
                let name = String(decoding: value, as: UTF8.self).trimmingCharacters(in: .whitespaces)
                if name.count >= 5 { hide(name, shown: String(repeating: "*", count: name.count)) }
            default: break
            }
        }
        // Longest first, so that none leaves a part of another behind.
        replacements.sort { $0.secret.count > $1.secret.count }
    }

    private mutating func hide(digits: String) {
        guard digits.count >= 12 else { return }
        hide(digits, shown: SensitiveData.maskingAccountNumber(digits))
    }

    private mutating func hide(_ secret: String, shown: String) {
        guard replacements.count < 2 * Self.maximumSecrets, !replacements.contains(where: { $0.secret == secret })
        else { return }
        replacements.append((secret, shown))
        let coded = Array(secret.utf8).hex
        replacements.append((coded, String(repeating: "*", count: coded.count)))
    }

    package func redacted(_ text: String) -> String {
        replacements.reduce(text) { $0.replacingOccurrences(of: $1.secret, with: $1.shown) }
    }
}
