import EMVContactless
import Foundation

/// A currency of ISO 4217, in lower case; empty for anything else.
@propertyWrapper public struct CurrencyCode: Hashable, Sendable {
    public let wrappedValue: String

    public init(wrappedValue: String) {
        self.wrappedValue = MinorUnits.currency(wrappedValue)?.code.lowercased() ?? ""
    }
}

/// What a cardholder reads on the statement: 22 characters at most, and `-` where `<`, `>`, `'` or `"` was.
@propertyWrapper public struct StatementDescriptor: Hashable, Sendable {
    public let wrappedValue: String?

    public init(wrappedValue: String?) {
        self.wrappedValue = wrappedValue.map { text in
            String(text.map { #"<>'""#.contains($0) ? "-" : $0 }.prefix(22))
        }
    }
}

/// An e-mail address; nil for what cannot be one.
@propertyWrapper public struct Email: Hashable, Sendable {
    public let wrappedValue: String?

    public init(wrappedValue: String?) {
        self.wrappedValue = wrappedValue.flatMap { Self.isAddress($0) ? $0 : nil }
    }

    /// One `@`, something before it, and behind it a domain with a dot, without spaces or controls (RFC 5321, 4.1.2: at most
    /// 64 and 255 octets).
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

/// Amounts in a currency's smallest unit, as ISO 4217 has it.
enum MinorUnits {
    /// - Parameter code: three letters, in any case.
    static func currency(_ code: String) -> Currency? {
        guard let currency = Currency[code.uppercased()], currency.code == code.uppercased() else { return nil }
        return currency
    }

    static func multiplier(of code: String) -> Decimal? {
        currency(code).map { pow(Decimal(10), $0.exponent ?? 0) }
    }

    /// - Returns: nil for an amount that is not a whole number of units, not positive, or of more than twelve digits (EMV
    ///   tag 9F02).
    static func units(_ amount: Decimal, of code: String) -> UInt? {
        guard let multiplier = multiplier(of: code), !amount.isNaN, amount > 0 else { return nil }
        var units = amount * multiplier
        var whole = Decimal()
        NSDecimalRound(&whole, &units, 0, .plain)
        guard whole == units, whole <= 999_999_999_999 else { return nil }
        return UInt(whole.description)
    }
}
