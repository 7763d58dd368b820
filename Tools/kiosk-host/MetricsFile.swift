import ContactlessMetrics
import Dispatch
import Glibc
import ToolSupport
import Waiting

/// The metrics in a file, for the textfile collector of node_exporter, which reads it at any time.
actor MetricsFile {
    private let path: String
    private let exposition: Exposition
    private let queue = DispatchQueue(label: "kiosk-host.metrics")
    /// The failure that was told last; nil while the file is written.
    private var told: String?

    init(_ path: String, _ exposition: Exposition) { (self.path, self.exposition) = (path, exposition) }

    /// Writes the file now and after each interval, until the task is canceled.  A kiosk whose disk is full works all the same.
    func keepWritten(every interval: Duration) async {
        repeat { await write() } while (try? await Task.sleep(for: interval)) != nil
    }

    /// Writes the file, once.
    func write() async {
        let failure = await queue.blocking { [path, exposition] in Self.replace(path, with: exposition.text) }
        if let failure, failure != told { Terminal.remark("no metrics in \(path): \(failure)") }
        told = failure
    }

    /// Gives a new file the name once it is complete: a reader sees the old text or the new one.
    ///
    /// - Returns: the reason for which it could not.
    private static func replace(_ path: String, with text: String) -> String? {
        let new = path + ".new"
        // A leftover of a program that was killed, or anything else.
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        // Other users read it, whatever the umask is.
        let isWritten =
            fchmod(descriptor, 0o644) == 0 && Array(text.utf8).withUnsafeBytes { writeAll($0, to: descriptor) }
        let reason = errno
        guard close(descriptor) == 0, isWritten, rename(new, path) == 0 else {
            let reason = isWritten ? errno : reason
            unlink(new)
            return String(cString: strerror(reason))
        }
        return nil
    }

    private static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            guard count >= 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
