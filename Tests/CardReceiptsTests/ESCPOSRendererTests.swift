import Foundation
import SmartCard
import TestSupport
import Testing

@testable import CardReceipts

@Suite struct ESCPOSRendererTests {
    /// Where Tests/install has put python-escpos.
    private static let package = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../.build/python-escpos").standardizedFileURL.path
    private static let hasReference = FileManager.default.fileExists(atPath: package + "/escpos")

    private static func reference(_ commands: [[String: Any]]) async throws -> [UInt8] {
        let input = String(decoding: try JSONSerialization.data(withJSONObject: commands), as: UTF8.self)
        let outcome = try await Judge.ask("escpos_reference.py", [package], input: input)
        try #require(outcome.status == 0, "\(outcome)")
        return try [UInt8](hex: outcome.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// The calls that print `document` by python-escpos, for text of CP858.
    private static func calls(
        _ document: ReceiptDocument, columns: Int, cut: ESCPOSRenderer.Cut?, drawer: ESCPOSRenderer.Drawer?
    ) -> [[String: Any]] {
        var calls: [[String: Any]] = [["name": "initialize"]]
        if let drawer { calls.append(["name": "drawer", "value": drawer == .pin2 ? 2 : 5]) }
        var hasPage = false
        func text(_ line: String) {
            // The page is chosen where the first character needs one; a space that does not break is a space.
            let line = line.replacing("\u{A0}", with: " ") + "\n"
            let plain = hasPage ? "" : line.prefix(while: \.isASCII)
            if !plain.isEmpty { calls.append(["name": "ascii", "value": String(plain)]) }
            guard plain.count < line.count else { return }
            if !hasPage { calls.append(["name": "page", "value": "CP858"]) }
            hasPage = true
            calls.append(["name": "text", "value": String(line.dropFirst(plain.count))])
        }
        for line in document.lines {
            if case .code(let link) = line {
                calls += [
                    ["name": "align", "value": "center"], ["name": "code", "value": link],
                    ["name": "align", "value": "left"],
                ]
                continue
            }
            var styles: [(begin: [String: Any], end: [String: Any])] = []
            switch line {
            case .merchant, .amount:
                styles = ["bold", "tall"].map { (["name": $0, "value": true], ["name": $0, "value": false]) }
            case .heading: styles = [(["name": "bold", "value": true], ["name": "bold", "value": false])]
            default: break
            }
            calls += styles.map(\.begin)
            for line in TextRenderer(columns: columns).lines(line) { text(line) }
            calls += styles.reversed().map(\.end)
        }
        switch cut {
        case .partial: calls.append(["name": "cutAtCutter"])
        case .full: calls.append(["name": "cut"])
        case nil: calls.append(["name": "feed", "value": 6])
        }
        return calls
    }

    // By ISO/IEC 18004, table 7, versions 25, 26, 34, 36 and 40 are of 117, 121, 153, 161 and 177 modules; a column is of 12 dots.
    @Test(
        "B6: a QR code fits the paper, and else the link is text",
        arguments: [
            (42, 32, 6), (997, 32, 3), (998, 32, nil), (1722, 42, 3), (1911, 42, nil), (2331, 48, 3), (2332, 48, nil),
        ] as [(Int, Int, Int?)])
    func b6Code(_ length: Int, _ columns: Int, _ dots: Int?) throws {
        let link = "https://shop.example/" + String(repeating: "x", count: length - 21)
        let renderer = ESCPOSRenderer(columns: columns)
        let commands = renderer.commands(ReceiptDocument(try Sample.content(link: link)))
        let codes = commands.compactMap { if case .code(let text, let dots) = $0 { (text, Int(dots)) } else { nil } }
        #expect(codes.map(\.1) == (dots.map { [$0] } ?? []))
        if dots != nil {
            #expect(codes.map(\.0) == [link])
        } else {
            let text: [UInt8] = commands.flatMap { if case .text(let bytes) = $0 { bytes } else { [UInt8]() } }
            #expect(String(decoding: text, as: UTF8.self).filter { !$0.isWhitespace }.contains(link))
        }
    }

    /// How many modules qrencode's code of so many bytes has each way, with error correction M; nil if there is none.
    private static func modules(_ length: Int) async throws -> Int? {
        let outcome = try await Program.run(
            ["qrencode", "-8", "-l", "M", "-m", "0", "-t", "ASCII", "-o", "-", String(repeating: "x", count: length)])
        return outcome.status == 0 ? outcome.output.split(separator: "\n").count : nil
    }

    @Test(
        "B6: codes are of the sizes that qrencode's have",
        .enabled(if: Program.isInstalled("qrencode"), "qrencode is not installed"))
    func b6Capacities() async throws {
        /// The least number of columns that a code of so many bytes fits on.
        func columns(_ length: Int) -> Int? {
            let text = String(repeating: "x", count: length)
            return (1...60).first { ESCPOSCommand.moduleDots(of: text, columns: $0) != nil }
        }
        // Wherever a code becomes larger, and the last of its size.
        let sizes = (1...2400).map(columns)
        let steps = (1..<sizes.count).filter { sizes[$0] != sizes[$0 - 1] }
        #expect(steps.count == 40)
        for length in Tier.few(steps, 6).flatMap({ [$0, $0 + 1] }) {
            // Three dots each module, four white modules at each side, and 12 dots each column.
            let expected = try await Self.modules(length).map { (3 * ($0 + 8) + 11) / 12 }
            #expect(sizes[length - 1] == expected, "\(length) bytes")
        }
    }

    @Test(
        "B6: the bytes are those of python-escpos",
        .enabled(if: hasReference, "python-escpos is not installed from PyPI"),
        arguments: Tier.few(ReceiptLanguage.allCases, 1))
    func b6(_ language: ReceiptLanguage) async throws {
        let content = try Sample.content(
            lineItems: Sample.items + [ReceiptLineItem(title: "Käse für 5 €, ½ Pfund", amount: 500)],
            totals: ReceiptTotals(subtotal: 1734, discount: 500, coupons: ["ÄÖÜ"]), note: "Á bientôt, señor",
            link: "https://shop.example/ä?r=1001")
        let document = ReceiptDocument(content, language: language)
        for (columns, cut, drawer) in [(32, .partial, nil), (42, .full, .pin2), (48, nil, .pin5)]
            as [(Int, ESCPOSRenderer.Cut?, ESCPOSRenderer.Drawer?)]
        {
            let ours = ESCPOSRenderer(columns: columns, codePages: [.pc858], cut: cut, drawer: drawer).render(document)
            let judged = try await Self.reference(Self.calls(document, columns: columns, cut: cut, drawer: drawer))
            #expect(ours == judged, "ours \(ours.hex)\nreference \(judged.hex)")
        }
    }

    private static let pages: [CodePage] = [
        .pc437, .pc850, .pc852, .pc858, .pc866, .windows1252, .greek,
    ]

    @Test("B6: code pages are those of iconv", arguments: Tier.few(pages, 2))
    func b6CodePages(_ page: CodePage) async throws {
        let characters = (0xA0...0xFFFF).compactMap(Unicode.Scalar.init).filter { page.byte($0) != nil }
        #expect(characters.count > 90)
        let text = String(String.UnicodeScalarView(characters))
        // Bytes back to text: iconv knows nothing of ours.
        let folder = try TemporaryFolder()
        let file = folder.url.appending(path: "bytes")
        try Data(characters.compactMap(page.byte)).write(to: file)
        let outcome = try await Program.run(["iconv", "-f", page.name, "-t", "UTF-8", file.path])
        #expect(outcome.output == text, "\(outcome)")
        for control in (0...0x1F).compactMap(Unicode.Scalar.init) + ["\u{7F}", "\u{9B}"] {
            #expect(page.byte(control) == nil)
        }
    }

    @Test("B6: the page changes where it must, and what is in none stays as wide as it is")
    func b6Pages() {
        var encoder = ESCPOSEncoder(codePages: [.pc858, .pc866])
        let commands = encoder.encode("a€Дä ő烏!")
        #expect(
            commands.flatMap(\.bytes)
                == [
                    0x61, 0x1B, 0x74, 19, 0xD5, 0x1B, 0x74, 17, 0x84, 0x1B, 0x74, 19, 0x84, 0x20, 0x6F, 0x3F, 0x3F,
                    0x21,
                ])
    }

    /// Reads what stands in the stream, command by command; anything else is nil.
    private static func strays(in bytes: [UInt8]) -> [UInt8] {
        var strays: [UInt8] = []
        var index = 0
        func at(_ offset: Int) -> Int { index + offset < bytes.count ? Int(bytes[index + offset]) : 0 }
        while index < bytes.count {
            switch (at(0), at(1)) {
            case (0x1B, 0x40): index += 2
            case (0x1B, 0x74), (0x1B, 0x61), (0x1B, 0x45), (0x1B, 0x64), (0x1D, 0x21): index += 3
            case (0x1D, 0x56): index += at(2) == 0 ? 3 : 4
            case (0x1D, 0x28) where at(2) == 0x6B: index += 5 + at(3) + at(4) << 8
            case (0x0A, _), (0x20...0x7E, _), (0x80..., _): index += 1
            default:
                strays.append(bytes[index])
                index += 1
            }
        }
        return strays
    }

    @Test("B4: no text commands the printer", .computing)
    func b4() throws {
        var random = SplitMix(state: 0xB4)
        let evil = [
            "\u{1B}@", "\u{1B}p0\u{32}\u{32}", "\u{10}\u{14}\u{1}\u{0}\u{1}", "\u{1D}V\u{0}", "\u{9B}31m", "\u{1C}.",
            "\u{18}", "\u{0C}", "\r", "\u{7F}", "\u{200B}", "\u{FF1B}", "\u{2028}",
        ]
        let harmless = try Self.commands(in: Sample.content(note: "x", link: "x"))
        for _ in 0..<50 {
            func text() -> String {
                (0..<6).map { _ in (evil + ["ä", "x", " "]).randomElement(using: &random) ?? "" }.joined()
            }
            let content = try Sample.content(
                merchant: Sample.merchant(
                    name: "x" + text(), address: ["x" + text()], merchantID: "x" + text(), terminalID: "x" + text()),
                parameters: Sample.parameters(
                    card: Sample.card(
                        receipt: ReceiptDetails(
                            applicationPreferredName: "x" + text(), dedicatedFileName: "A0000000031010",
                            accountType: "x" + text(), cardholderVerificationMethod: .noCVM)),
                    orderID: text()),
                lineItems: [
                    ReceiptLineItem(title: text(), amount: 1, attributes: [.init(name: text(), value: text())])
                ],
                totals: ReceiptTotals(subtotal: 1, coupons: [text()]), note: "x" + text(), link: "x" + text())
            let bytes = ESCPOSRenderer().render(ReceiptDocument(content))
            #expect(Self.strays(in: bytes).isEmpty, "\(bytes.hex)")
            // Nor what the QR code holds, though the printer does not look into it.
            let codes = Self.codes(in: bytes)
            #expect(codes.count == 1)
            for code in codes {
                let text = String(decoding: code, as: UTF8.self)
                #expect(Array(text.utf8) == code && text.unicodeScalars.allSatisfy(\.isPrintable), "\(code.hex)")
            }
            // As many initializations, cuts and drawer pulses as in any receipt.
            #expect(try Self.commands(in: content) == harmless)
        }
    }

    /// The data of GS ( k function 80: behind the length, 49, 80 and 48.
    private static func codes(in bytes: [UInt8]) -> [[UInt8]] {
        bytes.indices.compactMap { index in
            let command = bytes[index...]
            guard command.starts(with: [0x1D, 0x28, 0x6B]), bytes.count > index + 8, bytes[index + 6] == 80 else {
                return nil
            }
            let count = Int(bytes[index + 3]) + Int(bytes[index + 4]) << 8
            return Array(bytes[(index + 8)..<(index + 5 + count)])
        }
    }

    @Test("B4: a code page holds no control characters, whatever it is made of")
    func b4CodePage() {
        let page = CodePage(number: 9, name: "X", upperHalf: "\u{9B}\u{1B}\u{1D}\u{7F}\u{0}ä\u{FFFD}")
        for control in ["\u{9B}", "\u{1B}", "\u{1D}", "\u{7F}", "\u{0}", "\u{FFFD}"] as [Unicode.Scalar] {
            #expect(page.byte(control) == nil)
        }
        #expect(page.byte("ä") == 0x85)
        #expect(page.numbered(3).number == 3 && page.numbered(3).byte("ä") == 0x85)
    }

    private static func commands(in content: ReceiptContent) throws -> [Int] {
        let bytes = ESCPOSRenderer(drawer: .pin2).render(ReceiptDocument(content))
        return [[0x1B, 0x40], [0x1D, 0x56], [0x1B, 0x70], [0x10, 0x14], [0x1C]].map { (pattern: [UInt8]) in
            bytes.indices.filter { bytes[$0...].starts(with: pattern) }.count
        }
    }

    @Test("B4: a link that no QR code holds is printed as text")
    func b4LongLink() throws {
        let link = "https://shop.example/" + String(repeating: "x", count: 3000)
        let bytes = ESCPOSRenderer().render(ReceiptDocument(try Sample.content(link: link)))
        #expect(!bytes.indices.contains { bytes[$0...].starts(with: [0x1D, 0x28, 0x6B]) })
        #expect(bytes.filter { $0 == UInt8(ascii: "x") }.count >= 3000)
    }
}
