import Foundation

/// The file system below a root: `/` for this machine, another folder for the image of one.
///
/// Nothing here throws: what cannot be read is not there.
struct FileTree {
    let root: String

    init(root: String = "/") { self.root = root.hasSuffix("/") ? String(root.dropLast()) : root }

    /// At most `limit` bytes of a file.
    func bytes(_ path: String, limit: Int = 1 << 20) -> [UInt8]? {
        guard let file = FileHandle(forReadingAtPath: place(path)) else { return nil }
        defer { try? file.close() }
        return (try? file.read(upToCount: limit)).map { [UInt8]($0) }
    }

    /// The text of a file without the space around it; nil if there is none.
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

    /// What is in a folder, in order.
    func names(in path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: place(path))) ?? []).sorted()
    }

    /// Whether a folder may be looked into.
    func canList(_ path: String) -> Bool { access(place(path), R_OK | X_OK) == 0 }

    /// Where a symbolic link points, in its own words.
    func link(_ path: String) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: root + path)
    }

    func exists(_ path: String) -> Bool { access(place(path), F_OK) == 0 }

    /// Whether this process may read and write the file.
    func isAccessible(_ path: String) -> Bool { access(place(path), R_OK | W_OK) == 0 }

    func status(_ path: String) -> stat? {
        var status = stat()
        return stat(place(path), &status) == 0 ? status : nil
    }

    /// The path on this machine.  A link that is absolute means a place below the root.
    func place(_ path: String) -> String {
        var path = path
        for _ in 0..<8 {
            guard let target = link(path), target.hasPrefix("/") else { break }
            path = target
        }
        return root + path
    }
}
