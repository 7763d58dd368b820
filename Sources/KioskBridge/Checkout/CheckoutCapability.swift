import CardReceipts
public import ComposableCheckout
public import Foundation
import KioskKit
import Logging

/// The requests of a page that shows a checkout: the methods, the forms, and what becomes of the payment.
///
/// The page walks what it is told as `checkout.state`, which has every text in its language, and never a secret: a card's
/// number is masked, and its security code is not there at all.  An amount is never the page's.  A page that goes away ends
/// the checkout, but not a payment that has begun: the order has its outcome, and the next page is shown it.
@MainActor public final class CheckoutCapability: BridgeRequestHandler {
    /// Opens a checkout of an order at the payment service, in the customer's language.
    public typealias Opening = @Sendable (KioskOrder, Locale) async throws -> CheckoutScope
    /// Draws a text as a QR code: true for each dark module, row by row, without the quiet zone; nil if no code holds it.
    public typealias QRCodeDrawing = @Sendable (_ text: String) -> [[Bool]]?

    private enum Action: String, CaseIterable {
        case start, select, search, update, leave, chooseNetwork, submit, back, retry, cancel, locale

        var name: String { "checkout.\(rawValue)" }
    }

    private struct Session {
        /// As the orders have it.
        let order: KioskOrder
        /// For the passes that the customer has shown.
        let price: KioskPrice
        let scope: CheckoutScope
        /// The route that is shown, whose outcome the orders have.
        var route = CheckoutRoute.start
        /// The modules with which the customer's phone opens the bank's page; nil without a challenge or a code.
        var code: [[Bool]]?
        var method: (any PaymentMethodScope)?
        /// Shows the routes one after the other, to the end of the checkout.
        var routes: Task<Void, Never>?
        var watches: [Task<Void, Never>] = []
        var methodWatch: Task<Void, Never>?
    }

    private let orders: any KioskOrders
    private let pricing: PaymentCapability.Pricing?
    private let passes: PassCapability?
    private let qrCode: QRCodeDrawing?
    private let open: Opening
    private weak var host: BridgeHost?
    private var session: Session?
    private var isOpening = false
    /// The language that the page named last; nil if none.
    private var pageLocale: Locale?
    private var told: JSONValue?

    /// - Parameters:
    ///   - orders: what is to be paid.
    ///   - pricing: fixes the price, knowing the passes that the customer has shown; nil: it is the order's.
    ///   - passes: reads the passes; nil: there are none.
    ///   - qrCode: draws the address at which the customer meets the bank's challenge, for their phone; nil: the page gets the
    ///     address alone.
    ///   - open: opens a checkout of the order at its price, as `CompositionRoot` of ComposableCheckout makes one.
    public init(
        orders: any KioskOrders, pricing: PaymentCapability.Pricing? = nil, passes: PassCapability? = nil,
        qrCode: QRCodeDrawing? = nil, open: @escaping Opening
    ) {
        (self.orders, self.pricing, self.passes) = (orders, pricing, passes)
        (self.qrCode, self.open) = (qrCode, open)
    }

    public let actions = Action.allCases.map(\.name)
    /// The action with what a customer enters, which is the form's alone.
    public let secretActions: Set<String> = [Action.update.name]
    public let capabilities = [Action.start.name: CapabilityState(isSupported: true)]

    public var snapshot: [String: JSONValue] { ["checkout": state ?? .null] }

    public func attach(to host: BridgeHost) {
        self.host = host
        host.onBackground { [weak self] in await self?.session?.scope.idle() }
    }

    /// Ends a checkout whose customer is gone.  A payment that has begun comes to its end.
    public func pageLeft() {
        pageLocale = nil
        guard let session else { return }
        Task { [weak self] in await self?.leave(session) }
    }

    // MARK: Requests

    public func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {
        let data = request.payload.data ?? [:]
        if let asked = data["locale"]?.text { pageLocale = Locale(bcp47: asked) }
        guard let action = Action.allCases.first(where: { $0.name == request.payload.action }) else { return }
        do throws(BridgeErrorPayload) {
            if action == .start { try await start() } else { try await perform(action, data) }
            responder.respond(status: .success, data: [:])
        } catch {
            responder.fail(error)
        }
    }

