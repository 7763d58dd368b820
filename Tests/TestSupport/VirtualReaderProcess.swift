import Foundation

/// The tool virtual-reader without a command, running beside the test.
public final class VirtualReaderProcess: Sendable {
    /// Where its pcscd listens.
    public let socket: String
    private let program: Program
    private let control: String

    /// Starts it, and returns when a reader is listed.
    public init(host: String, arguments: [String] = []) async throws {
        let control = "\(PCSCSocket.folder)/\(UUID().uuidString.prefix(8)).control"
        self.control = control
        program = try Program(
            [Program.built("virtual-reader"), "--host", host, "--control", control] + arguments)
        // export PCSCLITE_CSOCK_NAME='…'
        try await program.wait(for: "reader") { $0.output.hasSuffix("\n") }
        let words = program.output.split(separator: "'")
        guard words.count >= 2 else { throw ControlError(description: program.error) }
        socket = String(words[1])
    }

    deinit { stop() }

    /// Ends it.  Its pcscd is gone when this returns.
    public func stop() {
        try? perform("quit")
        for _ in 0..<500 where FileManager.default.fileExists(atPath: socket) { usleep(10_000) }
    }

    /// Sends a line to the control socket, such as `insert visa`, and waits until it is done.
    public func perform(_ command: String) throws { try Self.perform(command, at: control) }

    /// Sends a line to a control socket, and waits until it is done.
    public static func perform(_ command: String, at control: String) throws {
        let descriptor = Foundation.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        guard withUnixAddress(control, { connect(descriptor, $0, $1) }) == 0 else {
            throw ControlError(description: "the control socket does not answer")
        }
        let line = command + "\n"
        guard send(descriptor, line, line.utf8.count, Int32(MSG_NOSIGNAL)) == line.utf8.count else {
            throw ControlError(description: "the control socket is closed")
        }
        var answer = [UInt8](repeating: 0, count: 512)
        let count = max(0, recv(descriptor, &answer, answer.count, 0))
        let text = String(decoding: answer.prefix(count), as: UTF8.self)
        guard text == "ok\n" else { throw ControlError(description: text) }
    }

    public struct ControlError: Error, CustomStringConvertible {
        public let description: String
    }
}
