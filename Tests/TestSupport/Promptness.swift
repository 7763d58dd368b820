extension Duration {
    /// Within how long a cancelled wait must end in a test.
    ///
    /// The promise is 50 ms, and `Benchmarks` measures it.  On a machine that does other things besides, a test can only
    /// tell waking from not waking; what it waits for would not come for longer than this.
    public static let promptly = Duration.seconds(45)
}

/// Asks every 5 ms until `isTrue`, for two minutes at most.
///
/// - Parameter what: named where it does not come.
public func wait(
    for what: String, isolation: isolated (any Actor)? = #isolation, until isTrue: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(120)
    while try await !isTrue() {
        guard ContinuousClock.now < end else { throw NeverCame(description: "no \(what)") }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// What a test waited for did not come.
struct NeverCame: Error, CustomStringConvertible {
    let description: String
}
