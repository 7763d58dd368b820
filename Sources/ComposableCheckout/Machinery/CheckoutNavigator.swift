public import FoundationEssentials
import Waiting

/// A place of the checkout that a front end shows.
public enum CheckoutRoute: Hashable, Sendable {
    /// The place before the first customer, and after each.
    case start
    case methodSelection
    /// A method, by ``PaymentMethod/id``.
    case method(String)
    /// A payment is under way.
    case processing
    /// The page on which the customer confirms the payment.
    case challenge(URL)
    case success(PaymentResult)
    case failure(CheckoutError)
}

/// The routes behind the one that is shown, as a value.
struct NavigationStack: Hashable, Sendable {
    /// The maximum number of routes; a further one replaces the last.
    static let maximumDepth = 16

    private(set) var routes: [CheckoutRoute] = [.start]
    /// The last method that was shown since the start.
    private(set) var lastMethod: CheckoutRoute?

    var top: CheckoutRoute { routes.last ?? .start }

    /// Each returns true if another route is shown now.
    mutating func push(_ route: CheckoutRoute) -> Bool {
        change(to: route) { routes in
            if routes.count == Self.maximumDepth { routes.removeLast() }
            routes.append(route)
        }
    }

    mutating func replace(with route: CheckoutRoute) -> Bool {
        change(to: route) { routes in
            if routes.count > 1 { routes.removeLast() }
            routes.append(route)
        }
    }

    mutating func reset(to route: CheckoutRoute) -> Bool {
        if route == .start { lastMethod = nil }
        return change(to: route) { $0 = route == .start ? [.start] : [.start, route] }
    }

    mutating func back() -> Bool {
        guard routes.count > 1 else { return false }
        routes.removeLast()
        return true
    }

    /// Goes back to the last method, with the selection behind it; to the selection if there was no method.
    mutating func retry() -> Bool {
        let shown = top
        routes = [.start, .methodSelection] + (lastMethod.map { [$0] } ?? [])
        return top != shown
    }

    private mutating func change(to route: CheckoutRoute, _ body: (inout [CheckoutRoute]) -> Void) -> Bool {
        guard route != top else { return false }
        body(&routes)
        if case .method = route { lastMethod = route }
        return true
    }
}

/// The way through the checkout.  Any number of listeners receive the present route first, and then each change.
public final class CheckoutNavigator: Sendable {
    private let stack = Lock(NavigationStack())
    private let shown = Multicast<CheckoutRoute>(.start, keeping: .newest(64))
    /// Keeps listeners' order that of the changes.
    private let order = Lock(())

    public init() {}

    /// The route that is shown.
    public var route: CheckoutRoute { stack.withLock { $0.top } }

    /// All routes, from the start to the one that is shown.
    public var stackedRoutes: [CheckoutRoute] { stack.withLock { $0.routes } }

    /// The present route, and then each further one: a new stream for each access.  A listener that falls behind by more
    /// than 64 misses the oldest.
    public var navigationEvents: AsyncStream<CheckoutRoute> { shown.stream() }

    /// Shows a route over the present one.  The same route twice is one.
    public func push(_ route: CheckoutRoute) { change { $0.push(route) } }

    /// Shows a route in place of the present one.
    public func replace(with route: CheckoutRoute) { change { $0.replace(with: route) } }

    /// Shows a route with nothing but the start behind it.
    public func reset(to route: CheckoutRoute) { change { $0.reset(to: route) } }

    /// Shows the route behind the present one.
    ///
    /// - Returns: false at the start.
    @discardableResult public func back() -> Bool { change { $0.back() } }

    /// Shows the last method again, after a failure.
    public func retry() { change { $0.retry() } }

    /// Shows the start, as nobody is there any more.
    public func idle() { change { $0.reset(to: .start) } }

    @discardableResult private func change(_ body: (inout NavigationStack) -> Bool) -> Bool {
        order.withLock { _ in
            let top = stack.withLock { stack in body(&stack) ? stack.top : nil }
            if let top { shown.send(top) }
            return top != nil
        }
    }
}
