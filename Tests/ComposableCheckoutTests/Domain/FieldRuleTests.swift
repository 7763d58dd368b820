import ComposableCheckout
import Foundation
import Testing

/// TEST: numbers that payment services and networks publish for tests: stripe.com/docs/testing, PayPal's list of test
/// numbers, adyen.com/documentation test cards.
private let publishedNumbers: [(String, CardNetwork)] = [
    ("4242424242424242", .visa), ("4111111111111111", .visa), ("4222222222222", .visa),
    ("5555555555554444", .mastercard), ("2223003122003222", .mastercard), ("5105105105105100", .mastercard),
    ("378282246310005", .amex), ("371449635398431", .amex), ("6011111111111117", .discover),
    ("6011000990139424", .discover), ("3056930009020004", .diners), ("36227206271667", .diners),
    ("30569309025904", .diners), ("38520000023237", .diners), ("3566002020360505", .jcb), ("3530111333300000", .jcb),
    ("6200000000000005", .unionPay), ("6205500000000000004", .unionPay), ("2200000000000004", .mir),
    ("5019717010103742", .dankort),
]

@Suite("D3 rules") struct FieldRuleTests {
    private let clock = CheckoutClock(timeZone: .gmt) { Date(timeIntervalSince1970: 1_764_072_000) }  // 2025-11-25
    private var rules: ValidatePaymentDataInteractor { ValidatePaymentDataInteractor(clock: clock) }

    private func code(
        _ field: ComposableInputElementType, _ text: String, country: String? = nil, network: CardNetwork? = nil
    ) -> String? {
        rules.validate(field, text, country: country, network: network)?.code
    }

    @Test(
        "D3 published test numbers are accepted, and with any other check digit they are not",
        arguments: publishedNumbers)
    func numbers(number: String, network: CardNetwork) throws {
        #expect(code(.cardNumber, number) == nil)
        #expect(code(.cardNumber, number, network: network) == nil)
        let last = try #require(number.last?.wholeNumberValue)
        for other in 1...9 {
            let wrong = number.dropLast() + "\((last + other) % 10)"
            #expect(code(.cardNumber, String(wrong)) == "invalid-card-number")
        }
    }

    @Test("D3 each published number is of its network")
    func networks() throws {
        for (number, network) in publishedNumbers {
            let error = rules.validate(.cardNumber, number, accepted: [network])
            #expect(error == nil, "\(network)")
            let others = CardNetwork.known.filter { $0 != network && $0 != .ruPay && $0 != .discover }
            let refused = rules.validate(.cardNumber, number, accepted: others)
            #expect(refused?.code == "unsupported-card-type", "\(network)")
        }
    }

