import Foundation
import Testing

/// The folders of a module: each names only types of its own and of those that it stands on.
@Suite struct FolderTests {
    /// Modules whose folders have an order.  A new folder needs a row.
    static let modules: [String: [String: Set<String>]] = [
        "SmartCardTrace": [
            "File": [],
            "Recording": ["File"],
            "Raising": ["File"],
            "Formats": ["File", "Raising"],
            "Redaction": ["File", "Raising"],
            "Replay": ["File", "Redaction"],
        ],
        // Contract: the requests, results, events and errors of Apple's surface, which all of them speak.
        "ProximityReader": [
            "Contract": [],
            "Store": ["Contract"],
            "Terminal": ["Contract", "Store"],
            "Surface": ["Contract", "Store", "Terminal"],
        ],
        "ComposableCheckout": [
            "Domain": [],
            "Texts": [],
            "Data": ["Domain"],
            "Machinery": ["Domain"],
            "Scopes": ["Domain", "Machinery", "Texts"],
            "Composition": ["Domain", "Machinery", "Scopes", "Texts"],
        ],
    ]

    @Test("A folder names no type of a folder that it does not stand on", arguments: modules.keys.sorted())
    func arrows(module: String) throws {
        let standsOn = try #require(Self.modules[module])
        let sources = try Sources(in: "Sources/\(module)")
        #expect(Set(sources.folders) == Set(standsOn.keys))
        #expect(sources.declarations.count > 20)
        for (file, code) in sources.code {
            let folder = Sources.folder(of: file)
            for name in sources.names(in: code) {
                guard let place = sources.declarations[name] else { continue }
                let other = Sources.folder(of: place)
                #expect(other == folder || standsOn[folder]?.contains(other) == true, "\(file): \(name) of \(place)")
            }
        }
    }

    @Test("A nested type belongs to the file that declares it, and words in comments and strings are no names")
    func names() throws {
        let sources = Sources([
            "Low/Error.swift": "extension Door {\n    public enum Failure {}\n}",
            "High/Door.swift": "public final class Door {\n    struct Key {}\n}",
        ])
        #expect(
            sources.declarations == [
                "Door": "High/Door.swift", "Door.Key": "High/Door.swift", "Door.Failure": "Low/Error.swift",
            ])
        let code = Repository.code(of: "throw Door.Failure.shut // Door\nlog(\"Door\")\nextension Door.Key {}")
        #expect(sources.names(in: code) == ["Door.Failure"])
    }
}

/// The Swift code of a module, and the types that it declares.
private struct Sources {
    /// By path in the module's folder, without comments and string literals.
    let code: [String: String]
    /// The file that declares a type, by the type's qualified name.
    let declarations: [String: String]

    var folders: [String] { code.keys.map(Self.folder) }

    init(in path: String) throws {
        let root = Repository.root.appending(path: path)
        var texts: [String: String] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: root.path) where path.hasSuffix(".swift") {
            texts[path] = try String(contentsOf: root.appending(path: path), encoding: .utf8)
        }
        self.init(texts)
    }

    init(_ texts: [String: String]) {
        code = texts.mapValues(Repository.code)
        var declarations: [String: String] = [:]
        for (file, code) in code {
            // By indentation, as the formatter keeps it.
            var stack: [(indentation: Int, name: String)] = []
            for match in code.matches(of: Self.declaration) {
                while let last = stack.last, last.indentation >= match.1.count { stack.removeLast() }
                stack.append((match.1.count, String(match.3)))
                if match.2 != "extension" { declarations[stack.map(\.name).joined(separator: ".")] = file }
            }
        }
        self.declarations = declarations
    }

    static func folder(of file: String) -> String { String(file.prefix { $0 != "/" }) }

    private nonisolated(unsafe) static let declaration =
        #/(?m)^( *)(?:@\w+(?:\([^)\n]*\))? |public |package |private |fileprivate |final |indirect |nonisolated )*(struct|enum|class|actor|protocol|typealias|extension) ([\w.]+)/#

    /// The declared types that `code` names, each as exactly as it does.  The type that an extension is of is only its place.
    func names(in code: String) -> Set<String> {
        var names: Set<String> = []
        for match in code.replacing(#/extension [\w.]+/#, with: "").matches(of: #/\b[A-Z]\w*(?:\.[A-Z]\w*)*/#) {
            var path = match.output.split(separator: ".")
            while !path.isEmpty, declarations[path.joined(separator: ".")] == nil { path.removeLast() }
            if !path.isEmpty { names.insert(path.joined(separator: ".")) }
        }
        return names
    }
}
