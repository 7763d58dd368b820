import TestSupport
import Testing

/// The first card of a process has to wait no longer than any other: a process for each measurement.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FirstTapTests {
    /// The least of several: a machine that does other things may hold us up itself, and what is read once is read each time.
    private func ratio(_ arguments: [String] = []) async throws -> Double {
        var least = Double.infinity
        for _ in 0..<5 {
            let outcome = try await Program.run([Program.built("first-tap")] + arguments)
            let times = outcome.output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            try #require(times.count == 2 && times[1] > 0, "\(outcome)")
            least = min(least, times[0] / times[1])
        }
        return least
    }

    /// The promise is twice as long at most; here half as much again.
    @Test("after a rehearsal the host takes as long for the first card as for later ones")
    func rehearsed() async throws {
        let ratio = try await ratio()
        #expect(ratio <= 3)
    }

    @Test("so does a card that is read, and not paid with")
    func inspected() async throws {
        let ratio = try await ratio(["inspect"])
        #expect(ratio <= 3)
    }

    @Test(
        "without one it takes many times as long, so that the measurement means something",
        arguments: [["cold"], ["cold", "inspect"]])
    func cold(_ arguments: [String]) async throws {
        let ratio = try await ratio(arguments)
        #expect(ratio > 3)
    }
}
