import Foundation
import SmartCard
import TestSupport
import Testing

@testable import CardReaderAdapter

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
                    applicationPreferredName: name, dedicatedFileName: aid, cardholderVerificationMethod: cvm))
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
        ]
        for (error, card) in expected {
            #expect(throws: error) { try Sample.parameters(card: card) }
        }
        #expect(throws: ReceiptError.missingRequiredField(.merchantName)) {
            try Sample.content(merchant: ReceiptMerchant(name: "\u{202E} \n"))
        }
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
                merchant: ReceiptMerchant(name: written, address: [written], merchantID: written, terminalID: written),
                parameters: Sample.parameters(
                    card: Sample.card(
                        receipt: ReceiptDetails(
                            applicationPreferredName: written, dedicatedFileName: "A0000000031010",
                            accountType: written, cardholderVerificationMethod: .noCVM)),
                    orderID: written),
                lineItems: [item], totals: ReceiptTotals(subtotal: 1, coupons: [written]), note: written,
                link: "https://shop.example/?q=\(written)")
            for (name, bytes) in everyRendering(ReceiptDocument(content)) {
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

    @Test("B3: refunds say so", arguments: ReceiptLanguage.allCases)
    func refund(_ language: ReceiptLanguage) throws {
        let sale = ReceiptDocument(try Sample.content(), language: language)
        let refund = ReceiptDocument(
            try Sample.content(parameters: Sample.parameters(type: .refund)), language: language)
        let changed = zip(sale.lines, refund.lines).filter { $0 != $1 }.count
        #expect(sale.lines.count == refund.lines.count && changed == 2)
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
        let expected: [(String, CardholderVerificationMethod?)] = [
            ("1F0302", .noCVM), ("5E0300", .signature), ("420302", .onlinePIN), ("410302", .offlinePIN),
            ("440302", .offlinePIN), ("430300", .offlinePINAndSignature), ("3F0000", .noCVM), ("420301", .failed),
            ("000002", .failed), ("200002", nil), ("1F03", nil), ("", nil),
        ]
        for (hex, method) in expected {
            #expect(try CardholderVerificationMethod(cvmResults: [UInt8](hex: hex)) == method, "\(hex)")
        }
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

    @Test("B11: what EMV leaves out is not printed")
    func b11Sparse() throws {
        let sparse = ReceiptDetails(
            applicationPreferredName: "girocard", dedicatedFileName: "A00000005945430100",
            cardholderVerificationMethod: .onlinePIN)
        let text = TextRenderer().render(
            ReceiptDocument(try Sample.content(parameters: Sample.parameters(card: Sample.card(receipt: sparse)))))
        #expect(text.contains("girocard") && text.contains("Verified by PIN"))
        for word in ["TVR", "TSI", "Account", "Cryptogram", "Authorization", "Signature"] {
            #expect(!text.contains(word), "\(text)")
        }
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
        #expect(try store.load(order: "1001") == full)
        #expect(
            ReceiptDocument(try store.load(order: "1001"), language: .french)
                == ReceiptDocument(full, language: .french)
        )
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
