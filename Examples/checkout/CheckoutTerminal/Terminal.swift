import Foundation
import Glibc

/// Lines from a person, one for each question, and lines to them.
package final class Terminal: Sendable {
    private static let longestLine = 512

    package init() {}

    func show(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }

    /// Asks a question.
    ///
    /// - Parameter isSecret: true to show nothing of the answer.
    /// - Returns: nil at the end of the input.
    func ask(_ question: String, isSecret: Bool = false) async -> String? {
        try? FileHandle.standardOutput.write(contentsOf: Data("\(question): ".utf8))
        let line = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: Self.read(isSecret: isSecret)) }
        }
        // The Enter of a person is shown by their terminal.
        if isatty(STDIN_FILENO) == 0 || isSecret { show("") }
        return line
    }

    /// Reads a line without a buffer that would keep it.
    private static func read(isSecret: Bool) -> String? {
        var before = termios()
        let isHidden = isSecret && tcgetattr(STDIN_FILENO, &before) == 0
        if isHidden {
            var hidden = before
            hidden.c_lflag &= ~tcflag_t(ECHO)
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
        }
        defer { if isHidden { tcsetattr(STDIN_FILENO, TCSAFLUSH, &before) } }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(longestLine)
        var byte: UInt8 = 0
        while Glibc.read(STDIN_FILENO, &byte, 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
            if bytes.count < longestLine { bytes.append(byte) }
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}
