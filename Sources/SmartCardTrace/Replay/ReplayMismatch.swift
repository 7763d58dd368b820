/// A program asked for something that the trace has no answer to.
public struct ReplayMismatch: Error, Hashable, Sendable {
    /// One row of the comparison: the trace's line and the program's line; nil if one side has ended.
    public struct Row: Hashable, Sendable {
        public let recorded: String?
        public let played: String?
        public var isSame: Bool { recorded == played }
    }

    /// The problem, in one line.
    public let reason: String
    /// The calls up to this one, each list in its order, card data masked; the last ``maximumRows`` of them.
    public let rows: [Row]

    /// The maximum number of rows.
    public static let maximumRows = 20
}

extension ReplayMismatch: CustomStringConvertible {
    /// The reason, then the lists side by side; `!` marks lines that differ.
    public var description: String {
        let width = min(60, max(8, rows.map { $0.recorded?.count ?? 1 }.max() ?? 0))
        func line(_ mark: String, _ left: String, _ right: String) -> String {
            "\(mark) \(left)\(String(repeating: " ", count: max(0, width - left.count)))  | \(right)"
        }
        return
            ([reason, line(" ", "recorded", "played")]
            + rows.map { line($0.isSame ? " " : "!", Self.shortened($0.recorded), Self.shortened($0.played)) })
            .joined(separator: "\n")
    }

    private static func shortened(_ text: String?) -> String {
        guard let text else { return "-" }
        return text.count > 60 ? "\(text.prefix(45))…\(text.suffix(14))" : text
    }
}
