public import Foundation

/// The modules of this build, for compilers that tests start.
public enum BuiltModules {
    /// Arguments of `swiftc` or `swift symbolgraph-extract` with which it finds the modules and the C modules behind them.
    ///
    /// - Parameter repository: the folder of Package.swift.
    public static func compilerArguments(_ repository: URL) async throws -> [String] {
        let modules = URL(fileURLWithPath: Program.built("Modules"))
        let products = modules.deletingLastPathComponent().resolvingSymlinksInPath()
        let checkouts = products.appending(path: "../../checkouts").standardized
        var maps: [String] = []
        for folder in [checkouts, repository.appending(path: "Sources"), products] {
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            while let file = files?.nextObject() as? URL {
                if files?.level ?? 0 > 6 { files?.skipDescendants() }
                if file.lastPathComponent == "module.modulemap" { maps.append(file.path) }
            }
        }
        // Some modules are there twice, for tools of the build.
        let byName = Dictionary(grouping: maps.filter { !$0.contains("SQLCipher") }) { path in
            (try? String(contentsOfFile: path, encoding: .utf8))?.split(whereSeparator: \.isWhitespace)
                .drop { $0 != "module" }.dropFirst().first.map(String.init) ?? path
        }
        let headers = try await Program.run(
            ["pkg-config", "--cflags-only-I", "libpcsclite", "libusb-1.0", "umockdev-1.0", "libsystemd", "libopenjp2"])
        let flags =
            byName.values.compactMap { $0.min() }.sorted().map { "-fmodule-map-file=\($0)" }
            + headers.output.split(whereSeparator: \.isWhitespace).map(String.init)
        return ["-I", modules.path] + flags.flatMap { ["-Xcc", $0] }
    }
}
