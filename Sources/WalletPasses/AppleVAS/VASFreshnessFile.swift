import Foundation
import Glibc

/// A file that keeps ``VASFreshness`` over restarts, so that no pass counts twice after one.
///
/// The file has mode 0600.  A new version is written beside it, flushed to the disk and moved into its place: there is always one
/// version or the other.  Calls block on the disk; one value is the file's only writer.
public struct VASFreshnessFile: Sendable {
    public let path: String

    /// A file that cannot be read or written.
    public struct Failure: Error, Hashable, Sendable {
        /// The system's `errno`; 0 for a file that contains something else.
        public let code: Int32
        public let path: String
    }

    /// The most bytes that are read: ten thousand cryptograms take less than one million.
    private static let maximumLength = 1 << 24

    public init(_ path: String) { self.path = path }

    /// Reads what was seen.
    ///
    /// - Parameter tolerance: the greatest difference of the clocks, in seconds, from now on.
    /// - Returns: nothing seen if there is no file yet.
    /// - Throws: ``Failure``.  A file that cannot be read is not replaced: what was seen would count again.
    public func load(tolerance: Double) throws(Failure) -> VASFreshness {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw Failure(code: errno, path: path) }
            return VASFreshness(tolerance: tolerance)
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard let data = try? file.read(upToCount: Self.maximumLength) ?? Data(),
            let freshness = try? JSONDecoder().decode(VASFreshness.self, from: data)
        else { throw Failure(code: 0, path: path) }
        return freshness.with(tolerance: tolerance)
    }

    /// Writes what was seen; it is on the disk when this returns.
    public func save(_ freshness: VASFreshness) throws(Failure) {
        guard let data = try? JSONEncoder().encode(freshness) else { throw Failure(code: 0, path: path) }
        let new = path + ".new"
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Failure(code: errno, path: new) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do { try file.write(contentsOf: data) } catch { throw Failure(code: EIO, path: new) }
        guard fsync(descriptor) == 0, rename(new, path) == 0 else { throw Failure(code: errno, path: path) }
        let slash = path.lastIndex(of: "/").map { path[...$0] } ?? "./"
        let folder = open(String(slash), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw Failure(code: errno, path: path) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw Failure(code: errno, path: path) }
    }
}

extension VASFreshnessFile.Failure: CustomStringConvertible {
    public var description: String {
        "\(path): " + (code == 0 ? "not a list of passes that were seen" : String(cString: strerror(code)))
    }
}
