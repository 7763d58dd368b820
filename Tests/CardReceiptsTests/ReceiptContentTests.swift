import EMVContactless
import Foundation
import Glibc
import SmartCard
import TestSupport
import Testing

@testable import CardReceipts

@Suite struct ReceiptContentTests {
    private static func json(_ content: ReceiptContent) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(content))
        return try #require(object as? [String: Any])
    }

    /// `object` without what stands at `path`, or with `value` there.
    private static func object(_ object: [String: Any], _ path: [String], _ value: Any? = nil) -> [String: Any] {
        var object = object
        if path.count == 1 {
            object[path[0]] = value
        } else if let inner = object[path[0]] as? [String: Any] {
            object[path[0]] = Self.object(inner, Array(path.dropFirst()), value)
        }
        return object
    }

    private static func read(_ object: [String: Any]) throws -> ReceiptContent {
        try JSONDecoder().decode(ReceiptContent.self, from: JSONSerialization.data(withJSONObject: object))
    }

    private static let required: [(path: String, field: ReceiptField, printed: String)] = [
        ("merchant.name", .merchantName, "Café am Markt"),
        ("merchant.address", .location, "04109 Leipzig"),
        ("merchant.country", .country, "Leipzig"),
        ("merchant.merchant_id", .merchantID, "Merchant 0815"),
        ("merchant.terminal_id", .terminalID, "Terminal T-1"),
        ("line_items", .lineItems, "Cappuccino"),
        ("parameters.type", .transactionType, "SALE"),
        ("parameters.amount", .amount, "12.34 EUR"),
        ("parameters.currency", .currency, "EUR"),
        ("parameters.time", .dateAndTime, "2026-11-22 14:05:09"),
        ("parameters.card.brand", .cardBrand, "Visa **** 0010"),
        ("parameters.card.last4", .lastFourDigits, "**** 0010"),
        ("parameters.card.entry_mode", .entryMode, "Contactless"),
        ("parameters.card.emv.application_name", .applicationName, "VISA CREDIT"),
        ("parameters.card.emv.aid", .applicationIdentifier, "A0000000031010"),
        ("parameters.card.emv.cardholder_verification", .cardholderVerification, "Verified by signature"),
        ("parameters.card.emv.account_type", .accountType, "Credit"),
        ("cart_totals.subtotal", .subtotal, "Subtotal"),
    ]

    @Test("B1: what is required is printed; without it there is no receipt", arguments: required.indices)
    func b1(_ index: Int) throws {
        let (path, field, printed) = Self.required[index]
        let content = try Sample.content()
        for columns in [32, 42, 48] {
            let text = TextRenderer(columns: columns).render(ReceiptDocument(content))
            #expect(text.contains(printed), "\(text)")
        }
        let keys = path.split(separator: ".").map(String.init)
        #expect(throws: ReceiptError.missingRequiredField(field)) {
            _ = try Self.read(Self.object(Self.json(content), keys))
        }
        #expect(throws: ReceiptError.missingRequiredField(field)) {
            _ = try Self.read(Self.object(Self.json(content), keys, NSNull()))
        }
    }

    @Test("B1: what is empty is missing, what is something else malformed")
    func b1Empty() throws {
        let details = { (name: String, aid: String, cvm: CardholderVerificationMethod?) in
            Sample.card(
                receipt: ReceiptDetails(
                    applicationPreferredName: name, dedicatedFileName: aid, accountType: "Credit",
                    cardholderVerificationMethod: cvm))
        }
        let expected: [(ReceiptError, CardPresentTransactionDetails)] = [
            (.missingRequiredField(.applicationName), details(" \u{0}\u{200B}", "A0000000031010", .noCVM)),
            (.missingRequiredField(.applicationIdentifier), details("VISA", "", .noCVM)),
            (.malformedField(.applicationIdentifier), details("VISA", "A00000", .noCVM)),
            (.malformedField(.applicationIdentifier), details("VISA", "not hexadecimal", .noCVM)),
            (.missingRequiredField(.cardholderVerification), details("VISA", "A0000000031010", nil)),
            (.missingRequiredField(.lastFourDigits), Sample.card(last4: "")),
            (.malformedField(.lastFourDigits), Sample.card(last4: "4761739001010010")),
            (.malformedField(.lastFourDigits), Sample.card(last4: "００１０")),
            (.missingRequiredField(.entryMode), Sample.card(readMethod: nil)),
            (.missingRequiredField(.cardBrand), Sample.card(brand: .unknown)),
        ]
        for (error, card) in expected {
            #expect(throws: error) { try Sample.parameters(card: card) }
        }
        let blank = "\u{202E} \n"
        let merchants: [(ReceiptError, ReceiptMerchant)] = [
            (.missingRequiredField(.merchantName), Sample.merchant(name: blank)),
            (.missingRequiredField(.location), Sample.merchant(address: [])),
            (.missingRequiredField(.location), Sample.merchant(address: ["", blank])),
            (.missingRequiredField(.country), Sample.merchant(country: "")),
            (.malformedField(.country), Sample.merchant(country: "XX")),
            (.malformedField(.country), Sample.merchant(country: "DEU")),
            (.malformedField(.country), Sample.merchant(country: "276")),
            (.missingRequiredField(.merchantID), Sample.merchant(merchantID: blank)),
            (.missingRequiredField(.terminalID), Sample.merchant(terminalID: blank)),
        ]
        for (error, merchant) in merchants {
            #expect(throws: error) { try Sample.content(merchant: merchant) }
        }
        #expect(throws: ReceiptError.missingRequiredField(.lineItems)) { try Sample.content(lineItems: []) }
        _ = try Sample.content(parameters: Sample.parameters(type: .refund), lineItems: [])
        for (currency, error) in [
            ("", ReceiptError.missingRequiredField(.currency)), ("EURO", .malformedField(.currency)),
            ("978", .malformedField(.currency)), ("XXX", .malformedField(.currency)),
            ("ＥＵＲ", .malformedField(.currency)),
        ] {
            #expect(throws: error) { try Sample.parameters(currency: currency) }
        }
        #expect(try Sample.parameters(currency: "eur").currency == "EUR")
        #expect(throws: ReceiptError.malformedField(.quantity)) {
            try Sample.content(lineItems: [ReceiptLineItem(title: "?", quantity: .nan, amount: 1)])
        }
    }

    @Test("B1: the account type may be left out in the United States, and nowhere else")
    func b1AccountType() throws {
        let emv = ReceiptDetails(
            applicationPreferredName: "VISA CREDIT", dedicatedFileName: "A0000000031010", accountType: " ",
            cardholderVerificationMethod: .noCVM)
        let parameters = try Sample.parameters(card: Sample.card(receipt: emv))
        _ = try Sample.content(merchant: Sample.merchant(country: "us"), parameters: parameters)
        #expect(throws: ReceiptError.missingRequiredField(.accountType)) {
            try Sample.content(merchant: Sample.merchant(country: "CA"), parameters: parameters)
        }
    }

    @Test("B1: the EMV block has all that a card and its issuer told")
    func b1EMV() throws {
        let lines = ReceiptDocument(try Sample.content()).lines
        let facts = lines.compactMap { if case .fact(let label, let value) = $0 { "\(label): \(value)" } else { nil } }
        #expect(
            facts.suffix(10) == [
                "Application: VISA CREDIT", "AID: A0000000031010", "Account: Credit", "Authorization: 831000",
                "Mode: Issuer", "Response code: 00", "ARQC: 3866196A29768AC9", "TVR: 0000008001", "IAD: 06010A03A00000",
                "TSI: E800",
            ])
        #expect(throws: ReceiptError.malformedField(.issuerApplicationData)) {
            let long = ReceiptDetails(
                applicationPreferredName: "V", dedicatedFileName: "A0000000031010",
                issuerApplicationData: String(repeating: "00", count: 33), accountType: "Credit",
                cardholderVerificationMethod: .noCVM)
            _ = try Sample.parameters(card: Sample.card(receipt: long))
        }
    }

    @Test("B1: who authorized is told by the response code, and else by the cryptogram")
    func authorizationMode() {
        // EMV Book 3, table 15: the type of cryptogram in bits 8 and 7 of 9F27.
        let types = [0x00, 0x40, 0x80, 0xC0, 0xBF].map { ApplicationCryptogramType(cryptogramInformationData: $0) }
        #expect(types == [.aac, .tc, .arqc, nil, .arqc])
        // EMV Book 4, A6: Y1, Z1, Y3, Z3 are the terminal's own.
        let expected: [(String, ApplicationCryptogramType?, AuthorizationMode?)] = [
            ("", nil, nil), ("", .arqc, .issuer), ("", .tc, .card), ("", .aac, .card), ("00", .tc, .issuer),
            ("05", .aac, .issuer), ("Y1", .tc, .card), ("Z1", .aac, .card), ("Y3", .arqc, .card), ("z3", .arqc, .card),
        ]
        for (code, type, mode) in expected {
            #expect(AuthorizationMode(responseCode: code, cryptogram: type) == mode, "\(code)")
        }
    }

    @Test(
        "B1: times that are none are malformed",
        arguments: [
            "", "2026-02-30T00:00:00Z", "2026-11-22", "2026-11-22T25:00:00Z", "2026-11-22T14:05:09+24:00",
            "2026-11-22 14:05:09Z", "0000-11-22T14:05:09Z", "２０２６-11-22T14:05:09Z", "2026-11-22T14:05:09+1:000",
        ])
    func times(_ text: String) {
        #expect(throws: ReceiptError.malformedField(.dateAndTime)) { try ReceiptTime(text) }
    }

    @Test func timesThatAreTold() throws {
        for text in ["2026-11-22T14:05:09+01:00", "1999-12-31T23:59:59-11:30", "2024-02-29T00:00:00+14:00"] {
            let time = try ReceiptTime(text)
            #expect(time.text == text)
            // Foundation's own reader is the judge.
            #expect(ISO8601DateFormatter().date(from: text) == time.date)
        }
        for seconds in [Double.infinity, -.infinity, .nan, 1e300, -1e18] {
            #expect(throws: ReceiptError.malformedField(.dateAndTime)) {
                try ReceiptTime(Date(timeIntervalSince1970: seconds), timeZone: .gmt)
            }
        }
    }

    @Test("B2: what is forbidden has no place in a receipt")
    func b2() throws {
        let content = try Sample.full()
        let stored = String(decoding: try JSONEncoder().encode(content), as: UTF8.self)
        for language in ReceiptLanguage.allCases {
            for (name, bytes) in everyRendering(ReceiptDocument(content, language: language)) {
                let text = String(decoding: bytes, as: UTF8.self)
                for marked in ["MARKED", "2037", "11/37", "37-11"] {
                    #expect(!text.contains(marked) && !stored.contains(marked), "\(marked) in \(name)")
                }
            }
        }
    }

    /// 13 to 19 digits with a Luhn check digit, of no card.
    private static func number(_ count: Int, using random: inout SplitMix) -> String {
        let digits = (0..<count - 1).map {
            $0 == 0 ? Int.random(in: 2...6, using: &random) : .random(in: 0...9, using: &random)
        }
        // The check digit by ISO/IEC 7812-1, annex B: from the right every other digit doubled.
        var sum = 0
        for (place, digit) in digits.reversed().enumerated() {
            sum += place % 2 == 0 ? String(digit * 2).reduce(0) { $0 + ($1.wholeNumberValue ?? 0) } : digit
        }
        return digits.map(String.init).joined() + String((10 - sum % 10) % 10)
    }

    @Test("B2: account numbers and tracks in free text are masked in every rendering", .computing)
    func b2Fuzz() throws {
        var random = SplitMix(state: 0xB2)
        for round in 0..<35 {
            let number = Self.number(.random(in: 13...19, using: &random), using: &random)
            let gap = [" ", "-", ".", "", "/"].randomElement(using: &random) ?? ""
            let grouped = stride(from: 0, to: number.count, by: 4).map {
                String(number.dropFirst($0).prefix(4))
            }.joined(separator: gap)
            let written = [
                grouped, number, "PAN:\(number).", "x\(number)y", ";\(number)=37112011234567890?",
                "\(number)D3711201999",
                "%B\(number)^DOE/JOHN^37112011234567890?",
            ][round % 7]
            let item = ReceiptLineItem(title: written, amount: 1, attributes: [.init(name: written, value: written)])
            let content = try Sample.content(
                merchant: Sample.merchant(
                    name: written, address: [written], merchantID: written, terminalID: written),
                parameters: Sample.parameters(
                    card: Sample.card(
                        receipt: ReceiptDetails(
                            applicationPreferredName: written, dedicatedFileName: "A0000000031010",
                            accountType: written, cardholderVerificationMethod: .noCVM)),
                    orderID: written),
                lineItems: [item], totals: ReceiptTotals(subtotal: 1, coupons: [written]),
                note: round % 2 == 0 ? written : grouped.replacing(gap, with: "\n"),
                link: "https://shop.example/?q=\(written)")
            let kept = ("the file", Array(try JSONEncoder().encode(content)))
            for (name, bytes) in everyRendering(ReceiptDocument(content)) + [kept] {
                // Wrapped text is looked through without its line breaks and indents.
                let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
                let digits = text.filter { !"-./".contains($0) }
                #expect(!digits.contains(number.prefix(number.count - 4)), "\(written) in \(name)")
                #expect(!text.contains("3711201") && !text.contains("DOE"), "\(written) in \(name)")
            }
        }
    }

    @Test(
        "B2: numbers that are no account numbers stay",
        arguments: [
            "1001", "+49 341 1234567", "DE89 3704 0044 0532 0130 00", "9780306406157", "4006381333931",
            "2026-11-22 14:05:09",
        ])
    func b2Harmless(_ text: String) throws {
        let document = ReceiptDocument(try Sample.content(note: text))
        #expect(document.lines.contains(.note(text)))
    }

    @Test("B3: totals are there when they have to be, in their order")
    func b3() throws {
        func totals(_ totals: ReceiptTotals) throws -> [String] {
            ReceiptDocument(try Sample.content(totals: totals)).lines.compactMap { line in
                switch line {
                case .total(let label, let amount), .amount(let label, let amount): "\(label) \(amount)"
                default: nil
                }
            }
        }
        let paid = "AMOUNT PAID 12.34 EUR"
        #expect(try totals(ReceiptTotals(subtotal: 0)) == ["Subtotal 0.00", paid])
        #expect(
            try totals(ReceiptTotals(subtotal: 1334, discount: 100)) == ["Subtotal 13.34", "Discount -1.00", paid])
        #expect(
            try totals(ReceiptTotals(subtotal: 1234, coupons: ["A", "B"]))
                == ["Subtotal 12.34", "Discount (A, B) 0.00", paid])
        #expect(
            try totals(ReceiptTotals(subtotal: 1, discount: 5, coupons: ["VIP"], fees: 2, shipping: 3, taxes: 4))
                == [
                    "Subtotal 0.01", "Discount (VIP) -0.05", "Fees 0.02", "Shipping 0.03", "Taxes 0.04", paid,
                ])
        #expect(try totals(ReceiptTotals(subtotal: 1, taxes: 4)) == ["Subtotal 0.01", "Taxes 0.04", paid])
        // No number is too large or too small to be printed.
        #expect(
            try totals(ReceiptTotals(subtotal: .min, discount: .min, fees: .max))[0...2]
                == [
                    "Subtotal -92,233,720,368,547,758.08", "Discount 92,233,720,368,547,758.08",
                    "Fees 92,233,720,368,547,758.07",
                ])
    }

    @Test(
        "B3: amounts have the decimals of their currency",
        arguments: [("JPY", "1,234"), ("EUR", "12.34"), ("KWD", "1.234"), ("CLF", "0.1234")])
    func decimals(_ currency: String, _ text: String) throws {
        let document = ReceiptDocument(try Sample.content(parameters: Sample.parameters(currency: currency)))
        #expect(document.lines.contains(.amount("AMOUNT PAID", amount: "\(text) \(currency)")))
    }

    @Test("B3: what is less than nothing has its sign, taxes too, on refunds and on sales")
    func b3Negative() throws {
        for type in CardPresentReceiptParameters.TransactionType.allCases {
            let lines = ReceiptDocument(
                try Sample.content(
                    parameters: Sample.parameters(type: type, amount: 0),
                    totals: ReceiptTotals(subtotal: -1, discount: -5, fees: -2, shipping: -3, taxes: -4))
            ).lines
            for (label, amount) in [
                ("Subtotal", "-0.01"), ("Discount", "0.05"), ("Fees", "-0.02"), ("Shipping", "-0.03"),
                ("Taxes", "-0.04"),
            ] { #expect(lines.contains(.total(label, amount: amount)), "\(type): \(lines)") }
        }
        let most = ReceiptDocument(try Sample.content(parameters: Sample.parameters(amount: .max))).lines
        #expect(most.contains(.amount("AMOUNT PAID", amount: "184,467,440,737,095,516.15 EUR")))
    }

    @Test("B3: refunds say so, and nothing of how the sale was verified", arguments: ReceiptLanguage.allCases)
    func refund(_ language: ReceiptLanguage) throws {
        for method in CardholderVerificationMethod.allCases {
            let receipt = ReceiptDetails(
                applicationPreferredName: "VISA CREDIT", dedicatedFileName: "A0000000031010", accountType: "Credit",
                cardholderVerificationMethod: method)
            let content = try Sample.content(
                parameters: Sample.parameters(type: .refund, card: Sample.card(receipt: receipt)))
            #expect(content.parameters.card.emv == nil)
            let document = ReceiptDocument(content, language: language)
            for line in document.lines {
                switch line {
                case .statement, .signature: Issue.record("\(line)")
                default: break
                }
            }
            #expect(document.lines.contains(.heading(language.text(.refund))))
            let text = TextRenderer().render(document)
            #expect(!text.contains("A0000000031010") && !text.contains("VISA CREDIT"))
        }
    }

    @Test("A sale that was stored says that nobody has authorized it yet", arguments: ReceiptLanguage.allCases)
    func stored(_ language: ReceiptLanguage) throws {
        let facts = try #require(
            ReceiptFacts(
                label: "VISA CREDIT", applicationIdentifier: [UInt8](hex: "A0000000031010"),
                cryptogramInformationData: 0x80, applicationCryptogram: [UInt8](hex: "3866196A29768AC9"),
                cardholderVerification: .deviceCVM))
        let content = try ReceiptContent(
            merchant: Sample.merchant(),
            order: ReceiptOrder(
                id: "1001", lineItems: Sample.items, totals: ReceiptTotals(subtotal: 1234)),
            storing: 1234, currency: "eur", card: Sample.card(receipt: ReceiptDetails(facts)),
            accepted: Date(timeIntervalSince1970: 1_795_352_709), timeZone: .gmt)
        let document = ReceiptDocument(content, language: language)
        for phrase in [ReceiptPhrase.stored, .verifiedOnDevice] {
            #expect(document.lines.contains(.statement(language.text(phrase))))
        }
        let text = TextRenderer().render(document)
        for part in ["Visa **** 0010", "VISA CREDIT", "A0000000031010", "ARQC", "13:05:09", language.text(.accepted)] {
            #expect(text.contains(part), "\(text)")
        }
        // Nobody has paid yet, and nobody has authorized.
        for phrase in [ReceiptPhrase.amountPaid, .byIssuer, .authorizationMode] {
            #expect(!text.contains(language.text(phrase)), "\(text)")
        }
        let kept = try JSONDecoder().decode(ReceiptContent.self, from: JSONEncoder().encode(content))
        #expect(kept == content)
    }

    /// ICU's formats of Foundation are the judge.
    @Test("numbers are written as the language has them", arguments: ReceiptLanguage.allCases)
    func numbers(_ language: ReceiptLanguage) {
        let region = language == .english ? "US" : language.rawValue.uppercased()
        let locale = Locale(identifier: "\(language.rawValue)_\(region)")
        for (units, decimals) in [(0, 2), (7, 2), (-1_234_567, 2), (12_345_678, 3), (98_765, 0), (1, 4)] {
            let style = Decimal.FormatStyle(locale: locale).precision(.fractionLength(decimals)).grouping(.automatic)
            let judged = style.format(Decimal(units) / pow(10, decimals))
            let ours = language.amount(units, decimals: decimals)
            // ICU has a narrow space, which printers have not, and its own minus.
            #expect(ours == judged.replacing("\u{202F}", with: "\u{A0}").replacing("\u{2212}", with: "-"))
        }
    }

    @Test("every phrase is there in every language")
    func phrases() {
        for phrase in ReceiptPhrase.allCases {
            for language in ReceiptLanguage.allCases {
                let text = language.text(phrase)
                #expect(text.isFilled && text == text.printable, "\(phrase) \(language)")
            }
        }
    }

    @Test("CVM Results tell how the cardholder was verified")
    func verification() throws {
        // EMV Book 3, C3: codes; Book 4, A4: the third byte is 01 where it failed.
        // Where the card is in the reader.
        let expected: [(String, CardholderVerificationMethod?)] = [
            ("1F0302", .noCVM), ("5E0300", .signature), ("420302", .onlinePIN), ("410302", .offlinePIN),
            ("440302", .offlinePIN), ("430300", .offlinePINAndSignature), ("3F0000", .noCVM), ("420301", .failed),
            ("000002", .failed), ("200002", nil), ("1F03", nil), ("", nil),
        ]
        for (hex, method) in expected {
            #expect(
                try CardholderVerificationMethod(cvmResults: [UInt8](hex: hex), readMethod: .chip) == method, "\(hex)")
        }
        // At the reader, where a card verifies no PIN.  Book C-2: 01 00 02 for what the device has verified.
        let contactless: [(String, CardholderVerificationMethod?)] = [
            ("010002", .confirmationCode), ("410002", .confirmationCode), ("010001", .failed), ("1F0302", .noCVM),
            ("1F0002", .noCVM), ("5E0300", .signature), ("420302", .onlinePIN), ("430300", nil), ("440302", nil),
            ("450302", nil), ("3F0000", .noCVM), ("000002", .failed),
        ]
        for (hex, method) in contactless {
            for read in [CardReadMethod.contactlessEMV, .contactlessMagneticStripe] {
                #expect(
                    try CardholderVerificationMethod(cvmResults: [UInt8](hex: hex), readMethod: read) == method,
                    "\(hex)")
            }
        }
    }

    @Test(
        "A receipt is signed where the customer signs, with a PIN or without",
        arguments: CardholderVerificationMethod.allCases)
    func signature(_ method: CardholderVerificationMethod) throws {
        let receipt = ReceiptDetails(
            applicationPreferredName: "V", dedicatedFileName: "A0000000031010", accountType: "Credit",
            cardholderVerificationMethod: method)
        let card = Sample.card(receipt: receipt, readMethod: .chip)
        let document = ReceiptDocument(try Sample.content(parameters: Sample.parameters(card: card)))
        let isSigned = [.signature, .offlinePINAndSignature].contains(method)
        #expect(document.lines.contains(.signature("Signature")) == isSigned)
    }

    @Test("B11: a sale of a card that was read by EMV has no receipt without its block, contactless or not")
    func b11Contactless() throws {
        for read in [CardReadMethod.contactlessEMV, .chip] {
            for type in [CardPresentReceiptParameters.TransactionType.sale, .storedSale] {
                #expect(throws: ReceiptError.missingRequiredField(.emv)) {
                    try Sample.parameters(type: type, card: Sample.card(receipt: nil, readMethod: read))
                }
            }
            _ = try Sample.parameters(type: .refund, card: Sample.card(receipt: nil, readMethod: read))
        }
        let object = try Self.object(Self.json(Sample.content()), ["parameters", "card", "emv"])
        #expect(throws: ReceiptError.missingRequiredField(.emv)) { try Self.read(object) }
        // Contactless all the same, and without EMV.
        let stripe = Sample.card(receipt: nil, readMethod: .contactlessMagneticStripe)
        #expect(try Sample.content(parameters: Sample.parameters(card: stripe)).parameters.card.emv == nil)
    }

    @Test("B11: without EMV the receipt is whole, and the block is not there")
    func b11() throws {
        let card = Sample.card(receipt: nil, readMethod: .magneticStripe)
        let lines = ReceiptDocument(try Sample.content(parameters: Sample.parameters(card: card))).lines
        let text = TextRenderer().render(ReceiptDocument(try Sample.content(parameters: Sample.parameters(card: card))))
        let facts = lines.compactMap { if case .fact(let label, _) = $0 { label } else { nil } }
        #expect(facts == ["Card", "Entry", "Date", "Order"])
        for line in lines {
            if case .statement = line { Issue.record("\(line)") }
            if case .signature = line { Issue.record("\(line)") }
        }
        #expect(text.contains("**** 0010") && text.contains("Magnetic stripe") && text.contains("12.34 EUR"))
        #expect(lines.last != .separator)
    }

    @Test("A keyed card is printed in every language as one that was entered by hand")
    func keyed() throws {
        let card = Sample.card(receipt: nil, readMethod: .keyed)
        let content = try Sample.content(parameters: Sample.parameters(card: card))
        let printed = ReceiptLanguage.allCases.map { language in
            ReceiptDocument(content, language: language).lines.compactMap {
                if case .fact(let label, let value) = $0, ["Entry", "Erfassung", "Saisie", "Lectura"].contains(label) {
                    value
                } else {
                    nil
                }
            }
        }
        #expect(printed == [["Keyed"], ["Manuell"], ["Manuelle"], ["Manual"]])
    }

    @Test("B11: what EMV leaves out is not printed")
    func b11Sparse() throws {
        let sparse = ReceiptDetails(
            applicationPreferredName: "girocard", dedicatedFileName: "A00000005945430100",
            cardholderVerificationMethod: .onlinePIN)
        let text = TextRenderer().render(
            ReceiptDocument(
                try Sample.content(
                    merchant: Sample.merchant(country: "US"),
                    parameters: Sample.parameters(card: Sample.card(receipt: sparse)))))
        #expect(text.contains("girocard") && text.contains("Verified by PIN"))
        for word in ["TVR", "TSI", "IAD", "Account", "Cryptogram", "Authorization", "Mode", "Signature"] {
            #expect(!text.contains(word), "\(text)")
        }
    }
}

