import Foundation
import TestSupport
import Testing

/// `Tools/sbom`, from outside.
@Suite struct SBOMTests {
    private static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path
    private static let judges = "\(package)/.build/cyclonedx-python-lib"

    private struct Document: Decodable {
        struct Metadata: Decodable {
            let component: Component
        }

        struct Component: Decodable {
            let name: String
            let version: String
            let purl: String
            let pedigree: Pedigree?
            let components: [Component]?
        }

        struct Pedigree: Decodable {
            struct Commit: Decodable { let uid: String }

            let commits: [Commit]
        }

        let metadata: Metadata
        let components: [Component]

        subscript(name: String) -> Component? { components.first { $0.name == name } }
    }

    private struct Resolved: Decodable {
        struct Pin: Decodable {
            struct State: Decodable {
                let revision: String
                let version: String
            }

            let location: String
            let state: State
        }

        let pins: [Pin]
    }

    /// One list for all tests: Swift takes its time to tell the packages.
    private static let list = Task { try await sbom() }

    private static func sbom() async throws -> String {
        let outcome = try await Program.run(
            ["\(package)/Tools/sbom"], environment: ["SOURCE_DATE_EPOCH": "1700000000"])
        try outcome.check()
        return outcome.output
    }

    /// The published schema; and the other parser's reading of each package URL.
    private static let judge = """
        import json, sys
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
        from packageurl import PackageURL
        text = sys.stdin.read()
        error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
        assert error is None, error
        document = json.loads(text)
        references = {document['metadata']['component']['bom-ref']}
        def walk(components):
            for component in components:
                purl = PackageURL.from_string(component['purl'])
                assert purl.name.lower() == component['name'].lower(), purl
                assert purl.version.endswith(component['version']) or component['name'] == 'swift', purl
                assert component['bom-ref'] not in references, purl
                references.add(component['bom-ref'])
                walk(component.get('components', []))
        walk(document['components'])
        named = set()
        for entry in document['dependencies']: named |= {entry['ref'], *entry['dependsOn']}
        assert named == references, named ^ references
        print('valid')
        """

    @Test(
        "the list is valid by the schema, and each component is reached from the package",
        .enabled(if: FileManager.default.fileExists(atPath: judges), "PyPI's cyclonedx-python-lib is not there"))
    func schema() async throws {
        let judged = try await Program.run(
            ["/usr/bin/python3", "-c", Self.judge], environment: ["PYTHONPATH": Self.judges],
            input: try await Self.list.value)
        #expect(judged.status == 0 && judged.output == "valid\n", "\(judged)")
    }

    @Test(
        "every resolved package is listed with its commit, and the C code that some contain with its own version")
    func packages() async throws {
        let first = try await Self.list.value
        #expect(first.contains("2023-11-14T22:13:20Z"))
        let document = try JSONDecoder().decode(Document.self, from: Data(first.utf8))
        // As a tool that were built now would tell it: Tools/ToolSupport/PackageVersion.swift.
        let description = try await Program.run(["\(Self.package)/Tools/GitDescription/describe", Self.package]).output
        let version = document.metadata.component.version
        let rest = try #require(version.wholeMatch(of: #/\d+\.\d+\.\d+(?:-dev\+(.+))?/#)).1
        #expect((rest.map(String.init) ?? version) == description.trimmingCharacters(in: .newlines), "\(version)")
        let resolved = try JSONDecoder().decode(
            Resolved.self, from: Data(contentsOf: URL(fileURLWithPath: "\(Self.package)/Package.resolved")))
        #expect(resolved.pins.count >= 10)
        for pin in resolved.pins {
            let listed = document.components.filter { $0.pedigree?.commits.map(\.uid) == [pin.state.revision] }
            #expect(listed.map(\.version) == [pin.state.version], "\(pin.location)")
        }
        // swift-crypto says in its own manifest which one it contains.
        let manifest = try String(
            contentsOfFile: "\(Self.package)/.build/checkouts/swift-crypto/Package.swift", encoding: .utf8)
        let commit = try #require(manifest.firstMatch(of: #/BoringSSL Commit: ([0-9a-f]{40})/#)?.1)
        let copies = try #require(document["swift-crypto"]?.components)
        #expect(copies.first { $0.name == "BoringSSL" }?.version == String(commit))
        #expect(document["swift-nio"]?.components?.first?.name == "llhttp")
        // Swift lists the packages once more.
        if Tier.isThorough { #expect(try await Self.sbom() == first) }
    }

    @Test(
        "every library that a tool loads is listed, but those of Swift itself",
        .enabled(if: Program.isInstalled("ldd") && Program.isInstalled("dpkg-query"), "ldd or dpkg is not installed"))
    func libraries() async throws {
        let document = try JSONDecoder().decode(Document.self, from: Data(try await Self.list.value.utf8))
        var names: Set<String> = []
        for tool in GrammarTests.tools {
            let needed = try await Program.run(["readelf", "-d", Program.built(tool)]).output
            let own = Set(needed.matches(of: #/\(NEEDED\).*\[(.*)\]/#).map { String($0.1) })
            let loaded = try await Program.run(["ldd", Program.built(tool)]).output
            let paths = loaded.matches(of: #/(\S+) => (\S+)/#).filter { own.contains(String($0.1)) }
            #expect(paths.count > 3)
            // Debian's database has some names from before /lib became a link.
            for path in paths.map({ String($0.2) }) {
                names.formUnion(
                    path.hasPrefix("/usr/lib/") ? [path, String(path.dropFirst(4))] : [path, "/usr\(path)"])
            }
        }
        let owners = try await Program.run(["dpkg-query", "-S"] + names.sorted()).output
        let packages = Set(owners.split(separator: "\n").compactMap { $0.split(separator: ":").first.map(String.init) })
        #expect(packages.count >= 8, "\(owners)")
        let versions = try await Program.run(
            ["dpkg-query", "-W", "-f", "${Package} ${Version}\n"] + packages.sorted()
        ).output
        for line in versions.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            #expect(document[words[0]]?.version == words[1], "\(line)")
        }
    }
}
