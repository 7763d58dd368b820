import Foundation
import TestSupport
import Testing

/// `Tests/api` on a small package of its own, with the compiler's own judgment: that the script can fail.
@Suite(
    .timeLimit(.minutes(10)),
    .thorough("Swift builds packages for it; nothing stays fast, as only Tests/all runs the script that it judges"))
struct APIBreakTests {
    private static let script = URL(filePath: #filePath).appending(path: "../../api").standardizedFileURL

    /// A package in a folder, which goes with it: one module, one version, and the script.
    private final class Package {
        let folder = FileManager.default.temporaryDirectory.appending(path: "api-\(UUID().uuidString)")

        init(_ code: String) async throws {
            for name in ["Sources/Small", "Tests", "Tools"] {
                try FileManager.default.createDirectory(
                    at: folder.appending(path: name), withIntermediateDirectories: true)
            }
            try FileManager.default.copyItem(at: APIBreakTests.script, to: folder.appending(path: "Tests/api"))
            try write("#!/bin/sh\n", to: "Tools/install-packages")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o755], ofItemAtPath: folder.appending(path: "Tools/install-packages").path)
            try write(
                """
                // swift-tools-version: 6.2
                import PackageDescription

                let package = Package(
                    name: "small", products: [.library(name: "Small", targets: ["Small"])],
                    targets: [.target(name: "Small")])
                """, to: "Package.swift")
            try write(".build\n", to: ".gitignore")
            try write("", to: "Tests/api-breaks")
            try write(code, to: "Sources/Small/Small.swift")
            try await Git.run(["init", "--quiet"], in: folder)
            try await Git.run(["add", "--all"], in: folder)
            try await Git.run(["commit", "--quiet", "--message", "One"], in: folder)
            try await Git.run(["tag", "1.2.0"], in: folder)
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        func write(_ text: String, to name: String) throws {
            try Data(text.utf8).write(to: folder.appending(path: name))
        }

        func compare() async throws -> Program.Outcome {
            try await Program.run([folder.appending(path: "Tests/api").path], timeout: .seconds(300))
        }
    }

    @Test("a break of the API fails until it is declared; what is for the package alone is no part of it")
    func breaks() async throws {
        let package = try await Package(
            """
            public struct Card {
                public init() {}
                public func remains() {}
                public func goes(_ count: Int) -> Int { count }
                package func isOurs() {}
            }
            """)
        try package.write(
            """
            public struct Card {
                public init() {}
                public func remains() {}
                public func comes() {}
            }
            """, to: "Sources/Small/Small.swift")
        let undeclared = try await package.compare()
        #expect(undeclared.status == 1, "\(undeclared)")
        #expect(undeclared.output == "1.2.0: func Card.goes(_:) has been removed\n", "\(undeclared)")
        #expect(undeclared.error.contains("Tests/api-breaks"), "\(undeclared)")

        try package.write(undeclared.output, to: "Tests/api-breaks")
        let declared = try await package.compare()
        #expect(declared.status == 0 && declared.output.hasPrefix("Nothing public of 1.2.0 is gone"), "\(declared)")

        // What cannot be built is compared with nothing, and is no success.
        try package.write("public struct", to: "Sources/Small/Small.swift")
        let unbuilt = try await package.compare()
        #expect(unbuilt.status == 1 && unbuilt.error.contains("error:"), "\(unbuilt)")
    }
}
