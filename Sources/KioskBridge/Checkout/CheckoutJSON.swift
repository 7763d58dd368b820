import ComposableCheckout
import Foundation
import KioskKit

/// The states of a checkout's scopes as a page is told them, with every text in its language.
struct CheckoutJSON {
    /// The name of a voucher's only field.
    static let voucherField = "VOUCHER_CODE"
    /// The number of methods from which on there is a search for them.
    private static let searchedFrom = 5

    let order: KioskOrder
    let price: KioskPrice
    let locale: Locale
    let texts: InputLocalizable

    /// - Parameter code: the modules of a challenge's code.
    func state(
        of scope: CheckoutScope, route: CheckoutRoute, method: (any PaymentMethodScope)?, code: [[Bool]]?
    ) -> JSONValue {
        var state: [String: JSONValue] = ["order": .string(order.id)]
        var (amount, surcharge, actions) = (price.amount, Decimal(0), [Action]())
        switch route {
        case .start: state["route"] = "start"
        case .methodSelection:
            state["route"] = "methodSelection"
            let selection = scope.paymentMethodSelection.currentState
            state["selection"] = self.selection(selection, of: scope)
            if case .error = selection { actions = [.retry] }
            actions.append(.cancel)
        case .method:
            state["route"] = "method"
            guard let method else { break }
            surcharge = Self.surcharge(of: method)
            amount += surcharge
            actions = (method as? TapScope)?.currentState.isCancellable == false ? [] : [.back, .cancel]
            state.merge(self.method(method, amount)) { $1 }
        case .processing:
            state["route"] = "processing"
            state["text"] = text("checkout.processing")
        case .challenge(let page):
            state["route"] = "challenge"
            state["text"] = text("checkout.challenge")
            state["page"] = .string(page.absoluteString)
            guard let code else { break }
            state["hint"] = text("checkout.challenge-code")
            state["code"] = [
                "label": text("checkout.code"),
                "modules": .array(code.map { row in .string(String(row.map { $0 ? "1" : "0" })) }),
            ]
        case .success(let result):
            state["route"] = "success"
            state["text"] = text("checkout.success")
            amount = result.amount
            state["card"] = result.token.map { .string($0.masked) }
            state["receipt"] = .bool(result.charged(price).hasReceipt)
        case .failure(let error):
            state["route"] = "failure"
            state.merge(failure(error)) { $1 }
            actions = Self.actions(after: error, scope.paymentMethodSelection.currentState)
        }
        state["said"] = .array(
            (headings(of: scope, route, method, hasCode: code != nil).map { ($0, nil) } + sumKeys(surcharge, amount))
                .map(said))
        state["amount"] = money(amount)
        state["sums"] = .array(sums(surcharge, amount))
        if surcharge > 0 { state["surcharge"] = money(surcharge) }
        if let member = price.member {
            state["loyalty"] = ["member": .string(member), "saved": money(order.total - price.amount)]
        }
        state["actions"] = .array(actions.map { ["action": .string($0.request), "label": text($0.labelKey)] })
        return .object(state)
    }

    /// The surcharge, if there is one, and the total: the keys of their texts, and the amounts.
    private func sumKeys(_ surcharge: Decimal, _ amount: Decimal) -> [(key: String, amount: Decimal?)] {
        (surcharge > 0 ? [("checkout.surcharge", surcharge)] : []) + [("checkout.total", amount)]
    }

    private func sums(_ surcharge: Decimal, _ amount: Decimal) -> [JSONValue] {
        sumKeys(surcharge, amount).map { .string(texts.text($0.key, ["amount": written($0.amount ?? 0)])) }
    }

    /// The keys of the texts that tell what is shown.
    private func headings(
        of scope: CheckoutScope, _ route: CheckoutRoute, _ method: (any PaymentMethodScope)?, hasCode: Bool
    ) -> [String] {
        switch route {
        case .start: []
        case .methodSelection:
            switch scope.paymentMethodSelection.currentState {
            case .loading: ["checkout.loading"]
            case .error: ["checkout.failure"]
            case .ready: ["selection.title"]
            }
        case .method: [(method as? TapScope)?.currentState.textKey ?? method?.method.nameKey].compactMap(\.self)
        case .processing: ["checkout.processing"]
        case .challenge: ["checkout.challenge"] + (hasCode ? ["checkout.challenge-code"] : [])
        case .success: ["checkout.success"]
        case .failure(.transport(_, mayHaveHappened: true)): ["checkout.unknown"]
        case .failure(let error): ["checkout.failure", "recovery.\(error.recovery.rawValue)"]
        }
    }

    /// A text as a page names it to `speech.say`.
    private func said(_ key: String, _ amount: Decimal?) -> JSONValue {
        guard let amount else { return ["key": .string(key)] }
        return ["key": .string(key), "values": ["amount": .string(written(amount))]]
    }

    // MARK: Actions

    /// A request that the customer may make now, besides what a form or a selection has.
    private struct Action {
        let request: String
        let labelKey: String

