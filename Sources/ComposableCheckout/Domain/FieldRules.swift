import EMVContactless
import SmartCard

/// The circumstances under which a field's value is judged.
struct FieldContext: Sendable {
    /// The ISO 3166-1 alpha-2 code of the billing country; nil: not known.
    var country: String?
    /// The network that the customer pays through; nil: not known.
    var network: CardNetwork?
    /// The networks that are accepted; nil: all.
    var accepted: [CardNetwork]?
    /// The present month at the terminal.
    var now: YearMonth
}

/// The rule of a field, and the hints for who renders it.
struct FieldRule: Sendable {
    enum Check: Sendable {
        /// A text without surrounding spaces.  Returns the code of the error.
        case text(@Sendable (String, FieldContext) -> String?)
        /// Secret digits as ASCII characters.
        case digits(@Sendable (Slice<UnsafeRawBufferPointer>, FieldContext) -> String?)
    }

    let field: ComposableInputElementType
    /// The maximum number of characters.
    let maximumLength: Int
    /// The autofill field name (HTML Standard, 4.10.18.7.1).
    let autocomplete: String
    /// The keyboard (HTML Standard, 6.8.6.2).
    let inputMode: String
    /// True if the field may stay empty although it is shown.
    let isOptional: Bool
    let check: Check

    private init(
        _ field: ComposableInputElementType, _ maximumLength: Int, _ autocomplete: String, _ inputMode: String,
        isOptional: Bool = false, _ check: Check
    ) {
        (self.field, self.maximumLength, self.autocomplete, self.inputMode) = (
            field, maximumLength, autocomplete, inputMode
        )
        (self.isOptional, self.check) = (isOptional, check)
    }

    /// Each field has a row, in the order of the elements.
    private static let all: [FieldRule] = [
        FieldRule(.cardNumber, 23, "cc-number", "numeric", .digits(cardNumber)),
        FieldRule(.cvv, 4, "cc-csc", "numeric", .digits(cvv)),
        FieldRule(.expiryDate, 9, "cc-exp", "numeric", .text(expiryDate)),
        // Letters, spaces, hyphens and apostrophes, two at least.
        FieldRule(.cardholderName, 64, "cc-name", "text", .text { text, _ in name(text, 64, "cardholder-name") }),
        FieldRule(.postalCode, 12, "postal-code", "text", .text(postalCode)),
        FieldRule(.countryCode, 3, "country", "text", .text(countryCode)),
        // As names, and periods: St. Gallen.
        FieldRule(.city, 64, "address-level2", "text", .text { text, _ in name(text, 64, "city", and: ".") }),
        FieldRule(.state, 64, "address-level1", "text", .text { text, _ in length(text, 2...64, "state") }),
        FieldRule(
            .addressLine1, 100, "address-line1", "text", .text { text, _ in length(text, 3...100, "address-line-1") }),
        FieldRule(
            .addressLine2, 100, "address-line2", "text", isOptional: true,
            .text { text, _ in length(text, 1...100, "address-line-2") }),
        FieldRule(.phoneNumber, 32, "tel", "tel", .text(phoneNumber)),
        FieldRule(.firstName, 64, "given-name", "text", .text { text, _ in name(text, 64, "first-name") }),
        FieldRule(.lastName, 64, "family-name", "text", .text { text, _ in name(text, 64, "last-name") }),
        FieldRule(.retailOutlet, 100, "off", "text", .text { text, _ in length(text, 1...100, "retail-outlet") }),
        // Six digits.
        FieldRule(
            .otpCode, 6, "one-time-code", "numeric",
            .digits { digits, _ in digits.count == 6 ? nil : "invalid-otp-code" }),
    ]

    private static let byField = Dictionary(uniqueKeysWithValues: all.map { ($0.field, $0) })

    static func of(_ field: ComposableInputElementType) -> FieldRule {
        // A test finds a row for each element.
        byField[field] ?? FieldRule(field, 0, "off", "text", .text { _, _ in "required-field" })
    }

    /// True if the field's value is a secret, kept as digits on a wiped page.
    var isSecret: Bool { if case .digits = check { true } else { false } }
}

// MARK: Cards

extension FieldRule {
    /// The lengths of account numbers on cards that pay (ISO/IEC 7812-1, 4, has 8 to 19; networks 12 and more).
    private static let numberLengths = 13...19

