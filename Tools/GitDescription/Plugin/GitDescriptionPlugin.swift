import Foundation
import PackagePlugin

/// Gives a target `description`: what `git describe` says of the commit that is built, empty outside of a clone.
///
/// Every build asks git.  With a prebuild command it would not: SwiftPM keeps its plan, and what such a command said, until a
/// file is added or removed.
@main
struct GitDescriptionPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let folder = context.package.directoryURL
        let script = folder.appending(path: "Tools/GitDescription/describe")
        let output = context.pluginWorkDirectoryURL.appending(path: "GitDescription.swift")
        // The folder of the process that builds is another one in each build.  Nothing is compiled unless git says something else.
        let always = URL(filePath: "/proc/self")
        return [
            .buildCommand(
                displayName: "git describe", executable: URL(filePath: "/bin/sh"),
                arguments: [script.path, folder.path, output.path], inputFiles: [script, always], outputFiles: [output])
        ]
    }
}
