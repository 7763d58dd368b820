/// A receipt as plain text, for printers and terminals with characters of one width: lines of at most so many columns.
///
/// The same document gives the same text, wherever it runs.
public struct TextRenderer: Hashable, Sendable {
    /// What fits on a line: 32 on 58 mm paper, 42 or 48 on 80 mm; 16 and more.
    public let columns: Int

    public init(columns: Int = 48) { self.columns = max(columns, 16) }

    public func render(_ document: ReceiptDocument) -> String {
        document.lines.flatMap(lines).map { $0 + "\n" }.joined()
    }

    /// What one line of the document takes.
    func lines(_ line: ReceiptDocument.Line) -> [String] {
        let layout = TextLayout(columns: columns)
        return switch line {
        case .merchant(let text), .subhead(let text), .heading(let text), .statement(let text), .code(let text):
            layout.centred(text)
        case .item(let text, let amount), .total(let text, let amount), .amount(let text, let amount):
            layout.row(text, amount)
        case .fact(let label, let value): layout.row(label, value)
        case .itemDetail(let text): layout.indented(text, by: 2)
        case .note(let text): layout.wrapped(text)
        case .signature(let label):
            ["", label + ": " + String(repeating: "_", count: max(4, columns - label.columns - 2))]
        case .separator: [String(repeating: "-", count: columns)]
        }
    }
}

/// How text is laid out in columns.
struct TextLayout {
    let columns: Int

    /// Broken at spaces; a word that is longer than a line is broken where the line ends.
    func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        var width = 0
        for word in text.split(separator: " ") {
            var word = Substring(word)
            if width > 0, width + 1 + word.columns <= columns {
                line += " " + word
                width += 1 + word.columns
                continue
            }
            if width > 0 { lines.append(line) }
            while word.columns > columns {
                let head = word.prefix(columns: columns)
                lines.append(String(head))
                word = word[head.endIndex...]
            }
            (line, width) = (String(word), word.columns)
        }
        return lines + (width > 0 ? [line] : [])
    }

    func centred(_ text: String) -> [String] {
        wrapped(text).map { String(repeating: " ", count: (columns - $0.columns) / 2) + $0 }
    }

    func indented(_ text: String, by indent: Int) -> [String] {
        TextLayout(columns: columns - indent).wrapped(text).map { String(repeating: " ", count: indent) + $0 }
    }

    /// `text` on the left and `value` on the right of its last line; on lines of its own where both do not fit on half of
    /// one.
    func row(_ text: String, _ value: String) -> [String] {
        let width = value.columns
        guard width < columns else { return wrapped(text) + right(value) }
        // An amount shares the last line with as much of the text as fits before it.
        let left = TextLayout(columns: width <= columns * 3 / 5 ? columns - width - 1 : columns).wrapped(text)
        guard let last = left.last, last.columns + 1 + width <= columns else { return left + right(value) }
        return left.dropLast() + [last + String(repeating: " ", count: columns - last.columns - width) + value]
    }

    private func right(_ text: String) -> [String] {
        wrapped(text).map { String(repeating: " ", count: columns - $0.columns) + $0 }
    }
}

extension StringProtocol {
    /// How many columns it takes.
    var columns: Int { reduce(0) { $0 + $1.columns } }

    /// As many characters from the beginning as `limit` columns hold, two or more; of one that is wider by itself, what of it
    /// they hold.
    func prefix(columns limit: Int) -> SubSequence {
        var width = 0
        var end = startIndex
        while end < endIndex, width + self[end].columns <= limit {
            width += self[end].columns
            formIndex(after: &end)
        }
        guard end == startIndex else { return self[..<end] }
        while end < endIndex, width + unicodeScalars[end].columns <= limit {
            width += unicodeScalars[end].columns
            unicodeScalars.formIndex(after: &end)
        }
        return self[..<end]
    }
}

extension Character {
    /// The sum of its scalars, as wcwidth(3) has them: what has characters of one width gives each scalar cells of its own, and
    /// makes no picture of several, no matter what Unicode takes together.  Two for a wide one, none for what only changes
    /// others.
    var columns: Int { unicodeScalars.reduce(0) { $0 + $1.columns } }
}

extension Unicode.Scalar {
    fileprivate var columns: Int {
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default:
            let index = Self.wide.partitioningIndex { $0.lowerBound > value }
            return index > 0 && Self.wide[index - 1].contains(value) ? 2 : 1
        }
    }
}

extension [ClosedRange<UInt32>] {
    /// The first index where `isBehind`, by halving.
    fileprivate func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
