import FoundationEssentials
import Logging
import Waiting

private let logger = Logger(label: "ComposableCheckout")

/// One checkout of one session: its state, its methods, and the one payment that is made at a time.
///
///     let checkout = try await root.checkout()
///     await checkout.start()
///     for await state in checkout.state { show(state) }
public actor CheckoutScope {
    /// Asks the application before a payment is made.
    public typealias Gate = @Sendable (BeforePayment) async -> BeforePaymentDecision

    /// The way through the checkout.
    public nonisolated let navigator: CheckoutNavigator
    /// The selection of a method.
    public nonisolated let paymentMethodSelection: PaymentMethodSelectionScope
    private nonisolated let states = Multicast<CheckoutState>(.initializing, keeping: .newest(16))

    private let configurations: any ConfigurationRepository
    private let providers: [PaymentMethod.Kind: any PaymentMethodProvider]
    private let idleTime: Duration?
    private let makeKey: @Sendable () -> String
    private var machine = CheckoutMachine()
    private var configuration: CheckoutConfiguration?
    /// By ``PaymentMethod/id``.
    private var scopes: [String: any PaymentMethodScope] = [:]
    private var gate: Gate?
    /// The payment that is under way, or whose result is not known.
    private var payment: (CheckoutPayment, CheckoutPayment.Terms)?
    private nonisolated let idleLimit = Lock<Time.Deadline?>(nil)
    /// Activity is noted on any thread.
    private nonisolated let time = Time.current

    /// - Parameters:
    ///   - configurations: the session's configuration.
    ///   - methods: the session's methods.
    ///   - providers: the kinds of methods.
    ///   - navigator: the way through the checkout.
    ///   - idleTime: the time without any activity of the customer, after which the start is shown and everything they
    ///     entered is wiped; nil: the front end calls ``idle()``.
    ///   - makeKey: makes idempotency keys; nil: random ones.
    public init(
        configurations: any ConfigurationRepository, methods: any PaymentMethodRepository,
        providers: [PaymentMethod.Kind: any PaymentMethodProvider], navigator: CheckoutNavigator = CheckoutNavigator(),
        idleTime: Duration? = nil, makeKey: (@Sendable () -> String)? = nil
    ) {
        (self.configurations, self.providers, self.navigator) = (configurations, providers, navigator)
        (self.idleTime, self.makeKey) = (idleTime, makeKey ?? { UUID().uuidString })
        paymentMethodSelection = PaymentMethodSelectionScope(
            GetPaymentMethodsInteractor(methods), providers: providers)
    }

    deinit { idleLimit.withLock { $0 }?.lift() }

    /// The present state, and then each further one: a new stream for each access.
    public nonisolated var state: AsyncStream<CheckoutState> { states.stream() }
    /// The present state.
    public nonisolated var currentState: CheckoutState { states.latest ?? .initializing }

    /// True while a payment is made, or the application is asked about one.
    public var isPaying: Bool { machine.isPaying }

    /// The idempotency key of the last payment that was begun; nil if there was none.
    public var paymentKey: String? { payment?.1.key }

    /// Sets the application's gate, which runs before anything of a payment is shown; nil: every payment proceeds.
    public func onBeforePaymentCreate(_ gate: Gate?) { self.gate = gate }

    /// Fetches the session's configuration, and shows the selection.
    public func start() async {
        await paymentMethodSelection.attach(to: self)
        await take(.started)
    }

    /// Fetches the configuration anew: fields that it no longer has vanish from the forms with their errors.
    public func refresh() async { await load() }

    // MARK: Methods

    /// Returns the scope of a method, the same one until the customer has gone.
    ///
    /// - Throws: ``CheckoutError/configuration(_:)`` if no provider serves the method's kind, or the session lacks
    ///   something.
    public func getPaymentMethodScope(for method: PaymentMethod) async throws(CheckoutError) -> any PaymentMethodScope {
        if let scope = scopes[method.id] { return scope }
        guard let configuration else { throw .configuration("the session is not loaded") }
        guard let provider = providers[method.kind] else {
            throw .configuration("no provider is registered for methods of the kind \(method.kind)")
        }
        let scope = try await provider.scope(for: method, configuration, in: self)
        if let scope = scopes[method.id] { return scope }
        scopes[method.id] = scope
        return scope
    }

    /// Returns the scope of the first method of the kind that a scope of this type serves; nil if there is none.
    public func getPaymentMethodScope<Scope: PaymentMethodScope>(_ type: Scope.Type) async -> Scope? {
        for method in configuration?.methods ?? [] where providers[method.kind] != nil {
            if let scope = try? await getPaymentMethodScope(for: method) as? Scope { return scope }
        }
        return nil
    }

    /// Shows a method that the customer chose, and begins it.
    func select(_ method: PaymentMethod) async {
        noteActivity()
        guard !machine.isPaying, !machine.isUnknown, case .ready = machine.state else { return }
        do throws(CheckoutError) {
            let scope = try await getPaymentMethodScope(for: method)
            navigator.push(.method(method.id))
            await scope.start()
        } catch {
            await take(.failed(error))
        }
    }

    /// Cancels the present method, and shows the selection again, also after a failure.  A payment that has begun, or that
    /// is not known, stays; a wait for a card ends.
    public func back() async {
        noteActivity()
        switch navigator.route {
        case .method(let id): await scopes[id]?.cancel()
        case .failure: return await take(.left)
        default: break
        }
        if !machine.isPaying, navigator.route != .methodSelection { navigator.back() }
    }

    // MARK: Payments

    /// Makes a payment for a method's scope: asks the application, then shows and makes it.
    ///
    /// - Returns: nil if nothing was begun: another payment is under way or not known, the session is paid, or the
    ///   application did not want it.
    /// - Throws: ``CheckoutError`` if nothing was paid.
    @discardableResult
    public func pay(_ payment: CheckoutPayment) async throws(CheckoutError) -> PaymentResult? {
        guard let configuration, machine.next(.payRequested) == [.askApplication] else { return nil }
        // With its present surcharges.
        let method = configuration.methods.first { $0.id == payment.method.id } ?? payment.method
        let terms = CheckoutPayment.Terms(
            session: configuration.session,
            amount: configuration.amount + method.surcharge(for: payment.network),
            currency: configuration.currency, key: makeKey())
        let decision = await gate?(
            BeforePayment(
                method: method, network: payment.network, amount: terms.amount, currency: terms.currency))
        guard decision != .abort, machine.next(.admitted(true)) == [.begin] else {
            _ = machine.next(.admitted(false))
            noteActivity()
            return nil
        }
        self.payment = (payment, terms)
        if payment.showsProcessing { navigator.replace(with: .processing) }
        // It comes to its end though the customer's page is gone.
        let task = Task { try await perform(payment, terms) }
        do {
            return try await task.value
        } catch {
            throw error as? CheckoutError ?? .configuration("\(error)")
        }
    }

    private func perform(_ payment: CheckoutPayment, _ terms: CheckoutPayment.Terms) async throws -> PaymentResult {
        defer { noteActivity() }
        do throws(CheckoutError) {
            let result = try await challenged(try await payment.perform(terms), payment)
            await take(.paid(result))
            return result
        } catch {
            await take(.failed(error))
            throw error
        }
    }

    /// Has the customer meet the challenge of a pending payment.
    private func challenged(_ result: PaymentResult, _ payment: CheckoutPayment) async throws(CheckoutError)
        -> PaymentResult
    {
        guard result.status == .pending, let page = result.challenge else { return result }
        await take(.challenged(.challenge(page)))
        do throws(CheckoutError) {
            return try await payment.challenge(result)
        } catch {
            // The payment is there, and only the answer is missing.
            logger.warning("the challenge's result is not known: \(error)")
            var unknown = result
            (unknown.status, unknown.challenge) = (.unknown, nil)
            return unknown
        }
    }

    private func resolve() async {
        guard let (payment, terms) = payment else { return }
        do throws(CheckoutError) {
            await take(.paid(try await challenged(try await payment.resolve(terms), payment)))
        } catch {
            if case .refused = error { return await take(.failed(error)) }
            await take(.failed(.transport(reason: "\(error)", mayHaveHappened: true)))
        }
    }

    // MARK: Ends

    /// Returns to the last method after a failure; asks for a payment whose result is not known, and for methods that could
    /// not be fetched.
    public func retry() async {
        noteActivity()
        if case .ready = machine.state, case .error = paymentMethodSelection.currentState { return await load() }
        await take(.retried)
    }

    /// Returns to the start, as the customer is gone: everything they entered is wiped.  A payment under way comes to its
    /// end.
    public func idle() async { await take(.idled) }

    /// Ends the checkout; not while a payment is under way.
    public func dismiss() async { await take(.dismissed) }

    /// Notes that the customer is there.
    public nonisolated func noteActivity() {
        guard let idleTime else { return }
        let next = time.deadline(after: idleTime) { [weak self] in Task { await self?.idle() } }
        let last = idleLimit.withLock { limit in
            defer { limit = next }
            return limit
        }
        last?.lift()
    }

    // MARK: Events

    private func take(_ event: CheckoutMachine.Event) async {
        for action in machine.next(event) {
            switch action {
            case .publish(let state): states.send(state)
            case .load: await load()
            case .resolve: await resolve()
            case .reset(let route): navigator.reset(to: route)
            case .replace(let route): navigator.replace(with: route)
            case .showLastMethod: navigator.retry()
            case .wipe:
                let ended = scopes.values
                scopes = [:]
                for scope in ended { await scope.cancel() }
            case .askApplication, .begin: break
            }
        }
    }

    private func load() async {
        do throws(CheckoutError) {
            let configuration = try await configurations.configuration()
            self.configuration = configuration
            await paymentMethodSelection.load(currency: configuration.currency)
            for scope in scopes.values { await (scope as? any ConfigurableScope)?.configure(configuration) }
            await take(.configured(configuration))
        } catch {
            await take(.failed(error))
        }
    }
}

/// A scope whose fields follow the session's configuration.
protocol ConfigurableScope: Sendable {
    func configure(_ configuration: CheckoutConfiguration) async
}
