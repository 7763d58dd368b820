import Foundation
import SmartCardSimulatorHosts

/// Takes commands, a line each, and answers each with a line: `ok` or `error: …`.
final class ControlSocket: Sendable {
    private let path: String
    private let listener: Int32
    private let setup: any Setup

    init(at path: String, _ setup: any Setup) throws {
        self.path = path
        self.setup = setup
        listener = try UnixSocket.listen(at: path)
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 || errno == EINTR || errno == ECONNABORTED else { return }
                guard connection >= 0 else { continue }
                _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
                Thread.detachNewThread { [self] in serve(connection) }
            }
        }
    }

    func remove() { unlink(path) }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(connection, &byte, 1) == 1 {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                guard line.count < 4096 else { return }
                continue
            }
            let answer: String
            do {
                try perform(String(decoding: line, as: UTF8.self))
                answer = "ok\n"
            } catch {
                answer = "error: \(error)\n"
            }
            line = []
            guard send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL)) > 0 else { return }
        }
    }

    private func perform(_ line: String) throws {
        let words = line.split(separator: " ", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
        switch (words.first ?? "", words.dropFirst().first) {
        case ("plug", nil): try setup.plug()
        case ("unplug", nil): try setup.unplug()
        case ("insert", let name?): try setup.insert(readCard(name))
        case ("remove", nil): try setup.remove()
        case ("fault", "none"?): try setup.fail(nil)
        case ("fault", let fault?):
            try setup.fail(fault.split(separator: " ").joined(separator: "="))
        case ("quit", nil): kill(getpid(), SIGTERM)
        default:
            throw HostError(
                "not a command: '\(line)'", hint: "Commands: plug, unplug, insert CARD, remove, fault NAME [ARG], quit."
            )
        }
    }
}
