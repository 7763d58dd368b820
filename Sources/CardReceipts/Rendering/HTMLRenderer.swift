/// A renderer to a self-contained HTML page: no scripts, no images, no external resources.
public struct HTMLRenderer: Hashable, Sendable {
    /// The paper on which the page is printed.
    public enum Paper: String, CaseIterable, Hashable, Sendable {
        /// Roll paper, 80 mm wide, cut at 297 mm.
        case roll
        /// A label, 4 by 6 inches.
        case label
        case a4

        fileprivate var page: String {
            switch self {
            case .roll: "size: 80mm 297mm; margin: 4mm"
            case .label: "size: 4in 6in; margin: 6mm"
            case .a4: "size: A4; margin: 20mm"
            }
        }
    }

    public let paper: Paper

    public init(paper: Paper = .roll) { self.paper = paper }

    public func render(_ document: ReceiptDocument) -> String {
        let language = document.language.rawValue
        let title = document.lines.lazy.compactMap { if case .merchant(let name) = $0 { name } else { nil } }.first
        return """
            <!DOCTYPE html>
            <html lang="\(language)">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <title>\((title ?? "").escapedForHTML)</title>
            <style>
            @page { \(paper.page) }
            body { font: 10pt sans-serif; max-width: 80mm; margin: 0 auto; overflow-wrap: anywhere }
            h1 { font-size: 14pt; text-align: center; margin: 0 }
            h2 { font-size: 11pt; text-align: center; margin: 6pt 0 0 }
            p { margin: 0 }
            .subhead, .statement, .code { text-align: center }
            .row { display: flex; justify-content: space-between; gap: 6pt }
            .row span:last-child { text-align: right; font-variant-numeric: tabular-nums }
            .amount { font-weight: bold; font-size: 12pt }
            .detail { padding-left: 8pt }
            .signature { margin-top: 24pt; border-bottom: 1px solid }
            hr { border: 0; border-top: 1px dashed; margin: 4pt 0 }
            </style>
            </head>
            <body>
            \(document.lines.map(element).joined(separator: "\n"))
            </body>
            </html>

            """
    }

    private func element(_ line: ReceiptDocument.Line) -> String {
        switch line {
        case .merchant(let text): "<h1>\(text.escapedForHTML)</h1>"
        case .heading(let text): "<h2>\(text.escapedForHTML)</h2>"
        case .subhead(let text): paragraph("subhead", text)
        case .itemDetail(let text): paragraph("detail", text)
        case .statement(let text): paragraph("statement", text)
        case .signature(let text): paragraph("signature", text)
        case .note(let text): paragraph("note", text)
        case .code(let text): paragraph("code", text)
        case .item(let text, let amount): row("item", text, amount)
        case .total(let text, let amount): row("total", text, amount)
        case .amount(let text, let amount): row("amount", text, amount)
        case .fact(let label, let value): row("fact", label, value)
        case .separator: "<hr>"
        }
    }

    private func paragraph(_ name: String, _ text: String) -> String {
        "<p class=\"\(name)\">\(text.escapedForHTML)</p>"
    }

    private func row(_ name: String, _ left: String, _ right: String) -> String {
        "<p class=\"row \(name)\"><span>\(left.escapedForHTML)</span> <span>\(right.escapedForHTML)</span></p>"
    }
}

extension String {
    /// The text, escaped for content and for quoted attributes.
    fileprivate var escapedForHTML: String {
        var result = UnicodeScalarView()
        for scalar in unicodeScalars {
            switch scalar {
            case "&": result += "&amp;".unicodeScalars
            case "<": result += "&lt;".unicodeScalars
            case ">": result += "&gt;".unicodeScalars
            case "\"": result += "&quot;".unicodeScalars
            case "'": result += "&#39;".unicodeScalars
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
