import Dispatch
import Fuzzing
import Synchronization

fuzz { bytes in
    let outcome = Mutex<Result<Void, any Error>>(.success(()))
    let isOver = DispatchSemaphore(value: 0)
    Task.detached {
        do { try await TravelDocumentFuzzTargets.chip(bytes) } catch {
            outcome.withLock { $0 = .failure(error) }
        }
        isOver.signal()
    }
    isOver.wait()
    try outcome.withLock { $0 }.get()
}
