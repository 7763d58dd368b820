import Foundation
import TestSupport
import Testing

@testable import CardReceipts

@Suite struct TextRendererTests {
    private static func golden(_ name: String) throws -> String {
        try String(contentsOf: Judge.folder.appending(path: "Golden/\(name).txt"), encoding: .utf8)
    }

    @Test(
        "B5: the receipt at 32, 42 and 48 columns, in every language", arguments: [32, 42, 48], ReceiptLanguage.allCases
    )
    func b5(_ columns: Int, _ language: ReceiptLanguage) async throws {
        let text = TextRenderer(columns: columns).render(ReceiptDocument(try Sample.full(), language: language))
        let widths = try await Judge.ask("layout.py", ["width"], input: text).output.split(separator: "\n").map {
            Int($0)
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(widths.count == lines.count)
        #expect(widths.allSatisfy { $0 ?? .max <= columns }, "\(text)")
        // An amount ends where the line does.
        for (line, width) in zip(lines, widths) where line.contains(/[0-9][.,][0-9]{2}( EUR)?$/) {
            #expect(width == columns, "\(line)")
        }
        #expect(text == (try Self.golden("\(language.rawValue)-\(columns)")), "\(text)")
    }

    @Test("B5: lines break where Python's textwrap breaks them", arguments: [16, 32, 42, 48])
    func b5Wrap(_ columns: Int) async throws {
        var random = SplitMix(state: 0xB5)
        // textwrap fills up a line with the beginning of a word that is too long for one, where we begin a line with it.
        let texts =
            (0..<Tier.rounds(30, thorough: 200)).map { _ in
                (0..<Int.random(in: 1...20, using: &random)).map { _ in
                    String(repeating: "ab-cé", count: 13).prefix(.random(in: 1...columns, using: &random))
                }.joined(separator: " ")
            } + (1...60).map { String(String(repeating: "ab-cé", count: 12).prefix($0)) }
        let judged = try await Judge.ask(
            "layout.py", ["wrap", "\(columns)"], input: texts.map { $0 + "\n" }.joined())
        let ours = texts.map { TextLayout(columns: columns).wrapped($0).map { $0 + "\n" }.joined() + "\n" }.joined()
        #expect(ours == judged.output)
    }

    @Test("B5: characters are as wide as Unicode has them", .computing)
    func b5Width() async throws {
        // Every assigned character that may be printed; not a selector, which is no character by itself, nor U+1171E,
        // whose category has changed since the judge's Unicode.
        let scalars = (0x20...0x3FFFF).compactMap(Unicode.Scalar.init).filter {
            $0.isPrintable && !$0.properties.isVariationSelector && $0.value != 0x1171E
                && $0.properties.age.map { $0.major <= 14 } == true
        }
        let judged = try await Judge.ask(
            "layout.py", ["width"], input: scalars.map { String(Character($0)) + "\n" }.joined())
        let widths = judged.output.split(separator: "\n").compactMap { Int($0) }
        try #require(widths.count == scalars.count)
        let different = zip(scalars, widths).filter { Character($0).columns != $1 }
        #expect(different.isEmpty, "\(different.prefix(10))")
    }

    /// What Unicode takes for one character, and a font of one width does not.
    private static let clusters = [
        "ｶﾞ", "ﾊﾟ", "हि", "की", "हिन्दी", "กำ", "🇩🇪", "👨‍👩‍👧", "👍🏽", "❤️", "1️⃣", "e\u{301}", "\u{1112}\u{1161}\u{11AB}",
        "நி", "か\u{3099}", "🏴‍☠️",
    ]

    @Test("B5: what is one character to Unicode is as wide as its scalars together")
    func b5Clusters() async throws {
        let judged = try await Judge.ask("layout.py", ["width"], input: Self.clusters.map { $0 + "\n" }.joined())
        let widths = judged.output.split(separator: "\n").compactMap { Int($0) }
        #expect(Self.clusters.map(\.columns) == widths)
        #expect("ｶﾞ".columns == 2 && "हि".columns == 2 && "🇩🇪".columns == 2)

        // Laid out, the judge finds no line too wide, and amounts end where the line does.
        let items = Self.clusters.map { ReceiptLineItem(title: String(repeating: $0, count: 30), amount: 1234) }
        let wide = ReceiptLineItem(title: "👨" + String(repeating: "\u{200D}👩", count: 40), amount: 1)
        for columns in [16, 32, 42, 48] {
            let document = ReceiptDocument(try Sample.content(lineItems: items + [wide]))
            let text = TextRenderer(columns: columns).render(document)
            let widths = try await Judge.ask("layout.py", ["width"], input: text).output.split(separator: "\n")
            #expect(widths.allSatisfy { Int($0) ?? .max <= columns }, "\(text)")
            for (line, width) in zip(text.split(separator: "\n", omittingEmptySubsequences: false), widths)
            where line.contains(" 12.34") && !line.contains("EUR") && !line.contains("Subtotal") {
                #expect(Int(width) == columns, "\(line)")
            }
        }
    }

    @Test("B5: no text is too long, too wide or too strange for a line", .computing)
    func b5Fuzz() throws {
        var random = SplitMix(state: 0xB55)
        let alphabet = Array("aé烏\u{301}👨‍👩‍👧 \t\n\r\u{1B}\u{202E}\u{0}\u{7F}<>&ＡÄ€0123456789")
        for _ in 0..<60 {
            func text() -> String {
                String(
                    (0..<Int.random(in: 0...90, using: &random)).compactMap { _ in
                        alphabet.randomElement(using: &random)
                    })
            }
            let content = try Sample.content(
                merchant: Sample.merchant(name: "M" + text(), address: ["M", text()]),
                lineItems: [ReceiptLineItem(title: text(), amount: .random(in: .min ... .max, using: &random))],
                note: text(), link: text())
            for columns in [-1, 16, 32, 42, 48, 255] {
                let renderer = TextRenderer(columns: columns)
                for line in renderer.render(ReceiptDocument(content)).split(separator: "\n") {
                    #expect(line.columns <= renderer.columns, "\(line)")
                    #expect(line.unicodeScalars.allSatisfy { $0.isPrintable }, "\(line)")
                }
            }
        }
    }
}
