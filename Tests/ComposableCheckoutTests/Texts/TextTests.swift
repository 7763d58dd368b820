import CardReceipts
import Testing

@testable import ComposableCheckout

@Suite("D10 texts") struct TextTests {
    let english = InputLocalizable(language: "en")

    @Test(
        "D10 every language of receipts has every text, and every placeholder of it",
        arguments: ReceiptLanguage.allCases)
    func complete(language: ReceiptLanguage) throws {
        #expect(InputLocalizable.languages.contains(language.rawValue))
        let texts = InputLocalizable(language: language.rawValue)
        #expect(texts.keys(of: language.rawValue) == english.keys(of: "en"))
        let values = ["amount": "1", "count": "1"]
        for key in english.keys(of: "en") {
            let text = texts.text(key, values)
            #expect(text != InputLocalizable.missing && !text.isEmpty && text != key, "\(key)")
            #expect(!text.contains("{") && !text.contains("\\"), "\(key): \(text)")
            let marked = ["amount": "<1>", "count": "<2>"]
            for value in marked.values {
                #expect(texts.text(key, marked).contains(value) == english.text(key, marked).contains(value), "\(key)")
            }
        }
    }

    @Test("D10 every key that the code gives out has a text")
    func keys() {
        let keys = english.keys(of: "en")
        for field in ComposableInputElementType.allCases {
            #expect(keys.contains(field.labelKey) && keys.contains(field.placeholderKey))
        }
        for state in TapState.allCases { #expect(keys.contains(state.textKey), "\(state)") }
        for kind in [PaymentMethod.Kind.card, .tap, .voucher] {
            #expect(keys.contains(PaymentMethod(id: "a", kind: kind).nameKey))
        }
        for recovery in [CheckoutRecovery.retry, .otherMethod, .correctFields, .askStaff] {
            #expect(keys.contains("recovery.\(recovery.rawValue)"))
        }
    }

    @Test("D10 a missing text falls back by the chain, and no key is ever shown")
    func fallback() {
        let texts = InputLocalizable(
            language: "de_AT.UTF-8", fallbacks: ["it"],
            tables: ["de-AT": ["checkout.title": "Kassa"], "it": ["own.text": "proprio"], "en": ["own.last": "last"]])
        #expect(texts.language == "de-AT")
        #expect(texts.text("checkout.title") == "Kassa")
        #expect(texts.text("checkout.submit") == "Bezahlen")
        #expect(texts.text("own.text") == "proprio")
        #expect(texts.text("own.last") == "last")
        #expect(texts.text("own.nothing") == "—")
        #expect(texts.text("own.nothing", count: 3) == "—")
        #expect(InputLocalizable(language: "tlh").text("checkout.title") == "Checkout")
        for odd in ["", "C", "POSIX", "../etc", String(repeating: "a", count: 100), "d\u{0}e"] {
            #expect(InputLocalizable(language: odd).text("checkout.title") == "Checkout", "\(odd)")
        }
        #expect(InputLocalizable(language: "FR-ca").text("checkout.back") == "Retour")
        #expect(english.text("checkout.pay") == "Pay —")
    }

    @Test("D10 plural forms are those of the CLDR's samples")
    func plurals() throws {
        let lines = try Vectors.lines(of: "plurals")
        #expect(lines.count > 60)
        for line in lines {
            let columns = line.split(separator: " ").map(String.init)
            let rule = PluralRule.of(columns[0])
            for sample in columns[2].split(separator: ",") {
                let bounds = sample.split(separator: "~").compactMap { Int($0) }
                let (first, last) = (try #require(bounds.first), try #require(bounds.last))
                for number in first...last {
                    #expect(rule.form(of: number).rawValue == columns[1], "\(columns[0]) \(number)")
                }
            }
        }
        #expect(PluralRule.of("de").form(of: .min) == .other)
        #expect(english.text("selection.count", count: 1) == "1 way to pay")
        #expect(english.text("selection.count", count: 0) == "0 ways to pay")
        #expect(InputLocalizable(language: "fr").text("selection.count", count: 0) == "0 mode de paiement")
        #expect(
            InputLocalizable(language: "fr").text("selection.count", count: 1_000_000) == "1000000 modes de paiement")
    }

    @Test("D10 values are isolated where their direction may differ from the text's")
    func bidirectional() {
        let arabic = InputLocalizable(language: "ar", tables: ["ar": ["checkout.pay": "ادفع {amount}"]])
        #expect(arabic.isRightToLeft)
        #expect(arabic.text("checkout.pay", ["amount": "12 €"]) == "ادفع \u{2068}12 €\u{2069}")
        // A text of the fallback language is written from left to right.
        #expect(arabic.text("checkout.total", ["amount": "12 €"]) == "Total: 12 €")
        #expect(english.text("checkout.pay", ["amount": "د.إ 12"]) == "Pay \u{2068}د.إ 12\u{2069}")
        #expect(InputLocalizable(language: "az-Arab").isRightToLeft)
        #expect(!InputLocalizable(language: "ar-Latn").isRightToLeft)
        #expect(!english.isRightToLeft)
    }

    @Test("D10 a pseudo-locale has every text of a form, and nothing is written past it")
    func pseudoLocale() {
        let source = english
        let pseudo = Dictionary(
            uniqueKeysWithValues: source.keys(of: "en").map { key in
                (key, "[\(source.text(key, ["amount": "{amount}", "count": "{count}"]))]")
            })
        let texts = InputLocalizable(language: "en-XA", tables: ["en-XA": pseudo])
        let card = CardConfiguration(
            fields: ComposableInputElementType.allCases, billingFields: ComposableInputElementType.allCases,
            recipient: "")
        let form = FormTests.machine(card).state
        func walk(_ element: FormElement) -> [String] {
            switch element {
            case .group(let titleKey, let elements): [titleKey] + elements.flatMap(walk)
            case .field(let field): [field.labelKey, field.placeholderKey] + (field.errorKey.map { [$0] } ?? [])
            case .networks: []
            case .button(let button): [button.labelKey]
            }
        }
        let keys = form.elements.flatMap(walk)
        #expect(keys.count > 30)
        for key in keys {
            let text = texts.text(key)
            #expect(text.hasPrefix("[") && text.hasSuffix("]"), "\(key): \(text)")
        }
    }
}
