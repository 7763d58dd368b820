import Foundation

extension ProximityReaderSystem.Ledger {
    /// A format for exporting payments.
    public enum ExportFormat: String, Codable, Hashable, Sendable, CaseIterable {
        /// RFC 4180, with a header line.  An apostrophe precedes text that a spreadsheet would take for a formula.
        case csv
        /// One JSON object per line, with the encoding of ``Payment`` and ISO 8601 times.
        case jsonLines
    }
}

extension ProximityReaderSystem.Ledger.ExportFormat {
    package typealias Payment = ProximityReaderSystem.Ledger.Payment

    package func text(of payments: [Payment]) throws -> String {
        switch self {
        case .csv:
            let names = Self.columns.map(\.name).joined(separator: ",") + "\r\n"
            return names
                + payments.map { payment in
                    Self.columns.map { Self.field($0.value(payment)) }.joined(separator: ",") + "\r\n"
                }.joined()
        case .jsonLines:
            let encoder = JSONEncoder()
            encoder.dateEncodingStrategy = .iso8601
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return try payments.map { String(decoding: try encoder.encode($0), as: UTF8.self) + "\n" }.joined()
        }
    }

    private static let columns: [(name: String, value: @Sendable (Payment) -> String?)] = [
        ("id", { $0.id }), ("time", { $0.time.formatted(.iso8601) }), ("amount", { $0.amount.description }),
        ("currency", { $0.currency }), ("merchant", { $0.merchant }), ("state", { $0.state.rawValue }),
        ("answer", { $0.answer?.rawValue }), ("card", { $0.card }), ("reason", { $0.reason }),
    ]

    private static func field(_ value: String?) -> String {
        guard let value, let first = value.unicodeScalars.first else { return "" }
        let text = "=+-@\t\r".unicodeScalars.contains(first) ? "'" + value : value
        guard text.unicodeScalars.contains(where: { "\",\r\n".unicodeScalars.contains($0) }) else { return text }
        return "\"" + text.replacing("\"", with: "\"\"") + "\""
    }
}
