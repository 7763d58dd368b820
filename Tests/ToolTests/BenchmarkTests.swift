import TestSupport
import Testing

/// The benchmarks, from outside: what they count is within its limits.  Times, and ratios of times, are `Benchmarks/run`'s, on a
/// release build.
@Suite struct BenchmarkTests {
    @Test(
        "allocations, transfers, flushes, wake-ups and what stays in use are within their limits",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"),
        .timeLimit(.minutes(10)), .serialized,
        // The others wait for readers or store thousands of payments; `Tests/all benchmarks` judges them of a release build.
        arguments: Tier.first(
            ["kernel", "layers"],
            then: [
                "tlv", "terminal", "loyalty", "trace", "store", "usb", "pcsc", "link", "passport", "polling",
                "forwarding", "checkout",
            ]))
    func kept(_ name: String) async throws {
        let outcome = try await Program.run([Program.built("benchmarks"), name, "--gate"])
        #expect(outcome.status == 0 && outcome.output.contains("(limit "), "\(outcome)")
    }

    @Test("a part that fails is told, the others run on, and the status says so")
    func failing() async throws {
        // umockdev ends a process that has no room for its bus.
        let outcome = try await Program.run(
            [Program.built("benchmarks"), "link", "passport", "--gate"],
            environment: ["TMPDIR": "/nonexistent", "SWIFT_BACKTRACE": "enable=no"])
        #expect(outcome.status == 1, "\(outcome)")
        #expect(outcome.output.contains("link: FAILED: ") && outcome.output.contains("== FAILED: link\n"), "\(outcome)")
        #expect(outcome.output.contains("passport: DG1 and DG2"), "\(outcome)")
    }
}
