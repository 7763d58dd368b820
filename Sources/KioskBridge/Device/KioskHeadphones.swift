@preconcurrency import Dispatch
import Foundation

/// The headphone socket of the kiosk, for speech in private.
public struct KioskHeadphones: Sendable {
    /// The present state first, then each change; true while a headphone is connected.
    let states: @Sendable () -> AsyncStream<Bool>

    /// - Parameter states: makes a stream of the present state, then each change; true while a headphone is connected.
    public init(states: @escaping @Sendable () -> AsyncStream<Bool>) { self.states = states }

    /// The sockets of this machine whose sound driver reports the switch in them: the input devices with
    /// `SW_HEADPHONE_INSERT`.
    ///
    /// The program needs the permission to read these devices.  It waits for events, and does not poll.
    public static let automatic = KioskHeadphones { HeadphoneWatch.states() }
}

/// A watch for all headphone sockets, also those that come later.
private final class HeadphoneWatch: @unchecked Sendable {
    // Unchecked: only the queue uses what changes.

    private static let folder = "/dev/input"
    /// More devices than these are not looked at.
    private static let limit = 1024

    private final class Socket {
        var jack: HeadphoneJack
        let source: any DispatchSourceRead

        init(_ jack: consuming HeadphoneJack, _ queue: DispatchQueue) {
            source = DispatchSource.makeReadSource(fileDescriptor: jack.file, queue: queue)
            self.jack = jack
        }
    }

    private let queue = DispatchQueue(label: "headphones")
    private let output: AsyncStream<Bool>.Continuation
    private var sockets: [String: Socket] = [:]
    private var told: Bool?

    private init(_ output: AsyncStream<Bool>.Continuation) { self.output = output }

    static func states() -> AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream<Bool>.makeStream()
        let watch = HeadphoneWatch(continuation)
        // The folder is watched before it is read, so that no device is missed.
        let changes = DeviceFolder.changes(in: folder)
        let task = Task {
            watch.queue.async { watch.look() }
            for await _ in changes { watch.queue.async { watch.look() } }
        }
        continuation.onTermination = { _ in
            task.cancel()
            watch.queue.async { watch.closeAll() }
        }
        return stream
    }

    private func look() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: Self.folder)) ?? []
        let paths = names.filter(Self.isDevice).prefix(Self.limit).map { "\(Self.folder)/\($0)" }
        for path in sockets.keys where !paths.contains(path) { drop(path) }
        for path in paths where sockets[path] == nil {
            guard let jack = HeadphoneJack(opening: path) else { continue }
            let socket = Socket(jack, queue)
            sockets[path] = socket
            socket.source.setEventHandler { [weak self] in self?.read(path) }
            // The file is closed after the source has let go of it.
            socket.source.setCancelHandler { withExtendedLifetime(socket) {} }
            socket.source.resume()
        }
        tell()
    }

    /// The names of event devices: `event` and a number.
    private static func isDevice(_ name: String) -> Bool {
        let digits = name.utf8.dropFirst(5)
        return name.hasPrefix("event") && 1...4 ~= digits.count && digits.allSatisfy { 0x30...0x39 ~= $0 }
    }

    private func read(_ path: String) {
        switch sockets[path]?.jack.read() {
        case .gone:
            drop(path)
            tell()
        case .changed: tell()
        case .nothing, nil: break
        }
    }

    private func drop(_ path: String) { sockets.removeValue(forKey: path)?.source.cancel() }

    private func closeAll() { for path in sockets.keys { drop(path) } }

    private func tell() {
        let isConnected = sockets.values.contains { $0.jack.isConnected }
        guard told != isConnected else { return }
        told = isConnected
        output.yield(isConnected)
    }
}