    @Test(
        "D3 digits of any script and pasted separators are read",
        arguments: [
            "4242 4242 4242 4242", "4242-4242-4242-4242", " 4242\u{A0}4242\u{2009}4242\u{202F}4242\n",
            "٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", "۴۲۴۲۴۲۴۲۴۲۴۲۴۲۴۲", "４２４２　４２４２　４２４２　４２４２", "४२४२४२४२४२४२४२४२",
            "\u{200E}4242\u{2013}4242\u{2011}4242\u{2212}4242\u{200F}",
        ])
    func scripts(number: String) { #expect(code(.cardNumber, number) == nil) }

    @Test(
        "D3 what is no number, is too short, too long or of another length than the network's",
        arguments: [
            "4242x424242424242", "4242.4242.4242.4242", "424242424242", "42424242424242424242", "4242 4242 4242 424",
            "½",
            // Luhn holds, and the length is none of the network's.
            "37144963539843106", "55555555555544440",
            "42424242424242424242424242424242424242",
        ])
    func malformed(number: String) { #expect(code(.cardNumber, number) == "invalid-card-number") }

    @Test("D3 Luhn's formula by the example of ISO/IEC 7812-1 and by its definition")
    func luhn() {
        // Wikipedia, Luhn algorithm: 1789372997 with check digit 4, extended to a card's length by its own zeros.
        #expect(code(.cardNumber, "0000017893729974") == nil)
        #expect(code(.cardNumber, "0000017893729975") == "invalid-card-number")
    }

    @Test("D3 a security code has four digits for American Express, and three for any other network")
    func securityCode() {
        #expect(code(.cvv, "123") == nil)
        #expect(code(.cvv, "1234") == "invalid-cvv")
        #expect(code(.cvv, "1234", network: .amex) == nil)
        #expect(code(.cvv, "123", network: .amex) == "invalid-cvv")
        #expect(code(.cvv, "١٢٣", network: .visa) == nil)
        #expect(code(.cvv, "12a") == "invalid-cvv")
        #expect(code(.cvv, "") == "required-field")
    }

    @Test(
        "D3 expiry dates as people, pages and browsers write them",
        arguments: [
            ("11/25", nil), ("11/2025", nil), ("1125", nil), ("112025", nil), ("11-25", nil), ("11 / 25", nil),
            ("2025-11", nil),
            ("1/26", nil), ("01/26", nil), ("١٢/٢٥", nil), ("１２／２５", nil), ("10/25", "card-expired"),
            ("12/24", "card-expired"),
            ("12/2024", "card-expired"), ("13/26", "invalid-expiry-date"), ("00/26", "invalid-expiry-date"),
            ("126", "invalid-expiry-date"), ("12", "invalid-expiry-date"), ("12/", "invalid-expiry-date"),
            ("1/2/26", "invalid-expiry-date"), ("12/3000", "invalid-expiry-date"), ("ab/cd", "invalid-expiry-date"),
            ("12/026", "invalid-expiry-date"),
        ] as [(String, String?)])
    func expiry(text: String, expected: String?) { #expect(code(.expiryDate, text) == expected) }

    @Test("D3 a card is valid to the end of its month in the terminal's time zone, and a century ends well")
    func clocks() throws {
        func code(_ time: String, _ zone: String, _ expiry: String) throws -> String? {
            let (date, zone) = (try Date(time), try #require(TimeZone(identifier: zone)))
            return ValidatePaymentDataInteractor(clock: CheckoutClock(timeZone: zone) { date })
                .validate(.expiryDate, expiry)?.code
        }
        #expect(try code("2026-01-31T22:59:59Z", "Europe/Berlin", "01/26") == nil)
        #expect(try code("2026-01-31T23:00:00Z", "Europe/Berlin", "01/26") == "card-expired")
        #expect(try code("2026-02-01T04:59:59Z", "America/New_York", "01/26") == nil)
        #expect(try code("2026-02-01T05:00:00Z", "America/New_York", "01/26") == "card-expired")
        #expect(try code("2099-11-01T00:00:00Z", "UTC", "01/01") == nil)
        #expect(try code("2099-11-01T00:00:00Z", "UTC", "10/99") == "card-expired")
        #expect(try code("2101-11-01T00:00:00Z", "UTC", "12/99") == "card-expired")
    }

    static let texts: [(ComposableInputElementType, String, String?)] = [
        (.cardholderName, "Jean-Luc O'Neil", nil), (.cardholderName, "Łukasz Żółć", nil), (.cardholderName, "李小龍", nil),
        (.cardholderName, "María José", nil), (.cardholderName, "X", "invalid-cardholder-name"),
        (.cardholderName, "R2D2", "invalid-cardholder-name"), (.cardholderName, "  ", "required-field"),
        (.cardholderName, String(repeating: "a", count: 65), "invalid-cardholder-name"),
        (.firstName, "Zoë", nil), (.firstName, "<b>", "invalid-first-name"), (.lastName, "D’Arcy", nil),
        (.lastName, "1", "invalid-last-name"), (.city, "St. Gallen", nil), (.city, "Val-d'Or", nil),
        (.city, "K", "invalid-city"), (.city, "Area 51", "invalid-city"), (.state, "NY", nil),
        (.state, "N", "invalid-state"),
        (.addressLine1, "1 A", nil), (.addressLine1, "1A", "invalid-address-line-1"),
        (.addressLine1, String(repeating: "a", count: 101), "invalid-address-line-1"),
        (.addressLine1, "a\u{7}bc", "invalid-address-line-1"), (.addressLine2, "", nil),
        (.addressLine2, "2. Stock", nil),
        (.countryCode, "de", nil), (.countryCode, "DEU", nil), (.countryCode, "XX", "invalid-country-code"),
        (.countryCode, "276", "invalid-country-code"), (.countryCode, "D", "invalid-country-code"),
        (.otpCode, "123456", nil), (.otpCode, "12345", "invalid-otp-code"), (.otpCode, "1234567", "invalid-otp-code"),
        (.otpCode, "12345a", "invalid-otp-code"), (.retailOutlet, "Store 7", nil),
        (.retailOutlet, "", "required-field"),
        (.phoneNumber, "1234567", nil), (.phoneNumber, "123456", "invalid-phone-number"),
        (.phoneNumber, "1234567890123456", "invalid-phone-number"), (.phoneNumber, "call me", "invalid-phone-number"),
        (.postalCode, "123", nil), (.postalCode, "12", "invalid-postal-code"), (.postalCode, "A1-B2 C3", nil),
        (.postalCode, "1234567890123", "invalid-postal-code"), (.postalCode, "12_34", "invalid-postal-code"),
    ]

    @Test("D3 names, addresses and codes", arguments: texts)
    func judged(field: ComposableInputElementType, text: String, expected: String?) {
        #expect(code(field, text) == expected)
    }

    @Test("D3 published examples of postal codes are accepted in their countries, with and without separators")
    func postalCodes() throws {
        var count = 0
        for line in try Vectors.lines(of: "postal-codes") {
            let country = String(line.prefix(2))
            for example in line.dropFirst(3).split(separator: ",") {
                count += 1
                #expect(code(.postalCode, String(example), country: country) == nil, "\(country) \(example)")
                let plain = example.filter { $0 != " " && $0 != "-" }.lowercased()
                #expect(code(.postalCode, plain, country: country) == nil, "\(country) \(plain)")
                #expect(code(.postalCode, "\(example)QQ", country: country) != nil, "\(country) \(example)")
            }
        }
        #expect(count > 350)
    }

    @Test(
        "D3 postal codes of other countries are refused",
        arguments: [
            ("US", "9501"), ("US", "95014-12"), ("CA", "D3Z 2Y7"), ("CA", "H3Z 2Y"), ("GB", "EC1Y 8S"), ("GB", "1234"),
            ("NL", "0234 AB"), ("NL", "1234 SA"), ("DE", "2613"), ("DE", "D-26133"), ("PL", "00-95"), ("CH", "12345"),
        ])
    func foreignPostalCodes(country: String, text: String) {
        #expect(code(.postalCode, text, country: country) == "invalid-postal-code")
    }

    @Test("D3 example numbers of libphonenumber are accepted, in the international and the national form")
    func phoneNumbers() throws {
        let lines = try Vectors.lines(of: "phone-numbers")
        #expect(lines.count > 450)
        for line in lines {
            let columns = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            #expect(code(.phoneNumber, columns[1]) == nil, "\(line)")
            #expect(code(.phoneNumber, columns[1], country: "DE") == nil, "\(line)")
            #expect(code(.phoneNumber, "00" + columns[1].dropFirst()) == nil, "\(line)")
            // Argentina's mobile prefix stands inside the number, where it is not read.
            guard !columns[2].isEmpty, columns[1] != "+54 9 11 2345-6789" else { continue }
            #expect(code(.phoneNumber, columns[2], country: columns[0]) == nil, "\(line)")
        }
        #expect(code(.phoneNumber, "+49 (0)30 123456") == nil)
        #expect(code(.phoneNumber, "＋４９ ３０ １２３４５６") == nil)
        #expect(code(.phoneNumber, "٠٣٠١٢٣٤٥٦", country: "DE") == nil)
    }

    @Test("D3 numbers that libphonenumber calls impossible are refused")
    func impossiblePhoneNumbers() throws {
        let lines = try Vectors.lines(of: "impossible-phone-numbers")
        #expect(lines.count > 700)
        for line in lines {
            let number = String(line.split(separator: " ")[1])
            #expect(code(.phoneNumber, number) == "invalid-phone-number", "\(line)")
        }
    }

    @Test("D3 every error has a text, and every field a rule")
    func everything() {
        let texts = InputLocalizable(language: "en")
        for field in ComposableInputElementType.allCases {
            #expect(code(field, "") == (field == .addressLine2 ? nil : "required-field"))
            let error = code(field, "\u{1}\u{2}")
            #expect(error?.hasPrefix("invalid-") == true, "\(field)")
            #expect(texts.text("error.\(error ?? "")") != InputLocalizable.missing, "\(field)")
        }
    }

    @Test("D3 several fields: the chosen country decides, and fields that are not shown are not judged")
    func several() {
        let values: [ComposableInputElementType: String] = [
            .countryCode: "ca", .postalCode: "26133", .city: "", .firstName: "1",
        ]
        let errors = rules.validate([.countryCode, .postalCode, .city], values, country: "DE")
        #expect(errors.map(\.code) == ["invalid-postal-code", "required-field"])
        #expect(errors.map(\.field) == [.postalCode, .city])
        #expect(rules.validate([.postalCode], values, country: "DE") == [])
    }
}
