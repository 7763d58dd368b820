import Waiting

/// The state of a voucher's entry.
public struct VoucherState: Hashable, Codable, Sendable {
    /// The code as typed or scanned.
    public var code = ""
    /// The error of a code that was left or refused; nil: none.
    public var errorKey: String?
    public var isLoading = false
    public var isSubmitEnabled = false
}

/// A voucher whose code the customer types or holds to a scanner.
public actor VoucherScope: PaymentMethodScope {
    /// The lengths of codes.
    private static let lengths = 4...64

    public nonisolated let method: PaymentMethod
    private nonisolated let states = Multicast<VoucherState>(VoucherState(), keeping: .newest(16))
    private let settlement: PaymentSettlement
    private weak var checkout: CheckoutScope?

    init(method: PaymentMethod, settlement: PaymentSettlement, checkout: CheckoutScope) {
        (self.method, self.settlement, self.checkout) = (method, settlement, checkout)
    }

    /// The present state, and then each further one: a new stream for each access.
    public nonisolated var state: AsyncStream<VoucherState> { states.stream() }
    /// The present state.
    public nonisolated var currentState: VoucherState { states.latest ?? VoucherState() }

    /// Takes the present text of the code.
    public func updateCode(_ text: String) {
        checkout?.noteActivity()
        guard !currentState.isLoading else { return }
        let code = FieldRule.ascii(String(text.prefix(2 * Self.lengths.upperBound))).filter { !$0.isWhitespace }
        states.send(VoucherState(code: code, isSubmitEnabled: Self.accepts(code)))
    }

    /// Notes that the customer has left the code.
    public func leave() {
        var state = currentState
        if !state.code.isEmpty, !Self.accepts(state.code) { state.errorKey = "error.invalid-voucher" }
        states.send(state)
    }

    /// Letters, digits and hyphens.
    private static func accepts(_ code: String) -> Bool {
        lengths.contains(code.count) && code.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "-" }
    }

    public func start() {}

    public func cancel() { states.send(VoucherState()) }

    /// Pays with the voucher.
    ///
    /// - Returns: nil if the code is not valid, if a payment is under way already, or if the application did not want it.
    /// - Throws: ``CheckoutError`` if nothing was paid.
    @discardableResult public func submit() async throws(CheckoutError) -> PaymentResult? {
        let code = currentState.code
        guard let checkout, currentState.isSubmitEnabled else { return nil }
        states.send(VoucherState(code: code, isLoading: true))
        do throws(CheckoutError) {
            let result = try await checkout.pay(payment(code))
            states.send(result == nil ? VoucherState(code: code, isSubmitEnabled: true) : VoucherState())
            return result
        } catch {
            var state = VoucherState(code: code, isSubmitEnabled: true)
            if case .refused = error { state.errorKey = "error.invalid-voucher" }
            states.send(state)
            throw error
        }
    }

    private func payment(_ code: String) -> CheckoutPayment {
        let (method, settlement) = (method, settlement)
        @Sendable func settle(
            _ terms: CheckoutPayment.Terms, wasRequested: Bool
        ) async throws(CheckoutError) -> PaymentResult {
            let request = PaymentRequest(
                session: terms.session, method: method.id, voucher: code, amount: terms.amount,
                currency: terms.currency)
            let result = try await settlement.settle(
                request, method: method.kind, key: terms.key, wasRequested: wasRequested)
            return await settlement.decision(on: result, request, key: terms.key)
        }
        @Sendable func perform(_ terms: CheckoutPayment.Terms) async throws(CheckoutError) -> PaymentResult {
            try await settle(terms, wasRequested: false)
        }
        @Sendable func resolve(_ terms: CheckoutPayment.Terms) async throws(CheckoutError) -> PaymentResult {
            try await settle(terms, wasRequested: true)
        }
        return CheckoutPayment(method: method, perform: perform, resolve: resolve)
    }
}

/// The source of scopes for vouchers.
struct VoucherProvider: PaymentMethodProvider {
    let settlement: PaymentSettlement

    func scope(
        for method: PaymentMethod, _ configuration: CheckoutConfiguration, in checkout: CheckoutScope
    ) async throws(CheckoutError) -> any PaymentMethodScope {
        VoucherScope(method: method, settlement: settlement, checkout: checkout)
    }
}
