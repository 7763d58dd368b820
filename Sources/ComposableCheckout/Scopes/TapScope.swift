import Waiting

/// The state of a payment by tap, as the customer sees it, in their usual order.
public enum TapState: String, Hashable, Codable, Sendable, CaseIterable {
    case idle, presentCard, reading, seePhone, tryAgain, otherCard, removeCard, processing
    case approved, declined, cancelled, unknown, outOfService

    /// The key of its text in ``InputLocalizable``.
    public var textKey: String { "tap.\(rawValue)" }

    /// True once it is settled whether there was a payment, or that nobody knows.
    package var isOutcome: Bool { [.approved, .declined, .cancelled, .unknown].contains(self) }

    /// True while the customer may still go back: no card was found, or the one that was is asked for again.
    package var isCancellable: Bool { ![.reading, .removeCard, .processing].contains(self) && !isOutcome }
}

/// A payment by tap, as a value.
struct TapMachine: Sendable {
    enum Event: Sendable {
        case began
        case message(TapMessage)
        case ended(PaymentResult)
        case failed(TapFailure)
        /// The reader comes or goes.
        case presence(Bool)
        case reset
    }

    private(set) var state = TapState.idle
    private(set) var isUnderWay = false

    /// - Returns: true if the state has changed.
    mutating func next(_ event: Event) -> Bool {
        let before = state
        switch event {
        case .began: (isUnderWay, state) = (true, .idle)
        case .message(let message):
            if isUnderWay { state = TapState(rawValue: message.rawValue) ?? state }
        case .ended(let result):
            isUnderWay = false
            switch result.status {
            case .success: state = .approved
            case .failed: state = .declined
            case .pending, .unknown: state = .unknown
            }
        case .failed(let failure):
            isUnderWay = false
            switch failure {
            case .unknown: state = .unknown
            // The last message has said what to do.
            case .failed: if ![.otherCard, .outOfService].contains(state) { state = .cancelled }
            case .cancelled: state = .cancelled
            }
        case .presence(let isThere):
            if !isThere, !isUnderWay { state = .outOfService }
            if isThere, state == .outOfService { state = .idle }
        case .reset: if !isUnderWay { state = .idle }
        }
        return state != before
    }
}

/// A payment by a card or phone that is held to the reader.  It begins when the method is chosen.
public actor TapScope: PaymentMethodScope {
    public nonisolated let method: PaymentMethod
    private nonisolated let states = Multicast<TapState>(.idle, keeping: .newest(16))
    private let reader: any TapReader
    private weak var checkout: CheckoutScope?
    private var machine = TapMachine()
    private var watches: [Task<Void, Never>] = []
    private var attempt: Task<Void, Never>?
    /// The payments whose result is not known, by the checkout's key.
    private var unknownKeys: [String: String] = [:]

    init(method: PaymentMethod, reader: any TapReader, checkout: CheckoutScope) {
        (self.method, self.reader, self.checkout) = (method, reader, checkout)
    }

    deinit { for watch in watches { watch.cancel() } }

    /// The present state, and then each further one: a new stream for each access.
    public nonisolated var state: AsyncStream<TapState> { states.stream() }
    /// The present state.
    public nonisolated var currentState: TapState { states.latest ?? .idle }

    /// Begins to wait for a card, unless that is under way.
    public func start() {
        guard attempt == nil else { return }
        if watches.isEmpty {
            let (messages, presence) = (reader.messages, reader.presence)
            watches = [
                Task { [weak self] in for await message in messages { await self?.take(.message(message)) } },
                Task { [weak self] in for await isThere in presence { await self?.take(.presence(isThere)) } },
            ]
        }
        attempt = Task { [weak self] in
            _ = try? await self?.submit()
            await self?.ended()
        }
    }

    private func ended() { attempt = nil }

    /// Ends the wait for a card.  A card that was found pays.
    public func cancel() async {
        if attempt != nil, await !reader.cancel() { return }
        take(.reset)
    }

    /// Waits for a card, and pays.
    ///
    /// - Returns: nil if nothing was begun.
    /// - Throws: ``CheckoutError`` if nothing was paid.
    @discardableResult public func submit() async throws(CheckoutError) -> PaymentResult? {
        guard let checkout, !machine.isUnderWay else { return nil }
        let payment = CheckoutPayment(method: method, showsProcessing: false) { [self] terms throws(CheckoutError) in
            try await charge(terms)
        } resolve: { [self] terms throws(CheckoutError) in
            try await resolve(terms)
        }
        return try await checkout.pay(payment)
    }

    private func charge(_ terms: CheckoutPayment.Terms) async throws(CheckoutError) -> PaymentResult {
        take(.began)
        do throws(TapFailure) {
            let result = try await reader.charge(amount: terms.amount, currency: terms.currency)
            take(.ended(result))
            return result
        } catch {
            take(.failed(error))
            switch error {
            case .cancelled: throw .cancelled
            case .failed(let error): throw error
            case .unknown(let key):
                unknownKeys[terms.key] = key
                return unknown(terms)
            }
        }
    }

    private func unknown(_ terms: CheckoutPayment.Terms) -> PaymentResult {
        PaymentResult(
            paymentID: "", status: .unknown, amount: terms.amount, currency: terms.currency, method: method.kind)
    }

    private func resolve(_ terms: CheckoutPayment.Terms) async throws(CheckoutError) -> PaymentResult {
        guard let key = unknownKeys[terms.key] else { return unknown(terms) }
        var result = unknown(terms)
        result.status = .failed
        result = try await reader.resolve(key, amount: terms.amount, currency: terms.currency) ?? result
        unknownKeys[terms.key] = nil
        take(.ended(result))
        return result
    }

    private func take(_ event: TapMachine.Event) {
        if machine.next(event) { states.send(machine.state) }
    }
}

/// The source of scopes for taps: the method is shown only while there is a reader.
struct TapProvider: PaymentMethodProvider {
    let reader: any TapReader

    var availability: AsyncStream<Bool> { reader.presence }

    func scope(
        for method: PaymentMethod, _ configuration: CheckoutConfiguration, in checkout: CheckoutScope
    ) async throws(CheckoutError) -> any PaymentMethodScope {
        TapScope(method: method, reader: reader, checkout: checkout)
    }
}
