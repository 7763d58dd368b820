import Foundation
import PackagePlugin

/// Gives a target `description`: what `git describe` says of the commit that is built, empty outside of a clone.
///
/// A build asks git again after each commit, tag and edit.  With a prebuild command it would not: SwiftPM keeps its plan, and
/// what such a command said, until a file is added or removed.
@main
struct GitDescriptionPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let folder = context.package.directoryURL
        let script = folder.appending(path: "Tools/GitDescription/describe")
        let output = context.pluginWorkDirectoryURL.appending(path: "GitDescription.swift")
        // What git describes: the history, and whether the code is that of the commit.
        let sources = context.package.targets.compactMap { $0 as? SourceModuleTarget }.flatMap {
            $0.sourceFiles.map(\.url)
        }
        return [
            .buildCommand(
                displayName: "git describe", executable: URL(filePath: "/bin/sh"),
                arguments: [script.path, folder.path, output.path],
                inputFiles: [script] + history(of: folder) + sources, outputFiles: [output])
        ]
    }

    /// The files and folders of git that a commit, a checkout or a tag changes; none outside of a clone.
    private func history(of folder: URL) -> [URL] {
        let names = ["HEAD", "logs/HEAD", "index", "packed-refs", "refs/tags"]
        let git = Process()
        git.executableURL = URL(filePath: "/usr/bin/env")
        git.arguments =
            ["git", "--git-dir=\(folder.path)/.git", "rev-parse"] + names.flatMap { ["--git-path", $0] }
        let output = Pipe()
        git.standardOutput = output
        git.standardError = FileHandle.nullDevice
        guard (try? git.run()) != nil, let paths = try? output.fileHandleForReading.readToEnd() else { return [] }
        return String(decoding: paths, as: UTF8.self).split(separator: "\n").map {
            URL(filePath: String($0), relativeTo: folder).absoluteURL
        }.filter { FileManager.default.fileExists(atPath: $0.path) }
    }
}
