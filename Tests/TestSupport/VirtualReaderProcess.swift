public import Foundation

/// The tool virtual-reader with its control socket, running beside the test.
public final class VirtualReaderProcess: Sendable {
    /// Where its pcscd listens.
    public let socket: String
    private let control: String
    private let process: Process

    /// Where SwiftPM has put the package's programs: beside the test bundle.
    public static func program(_ name: String) -> URL {
        let own = URL(fileURLWithPath: ProcessInfo.processInfo.arguments.first ?? "").resolvingSymlinksInPath()
        let folders = sequence(first: own.deletingLastPathComponent()) { folder in
            folder.path == "/" ? nil : folder.deletingLastPathComponent()
        }
        let found = folders.lazy.map { $0.appendingPathComponent(name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        return found ?? URL(fileURLWithPath: ".build/debug/\(name)")
    }

    /// Starts it, and returns when a reader is listed.
    public init(host: String, arguments: [String] = []) throws {
        control = "\(PCSCSocket.folder)/\(UUID().uuidString.prefix(8)).control"
        process = Process()
        process.executableURL = Self.program("virtual-reader")
        process.arguments = ["--host", host, "--control", control] + arguments
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        let errors = "\(control).errors"
        FileManager.default.createFile(atPath: errors, contents: nil)
        process.standardError = FileHandle(forWritingAtPath: errors)
        try process.run()
        // export PCSCLITE_CSOCK_NAME='…'
        var line = Data()
        while line.last != UInt8(ascii: "\n"), let more = try output.fileHandleForReading.read(upToCount: 1),
            !more.isEmpty
        {
            line += more
        }
        let words = String(decoding: line, as: UTF8.self).split(separator: "'")
        guard words.count >= 2 else {
            throw VirtualReaderProcessError(
                description: (try? String(contentsOfFile: errors, encoding: .utf8)) ?? "no reader")
        }
        socket = String(words[1])
    }

    deinit { stop() }

    public func stop() {
        guard process.isRunning else { return }
        process.terminate()
        process.waitUntilExit()
    }

    /// Sends a line to the control socket, such as `insert visa`, and waits until it is done.
    public func perform(_ command: String) throws {
        let descriptor = Foundation.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        guard withUnixAddress(control, { connect(descriptor, $0, $1) }) == 0 else {
            throw VirtualReaderProcessError(description: "the control socket does not answer")
        }
        let line = command + "\n"
        guard Foundation.send(descriptor, line, line.utf8.count, Int32(MSG_NOSIGNAL)) == line.utf8.count else {
            throw VirtualReaderProcessError(description: "the control socket is closed")
        }
        var answer = [UInt8](repeating: 0, count: 512)
        let count = max(0, recv(descriptor, &answer, answer.count, 0))
        let text = String(decoding: answer.prefix(count), as: UTF8.self)
        guard text == "ok\n" else { throw VirtualReaderProcessError(description: text) }
    }
}

public struct VirtualReaderProcessError: Error, CustomStringConvertible {
    public let description: String
}
