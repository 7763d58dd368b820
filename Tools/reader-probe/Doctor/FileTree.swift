import Foundation

/// The file system below a root: `/` for this machine, another folder for another machine's image.
///
/// No function throws: an unreadable file counts as absent.
struct FileTree {
    let root: String

    init(root: String = "/") { self.root = root.hasSuffix("/") ? String(root.dropLast()) : root }

    /// Reads at most `limit` bytes of a file.
    func bytes(_ path: String, limit: Int = 1 << 20) -> [UInt8]? {
        guard let file = FileHandle(forReadingAtPath: place(path)) else { return nil }
        defer { try? file.close() }
        return (try? file.read(upToCount: limit)).map { [UInt8]($0) }
    }

    /// Reads the text of a file without surrounding white space; nil if there is none.
    func text(_ path: String) -> String? {
        guard let bytes = bytes(path) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        return text.isEmpty ? nil : text
    }

    func lines(_ path: String) -> [String] {
        text(path)?.split(whereSeparator: \.isNewline).map(String.init) ?? []
    }

    func hexadecimal<Number: FixedWidthInteger>(_ path: String) -> Number? {
        text(path).flatMap { Number($0, radix: 16) }
    }

    /// Returns the names in a folder, sorted.
    func names(in path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: place(path))) ?? []).sorted()
    }

    /// Returns true if the folder's contents may be listed.
    func canList(_ path: String) -> Bool { access(place(path), R_OK | X_OK) == 0 }

    /// Returns the unresolved target of a symbolic link.
    func link(_ path: String) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: root + path)
    }

    func exists(_ path: String) -> Bool { access(place(path), F_OK) == 0 }

    /// Returns true if this process may read and write the file.
    func isAccessible(_ path: String) -> Bool { access(place(path), R_OK | W_OK) == 0 }

    func status(_ path: String) -> stat? {
        var status = stat()
        return stat(place(path), &status) == 0 ? status : nil
    }

    /// Returns the path on this machine.  An absolute link refers to a place below the root.
    func place(_ path: String) -> String {
        var path = path
        for _ in 0..<8 {
            guard let target = link(path), target.hasPrefix("/") else { break }
            path = target
        }
        return root + path
    }
}
