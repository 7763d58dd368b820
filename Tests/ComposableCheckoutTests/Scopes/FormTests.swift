import Foundation
import Testing

@testable import ComposableCheckout

/// A form, driven by events.
final class Form {
    private var machine: CardFormMachine
    private(set) var state: CardFormState
    private(set) var cards: [CardPaymentData] = []
    private(set) var billing: [[ComposableInputElementType: String]] = []
    /// The number of states that were published.
    private(set) var count = 0
    var now: YearMonth

    init(_ card: CardConfiguration, method: PaymentMethod, country: String?) {
        let now = YearMonth(year: 2025, month: 11)
        self.now = now ?? YearMonth(Date(), in: .gmt)
        machine = CardFormMachine(card, method: method, country: country)
        state = CardFormState(
            inputFields: [:], fieldErrors: [], isLoading: false, isSubmitEnabled: false, cardNetwork: nil,
            cardFields: [],
            billingFields: [], availableNetworks: [], surcharge: 0)
        take(.configured(card, method, country: country))
    }

    func take(_ event: CardFormMachine.Event) {
        for action in machine.next(event, now: now) {
            switch action {
            case .publish(let state):
                self.state = state
                count += 1
            case .pay(let card, let billing):
                cards.append(card)
                self.billing.append(billing)
            }
        }
    }

    func edit(_ field: ComposableInputElementType, _ text: String) { take(.edited(field, text)) }

    func fill(_ number: String = "4242424242424242", cvv: String = "123") {
        edit(.cardNumber, number)
        edit(.cvv, cvv)
        edit(.expiryDate, "12/27")
    }

    var errors: [String] { state.fieldErrors.map(\.description) }
}

@Suite struct FormTests {
    static let method = PaymentMethod(
        id: "card", kind: .card, surcharge: 1, networkSurcharges: [.amex: 2, .dankort: 0])

    static func machine(
        _ card: CardConfiguration = CardConfiguration(recipient: ""), method: PaymentMethod = method,
        country: String? = nil
    ) -> Form {
        Form(card, method: method, country: country)
    }

    static let address: [ComposableInputElementType] = [
        .countryCode, .firstName, .lastName, .addressLine1, .addressLine2, .postalCode, .city, .state, .phoneNumber,
    ]

    // MARK: D1

    @Test("D1 the configuration determines the fields; the number is always there, and nothing twice")
    func fields() {
        #expect(Self.machine().state.cardFields == [.cardNumber, .expiryDate, .cvv])
        let odd = CardConfiguration(fields: [.cvv, .cvv, .city], billingFields: [.city, .firstName], recipient: "")
        let form = Self.machine(odd)
        #expect(form.state.cardFields == [.cardNumber, .cvv, .city])
        #expect(form.state.billingFields == [.firstName])
        #expect(Set(form.state.inputFields.keys) == [.cardNumber, .cvv, .city, .firstName])
    }

    @Test("D1 fields that are hidden are neither required nor validated nor kept")
    func hidden() {
        let form = Self.machine()
        form.fill()
        form.edit(.postalCode, "?")
        form.edit(.otpCode, "1")
        form.take(.left(.postalCode))
        #expect(form.state.isSubmitEnabled)
        #expect(form.errors == [] && form.state.inputFields[.postalCode] == nil)
    }

    @Test("D1 a configuration that changes drops the fields that vanish, with their errors")
    func changes() {
        let wide = CardConfiguration(billingFields: [.postalCode, .city], recipient: "")
        let form = Self.machine(wide, country: "DE")
        form.fill()
        form.edit(.postalCode, "?")
        form.take(.left(.postalCode))
        form.take(.left(.city))
        #expect(form.errors == ["POSTAL_CODE: invalid-postal-code", "CITY: required-field"])
        form.take(.configured(CardConfiguration(billingFields: [.city], recipient: ""), Self.method, country: "DE"))
        #expect(form.errors == ["CITY: required-field"])
        form.take(.configured(CardConfiguration(recipient: ""), Self.method, country: "DE"))
        #expect(form.errors == [] && form.state.isSubmitEnabled)
        form.take(.configured(wide, Self.method, country: "DE"))
        #expect(form.errors == [] && !form.state.isSubmitEnabled && form.state.inputFields[.postalCode] == "")
    }

