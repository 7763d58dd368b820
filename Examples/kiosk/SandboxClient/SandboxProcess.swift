package import Foundation

/// A psp-sandbox process, started from this program's folder.  It ends with this object, or with this process in any
/// case.
package final class SandboxProcess {
    package let address: URL
    private let process = Process()
    /// Held open: the sandbox ends when its input closes.
    private let input = Pipe()

    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// - Parameter arguments: arguments in addition to the fixed ones.
    package init(_ arguments: [String] = []) async throws {
        let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "psp-sandbox")
        let output = Pipe()
        process.executableURL = executable
        process.arguments = ["--port", "0", "--quiet", "--end-with-input"] + arguments
        process.standardInput = input
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            throw Failure(description: "\(executable.path) cannot be run. Build it: swift build --product psp-sandbox")
        }
        let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
        output.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            if data.isEmpty { continuation.finish() } else { continuation.yield(data) }
        }
        defer { output.fileHandleForReading.readabilityHandler = nil }
        var text = ""
        for await chunk in chunks {
            text += String(decoding: chunk, as: UTF8.self)
            if text.hasSuffix("\n") { break }
        }
        guard let last = text.split(whereSeparator: \.isWhitespace).last, let address = URL(string: String(last)) else {
            throw Failure(description: "psp-sandbox has not begun to listen.")
        }
        self.address = address
    }

    /// Returns when the process has ended.
    package func end() async {
        try? input.fileHandleForWriting.close()
        process.terminate()
        while process.isRunning { try? await Task.sleep(for: .milliseconds(10)) }
    }

    deinit {
        try? input.fileHandleForWriting.close()
        if process.isRunning { process.terminate() }
    }
}
