import Foundation
import SmartCard
import SmartCardPCSC
import Waiting

/// The state of the machine's pcscd, from its files.
struct PCSCD: Sendable {
    /// The path at which libpcsclite looks for the socket on first use.
    static let socket = ProcessInfo.processInfo.environment["PCSCLITE_CSOCK_NAME"] ?? "/run/pcscd/pcscd.comm"

    /// The longest wait for a pcscd that is stopped, busy or starting.
    static let limit = Duration.seconds(5)
    /// The time after pcscd's start, or after plugging in a reader, in which pcscd may still be looking for readers.
    private static let start: TimeInterval = 5

    /// True if the socket exists.
    static var isPresent: Bool { FileManager.default.fileExists(atPath: socket) }

    private static let pause = Duration.milliseconds(50)

    /// The error for people, whatever the wait was.
    static let hangs = CardError(
        .noService, "pcscd hangs", hint: "Start it anew: sudo systemctl restart pcscd.socket pcscd.service")

    /// The file to which pcscd writes its process id first of all.
    private let file: String

    init() {
        let socket = (try? FileManager.default.destinationOfSymbolicLink(atPath: Self.socket)) ?? Self.socket
        file = URL(fileURLWithPath: socket).deletingLastPathComponent().path + "/pcscd.pid"
    }

    /// True if a process runs that registered itself as pcscd.
    private var isAlive: Bool {
        guard let text = FileManager.default.contents(atPath: file),
            let id = pid_t(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)),
            id > 0
        else { return false }
        return kill(id, 0) == 0 || errno == EPERM
    }

    /// True if pcscd started so recently that it may not have opened all readers yet.
    var isYoung: Bool { Self.isYoung(file) && isAlive }

    /// Returns true if a file was made or changed so recently that pcscd may still be looking for readers.
    static func isYoung(_ path: String) -> Bool {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        guard let date = attributes?[.modificationDate] as? Date else { return false }
        return abs(date.timeIntervalSinceNow) < start
    }

    /// Returns pcscd's readers, possibly none.  Waits for a pcscd that runs but does not answer yet.
    ///
    /// - Throws: `CardError`, of kind `readerTimeout` if pcscd accepts the question and does not answer within
    ///   ``limit``.
    func readers() async throws -> [PCSCReader] {
        let deadline = Time.now + Self.limit
        while true {
            do {
                return try await withTimeLimit(deadline - Time.now) { try await PCSCService().readers() }
            } catch let error as CardError {
                switch error.kind {
                case .noReader: return []
                case .noService where isAlive && Time.now + Self.pause < deadline:
                    try await Time.sleep(for: Self.pause)
                default: throw error
                }
            }
        }
    }
}