        static let back = Action(request: "checkout.back", labelKey: "checkout.back")
        static let otherMethod = Action(request: "checkout.back", labelKey: "checkout.other-method")
        static let retry = Action(request: "checkout.retry", labelKey: "checkout.retry")
        static let cancel = Action(request: "checkout.cancel", labelKey: "checkout.cancel")
    }

    private static func actions(
        after error: CheckoutError, _ selection: PaymentMethodSelectionState
    ) -> [Action] {
        if case .transport(_, mayHaveHappened: true) = error { return [.retry, .cancel] }
        guard error.recovery != .askStaff else { return [.cancel] }
        // Where there are no methods yet, there is no other one.
        if case .ready = selection { return [.retry, .otherMethod, .cancel] }
        return [.retry, .cancel]
    }

    // MARK: Methods

    private func selection(_ state: PaymentMethodSelectionState, of scope: CheckoutScope) -> JSONValue {
        switch state {
        case .loading: return ["status": "loading", "text": text("checkout.loading")]
        case .error: return ["status": "error", "text": text("checkout.failure")]
        case .ready(let methods, _):
            var selection: [String: JSONValue] = [
                "status": "ready", "text": text("selection.title"),
                "count": .string(texts.text("selection.count", count: methods.count)),
                "methods": .array(methods.map(description)),
            ]
            if case .ready(let configuration) = scope.currentState, configuration.methods.count >= Self.searchedFrom {
                selection["search"] = text("selection.search")
            }
            return .object(selection)
        }
    }

    private func description(of method: PaymentMethod) -> JSONValue {
        var described: [String: JSONValue] = [
            "id": .string(method.id), "kind": .string(method.kind.rawValue), "name": text(method.nameKey),
            "networks": .array(method.networks.map(network)),
        ]
        if let surcharge = method.surcharge, surcharge > 0 {
            described["surcharge"] = money(surcharge)
            described["text"] = .string(texts.text("checkout.surcharge", ["amount": written(surcharge)]))
        }
        return .object(described)
    }

    private static func surcharge(of scope: any PaymentMethodScope) -> Decimal {
        (scope as? CardFormScope)?.currentState?.surcharge ?? scope.method.surcharge ?? 0
    }

    private func method(_ scope: any PaymentMethodScope, _ amount: Decimal) -> [String: JSONValue] {
        var state: [String: JSONValue] = ["method": description(of: scope.method)]
        switch scope {
        case let scope as CardFormScope:
            guard let form = scope.currentState else { break }
            var described: [String: JSONValue] = ["elements": .array(form.elements.map { element($0, amount) })]
            described["network"] = form.cardNetwork.map(network)
            state["form"] = .object(described)
        case let voucher as VoucherScope:
            state["form"] = ["elements": .array(elements(voucher.currentState, amount))]
        case let tap as TapScope:
            state["tap"] = [
                "state": .string(tap.currentState.rawValue), "text": text(tap.currentState.textKey),
            ]
        default: break
        }
        return state
    }

    // MARK: Forms

    private func element(_ element: FormElement, _ amount: Decimal) -> JSONValue {
        switch element {
        case .group(let title, let parts):
            ["kind": "group", "title": text(title), "elements": .array(parts.map { self.element($0, amount) })]
        case .field(let field):
            [
                "kind": "field", "field": .string(field.type.rawValue), "label": text(field.labelKey),
                "placeholder": text(field.placeholderKey), "isRequired": .bool(field.isRequired),
                "value": .string(field.value), "error": field.errorKey.map(text) ?? .null,
                "errorKey": field.errorKey.map(JSONValue.string) ?? .null,
                "maximumLength": JSONValue(Int64(field.maximumLength)), "autocomplete": .string(field.autocomplete),
                "inputMode": .string(field.inputMode), "isSecret": .bool(field.isSecret),
            ]
        case .networks(let networks, let chosen):
            [
                "kind": "networks", "label": text("selection.network"), "networks": .array(networks.map(network)),
                "chosen": chosen.map { .string($0.rawValue) } ?? .null,
            ]
        case .button(let button): self.button(button.isEnabled, button.isLoading, amount)
        }
    }

    private func elements(_ voucher: VoucherState, _ amount: Decimal) -> [JSONValue] {
        [
            [
                "kind": "field", "field": .string(Self.voucherField), "label": text("voucher.label"),
                "placeholder": text("voucher.placeholder"), "isRequired": true, "value": .string(voucher.code),
                "error": voucher.errorKey.map(text) ?? .null,
                "errorKey": voucher.errorKey.map(JSONValue.string) ?? .null, "maximumLength": 64,
                "autocomplete": "off", "inputMode": "text", "isSecret": false,
            ],
            button(voucher.isSubmitEnabled, voucher.isLoading, amount),
        ]
    }

    private func button(_ isEnabled: Bool, _ isLoading: Bool, _ amount: Decimal) -> JSONValue {
        [
            "kind": "button", "label": .string(texts.text("checkout.pay", ["amount": written(amount)])),
            "isEnabled": .bool(isEnabled), "isLoading": .bool(isLoading),
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

    private func money(_ amount: Decimal) -> JSONValue { .money(amount, order.currencyCode, locale) }

    private func written(_ amount: Decimal) -> String { amount.written(in: order.currencyCode, locale) }
}
