package import ComposableCheckout
import EMVContactless
import Foundation

/// The checkout on a terminal.
package struct TerminalFront {
    private let checkout: CheckoutScope
    private let texts: InputLocalizable
    private let terminal: Terminal
    /// A person's answer that goes back.
    private static let back = "<"

    package init(_ checkout: CheckoutScope, _ texts: InputLocalizable, _ terminal: Terminal) {
        (self.checkout, self.texts, self.terminal) = (checkout, texts, terminal)
    }

    /// Follows the checkout's routes to its end.
    ///
    /// - Returns: true if the payment was made.
    package func run() async -> Bool {
        let routes = checkout.navigator.navigationEvents
        let start = Task { await checkout.start() }
        defer { start.cancel() }
        var tap: Task<Void, Never>?
        for await route in routes {
            // What the reader said last stands before what became of it.
            tap?.cancel()
            await tap?.value
            tap = nil
            // Another one is shown by now, which follows.
            guard route == checkout.navigator.route else { continue }
            switch route {
            case .start: terminal.show(texts.text("checkout.loading"))
            case .methodSelection: guard await choose() else { return false }
            case .method(let id):
                guard let scope = await scope(of: id) else { return false }
                if let scope = scope as? TapScope {
                    tap = Task { await follow(scope) }
                } else {
                    guard await fill(scope) else { return false }
                }
            case .processing: terminal.show(texts.text("checkout.processing"))
            case .challenge(let page):
                terminal.show(texts.text("checkout.challenge"))
                terminal.show("  \(page.absoluteString)")
            case .success(let result):
                terminal.show(texts.text("checkout.success"))
                let parts = [money(result.amount, result.currency), result.token?.masked].compactMap(\.self)
                terminal.show("  \(parts.joined(separator: " "))")
                return true
            case .failure(let error): guard await fail(error) else { return false }
            }
        }
        return false
    }

    // MARK: Methods

    private func choose() async -> Bool {
        for await state in checkout.paymentMethodSelection.state() {
            switch state {
            case .loading: continue
            case .error(let reason):
                terminal.show(reason)
                return false
            case .ready(let methods, let currency):
                guard !methods.isEmpty else { return false }
                terminal.show(texts.text("selection.title"))
                for (number, method) in methods.enumerated() {
                    terminal.show("  \(number + 1)  \(description(of: method, currency))")
                }
                while let answer = await terminal.ask(texts.text("selection.count", count: methods.count)) {
                    guard let number = Int(answer), methods.indices.contains(number - 1) else { continue }
                    await checkout.paymentMethodSelection.onPaymentMethodSelected(methods[number - 1])
                    return true
                }
                return false
            }
        }
        return false
    }

    private func description(of method: PaymentMethod, _ currency: String) -> String {
        var parts = [texts.text(method.nameKey)]
        if let surcharge = method.surcharge, surcharge > 0 { parts.append("+ \(money(surcharge, currency))") }
        for (network, surcharge) in method.networkSurcharges.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            parts.append("\(network.name) + \(money(surcharge, currency))")
        }
        return parts.joined(separator: ", ")
    }

    private func scope(of id: String) async -> (any PaymentMethodScope)? {
        guard case .ready(let configuration) = checkout.currentState,
            let method = configuration.methods.first(where: { $0.id == id })
        else { return nil }
        return try? await checkout.getPaymentMethodScope(for: method)
    }

    /// Shows what the customer is to do at the reader.  The checkout's routes tell the outcome.
    private func follow(_ tap: TapScope) async {
        for await state in tap.state where !state.isOutcome { terminal.show("  \(texts.text(state.textKey))") }
    }

    // MARK: Forms

    /// - Returns: false at the end of the input.
    private func fill(_ scope: any PaymentMethodScope) async -> Bool {
        switch scope {
        case let form as CardFormScope:
            guard case .ready(let configuration) = checkout.currentState else { return false }
            return await fill(form, configuration)
        case let voucher as VoucherScope: return await fill(voucher)
        default:
            await checkout.back()
            return true
        }
    }

    private func fill(_ form: CardFormScope, _ configuration: CheckoutConfiguration) async -> Bool {
        var done: Set<ComposableInputElementType> = []
        var heading: String?
        while let state = form.currentState {
            let fields = TerminalForm.fields(in: state.elements)
            guard let next = fields.first(where: { !done.contains($0.field.type) }) else {
                for line in TerminalForm.lines(state.elements, texts) { terminal.show(line) }
                if state.isSubmitEnabled { return await confirm(form, state, configuration) }
                // A field's error may have come with another field.
                let wrong = state.fieldErrors.map(\.field)
                guard !wrong.isEmpty else { return false }
                done.subtract(wrong)
                continue
            }
            if next.heading != heading { terminal.show(texts.text(next.heading)) }
            heading = next.heading
            let question = "  " + TerminalForm.label(of: next.field, texts)
            guard let answer = await terminal.ask(question, isSecret: next.field.isSecret) else { return false }
            guard answer != Self.back else {
                await checkout.back()
                return true
            }
            await form.update(next.field.type, answer)
            await form.leave(next.field.type)
            if let error = form.currentState?.fieldErrors.first(where: { $0.field == next.field.type }) {
                terminal.show("  ! \(texts.text(error.messageKey))")
                continue
            }
            done.insert(next.field.type)
            if next.field.type == .cardNumber { guard await chooseNetwork(form) else { return false } }
        }
        return false
    }

    private func chooseNetwork(_ form: CardFormScope) async -> Bool {
        guard let networks = form.currentState?.availableNetworks, networks.count > 1 else { return true }
        for (number, network) in networks.enumerated() { terminal.show("    \(number + 1)  \(network.name)") }
        while let answer = await terminal.ask("  " + texts.text("selection.network")) {
            guard let number = Int(answer), networks.indices.contains(number - 1) else { continue }
            await form.chooseNetwork(networks[number - 1])
            return true
        }
        return false
    }

    private func confirm(
        _ form: CardFormScope, _ state: CardFormState, _ configuration: CheckoutConfiguration
    ) async -> Bool {
        let currency = configuration.currency
        if state.surcharge > 0 {
            terminal.show(texts.text("checkout.surcharge", ["amount": money(state.surcharge, currency)]))
        }
        let total = money(configuration.amount + state.surcharge, currency)
        guard let answer = await terminal.ask(texts.text("checkout.pay", ["amount": total])) else { return false }
        if answer == Self.back {
            await checkout.back()
        } else {
            // Its routes show how it goes on.
            Task { try? await form.submit() }
        }
        return true
    }

    private func fill(_ voucher: VoucherScope) async -> Bool {
        while let answer = await terminal.ask(texts.text("voucher.label")) {
            guard answer != Self.back else {
                await checkout.back()
                return true
            }
            await voucher.updateCode(answer)
            await voucher.leave()
            if voucher.currentState.isSubmitEnabled {
                Task { try? await voucher.submit() }
                return true
            }
            if let error = voucher.currentState.errorKey { terminal.show("  ! \(texts.text(error))") }
        }
        return false
    }

    // MARK: Ends

    /// - Returns: false if the customer gives up.
    private func fail(_ error: CheckoutError) async -> Bool {
        if case .transport(_, mayHaveHappened: true) = error {
            terminal.show(texts.text("checkout.unknown"))
        } else {
            terminal.show(texts.text("checkout.failure"))
            terminal.show(texts.text("recovery.\(error.recovery.rawValue)"))
        }
        guard error.recovery != .askStaff,
            let answer = await terminal.ask(
                "\(texts.text("checkout.retry")) (\(Self.back) \(texts.text("checkout.cancel")))"),
            answer != Self.back
        else { return false }
        let isRetry = Task { await checkout.retry() }
        _ = isRetry
        return true
    }

    private func money(_ amount: Decimal, _ currency: String) -> String {
        let decimals = Currency[currency]?.exponent ?? 0
        let style = Decimal.FormatStyle(locale: Locale(identifier: texts.language)).precision(
            .fractionLength(decimals))
        return "\(amount.formatted(style)) \(currency)"
    }
}
