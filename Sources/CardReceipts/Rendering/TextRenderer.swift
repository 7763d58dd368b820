/// A renderer to plain text, for printers and terminals with characters of one width.
///
/// The same document gives the same text on every machine.
public struct TextRenderer: Hashable, Sendable {
    /// The number of columns of a line: 32 on 58 mm paper, 42 or 48 on 80 mm paper; at least 16.
    public let columns: Int

    public init(columns: Int = 48) { self.columns = max(columns, 16) }

    public func render(_ document: ReceiptDocument) -> String {
        document.lines.flatMap(lines).map { $0 + "\n" }.joined()
    }

    /// Returns the lines of text for one line of the document.
    func lines(_ line: ReceiptDocument.Line) -> [String] {
        let layout = TextLayout(columns: columns)
        return switch line {
        case .merchant(let text), .subhead(let text), .heading(let text), .statement(let text), .code(let text):
            layout.centered(text)
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

/// The layout of text in columns.
struct TextLayout {
    let columns: Int

    /// Breaks text at spaces.  A word that is longer than a line is broken at the end of the line.
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

    func centered(_ text: String) -> [String] {
        wrapped(text).map { String(repeating: " ", count: (columns - $0.columns) / 2) + $0 }
    }

    func indented(_ text: String, by indent: Int) -> [String] {
        TextLayout(columns: columns - indent).wrapped(text).map { String(repeating: " ", count: indent) + $0 }
    }

    /// Returns `text` on the left, and `value` on the right of its last line.  If both do not fit on half a line, each
    /// has lines of its own.
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
    /// The width of the text in columns.
    var columns: Int { reduce(0) { $0 + $1.columns } }

    /// Returns the characters from the beginning that fit in `limit` columns, two or more.  A character that is wider
    /// by itself is cut.
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
    /// The width of a character: the sum of the widths of its scalars, as in wcwidth(3).  A device with characters of
    /// one width gives each scalar its own cells and combines none, whatever Unicode says.  A wide scalar counts 2, a
    /// combining one 0.
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
    /// Returns the first index for which `isBehind` is true, by binary search.
    fileprivate func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