@Suite struct ReceiptTransactionTests {
    private static let order = ReceiptOrder(
        lineItems: Sample.items, totals: ReceiptTotals(subtotal: 1234), note: "Thank you!", link: "https://shop.example"
    )
    private static let berlin = TimeZone(identifier: "Europe/Berlin") ?? .gmt

    private static func content(_ intent: PaymentIntent, id: String? = nil) throws -> ReceiptContent {
        let order = ReceiptOrder(
            id: id, lineItems: order.lineItems, totals: order.totals, note: order.note, link: order.link)
        return try ReceiptContent(merchant: Sample.merchant(), order: order, intent: intent, timeZone: berlin)
    }

    @Test("a receipt is made of an order and a payment intent")
    func ofIntent() throws {
        let expected = try Sample.content(note: "Thank you!", link: "https://shop.example")
        let metadata = [PaymentIntent.MetadataKeys.orderID: "1001"]
        for content in [
            try Self.content(Sample.intent(), id: "1001"),
            try Self.content(Sample.intent(metadata: metadata)),
            try Self.content(Sample.intent(metadata: metadata), id: "1001"),
            try Self.content(Sample.intent(charges: [Sample.charge(metadata: metadata)])),
            try Self.content(Sample.intent(status: .requiresCapture, metadata: metadata)),
            try Self.content(Sample.intent(charges: [Sample.charge(status: .failed), Sample.charge()]), id: "1001"),
            try Self.content(
                Sample.intent(charges: [Sample.charge(method: .interacPresent(details: Sample.card()))]), id: "1001"),
        ] { #expect(content == expected) }
    }

    @Test("a receipt is of the time of the payment service's answer, and there is none without it")
    func answered() throws {
        let time = try Self.content(Sample.intent(), id: "1001").parameters.time
        #expect(time.text == "2026-11-22T14:05:09+01:00" && time.date != Sample.intent().created)
        let charge = Charge(
            id: "ch_1", amount: 1234, currency: "eur", status: .succeeded,
            paymentMethod: .cardPresent(details: Sample.card()))
        #expect(throws: ReceiptError.missingRequiredField(.dateAndTime)) {
            try Self.content(Sample.intent(charges: [charge]))
        }
    }