    private func start() async throws(BridgeErrorPayload) {
        guard !isOpening else { throw .init(.busy, "a checkout is being opened") }
        isOpening = true
        defer { isOpening = false }
        guard let order = await orders.currentOrder(), order.status == .open else {
            throw .init(.invalidRequest, "there is no open order")
        }
        guard session == nil else { throw .init(.busy, "a checkout is under way") }
        do {
            let price = try await pricing?(order, passes?.passes) ?? KioskPrice(order.total)
            var priced = order
            priced.total = price.amount
            let scope = try await open(priced, locale)
            await scope.paymentMethodSelection.setTexts(texts)
            await scope.onBeforePaymentCreate { [weak self] _ in
                await self?.mayPay(order) == true ? .proceed : .abort
            }
            // The page may be gone by now.
            try Task.checkCancellation()
            session = Session(order: order, price: price, scope: scope)
            follow(scope)
            await scope.start()
        } catch {
            guard !Task.isCancelled else { throw .init(.cancelled, "the page has gone") }
            logger.warning("no checkout: \(loggable(error))")
            throw .init(code: "SERVICE_UNAVAILABLE", message: "the checkout cannot be opened", recoverable: true)
        }
    }

    /// Returns true if the order is still open at its price, and nothing else takes a payment.
    private func mayPay(_ order: KioskOrder) async -> Bool {
        guard await host?.isTakingPayment(besides: self) != true, let present = await orders.currentOrder() else {
            return false
        }
        return present.id == order.id && present.status == .open && present.total == order.total
    }

    /// True while a payment is made, until the orders have its outcome.
    public func isTakingPayment() async -> Bool {
        guard let session else { return false }
        let isPaying = await session.scope.isPaying
        return isPaying || (self.session.map { $0.route != $0.scope.navigator.route } ?? false)
    }

    private func perform(_ action: Action, _ data: [String: JSONValue]) async throws(BridgeErrorPayload) {
        guard let session else { throw .init(.invalidRequest, "no checkout is under way") }
        let scope = session.scope
        scope.noteActivity()
        let method = await presentMethod(of: scope)
        switch action {
        case .start: break
        case .locale:
            await scope.paymentMethodSelection.setTexts(texts)
            tell()
        case .search: await scope.paymentMethodSelection.search(try text("query", in: data))
        case .select:
            let id = try text("method", in: data)
            guard case .ready(let methods, _) = scope.paymentMethodSelection.currentState,
                let chosen = methods.first(where: { $0.id == id })
            else { throw .init(.invalidRequest, "method: one that is shown is due") }
            await scope.paymentMethodSelection.onPaymentMethodSelected(chosen)
        case .update, .leave: try await enter(data, hasLeft: action == .leave, method)
        case .chooseNetwork:
            await (method as? CardFormScope)?.chooseNetwork(CardNetwork(rawValue: try text("network", in: data)))
        case .submit:
            guard await mayPay(session.order) else {
                throw .init(.busy, "the order is no longer open at its price, or is being paid")
            }
            submit(method)
        case .back: await scope.back()
        // Its states tell how it goes on; a payment service that does not answer takes its time.
        case .retry: Task { await scope.retry() }
        case .cancel:
            await leave(session)
            if !isOver(session) { await scope.dismiss() }
            if scope.currentState == .dismissed { await session.routes?.value }
        }
    }

    private func text(_ name: String, in data: [String: JSONValue]) throws(BridgeErrorPayload) -> String {
        guard let text = data[name]?.text else { throw .init(.invalidRequest, "\(name): a text is due") }
        return text
    }

    private func enter(
        _ data: [String: JSONValue], hasLeft: Bool, _ method: (any PaymentMethodScope)?
    ) async throws(BridgeErrorPayload) {
        let name = try text("field", in: data)
        switch method {
        case let form as CardFormScope:
            guard let field = ComposableInputElementType(rawValue: name) else { break }
            if hasLeft { await form.leave(field) } else { await form.update(field, try text("value", in: data)) }
            return
        case let voucher as VoucherScope:
            guard name == CheckoutJSON.voucherField else { break }
            if hasLeft { await voucher.leave() } else { await voucher.updateCode(try text("value", in: data)) }
            return
        default: break
        }
        throw .init(.invalidRequest, "field: one of the form that is shown is due")
    }

    /// Pays.  The states tell what becomes of it.
    private func submit(_ method: (any PaymentMethodScope)?) {
        switch method {
        case let form as CardFormScope: Task { try? await form.submit() }
        case let voucher as VoucherScope: Task { try? await voucher.submit() }
        case let tap as TapScope: Task { await tap.start() }
        default: break
        }
    }

    // MARK: States

    private var locale: Locale { pageLocale ?? host?.locale ?? Locale(identifier: "en_US") }
    private var texts: InputLocalizable { InputLocalizable(language: locale.identifier(.bcp47)) }

