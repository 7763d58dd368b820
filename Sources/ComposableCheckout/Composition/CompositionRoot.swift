/// The registrations of a checkout, all of them.
///
///     let root = CompositionRoot(
///         configurations: repository, methods: repository, tokens: repository, payments: repository,
///         reader: TapToPayReader(service))
///     let checkout = try await root.checkout()
///
/// An application adds to the container, or replaces, what it has its own of.
public struct CompositionRoot: Sendable {
    /// The dependencies of the checkout.
    public let container = ComposableContainer()
    private let configurations: any ConfigurationRepository
    private let methods: any PaymentMethodRepository
    private let tokens: any TokenizationRepository
    private let payments: any PaymentRepository
    private let reader: (any TapReader)?
    private let permitsCardEntry: Bool
    private let clock: CheckoutClock
    private let idleTime: Duration?
    private let language: String
    private let pauses: [Duration]

    /// - Parameters:
    ///   - configurations: the session's configuration.
    ///   - methods: the session's methods.
    ///   - tokens: exchanges cards for tokens.
    ///   - payments: makes payments with tokens and vouchers.
    ///   - reader: takes payments by tap; nil: there are none.
    ///   - permitsCardEntry: true if customers may enter cards by hand where the session has it.  It brings the terminal,
    ///     and whatever it sends keystrokes through, into the scope of PCI DSS.
    ///   - clock: the time by which cards expire.
    ///   - idleTime: the time without any activity of the customer, after which the start is shown and everything they
    ///     entered is wiped; nil: the front end calls ``CheckoutScope/idle()``.
    ///   - language: the customer's language at first, a BCP 47 tag.
    ///   - pauses: the pauses before a payment service that did not answer is asked again.
    public init(
        configurations: any ConfigurationRepository, methods: any PaymentMethodRepository,
        tokens: any TokenizationRepository, payments: any PaymentRepository, reader: (any TapReader)? = nil,
        permitsCardEntry: Bool = false, clock: CheckoutClock = CheckoutClock(), idleTime: Duration? = .seconds(90),
        language: String = "en", pauses: [Duration] = [.milliseconds(500), .seconds(2), .seconds(5)]
    ) {
        (self.configurations, self.methods, self.tokens, self.payments) = (configurations, methods, tokens, payments)
        (self.reader, self.permitsCardEntry, self.clock) = (reader, permitsCardEntry, clock)
        (self.idleTime, self.language, self.pauses) = (idleTime, language, pauses)
    }

    /// Registers everything, in place of earlier registrations.
    public func register() async {
        let (configurations, methods, tokens, payments) = (configurations, methods, tokens, payments)
        let (clock, language, pauses) = (clock, language, pauses)
        await container.register((any ConfigurationRepository).self, as: .singleton) { _ in configurations }
        await container.register((any PaymentMethodRepository).self, as: .singleton) { _ in methods }
        await container.register((any TokenizationRepository).self, as: .singleton) { _ in tokens }
        await container.register((any PaymentRepository).self, as: .singleton) { _ in payments }
        await container.register(CheckoutClock.self, as: .singleton) { _ in clock }
        await container.register(InputLocalizable.self, as: .singleton) { _ in InputLocalizable(language: language) }
        await container.register(CheckoutNavigator.self, as: .weak) { _ in CheckoutNavigator() }

        await container.register(GetPaymentMethodsInteractor.self) { container in
            GetPaymentMethodsInteractor(try await container.resolve())
        }
        await container.register(GetRequiredFieldsInteractor.self) { _ in GetRequiredFieldsInteractor() }
        await container.register(ValidatePaymentDataInteractor.self) { container in
            ValidatePaymentDataInteractor(clock: try await container.resolve())
        }
        await container.register(ProcessCardPaymentInteractor.self) { container in
            ProcessCardPaymentInteractor(try await container.resolve(), pauses: pauses)
        }
        await container.register(PaymentSettlement.self) { container in
            PaymentSettlement(try await container.resolve(), pauses: pauses)
        }
        await registerMethods()
        await registerCheckout()
    }

    /// The kinds of methods, each under its name.
    private func registerMethods() async {
        if permitsCardEntry {
            await register(.card) { container in
                CardFormProvider(
                    clock: try await container.resolve(), cards: try await container.resolve(),
                    settlement: try await container.resolve())
            }
        }
        if let reader { await register(.tap) { _ in TapProvider(reader: reader) } }
        await register(.voucher) { container in VoucherProvider(settlement: try await container.resolve()) }
    }

    /// Adds a kind of method.
    ///
    /// - Parameters:
    ///   - kind: as the session names it.
    ///   - make: makes the kind's provider.
    public func register(
        _ kind: PaymentMethod.Kind,
        _ make: @escaping @Sendable (ComposableContainer) async throws -> any PaymentMethodProvider
    ) async {
        await container.register(PaymentMethod.Kind.self, named: kind.rawValue) { _ in kind }
        await container.register((any PaymentMethodProvider).self, named: kind.rawValue, as: .singleton, make)
    }

    private func registerCheckout() async {
        let idleTime = idleTime
        await container.register(CheckoutScope.self, as: .weak) { container in
            var providers: [PaymentMethod.Kind: any PaymentMethodProvider] = [:]
            for kind in try await container.resolveAll(PaymentMethod.Kind.self) {
                providers[kind] = try await container.resolve((any PaymentMethodProvider).self, named: kind.rawValue)
            }
            let checkout = CheckoutScope(
                configurations: try await container.resolve(), methods: try await container.resolve(),
                providers: providers, navigator: try await container.resolve(), idleTime: idleTime)
            await checkout.paymentMethodSelection.setTexts(try await container.resolve())
            return checkout
        }
    }

    /// Returns the checkout, the same one as long as somebody keeps it; registers everything before the first.
    ///
    /// - Throws: ``ContainerError``.
    public func checkout() async throws(ContainerError) -> CheckoutScope {
        if await !container.isRegistered(CheckoutScope.self) { await register() }
        return try await container.resolve(CheckoutScope.self)
    }
}