    @Test("D1 the postal code and the state appear and vanish with the country that the customer chooses")
    func countries() {
        let form = Self.machine(CardConfiguration(billingFields: Self.address, recipient: ""), country: "DE")
        #expect(form.state.billingFields == Self.address)
        form.edit(.countryCode, "US")
        #expect(form.state.billingFields == Self.address)
        form.edit(.postalCode, "nothing")
        form.take(.left(.postalCode))
        #expect(form.errors == ["POSTAL_CODE: invalid-postal-code"])
        form.edit(.countryCode, "AE")
        #expect(form.state.billingFields == Self.address.filter { $0 != .postalCode })
        #expect(form.errors == [])
        form.edit(.countryCode, "deu")
        #expect(form.state.billingFields == Self.address.filter { $0 != .state })
    }

    // MARK: D2

    @Test("D2 submitting is enabled exactly when every required card and billing field is valid")
    func enabled() {
        let form = Self.machine(CardConfiguration(billingFields: Self.address, recipient: ""))
        let values: [ComposableInputElementType: String] = [
            .cardNumber: "4242 4242 4242 4242", .cvv: "123", .expiryDate: "12/27", .countryCode: "US",
            .firstName: "Zoë",
            .lastName: "O'Neil", .addressLine1: "1 Main St", .postalCode: "95014", .city: "Cupertino", .state: "CA",
            .phoneNumber: "+1 408 996 1010",
        ]
        for field in form.state.cardFields + form.state.billingFields where field != .addressLine2 {
            #expect(!form.state.isSubmitEnabled)
            form.edit(field, values[field] ?? "")
        }
        #expect(form.state.isSubmitEnabled)
        for field in values.keys {
            form.edit(field, "!")
            #expect(!form.state.isSubmitEnabled, "\(field)")
            form.edit(field, "")
            #expect(!form.state.isSubmitEnabled, "\(field)")
            form.edit(field, values[field] ?? "")
            // The state was dropped with the country.
            if field == .countryCode { form.edit(.state, "CA") }
            if field == .countryCode { form.edit(.postalCode, "95014") }
            #expect(form.state.isSubmitEnabled, "\(field)")
        }
        form.edit(.addressLine2, "a\u{7}")
        #expect(!form.state.isSubmitEnabled)
    }

    @Test("D2 nothing is submitted while loading or invalid, and a second submit is ignored")
    func submits() {
        let form = Self.machine()
        form.take(.submitted)
        #expect(form.cards.isEmpty && !form.state.isLoading)
        form.fill()
        form.take(.submitted)
        #expect(form.state.isLoading && !form.state.isSubmitEnabled)
        form.take(.submitted)
        form.edit(.cardNumber, "5555555555554444")
        form.take(.submitted)
        #expect(form.cards.count == 1)
        form.take(.ended(.refused(code: "declined", message: "")))
        #expect(!form.state.isLoading && !form.state.isSubmitEnabled)
        form.take(.ended(nil))
        form.fill()
        form.take(.submitted)
        #expect(form.cards.count == 2)
    }

