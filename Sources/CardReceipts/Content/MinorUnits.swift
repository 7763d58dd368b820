package import EMVContactless
package import Foundation

/// Conversion of amounts to a currency's minor unit, by ISO 4217.
package enum MinorUnits {
    /// Finds a currency.
    ///
    /// - Parameter code: three letters, in either case.
    package static func currency(_ code: String) -> Currency? {
        guard let currency = Currency[code.uppercased()], currency.code == code.uppercased() else { return nil }
        return currency
    }

    package static func multiplier(of code: String) -> Decimal? {
        currency(code).map { pow(Decimal(10), $0.exponent ?? 0) }
    }

    /// Converts an amount to minor units.
    ///
    /// - Returns: nil for an amount that is not a whole number of units, is not positive, or has more than twelve
    ///   digits (EMV tag 9F02).
    package static func units(_ amount: Decimal, of code: String) -> UInt? {
        guard let multiplier = multiplier(of: code), !amount.isNaN, amount > 0 else { return nil }
        var units = amount * multiplier
        var whole = Decimal()
        NSDecimalRound(&whole, &units, 0, .plain)
        guard whole == units, whole <= 999_999_999_999 else { return nil }
        return UInt(whole.description)
    }
}
