import SmartCard

/// A currency of ISO 4217.
public struct Currency: Hashable, Sendable {
    /// The numeric code, three digits: `840`.
    public let numericCode: String
    /// The alphabetic code, three letters: `USD`.
    public let code: String
    /// The number of decimals of the minor unit; nil for a currency without one, such as gold.
    public let exponent: Int?
    public let name: String

    /// All current currencies, ordered by numeric code.
    public static let all: [Currency] = LoadedOnce.reading {
        table.split(separator: "\n").compactMap { line in
            let columns = line.split(separator: " ", maxSplits: 3)
            guard columns.count == 4 else { return nil }
            return Currency(
                numericCode: String(columns[0]), code: String(columns[1]), exponent: Int(columns[2]),
                name: String(columns[3]))
        }
    }

    /// Finds a currency.
    ///
    /// - Parameter code: three digits, or three letters in upper case.
    public static subscript(code: some StringProtocol) -> Currency? {
        all.first { $0.numericCode == code || $0.code == code }
    }

    /// Finds a currency by its code in format n 3, two bytes, as in tag 5F2A.
    public static subscript(packed bytes: some Collection<UInt8>) -> Currency? {
        threeDigits(bytes).flatMap { self[$0] }
    }

    /// Formats an amount in this currency's minor unit: `12.34 USD`.
    ///
    /// - Parameter digits: the amount, decimal digits only; leading zeros are dropped.
    public func format(_ digits: some StringProtocol) -> String {
        Self.insertPoint(in: digits, exponent: exponent ?? 0) + " " + code
    }

    /// Inserts a decimal point before the last `exponent` digits, with at least one digit before it.
    static func insertPoint(in digits: some StringProtocol, exponent: Int) -> String {
        let significant = String(digits.drop { $0 == "0" })
        guard exponent > 0 else { return significant.isEmpty ? "0" : significant }
        let padded = String(repeating: "0", count: max(0, exponent + 1 - significant.count)) + significant
        return padded.dropLast(exponent) + "." + padded.suffix(exponent)
    }
}

/// A country or territory of ISO 3166-1.
public struct Country: Hashable, Sendable {
    /// The numeric code, three digits: `840`.
    public let numericCode: String
    /// The two-letter code: `US`.
    public let alpha2: String
    /// The three-letter code: `USA`.
    public let alpha3: String
    public let name: String

    /// All countries and territories, ordered by numeric code.
    public static let all: [Country] = LoadedOnce.reading {
        table.split(separator: "\n").compactMap { line in
            let columns = line.split(separator: " ", maxSplits: 3)
            guard columns.count == 4 else { return nil }
            return Country(
                numericCode: String(columns[0]), alpha2: String(columns[1]), alpha3: String(columns[2]),
                name: String(columns[3]))
        }
    }

    /// Finds a country.
    ///
    /// - Parameter code: three digits, or two or three letters in upper case.
    public static subscript(code: some StringProtocol) -> Country? {
        all.first { $0.numericCode == code || $0.alpha2 == code || $0.alpha3 == code }
    }

    /// Finds a country by its code in format n 3, two bytes, as in tag 5F28.
    public static subscript(packed bytes: some Collection<UInt8>) -> Country? {
        threeDigits(bytes).flatMap { self[$0] }
    }
}

/// A language of ISO 639-1.
public struct Language: Hashable, Sendable {
    /// The two-letter code in lower case: `en`.
    public let code: String
    public let name: String

    /// All languages with a two-letter code, ordered by it.
    public static let all: [Language] = LoadedOnce.reading {
        table.split(separator: "\n").compactMap { line in
            let columns = line.split(separator: " ", maxSplits: 1)
            return columns.count == 2 ? Language(code: String(columns[0]), name: String(columns[1])) : nil
        }
    }

    /// Finds a language.
    ///
    /// - Parameter code: two letters in either case, since cards use both.
    public static subscript(code: some StringProtocol) -> Language? {
        let code = code.lowercased()
        return all.first { $0.code == code }
    }
}

/// Returns the three digits of format n 3 from two packed bytes, whose first digit is a padding zero.
private func threeDigits(_ bytes: some Collection<UInt8>) -> String? {
    let digits = bytes.hex
    return digits.count == 4 && digits.first == "0" ? String(digits.dropFirst()) : nil
}
