import Glibc

/// A new directory that only this user may enter.
func temporaryDirectory(prefix: String) throws -> String {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/\(prefix).XXXXXX".utf8CString)
    guard let path = mkdtemp(&template) else {
        throw HostError(
            "cannot make a directory in \(base): \(String(cString: strerror(errno)))",
            hint: "Set TMPDIR to a directory that may be written to.")
    }
    return String(cString: path)
}

/// Removes a directory with all that is in it, as far as that is permitted.
func removeDirectory(_ path: String) {
    for name in directoryEntries(path) {
        let entry = "\(path)/\(name)"
        if unlink(entry) != 0 { removeDirectory(entry) }
    }
    rmdir(path)
}

/// The names in a directory, without `.` and `..`; none if it cannot be read.
func directoryEntries(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

/// The text of a file; empty if it cannot be read.
func readFile(_ path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    return readAll(descriptor)
}

/// Reads a descriptor until its end.
func readAll(_ descriptor: Int32) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = read(descriptor, &buffer, buffer.count), count > 0 { bytes += buffer[..<count] }
    return String(decoding: bytes, as: UTF8.self)
}

func writeFile(_ path: String, _ text: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    defer { close(descriptor) }
    guard descriptor >= 0, write(descriptor, text, text.utf8.count) == text.utf8.count else {
        throw HostError(
            "cannot write \(path): \(String(cString: strerror(errno)))",
            hint: "Set TMPDIR to a directory that may be written to.")
    }
}

/// A pipe whose ends are closed on exec.
func makePipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
        throw HostError(
            "cannot make a pipe: \(String(cString: strerror(errno)))", hint: "Close programs that hold many files open."
        )
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
}
