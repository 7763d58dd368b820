import Foundation
import Testing

/// What is true on one machine only stands in no file.
@Suite struct PlaceTests {
    /// Folders of people and of build services; each with something in it.
    private static let place = Repository.pattern(
        #"(?:^|[^\w./])((?:/(?:home|Users|work|workspace|builds|buildbot|private/var|var/folders|Volumes)|[A-Z]:\\Users"#
            + #"|/tmp/[a-z]+\d+(?:tmp)?(?=/))[/\\][\w.-]+)"#)

    /// Every text of the repository, by its path; binary files are none.
    private static func texts() throws -> [String: String] {
        let made: Set = [".build", ".git", ".swiftpm", ".index-build"]
        let files = try #require(FileManager.default.enumerator(atPath: Repository.root.path))
        var texts: [String: String] = [:]
        for case let path as String in files {
            if made.contains((path as NSString).lastPathComponent) {
                files.skipDescendants()
            } else if let text = try? String(contentsOf: Repository.root.appending(path: path), encoding: .utf8) {
                texts[path] = text
            }
        }
        return texts
    }

    @Test("No text holds a path of the machine it was written on")
    func paths() throws {
        let texts = try Self.texts()
        #expect(texts.count > 500 && texts[".ci/run"] != nil && texts["README.md"] != nil)
        let here = [Repository.root.path, NSHomeDirectory()].filter { $0.count > 5 }
        for (path, text) in texts {
            let found = Self.place.captures(in: text) + here.filter(text.contains)
            #expect(found.isEmpty, "\(path)")
        }
    }

    @Test(
        "A path of a machine is found wherever it stands",
        arguments: [
            "home/ada/contactless", "Users/ada/x", "work/main", "workspace/a", "builds/group/a", "tmp/w3/a",
            "tmp/w3tmp/a",
        ])
    func found(_ path: String) {
        for text in ["/\(path)", "see /\(path).", "\"/\(path)\"", "a=/\(path)\n", "file:\n/\(path)"] {
            #expect(Self.place.count(in: text) == 1, "\(text)")
        }
        for text in ["upper/\(path)", "../\(path)", "example.org/\(path)"] {
            #expect(Self.place.count(in: text) == 0, "\(text)")
        }
    }

    @Test(
        "No program or library has the place of its source in it",
        arguments: ["Sources", "Tools", "Examples", "Benchmarks"])
    func literals(folder: String) throws {
        let code = try Self.texts().filter { $0.key.hasPrefix("\(folder)/") && $0.key.hasSuffix(".swift") }
        #expect(!code.isEmpty)
        for (path, text) in code { #expect(!text.contains(#/#file(?:Path)?\b/#), "\(path)") }
    }

    @Test("Every file that names the version of Swift names that of Package.swift")
    func versions() throws {
        let texts = try Self.texts()
        let manifest = #/^// swift-tools-version: (\d+\.\d+)\n/#
        let version = try #require(texts["Package.swift"]?.prefixMatch(of: manifest)).1
        for (path, text) in texts {
            for match in text.matches(
                of: #/swift-tools-version: ?(\d+\.\d+)|\bSwift (\d+\.\d+) or later|\bswift:(\d+\.\d+)/#)
            {
                #expect((match.1 ?? match.2 ?? match.3) == version, "\(path): \(match.0)")
            }
        }
        for path in ["Fuzz/Package.swift", "README.md", "Tests/flags"] {
            #expect(texts[path]?.contains(version) == true, "\(path)")
        }
    }
}
