import Foundation
import TestSupport

/// The tool virtual-reader as a USB/IP server, on a port that is free.
final class USBIPReader: Sendable {
    let program: Program
    /// What it says first of all: the command that attaches the reader.
    let attachCommand: [String]
    private let control = "/tmp/usbip-\(UUID().uuidString.prefix(8)).control"

    /// Starts it, and returns when it is ready.
    init(_ arguments: [String] = []) async throws {
        program = try Program(
            [Program.built("virtual-reader"), "--host", "usbip", "--port", "0", "--control", control] + arguments)
        try await program.wait(for: "readiness") { $0.error.contains("is ready") }
        attachCommand = program.output.split(whereSeparator: \.isWhitespace).map(String.init)
    }

    deinit {
        try? perform("quit")
        for _ in 0..<500 where FileManager.default.fileExists(atPath: control) { usleep(10_000) }
    }

    /// A line to the control socket, such as `insert visa`.
    func perform(_ line: String) throws { try VirtualReaderProcess.perform(line, at: control) }
}
