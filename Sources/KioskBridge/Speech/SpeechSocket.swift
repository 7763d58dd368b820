@preconcurrency import Dispatch
import Glibc

/// A connection to a Unix socket.  Only this file makes the system's calls for it; none of them waits.
final class SpeechSocket: Sendable {
    /// The server's bytes, as they come; the stream ends when it hangs up.
    let received: AsyncStream<[UInt8]>
    private let file: Int32
    private let source: any DispatchSourceRead

    /// - Throws: `noServer`.
    init(_ path: String) throws(SpeechError) {
        let file = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Self.flags, 0)
        guard file >= 0 else { throw .noServer(path: path) }
        guard Self.connect(file, path) else {
            close(file)
            throw .noServer(path: path)
        }
        self.file = file
        // A server that sends more than is taken is not believed.
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream(bufferingPolicy: .bufferingOldest(Self.pieces))
        received = stream
        let source = DispatchSource.makeReadSource(fileDescriptor: file)
        self.source = source
        source.setEventHandler {
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = read(file, &bytes, bytes.count)
            if count < 0, [EAGAIN, EINTR].contains(errno) { return }
            if count > 0, case .enqueued = continuation.yield(Array(bytes.prefix(count))) { return }
            continuation.finish()
            source.cancel()
        }
        source.setCancelHandler { close(file) }
        continuation.onTermination = { _ in source.cancel() }
        source.resume()
    }

    deinit { source.cancel() }

    /// The pieces that wait for the conversation, of at most 4096 bytes.
    private static let pieces = 64
    private static let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)

    private static func connect(_ file: Int32, _ path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        // unix(7): the path ends with a zero byte.
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(file, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    /// Sends bytes; false if the server does not take them.
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(file, $0.baseAddress?.advanced(by: sent), $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
