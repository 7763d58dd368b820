import TestSupport
import Testing

/// The benchmarks, from outside: what they measure comes out as it should.  How long it takes is not looked at, but for what
/// does not depend on the machine.
@Suite struct BenchmarkTests {
    @Test(arguments: ["kernel", "terminal"]) func ends(_ name: String) async throws {
        let outcome = try await Program.run([Program.built("benchmarks"), name])
        // 1: a limit is not kept, as in a build that is not optimized.
        #expect([0, 1].contains(outcome.status) && outcome.output.hasPrefix("\(name): "), "\(outcome)")
    }

    @Test(
        "wake-ups, allocations and what stays in use are within their limits, and ratios within one and a half times theirs",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"),
        .timeLimit(.minutes(10)), .serialized,
        arguments: ["layers", "usb", "pcsc", "link", "passport", "polling", "forwarding"])
    func kept(_ name: String) async throws {
        let outcome = try await Program.run([Program.built("benchmarks"), name, "--gate"])
        #expect(outcome.status == 0 && outcome.output.contains("(limit "), "\(outcome)")
    }
}
