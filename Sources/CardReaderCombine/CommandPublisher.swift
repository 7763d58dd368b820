import CardReaderAdapter
import OpenCombine
import Synchronization
import Waiting

/// A publisher of one call, which begins with the first subscriber.  Each subscriber receives the result, even if it
/// subscribes later.
///
/// When nobody subscribes any more the call is canceled.  A result after that is kept, here and by the service, until
/// a subscriber has taken it: somebody may have paid.
final class CommandPublisher<Output: Sendable>: Publisher, @unchecked Sendable {
    typealias Failure = any Error
    // Unchecked: the mutex ensures that one task at a time calls a subscriber.

    private let command: @Sendable () async throws -> Output
    private let claim = ResultClaim()
    private let state = Mutex(State())

    private struct State {
        var task: Task<Void, Never>?
        var result: Result<Output, any Error>?
        var seats: [ObjectIdentifier: Seat] = [:]
    }

    init(_ command: @escaping @Sendable () async throws -> Output) { self.command = command }

    func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
        let seat = Seat(self, { _ = subscriber.receive($0) }, { subscriber.receive(completion: $0) })
        state.withLock { state in
            state.seats[ObjectIdentifier(seat)] = seat
            guard state.task == nil else { return }
            state.task = Task { [self] in
                let result: Result<Output, any Error>
                do {
                    result = .success(try await ResultClaim.$current.withValue(claim) { try await command() })
                } catch {
                    result = .failure(error)
                }
                let seats = self.state.withLock { state in
                    state.result = result
                    return state.seats.values
                }
                for seat in seats { seat.settle(result) }
            }
        }
        subscriber.receive(subscription: seat)
        if let result = state.withLock({ $0.result }) { seat.settle(result) }
    }

    private func leave(_ seat: Seat) {
        // Canceled outside the lock.
        let task = state.withLock { state -> Task<Void, Never>? in
            state.seats[ObjectIdentifier(seat)] = nil
            return state.seats.isEmpty && state.result == nil ? state.task : nil
        }
        task?.cancel()
    }

    /// A subscriber, which receives the result once it has requested one.
    private final class Seat: Subscription, @unchecked Sendable {
        // Unchecked: the closures are called once, by the owner that took them out of the mutex.
        private struct State {
            var isAsking = false
            var result: Result<Output, any Error>?
            var isOver = false
        }

        private let publisher: CommandPublisher
        private let receive: (Output) -> Void
        private let complete: (Subscribers.Completion<any Error>) -> Void
        private let state = Mutex(State())

        init(
            _ publisher: CommandPublisher, _ receive: @escaping (Output) -> Void,
            _ complete: @escaping (Subscribers.Completion<any Error>) -> Void
        ) {
            (self.publisher, self.receive, self.complete) = (publisher, receive, complete)
        }

        func request(_ demand: Subscribers.Demand) {
            guard demand > .none else { return }
            deliver { $0.isAsking = true }
        }

        func settle(_ result: Result<Output, any Error>) {
            deliver { $0.result = result }
        }

        private func deliver(_ change: (inout State) -> Void) {
            let result = state.withLock { state -> Result<Output, any Error>? in
                change(&state)
                guard !state.isOver, let result = state.result else { return nil }
                // Subscribers without demand receive failures, too.
                if case .success = result, !state.isAsking { return nil }
                state.isOver = true
                return result
            }
            switch result {
            case .success(let value):
                publisher.claim.take()
                receive(value)
                complete(.finished)
            case .failure(let error): complete(.failure(error))
            case nil: return
            }
            publisher.leave(self)
        }

        func cancel() {
            let wasOver = state.withLock { state in
                defer { state.isOver = true }
                return state.isOver
            }
            if !wasOver { publisher.leave(self) }
        }
    }
}
