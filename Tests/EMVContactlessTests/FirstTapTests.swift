import TestSupport
import Testing

/// The first card of a process has to wait no longer than any other.  What it would wait for is counted here, in a process for each
/// case; how long it takes, and how much it allocates, `Benchmarks/run first` compares with later cards.
struct FirstTapTests {
    /// How many files of keys and tables are read before the first card, and for it.
    private func loads(_ arguments: [String]) async throws -> (before: Int, forFirst: Int) {
        let outcome = try await Program.run([Program.built("first-tap")] + arguments)
        let figures = outcome.output.split(separator: " ").prefix(2).compactMap { Int($0) }
        try #require(figures.count == 2, "\(outcome)")
        return (figures[0], figures[1])
    }

    @Test(
        "after a rehearsal no key is parsed and no table is read for the first card, paid with or only read",
        arguments: [[], ["inspect"]])
    func rehearsed(_ arguments: [String]) async throws {
        let loads = try await loads(arguments)
        #expect(loads.before > 0 && loads.forFirst == 0, "\(loads)")
    }

    @Test("without one they are, so that the count means something", arguments: [["cold"], ["cold", "inspect"]])
    func cold(_ arguments: [String]) async throws {
        #expect(try await loads(arguments).forFirst > 0)
    }
}