    @Test("what nobody has paid with a card that was present has no receipt")
    func notPaid() throws {
        for status in PaymentIntentStatus.allCases where ![.succeeded, .requiresCapture].contains(status) {
            #expect(throws: ReceiptError.notPaid) { try Self.content(Sample.intent(status: status)) }
        }
        for charges in [[], [Sample.charge(status: .failed)], [Sample.charge(status: .pending)]] {
            #expect(throws: ReceiptError.notPaid) { try Self.content(Sample.intent(charges: charges)) }
        }
        for method in [nil, PaymentMethod.card, .unknown] {
            #expect(throws: ReceiptError.missingRequiredField(.cardDetails)) {
                try Self.content(Sample.intent(charges: [Sample.charge(method: method)]))
            }
        }
        let other = Sample.intent(metadata: [PaymentIntent.MetadataKeys.orderID: "1002"])
        #expect(throws: ReceiptError.malformedField(.order)) { try Self.content(other, id: "1001") }
        let inner = Sample.charge(metadata: [PaymentIntent.MetadataKeys.orderID: "1002"])
        #expect(throws: ReceiptError.malformedField(.order)) {
            try Self.content(Sample.intent(charges: [inner]), id: "1001")
        }
    }

    @Test("a refund's receipt names what was given back, of the charge")
    func refund() throws {
        func refund(_ amount: UInt, of charge: Charge = Sample.charge()) throws -> ReceiptContent {
            try ReceiptContent(
                merchant: Sample.merchant(), order: Self.order, refundOf: charge, amount: amount,
                date: Date(timeIntervalSince1970: 1_795_439_109), timeZone: Self.berlin)
        }
        let parameters = try refund(1000).parameters
        #expect(parameters.type == .refund && parameters.amount == 1000 && parameters.currency == "EUR")
        #expect(parameters.time.text == "2026-11-23T14:05:09+01:00" && parameters.card.lastFourDigits == "0010")
        #expect(throws: ReceiptError.malformedField(.amount)) { try refund(1235) }
        #expect(throws: ReceiptError.notPaid) { try refund(1, of: Sample.charge(status: .failed)) }
    }
}

