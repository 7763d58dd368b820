import CardReceipts
import EMVContactless
import Foundation

/// An ISO 4217 currency code in lower case; any other text becomes empty.
@propertyWrapper public struct CurrencyCode: Hashable, Sendable {
    public let wrappedValue: String

    public init(wrappedValue: String) {
        self.wrappedValue = MinorUnits.currency(wrappedValue)?.code.lowercased() ?? ""
    }
}

/// A statement descriptor, which cardholders read on their statements: at most 22 characters; `-` replaces `<`, `>`,
/// `'` and `"`.
@propertyWrapper public struct StatementDescriptor: Hashable, Sendable {
    public let wrappedValue: String?

    public init(wrappedValue: String?) {
        self.wrappedValue = wrappedValue.map { text in
            String(text.map { #"<>'""#.contains($0) ? "-" : $0 }.prefix(22))
        }
    }
}

/// An email address; nil for text that cannot be one.
@propertyWrapper public struct Email: Hashable, Sendable {
    public let wrappedValue: String?

    public init(wrappedValue: String?) {
        self.wrappedValue = wrappedValue.flatMap { Self.isAddress($0) ? $0 : nil }
    }

    /// Checks for one `@` after at least one character and before a domain that contains a dot, without spaces or
    /// controls (RFC 5321, 4.1.2: at most 64 and 255 octets).
    private static func isAddress(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...64).contains(parts[0].utf8.count), (1...255).contains(parts[1].utf8.count),
            text.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F && !$0.properties.isWhitespace })
        else { return false }
        let labels = parts[1].split(separator: ".", omittingEmptySubsequences: false)
        return labels.count >= 2
            && labels.allSatisfy { label in
                !label.isEmpty && label.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" }
                    && label.first != "-" && label.last != "-"
            }
            && !parts[0].hasPrefix(".") && !parts[0].hasSuffix(".") && !parts[0].contains("..")
    }
}
