import Waiting

/// The state of the selection of a method.
public enum PaymentMethodSelectionState: Hashable, Sendable {
    case loading
    /// The methods that can be used now and that the search has found, with their surcharges, and the ISO 4217 code of
    /// the currency.
    case ready(methods: [PaymentMethod], currency: String)
    /// The methods could not be fetched, with a text for staff.
    case error(String)
}

/// The methods that the selection shows, as a value.
struct SelectionMachine: Sendable {
    var methods: [PaymentMethod]?
    var currency = ""
    var failure: String?
    var query = ""
    /// The kinds that can be used now.
    var available: Set<PaymentMethod.Kind> = []
    /// The kinds of which that is not known yet.
    var awaited: Set<PaymentMethod.Kind> = []
    /// The method's name in the customer's language, for the search.
    var name: @Sendable (PaymentMethod) -> String = { $0.id }

    var state: PaymentMethodSelectionState {
        if let failure { return .error(failure) }
        guard let methods, awaited.isEmpty else { return .loading }
        let words = query.lowercased().split(separator: " ")
        let shown = methods.filter { method in
            let text = ([name(method), method.id] + method.networks.map(\.name)).joined(separator: " ").lowercased()
            return available.contains(method.kind) && words.allSatisfy { text.contains($0) }
        }
        return .ready(methods: shown, currency: currency)
    }

    func has(_ method: PaymentMethod) -> Bool {
        methods?.contains(method) == true && available.contains(method.kind)
    }
}

/// The selection of a method.  Methods that nobody serves, or that cannot be used now, are not shown.
public actor PaymentMethodSelectionScope {
    /// The maximum length of a search in characters.
    private static let longestQuery = 64

    private nonisolated let states = Multicast<PaymentMethodSelectionState>(.loading, keeping: .newest(16))
    private let interactor: GetPaymentMethodsInteractor
    private let providers: [PaymentMethod.Kind: any PaymentMethodProvider]
    private weak var checkout: CheckoutScope?
    private var machine = SelectionMachine()
    private var watches: [Task<Void, Never>] = []

    init(_ interactor: GetPaymentMethodsInteractor, providers: [PaymentMethod.Kind: any PaymentMethodProvider]) {
        (self.interactor, self.providers) = (interactor, providers)
        machine.awaited = Set(providers.keys)
    }

    deinit { for watch in watches { watch.cancel() } }

    /// The present state, and then each further one: a new stream for each call.
    public nonisolated func state() -> AsyncStream<PaymentMethodSelectionState> { states.stream() }
    /// The present state.
    public nonisolated var currentState: PaymentMethodSelectionState { states.latest ?? .loading }

    /// Shows the methods with all words of `query` in their names, identifiers or networks.
    public func search(_ query: String) {
        checkout?.noteActivity()
        change { $0.query = String(query.prefix(Self.longestQuery)) }
    }

    /// Sets the names of methods for the search.
    public func setTexts(_ texts: InputLocalizable) { change { $0.name = { texts.text($0.nameKey) } } }

    /// Goes to a method.  One that is not shown, as its reader was unplugged meanwhile, is ignored.
    public func onPaymentMethodSelected(_ method: PaymentMethod) async {
        guard machine.has(method) else { return }
        await checkout?.select(method)
    }

    func attach(to checkout: CheckoutScope) {
        self.checkout = checkout
        guard watches.isEmpty else { return }
        for (kind, provider) in providers {
            watches.append(
                Task { [weak self] in
                    for await isAvailable in provider.availability { await self?.set(kind, isAvailable) }
                })
        }
    }

    private func set(_ kind: PaymentMethod.Kind, _ isAvailable: Bool) {
        change {
            $0.awaited.remove(kind)
            if isAvailable { $0.available.insert(kind) } else { $0.available.remove(kind) }
        }
    }

    func load(currency: String) async {
        change { $0.failure = nil }
        do throws(CheckoutError) {
            let methods = try await interactor()
            change { ($0.methods, $0.currency, $0.failure) = (methods, currency, nil) }
        } catch {
            change { $0.failure = error.description }
        }
    }

    private func change(_ body: (inout SelectionMachine) -> Void) {
        body(&machine)
        states.update { [state = machine.state] in $0 == state ? nil : state }
    }
}
