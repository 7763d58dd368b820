import Foundation

/// The published tables in the folder Vectors, each line without its comments.
enum Vectors {
    static func lines(of name: String) throws -> [String] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/\(name).txt")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map(String.init)
    }
}

extension Date {
    /// A time as ISO 8601 has it.
    init(_ text: String) throws { try self.init(text, strategy: .iso8601) }
}
