import Foundation
import SmartCardSimulatorHosts
import ToolSupport

/// Takes commands as ``ControlLines``.
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
        ControlLines.take(from: connection) { answer in
            send(connection, answer + "\n", answer.utf8.count + 1, Int32(MSG_NOSIGNAL)) > 0
        } perform: { name, argument in
            switch (name, argument) {
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
                    "not a command: '\([name, argument].compactMap { $0 }.joined(separator: " "))'",
                    hint: "Commands: plug, unplug, insert CARD, remove, fault NAME [ARG], quit.")
            }
        }
    }
}
