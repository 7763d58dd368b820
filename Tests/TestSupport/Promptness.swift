import Waiting

extension Duration {
    /// Within how long a cancelled wait must end in a test.
    ///
    /// The promise is 50 ms, and `Benchmarks` measures it.  On a machine that does other things besides, a test can only
    /// tell waking from not waking; what it waits for would not come for longer than this.
    public static let promptly = Duration.seconds(45)
}

/// Asks until `isTrue`: every 5 ms, for two minutes at most; in simulated time whenever a deadline has passed with all
/// that follows, for an hour at most.
///
/// - Parameter what: named where it does not come.
public func wait(
    for what: String, isolation: isolated (any Actor)? = #isolation, until isTrue: () async throws -> Bool
) async throws {
    let simulated = TestTime.current
    let end = Time.now + (simulated == nil ? .seconds(120) : .seconds(3600))
    // What is under way comes to its end first.
    if simulated != nil, try await !isTrue() { try await Time.sleep(for: .zero) }
    while try await !isTrue() {
        guard Time.now < end else { throw NeverCame(description: "no \(what)") }
        if let simulated { try await simulated.waitForNext() } else { try await Task.sleep(for: .milliseconds(5)) }
    }
}

/// Waits until the task is canceled: what an answer that never comes does.
///
/// - Throws: `CancellationError`.
public func waitUntilCanceled() async throws { try await Delivery<Void>().receive() }

/// What a test waited for did not come.
struct NeverCame: Error, CustomStringConvertible {
    let description: String
}
