import Foundation
import Testing

/// Package.swift against the code, and against the picture in the documentation.
@Suite struct TargetTests {
    private static let importing = Repository.pattern(
        #"(?m)^ *(?:@\w+(?:\([^)]*\))? )*(?:public |package |internal |private |fileprivate )?"#
            + #"import (?:(?:struct|class|enum|func|protocol|typealias|var|let) )?`?(\w+)"#)
    private static let longText = Repository.pattern(#"(?s)""".*?""""#)

    /// Modules of the toolchain, which no manifest declares.
    private static let toolchain: Set = [
        "CoreFoundation", "Dispatch", "Foundation", "FoundationEssentials", "FoundationNetworking", "Glibc",
        "Observation", "PackagePlugin", "Synchronization", "Testing",
    ]

    // SwiftPM's check in the gate, `--explicit-target-dependency-import-check`, leaves out what stands on generated code, as
    // every tool does.
    @Test("No Swift target imports a module that Package.swift does not declare")
    func imports() throws {
        let manifest = try Manifest.ofThisPackage()
        #expect(manifest.targets.count > 50)
        for target in manifest.targets {
            let imported = try manifest.code(of: target).flatMap { code in
                Self.importing.captures(in: Self.longText.removing(from: code))
            }
            let declared = target.dependencies.map { $0.name.replacing("-", with: "_") }
            let undeclared = Set(imported).subtracting(Self.toolchain).subtracting(declared)
            #expect(undeclared.isEmpty, "\(target.name) imports what it does not declare")
        }
    }

    @Test("No target depends on a module that it never imports, or on a program that its code never names")
    func dependencies() throws {
        let manifest = try Manifest.ofThisPackage()
        #expect(manifest.targets.count > 50)
        let types = Dictionary(uniqueKeysWithValues: manifest.targets.map { ($0.name, $0.type) })
        let supports = try manifest.targets.filter { $0.name.hasSuffix("TestSupport") }.flatMap(manifest.code)
        for target in manifest.targets where target.type != "system" {
            let code = try manifest.code(of: target)
            // C names headers, not modules.
            guard !code.isEmpty else { continue }
            let imported = Set(code.flatMap { Self.importing.captures(in: $0) })
            for dependency in target.dependencies.map(\.name) where !imported.contains(dependency) {
                // Linking it is all.
                if dependency == "CWipedHeap", target.type == "executable" { continue }
                let isNamedProgram =
                    types[dependency] == "executable"
                    && (code + supports).contains { $0.contains("\"\(dependency)") || $0.contains("/\(dependency)") }
                #expect(isNamedProgram, "\(target.name) never imports \(dependency)")
            }
        }
    }

    @Test("The picture of targets and arrows is that of Package.swift")
    func picture() throws {
        let drawn = try Picture(Manifest.ofThisPackage()).svg
        let file = Repository.root.appending(path: "Sources/SmartCard/Documentation.docc/Resources/targets.svg")
        if ProcessInfo.processInfo.environment["REDRAW"] != nil {
            try Data(drawn.utf8).write(to: file)
        }
        let kept = try? String(contentsOf: file, encoding: .utf8)
        #expect(kept == drawn, "Run REDRAW=1 ONLY=ArchitectureTests swift test, and look at \(file.lastPathComponent).")
    }
}
