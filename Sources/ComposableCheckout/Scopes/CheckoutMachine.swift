/// The state of a checkout.
public enum CheckoutState: Hashable, Sendable {
    /// The session's configuration is being fetched.
    case initializing
    case ready(CheckoutConfiguration)
    case success(PaymentResult)
    /// The payment was not made, or it is not known.
    case failure(CheckoutError)
    /// The checkout is over.
    case dismissed
}

/// The life of a checkout: which states follow which, and what is shown.
struct CheckoutMachine: Sendable {
    enum Event: Sendable {
        case started
        case configured(CheckoutConfiguration)
        case failed(CheckoutError)
        /// A method's scope wants to pay.
        case payRequested
        /// The application has decided whether the payment may be made.
        case admitted(Bool)
        /// The payment has to be confirmed by the customer.
        case challenged(CheckoutRoute)
        case paid(PaymentResult)
        case retried
        /// The customer wants another way to pay, after a failure.
        case left
        case idled
        case dismissed
    }

    enum Action: Hashable, Sendable {
        case load
        case publish(CheckoutState)
        /// Ask the application, before anything is shown.
        case askApplication
        case begin
        /// Ask again for a payment whose result is not known.
        case resolve
        case reset(CheckoutRoute)
        case replace(CheckoutRoute)
        case showLastMethod
        case wipe
    }

    private enum Phase: Hashable {
        case free
        /// The application is being asked.
        case asking
        /// A payment is under way.
        case paying
    }

    private(set) var state = CheckoutState.initializing
    private var phase = Phase.free
    private var configuration: CheckoutConfiguration?
    /// True if the customer has gone while a payment was under way.
    private var isAbandoned = false
    /// True while it is not known whether a payment was made: nothing else is paid meanwhile.
    private(set) var isUnknown = false

    var isPaying: Bool { phase != .free }

    mutating func next(_ event: Event) -> [Action] {
        switch event {
        case .started:
            guard phase == .free, !isUnknown, state != .dismissed else { return [] }
            return [.load] + publish(.initializing)
        case .configured(let configuration):
            guard state != .dismissed else { return [] }
            let isFirst = state == .initializing
            self.configuration = configuration
            // A change while a payment is under way, or after it, waits for the next customer.
            guard phase == .free, isFirst || isReady else { return [] }
            return publish(.ready(configuration)) + (isFirst ? [.reset(.methodSelection)] : [])
        case .failed(let error):
            guard state != .dismissed else { return [] }
            if phase == .paying {
                if case .transport(_, mayHaveHappened: true) = error { isUnknown = true } else { isUnknown = false }
            }
            phase = .free
            if error == .cancelled {
                defer { isAbandoned = false }
                return [.reset(isAbandoned ? .start : .methodSelection)]
            }
            // The form shows which fields to correct.
            if case .validation = error, let configuration {
                return publish(.ready(configuration)) + [.showLastMethod]
            }
            return publish(.failure(error)) + [.replace(.failure(error))]
        case .payRequested:
            guard phase == .free, !isUnknown, isReady else { return [] }
            (phase, isAbandoned) = (.asking, false)
            return [.askApplication]
        case .admitted(let isAdmitted):
            guard phase == .asking else { return [] }
            phase = isAdmitted ? .paying : .free
            return isAdmitted ? [.begin] : []
        case .challenged(let route):
            return phase == .paying ? [.replace(route)] : []
        case .paid(let result):
            guard phase == .paying else { return [] }
            return end(result)
        case .retried:
            guard phase == .free, case .failure = state else { return [] }
            if isUnknown {
                phase = .paying
                return [.replace(.processing), .resolve]
            }
            guard let configuration else { return [.load] + publish(.initializing) }
            return publish(.ready(configuration)) + [.showLastMethod]
        case .left:
            guard phase == .free, !isUnknown, case .failure = state, let configuration else { return [] }
            return publish(.ready(configuration)) + [.reset(.methodSelection)]
        case .idled:
            guard state != .dismissed else { return [] }
            // A wait for a card ends.  A payment that has begun comes to its end, and is shown until the next idling.
            guard phase == .free else {
                isAbandoned = true
                return [.wipe]
            }
            guard !isUnknown, let configuration else { return [.wipe] }
            // A session is paid once.
            if case .success = state { return [.wipe] + publish(.dismissed) + [.reset(.start)] }
            return [.wipe] + publish(.ready(configuration)) + [.reset(.start)]
        case .dismissed:
            guard phase == .free, state != .dismissed else { return [] }
            return [.wipe] + publish(.dismissed) + [.reset(.start)]
        }
    }

    private var isReady: Bool { if case .ready = state { true } else { false } }

    private mutating func end(_ result: PaymentResult) -> [Action] {
        phase = .free
        switch result.status {
        case .success:
            isUnknown = false
            return publish(.success(result)) + [.replace(.success(result))]
        case .failed:
            isUnknown = false
            let error = CheckoutError.refused(code: "declined", message: result.errorMessage ?? "declined")
            return publish(.failure(error)) + [.replace(.failure(error))]
        case .pending, .unknown:
            isUnknown = true
            let error = CheckoutError.transport(
                reason: "the result of the payment is not known", mayHaveHappened: true)
            return publish(.failure(error)) + [.replace(.failure(error))]
        }
    }

    private mutating func publish(_ state: CheckoutState) -> [Action] {
        guard state != self.state else { return [] }
        self.state = state
        return [.publish(state)]
    }
}
