import Foundation
import TestSupport
public import Testing

/// A suite that needs umockdev's library loaded from the start of the process: it runs in a process of its own, this
/// test program called again, and fails as it does there.  The runner finds that one's events beside its own.
public struct Preloaded: SuiteTrait, TestScoping {
    public var isRecursive: Bool { false }

    /// Why there can be no such process here; nil if there can.
    public static var obstacle: String? {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        return folders.contains { FileManager.default.fileExists(atPath: "\($0)/\(library)") }
            ? nil : "umockdev is not installed"
    }

    /// Whether this is that process.
    public static var isHere: Bool { ProcessInfo.processInfo.environment["PRELOADED_SUITE"] != nil }

    private static let library = "libumockdev-preload.so.0"

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard !Self.isHere else { return try await function() }
        let events = ProcessInfo.processInfo.environment["SWIFT_CONTACTLESS_TMPDIR"].map {
            ["--event-stream-version", "0", "--event-stream-output-path", "\($0)/events.\(test.name)"]
        }
        let outcome = try await Program.run(
            [Program.this, "--testing-library", "swift-testing", "--no-parallel", "--filter", "\\.\(test.name)/"]
                + (events ?? []),
            environment: ["LD_PRELOAD": Self.library, "PRELOADED_SUITE": test.name], timeout: .seconds(600))
        let passed = (outcome.output + outcome.error).split(separator: "\n").last { $0.contains("Test run with") } ?? ""
        print("\(test.name), in a process of its own: \(passed)\n\(outcome.output)")
        #expect(outcome.status == 0 && passed.contains(" passed"), "\(outcome)")
    }
}

extension Trait where Self == Preloaded {
    public static var preloaded: Preloaded { Preloaded() }
}
