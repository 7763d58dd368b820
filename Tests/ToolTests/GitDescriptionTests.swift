import Foundation
import TestSupport
import Testing

/// A build in a clone tells its commit.  Here a package of a few files is built, which has the plugin and the tools' version.
@Suite(
    .thorough("Swift builds a package again and again; that a tool tells its version stays fast, in DebianPackageTests")
)
struct GitDescriptionTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized
    private let folder = FileManager.default.temporaryDirectory.appending(path: "clone-\(UUID().uuidString)")

    private func write(_ text: String, to file: String) throws {
        let file = folder.appending(path: file)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    private func copy(_ name: String) throws {
        let copy = folder.appending(path: name)
        try FileManager.default.createDirectory(at: copy.deletingLastPathComponent(), withIntermediateDirectories: true)
        try FileManager.default.copyItem(at: Self.root.appending(path: name), to: copy)
    }

    private func git(_ arguments: String) async throws {
        try await Git.run(arguments.split(separator: " ").map(String.init), in: folder)
    }

    /// Builds the package, and returns what its program says.
    private func version() async throws -> String {
        // Swift's driver compares the files' times by the second: it compiles nothing anew that changes twice within one.
        try await Task.sleep(for: .seconds(1))
        let outcome = try await Program.run(
            [
                "swift", "run", "--quiet", "--package-path", folder.path, "-debug-info-format", "none",
                "--disable-index-store",
            ],
            timeout: .seconds(600))
        try #require(outcome.status == 0, "\(outcome)")
        return outcome.output.trimmingCharacters(in: .newlines)
    }

    @Test("Each commit, edit and tag is in the next build; at its tag a version is alone, as outside of a clone")
    func versions() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try copy("Tools/GitDescription")
        try copy("Tools/ToolSupport/PackageVersion.swift")
        try write(
            """
            // swift-tools-version: 6.2
            import PackageDescription

            let package = Package(
                name: "version",
                targets: [
                    .target(
                        name: "GitDescription", path: "Tools/GitDescription", exclude: ["Plugin", "describe"],
                        plugins: ["GitDescriptionPlugin"]),
                    .plugin(
                        name: "GitDescriptionPlugin", capability: .buildTool(), path: "Tools/GitDescription/Plugin"),
                    .executableTarget(
                        name: "version", dependencies: ["GitDescription"], path: "Tools/ToolSupport"),
                ])

            """, to: "Package.swift")
        try write("print(PackageVersion.current)\n", to: "Tools/ToolSupport/main.swift")
        try write(".build\n", to: ".gitignore")
        try await git("init --quiet")
        try await git("add --all")
        try await git("commit --quiet --message First")
        let first = try await version()
        let number = try #require(first.wholeMatch(of: #/(\d+\.\d+\.\d+)-dev\+[0-9a-f]{7,40}/#)).output.1
        // A tag that is no version's counts for nothing.
        try await git("tag nightly")
        try await git("tag 0.0.1")
        #expect(try await version() == "\(number)-dev+0.0.1")
        try await git("commit --quiet --allow-empty --message Second")
        let second = try await version()
        #expect(second.wholeMatch(of: #/[0-9.]+-dev\+0\.0\.1-1-g[0-9a-f]{7,40}/#) != nil, "\(second)")
        // Any file, not only what is compiled.
        try write(".build\n*.o\n", to: ".gitignore")
        #expect(try await version() == "\(second)-dirty")
        try await git("commit --quiet --all --message Third")
        try await git("tag \(number)")
        #expect(try await version() == number)
        try await git("checkout --quiet HEAD~1")
        #expect(try await version() == second)
        // The clone around a source package is not its own.
        let outcome = try await Program.run(
            [folder.appending(path: "Tools/GitDescription/describe").path, "\(folder.path)/Tools"])
        #expect(outcome.status == 0 && outcome.output == "\n", "\(outcome)")
    }
}