    private func follow(_ scope: CheckoutScope) {
        let (routes, selection, states) = (
            scope.navigator.navigationEvents, scope.paymentMethodSelection.state(), scope.state
        )
        session?.routes = Task { [weak self] in
            for await route in routes { guard await self?.show(route, of: scope) == true else { return } }
        }
        session?.watches = [
            Task { [weak self] in for await _ in selection { self?.tell() } },
            Task { [weak self] in for await _ in states { self?.tell() } },
        ]
    }

    /// Shows a route, once the orders know of the outcome that it has.
    ///
    /// - Returns: false at the end of the checkout.
    private func show(_ route: CheckoutRoute, of scope: CheckoutScope) async -> Bool {
        guard let session, session.scope === scope else { return false }
        if let outcome = outcome(route, of: session, key: await scope.paymentKey ?? "") {
            await orders.settle(session.order.id, outcome)
        }
        let isOver = route == .start && session.route != .start
        self.session?.route = route
        self.session?.code = code(of: route)
        self.session?.methodWatch?.cancel()
        self.session?.method = nil
        if case .method = route { await watchMethod(of: scope) }
        tell()
        if isOver { end() }
        return !isOver
    }

    /// Draws the address of a challenge, if it is one that a phone opens in its browser.
    private func code(of route: CheckoutRoute) -> [[Bool]]? {
        guard case .challenge(let page) = route, ["http", "https"].contains(page.scheme?.lowercased()) else {
            return nil
        }
        return qrCode?(page.absoluteString)
    }

    /// Returns the scope of the method that the checkout is at; nil elsewhere.
    private func presentMethod(of scope: CheckoutScope) async -> (any PaymentMethodScope)? {
        guard case .method(let id) = scope.navigator.route, case .ready(let configuration) = scope.currentState,
            let method = configuration.methods.first(where: { $0.id == id })
        else { return nil }
        return try? await scope.getPaymentMethodScope(for: method)
    }

    private func watchMethod(of scope: CheckoutScope) async {
        guard let shown = await presentMethod(of: scope), session?.scope === scope else { return }
        session?.method = shown
        session?.methodWatch = Task { [weak self] in
            switch shown {
            case let form as CardFormScope: for await _ in form.state { self?.tell() }
            case let voucher as VoucherScope: for await _ in voucher.state { self?.tell() }
            case let tap as TapScope: for await _ in tap.state { self?.tell() }
            default: break
            }
        }
    }

    /// Wipes what a customer entered, and returns to the start unless a payment is under way or not known.
    private func leave(_ session: Session) async {
        await session.scope.idle()
        // Nothing was shown that there is a way back from, and nothing was paid.
        guard await session.scope.paymentKey == nil, session.scope.navigator.route == .start, !isOver(session),
            self.session?.route == .start
        else { return }
        end()
    }

    private func isOver(_ ended: Session) -> Bool { session?.scope !== ended.scope }

    private func end() {
        session?.routes?.cancel()
        for watch in (session?.watches ?? []) + [session?.methodWatch].compactMap(\.self) { watch.cancel() }
        (session, told) = (nil, nil)
    }

    /// The outcome that a route tells; nil if it tells none.
    private func outcome(_ route: CheckoutRoute, of session: Session, key: String) -> KioskPaymentOutcome? {
        switch route {
        case .success(let result): .approved(result.amount, result.charged(session.price))
        case .failure(.transport(_, mayHaveHappened: true)): .unknown(key: key)
        case .failure(.refused(code: "declined", let message)): .declined(message: message)
        case .start, .methodSelection, .method, .processing, .challenge, .failure: nil
        }
    }

    private var state: JSONValue? {
        session.map {
            CheckoutJSON(order: $0.order, price: $0.price, locale: locale, texts: texts).state(
                of: $0.scope, route: $0.route, method: $0.method, code: $0.code)
        }
    }

    private func tell() {
        guard let state, state != told, let members = state.members else { return }
        told = state
        host?.send(event: "checkout.state", data: members)
    }
}

extension ComposableCheckout.PaymentResult {
    /// The payment with what a receipt must say.
    ///
    /// - Parameter price: what the order costs without the surcharge of the way to pay.
    func charged(_ price: KioskPrice) -> KioskKit.PaymentResult {
        var charged =
            tap
            ?? KioskKit.PaymentResult(
                id: paymentID, status: .approved, amount: amount, currency: currency,
                lastFour: token.map { String($0.masked.suffix(4)) },
                keyedBrand: (token?.network).flatMap { CardBrand(name: $0.name) })
        if amount > price.amount { charged.surcharge = amount - price.amount }
        return charged
    }
}
