import Foundation
import Testing

/// The folders of SmartCardTrace: each names only types of its own and of those that it stands on.
@Suite struct FolderTests {
    private static let standsOn = [
        "File": [],
        "Recording": ["File"],
        "Raising": ["File"],
        "Formats": ["File", "Raising"],
        "Redaction": ["File", "Raising"],
        "Replay": ["File", "Redaction"],
    ]

    /// The code of each folder, without comments.
    private static func sources() throws -> [String: String] {
        let root = URL(filePath: #filePath).appending(path: "../../../Sources/SmartCardTrace").standardized
        let manager = FileManager.default
        var sources: [String: String] = [:]
        for path in try manager.subpathsOfDirectory(atPath: root.path) where path.hasSuffix(".swift") {
            let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            sources[String(path.prefix { $0 != "/" }), default: ""] += text.replacing(#/ *\/\/[^\n]*/#, with: "")
        }
        return sources
    }

    @Test("A folder of SmartCardTrace names no type of a folder that it does not stand on")
    func arrows() throws {
        let sources = try Self.sources()
        #expect(Set(sources.keys) == Set(Self.standsOn.keys))
        let declaration = #/(?:^|\n)(?:public |package |final )*(?:struct|enum|class|actor|protocol|typealias) (\w+)/#
        let types = sources.mapValues { Set($0.matches(of: declaration).map { String($0.1) }) }
        #expect(types["File"]?.isSuperset(of: ["TraceEvent", "TraceReader", "TraceWriter"]) == true)
        for (folder, code) in sources {
            let words = Set(code.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init))
            for (other, types) in types where other != folder && Self.standsOn[folder]?.contains(other) != true {
                let named = words.intersection(types).sorted()
                #expect(named.isEmpty, "\(folder) -> \(other)")
            }
        }
    }
}
