import Foundation
import PackagePlugin

/// Gives a target `gitDescription`: what `git describe` says of the commit that is built, empty outside of a clone.
@main
struct GitDescription: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let folder = context.package.directoryURL
        let output = context.pluginWorkDirectoryURL
        return [
            .prebuildCommand(
                displayName: "git describe", executable: URL(filePath: "/bin/sh"),
                arguments: [
                    folder.appending(path: "Tools/GitDescription/describe").path, folder.path,
                    output.appending(path: "GitDescription.swift").path,
                ],
                outputFilesDirectory: output)
        ]
    }
}
