import Foundation

/// Prometheus' own program, which judges metrics and alerts: installed, or unpacked by Tests/install, as its package starts a service.
public enum Promtool {
    private static let unpacked = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../.build/promtool").standardized.path

    private static var path: String {
        FileManager.default.isExecutableFile(atPath: unpacked) ? unpacked : "promtool"
    }

    public static var isInstalled: Bool { path == unpacked || Program.isInstalled("promtool") }

    /// Runs it.
    public static func run(_ arguments: String..., input: String = "") async throws -> Program.Outcome {
        try await Program.run([path] + arguments, input: input)
    }
}