    @Test("D2 errors are shown after a field was left, and follow what is typed from then on")
    func errors() {
        let form = Self.machine()
        form.edit(.cardNumber, "4242")
        form.edit(.expiryDate, "10/25")
        #expect(form.errors == [])
        form.take(.left(.cardNumber))
        #expect(form.errors == ["CARD_NUMBER: invalid-card-number"])
        form.take(.left(.cvv))
        form.take(.left(.expiryDate))
        #expect(
            form.errors == [
                "CARD_NUMBER: invalid-card-number", "EXPIRY_DATE: card-expired", "CVV: required-field",
            ])
        form.fill()
        #expect(form.errors == [])
        let count = form.count
        form.edit(.cardNumber, "4242 4242 4242 4242")
        #expect(form.count == count)
    }

    @Test("D2 errors of the payment service are shown until their fields are edited")
    func refusals() {
        let form = Self.machine()
        form.fill()
        form.take(.submitted)
        form.take(.ended(.validation([.init(.cvv, "invalid-cvv"), .init(.postalCode, "invalid-postal-code")])))
        #expect(form.errors == ["CVV: invalid-cvv"])
        form.fill()
        #expect(form.errors == [] && form.state.isSubmitEnabled)
    }

    // MARK: D3

    @Test("D3 the security code is validated anew when the network changes")
    func securityCode() {
        let form = Self.machine()
        form.fill()
        form.take(.left(.cvv))
        #expect(form.state.isSubmitEnabled)
        form.edit(.cardNumber, "378282246310005")
        #expect(!form.state.isSubmitEnabled && form.errors == ["CVV: invalid-cvv"])
        form.edit(.cvv, "1234")
        #expect(form.state.isSubmitEnabled && form.errors == [])
    }

    @Test("D3 a month that ends while the form is open expires the card")
    func month() throws {
        let form = Self.machine()
        form.fill()
        form.edit(.expiryDate, "11/25")
        #expect(form.state.isSubmitEnabled)
        form.now = try #require(YearMonth(year: 2025, month: 12))
        form.take(.submitted)
        form.take(.left(.expiryDate))
        #expect(form.cards.isEmpty && form.errors == ["EXPIRY_DATE: card-expired"])
    }

    // MARK: D4

    @Test("D4 the network follows the first digits, and the surcharge the network")
    func networks() {
        let form = Self.machine()
        var seen: [CardNetwork?] = []
        for count in 0...4 {
            form.edit(.cardNumber, String("3782".prefix(count)))
            seen.append(form.state.cardNetwork)
        }
        #expect(seen == [nil, nil, .amex, .amex, .amex])
        #expect(form.state.surcharge == 2)
        form.edit(.cardNumber, "4242")
        #expect(form.state.cardNetwork == .visa && form.state.surcharge == 1)
        form.edit(.cardNumber, "")
        #expect(form.state.cardNetwork == nil && form.state.surcharge == 1)
    }

    @Test("D4 the choice of a co-badged card's network is kept until the number becomes another")
    func coBadges() {
        // Dankort and Visa share 4571.
        let form = Self.machine()
        form.edit(.cardNumber, "4571 00")
        #expect(form.state.availableNetworks == [.dankort, .visa] && form.state.cardNetwork == .dankort)
        #expect(form.state.surcharge == 0)
        form.take(.chose(.mastercard))
        #expect(form.state.cardNetwork == .dankort)
        form.take(.chose(.visa))
        #expect(form.state.cardNetwork == .visa && form.state.surcharge == 1)
        form.edit(.cardNumber, "457100")
        form.edit(.cardNumber, "4571 0000 0000 0001")
        #expect(form.state.cardNetwork == .visa)
        form.edit(.cardNumber, "4571 0000 0000 0002")
        #expect(form.state.cardNetwork == .dankort)
        form.take(.chose(.visa))
        form.edit(.cardNumber, "4571 0000 0000 000")
        #expect(form.state.cardNetwork == .dankort)
    }

    @Test("D4 only networks that the session and the method accept are offered")
    func accepted() {
        let visa = Self.machine(CardConfiguration(networks: [.visa, .amex], recipient: ""))
        visa.edit(.cardNumber, "4571")
        #expect(visa.state.availableNetworks == [.visa] && visa.state.cardNetwork == .visa)
        let narrowed = Self.machine()
        narrowed.edit(.cardNumber, "4571")
        narrowed.take(.chose(.visa))
        narrowed.take(.configured(CardConfiguration(networks: [.dankort], recipient: ""), Self.method, country: nil))
        #expect(narrowed.state.availableNetworks == [.dankort] && narrowed.state.cardNetwork == .dankort)
        let none = Self.machine(
            CardConfiguration(networks: [.visa], recipient: ""),
            method: PaymentMethod(id: "card", kind: .card, networks: [.amex]))
        none.fill()
        none.take(.left(.cardNumber))
        #expect(none.errors == ["CARD_NUMBER: unsupported-card-type"] && none.state.availableNetworks == [])
        #expect(none.state.cardNetwork == .visa && !none.state.isSubmitEnabled)
    }

    // MARK: D5

    @Test("D5 no state tells more of a number than six and four digits, whatever is typed, and nothing of a code")
    func masked() throws {
        let form = Self.machine(CardConfiguration(fields: [.cardNumber, .cvv, .otpCode], recipient: ""))
        let number = "4242424242424242"
        for count in 1...16 {
            form.edit(.cardNumber, String(number.prefix(count)))
            #expect(form.state.inputFields[.cardNumber] == String(repeating: "*", count: count))
        }
        form.edit(.cvv, "987")
        form.edit(.otpCode, "987654")
        form.take(.left(.cardNumber))
        #expect(form.state.inputFields == [.cardNumber: "424242******4242", .cvv: "", .otpCode: ""])
        form.edit(.cardNumber, "42424242424242421")
        #expect(form.state.inputFields[.cardNumber] == String(repeating: "*", count: 17))
        form.take(.left(.cardNumber))
        #expect(form.state.inputFields[.cardNumber] == String(repeating: "*", count: 17))
        let json = String(decoding: try JSONEncoder().encode(form.state), as: UTF8.self)
        #expect(!json.contains("987") && !json.contains("42"))
    }

    @Test("D5 the number and the codes are gone after submit, and everything after cancel, idle or success")
    func wiped() {
        let form = Self.machine(CardConfiguration(billingFields: [.city], recipient: ""))
        form.fill()
        form.edit(.city, "Ulm")
        form.take(.submitted)
        #expect(form.state.inputFields[.cardNumber] == "424242******4242")
        form.take(.ended(.transport(reason: "", mayHaveHappened: false)))
        #expect(form.state.inputFields == [.cardNumber: "", .cvv: "", .expiryDate: "12/27", .city: "Ulm"])
        form.fill()
        form.take(.wiped)
        #expect(form.state.inputFields == [.cardNumber: "", .cvv: "", .expiryDate: "", .city: ""])
        form.fill()
        form.edit(.city, "Ulm")
        form.take(.submitted)
        form.take(.ended(nil))
        #expect(form.state.inputFields == [.cardNumber: "", .cvv: "", .expiryDate: "", .city: ""])
        #expect(form.billing == [[.city: "Ulm"], [.city: "Ulm"]])
    }

    @Test("D5 card data prints masked")
    func printed() {
        let form = Self.machine()
        form.fill()
        form.take(.submitted)
        var dumped = ""
        dump(form.cards, to: &dumped)
        #expect("\(form.cards)" == "[424242******4242]")
        #expect(dumped.contains("424242******4242") && !dumped.contains("4242424242"))
    }

    @Test("A form is described part by part")
    func descriptions() throws {
        let form = Self.machine(CardConfiguration(billingFields: [.city, .addressLine2], recipient: ""))
        form.edit(.cardNumber, "4571")
        form.take(.left(.city))
        guard case .group("card.details", let card) = form.state.cardDetails,
            case .group("card.billing-address", let billing)? = form.state.billingAddress,
            case .button(let button) = form.state.submitButton
        else {
            Issue.record("\(form.state.elements)")
            return
        }
        #expect(card.last == .networks([.dankort, .visa], chosen: .dankort))
        guard case .field(let number) = card[0], case .field(let cvv) = card[2], case .field(let city) = billing[0],
            case .field(let line) = billing[1]
        else {
            Issue.record("\(card) \(billing)")
            return
        }
        #expect(number.autocomplete == "cc-number" && number.inputMode == "numeric" && number.isSecret)
        #expect(number.value == "****" && number.isRequired && number.errorKey == nil)
        #expect(cvv.autocomplete == "cc-csc" && cvv.maximumLength == 3 && cvv.value == "")
        #expect(city.errorKey == "error.required-field" && city.labelKey == "field.city.label")
        #expect(!line.isRequired && line.placeholderKey == "field.address-line-2.placeholder")
        #expect(button == FormButton(labelKey: "checkout.submit", isEnabled: false, isLoading: false))
        #expect(Self.machine().state.billingAddress == nil)
        let elements = form.state.elements
        #expect(try JSONDecoder().decode([FormElement].self, from: JSONEncoder().encode(elements)) == elements)
    }
}
