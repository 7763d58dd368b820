import Foundation
import TestSupport
import Testing

/// What this module's interface is, held against Apple's.
@Suite(.timeLimit(.minutes(5))) struct SurfaceTests {
    private static let here = URL(filePath: #filePath).deletingLastPathComponent()
    private static let repository = here.appending(path: "../..").standardizedFileURL

    /// The types and members of AppleSurface.txt, as this package is to have them.
    private static func expected() throws -> Set<String> {
        let text = try String(contentsOf: here.appending(path: "AppleSurface.txt"), encoding: .utf8)
        var type = ""
        var lines: Set<String> = []
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let declaration = line.drop { $0 == " " }
            guard !declaration.hasPrefix("- ") else { continue }
            guard declaration != line else {
                lines.insert(String(line))
                type = String(line.split(separator: " ")[1].split(separator: ":")[0])
                continue
            }
            let own = declaration.hasPrefix("~ ") ? declaration.split(separator: " | ")[1] : declaration
            lines.insert("\(type): \(own.hasPrefix("+ ") ? own.dropFirst(2) : own)")
        }
        return lines
    }

    /// Those of the compiled module, but for what Apple has no place for.
    private static func actual() async throws -> Set<String> {
        let output = FileManager.default.temporaryDirectory.appending(path: "symbols-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: output) }
        let host = try await Program.run(["swift", "-print-target-info"])
        let triple = try JSONDecoder().decode(TargetInfo.self, from: Data(host.output.utf8)).target.unversionedTriple
        let extracted = try await Program.run(
            [
                "swift", "symbolgraph-extract", "-module-name", "ProximityReader", "-target", triple,
                "-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", output.path,
            ] + (try await BuiltModules.compilerArguments(repository)), timeout: .seconds(300))
        #expect(extracted.status == 0, "\(extracted)")
        let graph = try JSONDecoder().decode(
            Graph.self, from: try Data(contentsOf: output.appending(path: "ProximityReader.symbols.json")))

        var conformances: [String: [String]] = [:]
        let names = Dictionary(graph.symbols.map { ($0.identifier.precise, $0.pathComponents.joined(separator: ".")) })
        {
            first, _ in first
        }
        for relationship in graph.relationships where ["conformsTo", "inheritsFrom"].contains(relationship.kind) {
            let name =
                names[relationship.target] ?? (relationship.targetFallback ?? "").split(separator: ".").last.map(
                    String.init) ?? ""
            conformances[relationship.source, default: []].append(name)
        }
        return Set(
            graph.symbols.filter { $0.pathComponents[0] != "ProximityReaderSystem" }.map { symbol in
                let text = symbol.declarationFragments.map(\.spelling).joined()
                let path = symbol.pathComponents.joined(separator: ".")
                guard ["swift.class", "swift.struct", "swift.enum"].contains(symbol.kind.identifier) else {
                    return "\(symbol.pathComponents.dropLast().joined(separator: ".")): \(text)"
                }
                var names = Set(conformances[symbol.identifier.precise] ?? [])
                names.subtract(["SendableMetatype", "Copyable", "Escapable", "CustomNSError"])
                // Each implies the other, or every enumeration without payloads has it.
                if names.contains("Hashable") { names.remove("Equatable") }
                if text.hasPrefix("enum"), !Self.writes("Hashable", path) { names.subtract(["Hashable", "Equatable"]) }
                if names.contains("Error"), !Self.writes("Sendable", path) { names.remove("Sendable") }
                return "\(text.split(separator: " ")[0]) \(path): \(names.sorted().joined(separator: ", "))"
            })
    }

    /// Swift gives enumerations without payloads `Hashable`, and errors `Sendable`, whether they are written or not.
    private static func writes(_ conformance: String, _ path: String) -> Bool {
        ((try? expected()) ?? []).contains { $0.hasPrefix("enum \(path): ") && $0.contains(conformance) }
    }

    private struct TargetInfo: Decodable {
        struct Target: Decodable { let unversionedTriple: String }
        let target: Target
    }

    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Kind: Decodable { let identifier: String }
            struct Identifier: Decodable { let precise: String }
            struct Fragment: Decodable { let spelling: String }
            let kind: Kind
            let identifier: Identifier
            let pathComponents: [String]
            let declarationFragments: [Fragment]
        }
        struct Relationship: Decodable {
            let kind: String
            let source: String
            let target: String
            let targetFallback: String?
        }
        let symbols: [Symbol]
        let relationships: [Relationship]
    }

    @Test("the module's interface is Apple's, but for what the table leaves out")
    func surface() async throws {
        let expected = try Self.expected()
        let actual = try await Self.actual()
        #expect(expected.count > 150)
        #expect(expected.subtracting(actual).sorted() == [], "missing")
        #expect(actual.subtracting(expected).sorted() == [], "not Apple's")
    }
}
