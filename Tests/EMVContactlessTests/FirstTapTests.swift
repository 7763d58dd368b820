import TestSupport
import Testing

/// The first card of a process has to wait no longer than any other.  What it would wait for is counted here, in a process for each
/// case; how long it takes, and how much it allocates, `Benchmarks/run first` compares with later cards.
struct FirstTapTests {
    /// What a process did, as first-tap tells it.
    private struct Account {
        /// How many files of keys and tables were read before the first card, and for it.
        let (before, forFirst): (Int, Int)
        /// The first card's allocations, in those of a later one.
        let allocations: Double

        init(_ arguments: [String]) async throws {
            let outcome = try await Program.run([Program.built("first-tap")] + arguments)
            let figures = outcome.output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            try #require(figures.count == 6 && figures[5] > 0, "\(outcome)")
            (before, forFirst, allocations) = (Int(figures[0]), Int(figures[1]), figures[4] / figures[5])
        }
    }

    @Test(
        "after a rehearsal no key is parsed and no table is read for the first card, paid with or only read",
        arguments: [[], ["inspect"]])
    func rehearsed(_ arguments: [String]) async throws {
        let account = try await Account(arguments)
        #expect(account.before > 0 && account.forFirst == 0, "\(account)")
    }

    /// A table that no count knows of shows here: without a rehearsal it is more than ten times as much.
    @Test(
        "after a rehearsal the first card takes no more memory than later ones",
        .thorough("five processes, of which the best counts; that nothing is loaded stays"),
        .unsanitized(by: .address, .thread, because: "a sanitizer's heap counts no allocations"),
        arguments: [[], ["inspect"]])
    func allocations(_ arguments: [String]) async throws {
        var least = Double.infinity
        // A new thread of the runtime's pool makes up to some fifty.
        for _ in 0..<5 { least = min(least, try await Account(arguments).allocations) }
        #expect(least <= 1.3)
        #expect(try await Account(["cold"] + arguments).allocations > 10)
    }

    @Test("without one they are, so that the count means something", arguments: [["cold"], ["cold", "inspect"]])
    func cold(_ arguments: [String]) async throws {
        #expect(try await Account(arguments).forFirst > 0)
    }
}
