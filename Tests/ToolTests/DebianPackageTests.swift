import Foundation
import TestSupport
import Testing

/// The folders `debian` and `systemd`, without a build of the packages: Tools/package-deb --check builds and installs them.
@Suite struct DebianPackageTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
    private static let packages = ["tools", "kiosk", "sandbox"].map { "swift-contactless-\($0)" }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The first word of each line of debian/PACKAGE.KIND; none without such a file.
    private static func sources(_ package: String, _ kind: String) -> [String] {
        let lines = (try? text("debian/\(package).\(kind)"))?.split(separator: "\n") ?? []
        return lines.filter { !$0.hasPrefix("#") }.compactMap { $0.split(separator: " ").first.map(String.init) }
    }

    @Test("Each file that a package installs is in the repository, or debian/build makes it", arguments: packages)
    func files(package: String) throws {
        let tools = try #require(try Self.text("debian/build").firstMatch(of: #/(?m)^tools=\((.*)\)$/#)).1
            .split(separator: " ").map(String.init)
        #expect(tools.sorted() == GrammarTests.tools.sorted())
        let made = Set(
            tools.flatMap { ["bash/\($0)", "zsh/_\($0)", "fish/\($0).fish"] } + [
                "swift-contactless", "libpcsc-preload.so", "swift-contactless-tools.metainfo.xml",
            ])
        let named = ["install", "manpages", "examples"].flatMap { Self.sources(package, $0) }
        #expect(named.count > 3)
        for path in named {
            if let name = path.split(separator: "/staged/", maxSplits: 1).dropFirst().first, path.hasPrefix(".build/") {
                #expect(made.contains(String(name)), "\(path)")
            } else {
                #expect(FileManager.default.fileExists(atPath: Self.root.appending(path: path).path), "\(path)")
            }
        }
    }

    @Test("Each tool is in one package, with its manual page and its completions", arguments: GrammarTests.tools)
    func tools(tool: String) throws {
        let link = "usr/lib/swift-contactless/swift-contactless usr/bin/\(tool)\n"
        let owners = try Self.packages.filter { try Self.text("debian/\($0).links").contains(link) }
        let owner = try #require(owners.first)
        #expect(owners.count == 1)
        #expect(Self.sources(owner, "manpages").contains("Tools/\(tool)/\(tool).1"))
        let installed = Self.sources(owner, "install")
        for name in ["bash/\(tool)", "zsh/_\(tool)", "fish/\(tool).fish"] {
            #expect(installed.contains { $0.hasSuffix("/staged/\(name)") }, "\(name)")
        }
        #expect(try Self.text("debian/programs.c").contains("{\"\(tool)\", "))
    }

    @Test("The packages are built with what Tools/install-packages installs")
    func dependencies() throws {
        let installed = try #require(
            try Self.text("Tools/install-packages").firstMatch(of: #/packages=\(([^"]*)/#)
        ).1
            .split(whereSeparator: \.isWhitespace).map(String.init)
        let control = try Self.text("debian/control")
        let needed = try #require(control.firstMatch(of: #/(?m)^Build-Depends: ((?:.*,\n)*.*)$/#)).1
            .split(separator: ",").map { $0.prefix { $0 != "(" }.trimmingCharacters(in: .whitespacesAndNewlines) }
        // For the packages alone: debhelper, the metainfo's judge, and the library that Foundation is made of.
        let own: Set = ["appstream", "debhelper-compat", "dh-sequence-installsysusers", "libcurl4-openssl-dev"]
        #expect(Set(needed).subtracting(own) == Set(installed))
    }

    @Test(
        "The version is that of the changes and of every tool, which also tells its commit",
        arguments: GrammarTests.tools)
    func version(tool: String) async throws {
        let changes = try #require(try Self.text("CHANGELOG.md").firstMatch(of: #/(?m)^## (\d+\.\d+\.\d+)/#)).1
        let ours = try #require(try Self.text("debian/changelog").prefixMatch(of: #/swift-contactless \((.*?)\)/#)).1
        #expect(ours == changes)
        let outcome = try await Program.run([Program.built(tool), "--version"])
        let rest = try #require(outcome.output.trimmingPrefix(ours).wholeMatch(of: #/(-dev\+[0-9A-Za-z.-]+)?\n/#)).0
        #expect(outcome.output == ours + rest)
    }

    @Test("A commit with a version's tag has that version, and every other one has it still before it")
    func tags() async throws {
        func numbers(_ version: some StringProtocol) -> [Int] { version.split(separator: ".").compactMap { Int($0) } }
        let version = numbers(
            try #require(try Self.text("CHANGELOG.md").firstMatch(of: #/(?m)^## (\d+\.\d+\.\d+)/#)).1)
        func tags(_ which: String...) async throws -> [[Int]] {
            let outcome = try await Program.run(["git", "-C", Self.root.path, "tag", "--list"] + which)
            // A source package is no clone.
            guard outcome.status == 0 else { return [] }
            return outcome.output.split(separator: "\n").filter { $0.wholeMatch(of: #/\d+\.\d+\.\d+/#) != nil }
                .map(numbers)
        }
        let here = try await tags("--points-at", "HEAD")
        #expect(here.allSatisfy { $0 == version })
        for tag in try await tags("--merged", "HEAD") where !here.contains(tag) {
            #expect(tag.lexicographicallyPrecedes(version), "\(tag): CHANGELOG.md needs a section for the next version")
        }
    }

    private static let trials = ["virtual-card", "payment", "software-reader", "service"]

    @Test("debian/tests/control names each script beside it, and packages that there are")
    func trialList() throws {
        let control = try Self.text("debian/tests/control")
        func values(_ field: String) -> [String] {
            control.split(separator: "\n").filter { $0.hasPrefix("\(field): ") }.flatMap {
                $0.dropFirst(field.count + 2).split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            }
        }
        #expect(values("Tests") == Self.trials)
        let scripts = try FileManager.default.contentsOfDirectory(
            atPath: Self.root.appending(path: "debian/tests").path)
        #expect(Set(scripts) == Set(Self.trials + ["control", "installed"]))
        let ours = values("Depends").filter { $0.hasPrefix("swift-contactless") }
        #expect(ours.count == 3 && Set(ours).isSubset(of: Self.packages))
    }

    @Test("Each test of the installed packages passes with the tools as built", arguments: trials)
    func trial(_ name: String) async throws {
        if name == "software-reader" {
            let obstacle = Program.isInstalled("opensc-tool") ? PrivatePCSCD.obstacle : "opensc is not installed"
            if let obstacle { return print(obstacle) }
        }
        let folder = FileManager.default.temporaryDirectory.appending(path: "trial-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let tools = URL(filePath: Program.built("reader-probe")).deletingLastPathComponent().path
        let outcome = try await Program.run(
            [Self.root.appending(path: "debian/tests/\(name)").path],
            environment: [
                "AUTOPKGTEST_TMP": folder.path, "PCSCLITE_CSOCK_NAME": "/nonexistent",
                "PATH": "\(tools):\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")",
            ])
        #expect(outcome.status == 0, "\(outcome)")
    }

    @Test("The metainfo names each product of the udev rules once")
    func metainfo() async throws {
        let rules = Self.root.appending(path: "udev/70-contactless-readers.rules").path
        let outcome = try await Program.run([Self.root.appending(path: "debian/metainfo").path, rules])
        #expect(outcome.status == 0)
        let aliases = outcome.output.matches(of: #/<modalias>usb:v(\w{4})p(\w{4})d\*</#).map { "\($0.1):\($0.2)" }
        let products = try Self.text("udev/70-contactless-readers.rules").matches(
            of: #/(?m)^ATTR\{idVendor\}=="(.*?)", ATTR\{idProduct\}=="(.*?)"/#
        ).flatMap { line in line.2.split(separator: "|").map { "\(line.1):\($0)".uppercased() } }
        #expect(aliases.contains("072F:2200") && aliases == products && Set(aliases).count == aliases.count)
    }

    @Test(
        "AppStream's own program takes the metainfo",
        .enabled(if: Program.isInstalled("appstreamcli"), "appstreamcli is not installed"))
    func appStream() async throws {
        let rules = Self.root.appending(path: "udev/70-contactless-readers.rules").path
        let outcome = try await Program.run([Self.root.appending(path: "debian/metainfo").path, rules])
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).metainfo.xml")
        try Data(outcome.output.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let verdict = try await Program.run(["appstreamcli", "validate", "--no-net", file.path])
        #expect(verdict.status == 0, "\(verdict)")
    }
}

/// The units, judged by systemd's own programs.
@Suite(.enabled(if: Program.isInstalled("systemd-analyze"), "systemd is not installed")) struct UnitTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../systemd").standardized

    /// Calls `body` with a folder that has the units, with the program as built, and then these lines in the service.
    private func withUnits(_ more: String = "", _ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "units-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        for name in ["kiosk-host.service", "kiosk-host.socket"] {
            var text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
            if name.hasSuffix(".service") { text += more }
            text.replace("/usr/bin/kiosk-host", with: Program.built("kiosk-host"))
            try Data(text.utf8).write(to: folder.appending(path: name))
        }
        try await body(folder.path)
    }

    /// A drop-in of the folder.
    private static func dropIn(_ name: String) throws -> String {
        try "\n" + String(contentsOf: folder.appending(path: "kiosk-host-\(name).conf"), encoding: .utf8)
    }

    @Test("systemd has nothing to say against the units, with and without what is for some kiosks")
    func verify() async throws {
        for more in try ["", Self.dropIn("devices"), Self.dropIn("metrics")] {
            try await verify(more)
        }
    }

    private func verify(_ more: String) async throws {
        try await withUnits(more) { folder in
            let outcome = try await Program.run([
                "systemd-analyze", "verify", "--man=no", "\(folder)/kiosk-host.service", "\(folder)/kiosk-host.socket",
            ])
            let ours = (outcome.output + outcome.error).split(separator: "\n").filter { $0.contains("kiosk-host") }
            #expect(outcome.status == 0 && ours.isEmpty, "\(outcome)")
        }
    }

    @Test(
        "The service's exposure is 1.2 through pcscd, with metrics or without, and 1.6 where it drives devices itself",
        arguments: [("", 12), ("metrics", 12), ("devices", 16)])
    func exposure(name: String, threshold: Int) async throws {
        try await withUnits(name.isEmpty ? "" : Self.dropIn(name)) { folder in
            let outcome = try await Program.run([
                "systemd-analyze", "security", "--offline=true", "--threshold=\(threshold)",
                "\(folder)/kiosk-host.service",
            ])
            #expect(outcome.status == 0, "\(outcome.output.split(separator: "\n").last ?? "") \(outcome.error)")
        }
    }
}
