import ComposableCheckout
import Foundation

/// The states of a checkout's scopes as a page is told them, with every text in its language.
struct CheckoutJSON {
    /// The name of a voucher's only field.
    static let voucherField = "VOUCHER_CODE"

    let locale: Locale
    let texts: InputLocalizable

    func state(
        of scope: CheckoutScope, _ order: KioskOrder, route: CheckoutRoute, method: (any PaymentMethodScope)?
    ) -> JSONValue {
        let currency = order.currencyCode
        var state: [String: JSONValue] = [
            "order": .string(order.id), "amount": money(order.total, currency),
        ]
        switch route {
        case .start: state["route"] = "start"
        case .methodSelection:
            state["route"] = "methodSelection"
            state["selection"] = selection(scope.paymentMethodSelection.currentState)
        case .method:
            state["route"] = "method"
            if let method { state.merge(self.method(method, order)) { $1 } }
        case .processing:
            state["route"] = "processing"
            state["text"] = text("checkout.processing")
        case .challenge(let page):
            state["route"] = "challenge"
            state["text"] = text("checkout.challenge")
            state["page"] = .string(page.absoluteString)
        case .success(let result):
            state["route"] = "success"
            state["text"] = text("checkout.success")
            state["amount"] = money(result.amount, result.currency)
            state["card"] = result.token.map { .string($0.masked) }
        case .failure(let error):
            state["route"] = "failure"
            state.merge(failure(error)) { $1 }
        }
        return .object(state)
    }

    // MARK: Methods

    private func selection(_ state: PaymentMethodSelectionState) -> JSONValue {
        switch state {
        case .loading: ["status": "loading", "text": text("checkout.loading")]
        case .error: ["status": "error", "text": text("checkout.failure")]
        case .ready(let methods, let currency):
            [
                "status": "ready", "text": text("selection.title"),
                "methods": .array(methods.map { description(of: $0, currency) }),
            ]
        }
    }

    private func description(of method: PaymentMethod, _ currency: String) -> JSONValue {
        var described: [String: JSONValue] = [
            "id": .string(method.id), "kind": .string(method.kind.rawValue), "name": text(method.nameKey),
            "networks": .array(method.networks.map(network)),
        ]
        if let surcharge = method.surcharge, surcharge > 0 { described["surcharge"] = money(surcharge, currency) }
        return .object(described)
    }

    private func method(_ scope: any PaymentMethodScope, _ order: KioskOrder) -> [String: JSONValue] {
        var state: [String: JSONValue] = ["method": description(of: scope.method, order.currencyCode)]
        switch scope {
        case let form as CardFormScope:
            guard let form = form.currentState else { break }
            state["form"] = ["elements": .array(form.elements.map(element))]
            if form.surcharge > 0 { state["surcharge"] = money(form.surcharge, order.currencyCode) }
            state["amount"] = money(order.total + form.surcharge, order.currencyCode)
        case let voucher as VoucherScope: state["form"] = ["elements": .array(elements(voucher.currentState))]
        case let tap as TapScope:
            state["tap"] = [
                "state": .string(tap.currentState.rawValue), "text": text(tap.currentState.textKey),
            ]
        default: break
        }
        return state
    }

    // MARK: Forms

    private func element(_ element: FormElement) -> JSONValue {
        switch element {
        case .group(let title, let parts):
            ["kind": "group", "title": text(title), "elements": .array(parts.map(self.element))]
        case .field(let field):
            [
                "kind": "field", "field": .string(field.type.rawValue), "label": text(field.labelKey),
                "placeholder": text(field.placeholderKey), "isRequired": .bool(field.isRequired),
                "value": .string(field.value), "error": field.errorKey.map(text) ?? .null,
                "maximumLength": JSONValue(Int64(field.maximumLength)), "autocomplete": .string(field.autocomplete),
                "inputMode": .string(field.inputMode), "isSecret": .bool(field.isSecret),
            ]
        case .networks(let networks, let chosen):
            [
                "kind": "networks", "networks": .array(networks.map(network)),
                "chosen": chosen.map { .string($0.rawValue) } ?? .null,
            ]
        case .button(let button):
            [
                "kind": "button", "label": text(button.labelKey), "isEnabled": .bool(button.isEnabled),
                "isLoading": .bool(button.isLoading),
            ]
        }
    }

    private func elements(_ voucher: VoucherState) -> [JSONValue] {
        [
            [
                "kind": "field", "field": .string(Self.voucherField), "label": text("voucher.label"),
                "placeholder": "", "isRequired": true, "value": .string(voucher.code),
                "error": voucher.errorKey.map(text) ?? .null, "maximumLength": 32, "autocomplete": "off",
                "inputMode": "text", "isSecret": false,
            ],
            [
                "kind": "button", "label": text("checkout.submit"), "isEnabled": .bool(voucher.isSubmitEnabled),
                "isLoading": .bool(voucher.isLoading),
            ],
        ]
    }

    private func network(_ network: CardNetwork) -> JSONValue {
        ["id": .string(network.rawValue), "name": .string(network.name)]
    }

    // MARK: Ends

    private func failure(_ error: CheckoutError) -> [String: JSONValue] {
        guard case .transport(_, mayHaveHappened: true) = error else {
            return [
                "text": text("checkout.failure"), "recovery": .string(error.recovery.rawValue),
                "hint": text("recovery.\(error.recovery.rawValue)"),
            ]
        }
        return ["text": text("checkout.unknown"), "recovery": .string(error.recovery.rawValue)]
    }

    private func text(_ key: String) -> JSONValue { .string(texts.text(key)) }

    private func money(_ amount: Decimal, _ currency: String) -> JSONValue { .money(amount, currency, locale) }
}
