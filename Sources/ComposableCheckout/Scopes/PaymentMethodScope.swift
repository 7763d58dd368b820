/// A method while a customer pays by it.
public protocol PaymentMethodScope: AnyObject, Sendable {
    var method: PaymentMethod { get }
    /// Begins, when the method's route is shown.
    func start() async
    /// Ends, and wipes what the customer entered.  A payment under way continues.
    func cancel() async
}

/// The source of the scopes for one kind of method.  A kind is added to the checkout by registering its provider in the
/// container, under the kind's name.
public protocol PaymentMethodProvider: Sendable {
    /// True while the method can be used, such as while there is a reader: the present value first, then each change.
    var availability: AsyncStream<Bool> { get }
    /// Returns a scope for a customer.
    ///
    /// - Throws: ``CheckoutError/configuration(_:)`` if the session lacks something.
    func scope(
        for method: PaymentMethod, _ configuration: CheckoutConfiguration, in checkout: CheckoutScope
    ) async throws(CheckoutError) -> any PaymentMethodScope
}

extension PaymentMethodProvider {
    /// A method that can always be used.
    public var availability: AsyncStream<Bool> {
        AsyncStream { continuation in
            continuation.yield(true)
        }
    }
}
