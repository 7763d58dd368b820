public import Foundation

extension BridgeServer {
    /// A file that pages can load.
    public struct File: Hashable, Sendable {
        /// The value of `Content-Type`.
        public var contentType: String
        public var bytes: [UInt8]

        public init(contentType: String, bytes: [UInt8]) { (self.contentType, self.bytes) = (contentType, bytes) }

        /// A folder that cannot be served.
        public struct Unservable: Error, Hashable, CustomStringConvertible {
            public let description: String
        }

        private static let types = [
            "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
            "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8",
            "json": "application/json", "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg",
            "webp": "image/webp", "ico": "image/x-icon", "woff2": "font/woff2", "txt": "text/plain; charset=utf-8",
            "wav": "audio/wav", "ts": "text/plain; charset=utf-8",
        ]
        /// The most files, and the most bytes of all of them.
        private static let limits = (files: 1_000, bytes: 64 * 1_048_576)

        /// Reads the files of a folder, by their paths on the server; `index.html` is `/` as well.  Hidden files and links
        /// are left out.
        ///
        /// - Throws: ``Unservable`` if there is no `index.html`, too many files, or one that cannot be read.
        public static func all(in folder: URL) throws -> [String: File] {
            let root = folder.standardizedFileURL.path
            guard
                let names = FileManager.default.enumerator(
                    at: folder.standardizedFileURL, includingPropertiesForKeys: [.isRegularFileKey],
                    options: .skipsHiddenFiles)
            else { throw Unservable(description: "\(root) is no folder that can be read") }
            var files: [String: File] = [:]
            var bytes = 0
            for case let file as URL in names {
                let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
                guard attributes?[.type] as? FileAttributeType == .typeRegular,
                    let type = types[file.pathExtension.lowercased()]
                else { continue }
                guard let data = FileManager.default.contents(atPath: file.path) else {
                    throw Unservable(description: "\(file.path) cannot be read")
                }
                bytes += data.count
                let path = String(file.standardizedFileURL.path.dropFirst(root.count))
                files[path.hasPrefix("/") ? path : "/" + path] = File(contentType: type, bytes: Array(data))
                guard files.count <= limits.files, bytes <= limits.bytes else {
                    throw Unservable(
                        description: "\(root) has more than \(limits.files) files or \(limits.bytes) bytes")
                }
            }
            guard let index = files["/index.html"] else {
                throw Unservable(description: "\(root) has no index.html")
            }
            files["/"] = index
            return files
        }

        /// The page with a token in its `<meta name="kiosk-token" content="">`.
        func carrying(_ token: String) -> [UInt8] {
            let mark = Array(#"<meta name="kiosk-token" content=""#.utf8)
            guard let place = bytes.firstRange(of: mark) else { return bytes }
            return Array(bytes[..<place.upperBound]) + Array(token.utf8) + Array(bytes[place.upperBound...])
        }
    }
}
