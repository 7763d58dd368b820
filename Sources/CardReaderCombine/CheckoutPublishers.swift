public import ComposableCheckout
public import OpenCombine

// The states of a checkout as publishers: each subscriber receives the present one first.

extension CheckoutScope {
    /// The checkout's states.
    public nonisolated var statePublisher: AnyPublisher<CheckoutState, Never> {
        StreamPublisher { [self] in state }.eraseToAnyPublisher()
    }
}

extension CardFormScope {
    /// The form's states.
    public nonisolated var statePublisher: AnyPublisher<CardFormState, Never> {
        StreamPublisher { [self] in state }.eraseToAnyPublisher()
    }
}

extension PaymentMethodSelectionScope {
    /// The selection's states.
    public nonisolated var statePublisher: AnyPublisher<PaymentMethodSelectionState, Never> {
        StreamPublisher { [self] in state() }.eraseToAnyPublisher()
    }
}

extension TapScope {
    /// The states of a payment by tap.
    public nonisolated var statePublisher: AnyPublisher<TapState, Never> {
        StreamPublisher { [self] in state }.eraseToAnyPublisher()
    }
}

extension VoucherScope {
    /// The states of a voucher's entry.
    public nonisolated var statePublisher: AnyPublisher<VoucherState, Never> {
        StreamPublisher { [self] in state }.eraseToAnyPublisher()
    }
}

extension CheckoutNavigator {
    /// The routes that are shown.
    public var navigationPublisher: AnyPublisher<CheckoutRoute, Never> {
        StreamPublisher { [self] in navigationEvents }.eraseToAnyPublisher()
    }
}