    private static func cardNumber(_ digits: Slice<UnsafeRawBufferPointer>, _ context: FieldContext) -> String? {
        guard numberLengths.contains(digits.count),
            SensitiveData.checks(digits.lazy.map { $0 - UInt8(ascii: "0") })
        else { return "invalid-card-number" }
        let issuers = CardNetworkDetection.issuers(of: digits)
        if let accepted = context.accepted, !issuers.contains(where: accepted.contains) {
            return "unsupported-card-type"
        }
        // A number of no network that is known may be of one that is not; one that is too long for its networks is not.
        guard let network = context.network else {
            return issuers.isEmpty ? nil : "invalid-card-number"
        }
        return network.numberLengths.contains(digits.count) ? nil : "invalid-card-number"
    }

    private static func cvv(_ digits: Slice<UnsafeRawBufferPointer>, _ context: FieldContext) -> String? {
        digits.count == context.network?.securityCodeLength ?? 3 ? nil : "invalid-cvv"
    }

    private static func expiryDate(_ text: String, _ context: FieldContext) -> String? {
        guard let month = YearMonth(expiry: text, now: context.now) else { return "invalid-expiry-date" }
        return month < context.now ? "card-expired" : nil
    }
}

// MARK: Addresses

extension FieldRule {
    /// Letters of any script with their marks, spaces, hyphens and apostrophes.
    private static func name(
        _ text: String, _ maximum: Int, _ code: String, and others: String = ""
    ) -> String? {
        let isName = text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
                .nonspacingMark, .spacingMark:
                true
            default:
                " -'\u{2010}\u{2011}\u{2019}".unicodeScalars.contains(scalar)
                    || others.unicodeScalars.contains(scalar)
            }
        }
        return isName && (2...maximum).contains(text.count) ? nil : "invalid-" + code
    }

    private static func length(_ text: String, _ lengths: ClosedRange<Int>, _ code: String) -> String? {
        let isPlain = text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        return isPlain && lengths.contains(text.count) ? nil : "invalid-" + code
    }

    /// The country's form, or 3 to 10 letters, digits, spaces and hyphens.
    private static func postalCode(_ text: String, _ context: FieldContext) -> String? {
        let plain = ascii(text).uppercased()
        let code = String(plain.filter { $0 != " " && $0 != "-" })
        if let country = context.country, let isAccepted = PostalCodes.accept(code, country: country) {
            return isAccepted ? nil : "invalid-postal-code"
        }
        let isPlain = plain.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == " " || $0 == "-" }
        return isPlain && (3...10).contains(plain.count) && !code.isEmpty ? nil : "invalid-postal-code"
    }

    private static func countryCode(_ text: String, _ context: FieldContext) -> String? {
        country(text) == nil ? "invalid-country-code" : nil
    }

    /// The ISO 3166-1 alpha-2 code for a code of two or three letters; nil if there is no such country.
    static func country(_ text: String) -> String? {
        let code = text.uppercased()
        guard (2...3).contains(code.utf8.count), code.allSatisfy(\.isLetter) else { return nil }
        return countries[code]
    }

    private static let countries: [String: String] = {
        var countries: [String: String] = [:]
        for country in Country.all {
            for code in [country.alpha2, country.alpha3] { countries[code] = country.alpha2 }
        }
        return countries
    }()

    private static func phoneNumber(_ text: String, _ context: FieldContext) -> String? {
        var digits = ""
        var isInternational = false
        // "+49 (0)30": the trunk prefix in parentheses is for calls at home.
        let plain = ascii(text)
        for scalar in (plain.hasPrefix("+") ? plain.replacing("(0)", with: "") : plain).unicodeScalars {
            switch scalar {
            case "0"..."9": digits.unicodeScalars.append(scalar)
            case "+" where digits.isEmpty && !isInternational: isInternational = true
            case "(", ")", ".", "/": continue
            default: if !scalar.isDigitSeparator { return "invalid-phone-number" }
            }
        }
        if !isInternational, digits.hasPrefix("00") { (isInternational, digits) = (true, String(digits.dropFirst(2))) }
        let isPossible = PhoneNumbers.accept(digits, isInternational: isInternational, country: context.country)
        return isPossible ? nil : "invalid-phone-number"
    }

    /// The text with ASCII digits in place of digits of other scripts, and without marks of bidirectional text; full-width
    /// letters and signs as ASCII, too.
    static func ascii(_ text: String) -> String {
        var plain = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if let digit = scalar.decimalDigit {
                plain.append(Unicode.Scalar(UInt8(ascii: "0") + digit))
            } else if (0xFF01...0xFF5E).contains(scalar.value), let narrow = Unicode.Scalar(scalar.value - 0xFEE0) {
                plain.append(narrow)
            } else if scalar.properties.generalCategory == .spaceSeparator {
                plain.append(" ")
            } else if scalar.properties.generalCategory != .format {
                plain.append(scalar)
            }
        }
        return String(plain)
    }
}
