@preconcurrency import Dispatch
import Glibc

/// The folder of device files.
enum DeviceFolder {
    /// Returns a stream that yields after files came to a folder, left it, or got other permissions (inotify(7)).
    ///
    /// It ends at once if the folder cannot be watched.  It does not poll.
    static func changes(in path: String = "/dev") -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0, inotify_add_watch(descriptor, path, UInt32(IN_CREATE | IN_DELETE | IN_ATTRIB)) >= 0
        else {
            if descriptor >= 0 { close(descriptor) }
            continuation.finish()
            return stream
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
        source.setEventHandler {
            var buffer = [UInt8](repeating: 0, count: 4096)
            while read(descriptor, &buffer, buffer.count) > 0 {}
            continuation.yield()
        }
        source.setCancelHandler { close(descriptor) }
        continuation.onTermination = { _ in source.cancel() }
        source.resume()
        return stream
    }
}
