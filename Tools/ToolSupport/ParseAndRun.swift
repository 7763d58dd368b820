package import ArgumentParser

extension ParsableCommand {
    /// Parses a command line, and runs the command that it names.
    ///
    /// - Parameter arguments: nil for those of this process.
    package static func parseAndRun(_ arguments: [String]? = nil) async throws {
        var command = try parseAsRoot(arguments)
        if var command = command as? any AsyncParsableCommand {
            try await command.run()
        } else {
            try command.run()
        }
    }
}
