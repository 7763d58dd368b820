import Foundation

enum Repository {
    static let root = URL(filePath: #filePath).appending(path: "../../..").standardized

    /// A text of Swift without its comments and string literals.
    static func code(of text: String) -> String {
        unsaid.removing(from: text)
    }

    private static let unsaid = pattern(#"//[^\n]*|"(?:\\.|[^"\\\n])*""#)

    /// A regular expression for all files of the package: Foundation's are compiled for speed in a debug build, too.
    static func pattern(_ text: String) -> NSRegularExpression {
        do { return try NSRegularExpression(pattern: text) } catch { preconditionFailure("\(text): \(error)") }
    }
}

extension NSRegularExpression {
    func count(in text: String) -> Int { numberOfMatches(in: text, range: text.whole) }

    /// The part of each match that the first group took.
    func captures(in text: String) -> [String] {
        let text = NSString(string: text)
        return matches(in: text as String, range: NSRange(location: 0, length: text.length)).map {
            text.substring(with: $0.range(at: 1))
        }
    }

    func removing(from text: String) -> String {
        stringByReplacingMatches(in: text, range: text.whole, withTemplate: "")
    }
}

extension String {
    fileprivate var whole: NSRange { NSRange(location: 0, length: utf16.count) }
}

/// The package's targets, as SwiftPM reads them from Package.swift.
struct Manifest: Decodable {
    struct Target: Decodable {
        let name: String
        let type: String
        let path: String?
        let exclude: [String]
        let dependencies: [Dependency]

        var folder: String { path ?? "\(type == "test" ? "Tests" : "Sources")/\(name)" }
    }

    /// `{"byName": ["SmartCard", null]}`, `{"product": ["Logging", "swift-log", null, null]}`
    struct Dependency: Decodable {
        let name: String

        init(from decoder: any Decoder) throws {
            struct Name: Decodable {
                let first: String

                init(from decoder: any Decoder) throws {
                    var values = try decoder.unkeyedContainer()
                    first = try values.decode(String.self)
                }
            }
            let kinds = try decoder.singleValueContainer().decode([String: Name].self)
            name = kinds.values.first?.first ?? ""
        }
    }

    let targets: [Target]

    /// Asks SwiftPM, in a folder of its own: the package's is locked while its tests are built.
    static func ofThisPackage() throws -> Manifest {
        let scratch = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: scratch) }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "swift", "package", "--package-path", Repository.root.path, "--scratch-path", scratch.path, "dump-package",
        ]
        var environment = ProcessInfo.processInfo.environment
        environment["ONLY"] = nil
        process.environment = environment
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let json = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return try JSONDecoder().decode(Manifest.self, from: json)
    }

    /// The Swift code of a target.
    func code(of target: Target) throws -> [String] {
        let root = Repository.root.appending(path: target.folder)
        return try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { path in
            path.hasSuffix(".swift") && !target.exclude.contains { path == $0 || path.hasPrefix("\($0)/") }
        }.sorted().map { try String(contentsOf: root.appending(path: $0), encoding: .utf8) }
    }
}
