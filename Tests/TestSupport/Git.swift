public import Foundation

/// Git on a test's own repository.
public enum Git {
    /// Runs git in a folder, as nobody in particular.
    ///
    /// A hook, which may have started the tests, has another repository in its environment: git would work on that one.
    ///
    /// - Throws: ``Failure`` with what git wrote.
    public static func run(_ arguments: [String], in folder: URL) async throws {
        let others = try await Program.run(["git", "rev-parse", "--local-env-vars"]).output.split(separator: "\n")
        let outcome = try await Program.run(
            ["env"] + others.flatMap { ["-u", String($0)] } + ["git", "-C", folder.path]
                + ["user.name=test", "user.email=test@localhost", "commit.gpgsign=false", "tag.gpgsign=false"]
                .flatMap { ["-c", $0] } + arguments)
        guard outcome.status == 0 else { throw Failure(description: "\(outcome)") }
    }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }
}