@Suite struct ReceiptStoreTests {
    @Test("B10: what is saved is loaded, order by order")
    func b10() throws {
        let folder = try TemporaryFolder()
        let store = ReceiptStore(folder: folder.url.appending(path: "receipts"))
        let orders = ["1001", "../../etc/passwd", "a/b", "A/B", "ä", "%2F", "/", ".", "..", " "]
        for (index, order) in orders.enumerated() {
            try store.save(Sample.content(note: "\(index)"), order: order)
        }
        for (index, order) in orders.enumerated() {
            #expect(try store.load(order: order) == Sample.content(note: "\(index)"))
        }
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.url.path)
        #expect(files.count == orders.count + 1 && files.allSatisfy { $0.hasPrefix("receipts") }, "\(files)")

        let full = try Sample.full()
        try store.save(full, order: "1001")
        #expect(try Self.mode(folder.url.appending(path: "receipts/1001.json")) == 0o600)
        #expect(try Self.mode(folder.url.appending(path: "receipts")) == 0o700)
        #expect(try store.load(order: "1001") == full)
        #expect(
            ReceiptDocument(try store.load(order: "1001"), language: .french)
                == ReceiptDocument(full, language: .french)
        )
    }

    private static func mode(_ file: URL) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        return try #require((attributes[.posixPermissions] as? NSNumber)?.intValue)
    }

    @Test("B10: no file holds an account number, and others may read none, whatever was there")
    func b10Private() throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appending(path: "1001.json")
        try Data("old".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: file.path)
        let number = "4761739001010010"  // Visa's published test account number.  TEST.
        try ReceiptStore(folder: folder.url).save(
            Sample.content(note: "paid with \(number)\nor 4761 7390\n0101 0010"), order: "1001")
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains("paid with ************0010\\nor **** ****\\n**** 0010"), "\(text)")
        #expect(try Self.mode(file) == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["1001.json"])
    }

    @Test("B10: what cannot be saved leaves nothing behind")
    func b10Refused() throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(
            at: folder.url.appending(path: "1001.json"), withIntermediateDirectories: true)
        #expect(throws: CocoaError.self) {
            try ReceiptStore(folder: folder.url).save(Sample.content(), order: "1001")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["1001.json"])
    }

    @Test("B10: what a program that was killed left half written is gone with the next receipt")
    func b10Killed() throws {
        let folder = try TemporaryFolder()
        let half = folder.url.appending(path: ".new")
        // No white space: a decoder passes over that after the receipt.
        try Data(repeating: 0x78, count: 100_000).write(to: half)
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: half.path)
        let store = ReceiptStore(folder: folder.url)
        try store.save(Sample.content(), order: "1001")
        #expect(try store.load(order: "1001") == Sample.content())
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["1001.json"])
        #expect(try Self.mode(folder.url.appending(path: "1001.json")) == 0o600)
    }

    @Test("B10: a receipt waits for one that is being written, and leaves that as it is")
    func b10Waits() async throws {
        let folder = try TemporaryFolder()
        let store = ReceiptStore(folder: folder.url)
        let new = folder.url.appending(path: ".new")
        let other = Data("the other receipt".utf8)
        // Another program, between opening its file and naming it.
        try other.write(to: new)
        let holder = try FileHandle(forWritingTo: new)
        try #require(flock(holder.fileDescriptor, LOCK_EX) == 0)
        var held = stat()
        try #require(fstat(holder.fileDescriptor, &held) == 0)
        let saving = Task {
            try await withCheckedThrowingContinuation { continuation in
                Thread.detachNewThread {
                    continuation.resume(with: Result { try store.save(Sample.content(), order: "1001") })
                }
            }
        }
        // proc_locks(5): "1: -> FLOCK  ADVISORY  WRITE pid major:minor:inode 0 EOF" is a call that waits for a lock.
        let inode = ":\(held.st_ino) "
        try await wait(for: "save that waits for the file") {
            let locks = (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) ?? ""
            return locks.split(separator: "\n").contains { $0.contains(" -> FLOCK") && $0.contains(inode) }
        }
        try #require(rename(new.path, folder.url.appending(path: "1002.json").path) == 0)
        try holder.close()
        try await saving.value
        #expect(try store.load(order: "1001") == Sample.content())
        #expect(try Data(contentsOf: folder.url.appending(path: "1002.json")) == other)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names.sorted() == ["1001.json", "1002.json"])
    }

    @Test("B10: receipts that are saved at once do not mix")
    func b10AtOnce() async throws {
        let folder = try TemporaryFolder()
        let store = ReceiptStore(folder: folder.url)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for order in 0..<40 {
                group.addTask { try store.save(Sample.content(note: "\(order % 20)"), order: "\(order % 20)") }
            }
            try await group.waitForAll()
        }
        for order in 0..<20 { #expect(try store.load(order: "\(order)") == Sample.content(note: "\(order)")) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 20)
    }

    @Test("B10: a file that is missing and one that is broken are told apart")
    func b10Broken() throws {
        let folder = try TemporaryFolder()
        let store = ReceiptStore(folder: folder.url)
        #expect(throws: ReceiptStoreError.noReceipt(order: "1001")) { try store.load(order: "1001") }
        try store.save(Sample.content(), order: "1001")
        let file = folder.url.appending(path: "1001.json")
        let whole = try Data(contentsOf: file)
        for broken in [
            Data(), whole.dropLast(2), Data("null".utf8), Data("[]".utf8), Data([0xFF, 0xFE]),
            Data(String(decoding: whole, as: UTF8.self).replacing("0010", with: "476173").utf8),
        ] {
            try broken.write(to: file)
            #expect {
                _ = try store.load(order: "1001")
            } throws: {
                if case .corrupt(order: "1001", _)? = $0 as? ReceiptStoreError { true } else { false }
            }
        }
        for order in ["", String(repeating: "x", count: 241)] {
            #expect(throws: ReceiptStoreError.unusableOrder(order)) { try store.save(Sample.content(), order: order) }
            #expect(throws: ReceiptStoreError.unusableOrder(order)) { try store.load(order: order) }
        }
    }

    @Test("B10: no bytes make it trap", .computing) func b10Fuzz() throws {
        let whole = Array(try JSONEncoder().encode(Sample.full()))
        var random = SplitMix(state: 0xB10)
        var read = 0
        for _ in 0..<150 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = .random(in: 0...255, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8(ascii: "9"), at: index)
                }
            }
            guard let content = try? JSONDecoder().decode(ReceiptContent.self, from: Data(bytes)) else { continue }
            read += 1
            for language in ReceiptLanguage.allCases {
                _ = everyRendering(ReceiptDocument(content, language: language))
            }
        }
        #expect(read > 5)
    }
}
