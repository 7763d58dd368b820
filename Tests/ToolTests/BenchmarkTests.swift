import TestSupport
import Testing

/// The benchmarks, from outside: what they measure comes out as it should.  How long it takes is not looked at.
@Suite struct BenchmarkTests {
    @Test(arguments: ["kernel", "terminal"]) func ends(_ name: String) async throws {
        let outcome = try await Program.run([Program.built("benchmarks"), name])
        // 1: a limit is not kept, as in a build that is not optimised.
        #expect([0, 1].contains(outcome.status) && outcome.output.hasPrefix("\(name): "), "\(outcome)")
    }
}
