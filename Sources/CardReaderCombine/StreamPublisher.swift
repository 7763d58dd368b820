import OpenCombine
import Synchronization
import Waiting

/// A publisher of a sequence's elements.  Each subscriber has its own sequence, which starts with the subscription,
/// and receives every element of it on demand.
struct StreamPublisher<Output: Sendable, Failure: Error>: Publisher {
    /// Delivers elements until there are none, or there is no more demand; returns the failure.
    typealias Delivery = @Sendable (_ send: @Sendable (Output) async -> Bool) async -> Failure?

    private let begin: () -> Delivery

    init(_ stream: @escaping () -> AsyncStream<Output>) where Failure == Never {
        begin = {
            let stream = stream()
            return { send in
                for await element in stream { guard await send(element) else { break } }
                return nil
            }
        }
    }

    init(_ stream: @escaping () -> AsyncThrowingStream<Output, any Error>) where Failure == any Error {
        begin = {
            let stream = stream()
            return { send in
                do {
                    for try await element in stream { guard await send(element) else { break } }
                    return nil
                } catch {
                    return error
                }
            }
        }
    }

    func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
        let pump = Pump<Output, Failure>({ subscriber.receive($0) }, { subscriber.receive(completion: $0) })
        subscriber.receive(subscription: pump)
        pump.run(begin())
    }
}

/// A subscriber and its sequence.  Only one task at a time makes calls.
private final class Pump<Output: Sendable, Failure: Error>: Subscription, @unchecked Sendable {
    // Unchecked: only the task of `run` calls the subscriber, once it has this subscription.
    private let receive: (Output) -> Subscribers.Demand
    private let complete: (Subscribers.Completion<Failure>) -> Void
    private let state = Mutex(State())
    /// Tells that there is demand, or none any more.
    private let changed = Signal()

    private struct State {
        var demand = Subscribers.Demand.none
        var isCancelled = false
        var task: Task<Void, Never>?

        var isReady: Bool { demand != .none || isCancelled }
    }

    init(
        _ receive: @escaping (Output) -> Subscribers.Demand,
        _ complete: @escaping (Subscribers.Completion<Failure>) -> Void
    ) {
        (self.receive, self.complete) = (receive, complete)
    }

    func run(_ deliver: @escaping StreamPublisher<Output, Failure>.Delivery) {
        let task = Task { [self] in
            let failure = await deliver { await self.send($0) }
            let isCancelled = state.withLock { state in
                state.task = nil
                return state.isCancelled
            }
            if !isCancelled { complete(failure.map { .failure($0) } ?? .finished) }
        }
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// Sends an element.
    ///
    /// - Returns: false if there is no more demand.
    private func send(_ element: Output) async -> Bool {
        while !state.withLock({ $0.isReady }) { await changed.wait { state.withLock { $0.isReady } } }
        let isWanted = state.withLock { state in
            guard !state.isCancelled else { return false }
            state.demand -= 1
            return true
        }
        guard isWanted else { return false }
        let more = receive(element)
        state.withLock { $0.demand += more }
        return true
    }

    func request(_ demand: Subscribers.Demand) {
        state.withLock { $0.demand += demand }
        changed.send()
    }

    func cancel() {
        let task = state.withLock { state in
            defer { (state.isCancelled, state.task) = (true, nil) }
            return state.task
        }
        task?.cancel()
        changed.send()
    }
}
