import Foundation

/// One row of what `--list-cards` and `--list-faults` print.
struct Listing: Encodable {
    let name: String
    var argument: String?
    let summary: String

    /// - Parameter width: of the column with the names.
    static func print(_ title: String, _ rows: [Listing], width: Int, json: Bool) throws {
        guard !json else {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            return Swift.print(String(decoding: try encoder.encode([title: rows]), as: UTF8.self))
        }
        for row in rows {
            let name = row.name + (row.argument.map { "=\($0)" } ?? "")
            Swift.print(name + String(repeating: " ", count: max(1, width - name.count)), row.summary)
        }
    }
}
