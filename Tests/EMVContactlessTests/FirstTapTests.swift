import TestSupport
import Testing

/// The first card of a process has to wait no longer than any other: a process for each measurement.
@Suite(
    .serialized, .timeLimit(.minutes(5)),
    .unsanitized(by: .address, .thread, because: "the heap is the sanitizer's, and its allocations are not counted"))
struct FirstTapTests {
    /// The ratios of the first card to later ones: of the time until GET PROCESSING OPTIONS, the least of several, since a
    /// machine that does other things may hold us up itself; and of the allocations to the end, nearly the same on every
    /// machine: a new thread of the runtime's pool makes up to some fifty.
    private func ratios(_ arguments: [String] = []) async throws -> (time: Double, allocations: Double) {
        var least = (time: Double.infinity, allocations: Double.infinity)
        for _ in 0..<5 {
            let outcome = try await Program.run([Program.built("first-tap")] + arguments)
            let costs = outcome.output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            try #require(costs.count == 4 && costs[1] > 0 && costs[3] > 0, "\(outcome)")
            least = (min(least.time, costs[0] / costs[1]), min(least.allocations, costs[2] / costs[3]))
        }
        return least
    }

    /// The promise is twice as long at most; here half as much again.  Without a rehearsal the allocations are those of keys
    /// and tables, fifteen times as many as for a later card; with it, some hundreds are left, for the rest of the
    /// transaction.
    @Test("after a rehearsal the host does for the first card what it does for later ones, and takes as long")
    func rehearsed() async throws {
        let ratios = try await ratios()
        #expect(ratios.time <= 3)
        #expect(ratios.allocations <= 1.3)
    }

    @Test("so does a card that is read, and not paid with")
    func inspected() async throws {
        let ratios = try await ratios(["inspect"])
        #expect(ratios.time <= 3)
        #expect(ratios.allocations <= 1.25)
    }

    @Test(
        "without one it takes many times as long, so that the measurement means something",
        arguments: [["cold"], ["cold", "inspect"]])
    func cold(_ arguments: [String]) async throws {
        let ratios = try await ratios(arguments)
        #expect(ratios.time > 3)
        #expect(ratios.allocations > 10)
    }
}
