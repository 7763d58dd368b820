import Foundation
import SmartCard
import SmartCardPCSC

/// The machine's pcscd, as far as its files tell.
struct PCSCD: Sendable {
    /// Where libpcsclite looks for the socket when it is first used.
    static let socket = ProcessInfo.processInfo.environment["PCSCLITE_CSOCK_NAME"] ?? "/run/pcscd/pcscd.comm"

    /// How long one that is stopped, busy or starting is waited for.
    static let limit = Duration.seconds(5)
    /// How long after its start, and after a reader has been plugged in, pcscd may still be looking for readers.
    private static let start: TimeInterval = 5

    /// Whether there is a socket at all.
    static var isPresent: Bool { FileManager.default.fileExists(atPath: socket) }

    private static let pause = Duration.milliseconds(50)

    /// To a person, whatever time was waited.
    static let hangs = CardError(
        .noService, "pcscd hangs", hint: "Start it anew: sudo systemctl restart pcscd.socket pcscd.service")

    /// The file that pcscd writes its process id to as the first thing it does.
    private let file: String

    init() {
        let socket = (try? FileManager.default.destinationOfSymbolicLink(atPath: Self.socket)) ?? Self.socket
        file = URL(fileURLWithPath: socket).deletingLastPathComponent().path + "/pcscd.pid"
    }

    /// Whether a process runs that has said it is pcscd.
    private var isAlive: Bool {
        guard let text = FileManager.default.contents(atPath: file),
            let id = pid_t(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)),
            id > 0
        else { return false }
        return kill(id, 0) == 0 || errno == EPERM
    }

    /// Whether it has begun so lately that it may not have opened all readers yet.
    var isYoung: Bool { Self.isYoung(file) && isAlive }

    /// Whether a file was made, or written to, so lately that pcscd may still be looking for readers.
    static func isYoung(_ path: String) -> Bool {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        guard let date = attributes?[.modificationDate] as? Date else { return false }
        return abs(date.timeIntervalSinceNow) < start
    }

    /// The readers that pcscd has, none included.  Waits for one that is alive and does not answer yet.
    ///
    /// - Throws: `CardError`, of kind `readerTimeout` where pcscd takes the question and gives no answer within ``limit``.
    func readers() async throws -> [PCSCReader] {
        let deadline = ContinuousClock.now + Self.limit
        while true {
            do {
                return try await withTimeLimit(deadline - .now) { try await PCSCService().readers() }
            } catch let error as CardError {
                switch error.kind {
                case .noReader: return []
                case .noService where isAlive && ContinuousClock.now + Self.pause < deadline:
                    try await Task.sleep(for: Self.pause)
                default: throw error
                }
            }
        }
    }
}
