import Foundation
import TestSupport
import Testing

@testable import CardReceipts

@Suite(.timeLimit(.minutes(5))) struct HTMLRendererTests {
    /// Python's parser of HTML is the judge: what it sees as text, and which elements and attributes there are.
    private static let judge = """
        import html.parser, json, sys
        class Page(html.parser.HTMLParser):
            names, text = {}, []
            def handle_starttag(self, tag, attributes):
                self.names[tag] = self.names.get(tag, 0) + 1
                for name, value in attributes:
                    assert name in ("class", "lang", "charset", "http-equiv", "content"), name
            def handle_comment(self, data): raise ValueError("a comment")
            def handle_data(self, data): self.text.append(data)
        page = Page()
        page.feed(sys.stdin.read())
        print(json.dumps([page.names, "".join(page.text)]))
        """

    private static func parse(_ html: String) async throws -> (elements: [String: Int], text: String) {
        let outcome = try await Program.run(["/usr/bin/python3", "-c", judge], input: html)
        try #require(outcome.status == 0, "\(outcome)\n\(html)")
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [Any]
        return try (
            #require(object?.first as? [String: Int]), #require(object?.last as? String)
        )
    }

    private static func content(_ text: String) throws -> ReceiptContent {
        try Sample.content(
            merchant: Sample.merchant(
                name: "x" + text, address: ["x" + text], merchantID: "x" + text, terminalID: "x" + text),
            parameters: Sample.parameters(
                card: Sample.card(
                    receipt: ReceiptDetails(
                        applicationPreferredName: "x" + text, dedicatedFileName: "A0000000031010",
                        accountType: "x" + text, cardholderVerificationMethod: .noCVM)),
                orderID: "x" + text),
            lineItems: [
                ReceiptLineItem(title: "x" + text, amount: 1, attributes: [.init(name: text, value: text)])
            ],
            totals: ReceiptTotals(subtotal: 1, coupons: [text]), note: "x" + text, link: "x" + text)
    }

    @Test("B4: whatever a text holds, the page has the same elements, and shows the text")
    func b4() async throws {
        let plain = try await Self.parse(HTMLRenderer().render(ReceiptDocument(Self.content("y"))))
        for text in [
            "<script>alert(1)</script>", "</p><img src=x onerror=alert(1)>", "\" onload=\"alert(1)", "' x='",
            "<!--", "]]>", "&lt;&amp;&#60;", "</style></title></html>", "\u{1B}<b>", "a\u{202E}b<i>", "&", "<",
        ] {
            let page = try await Self.parse(HTMLRenderer().render(ReceiptDocument(Self.content(text))))
            #expect(page.elements == plain.elements, "\(text)")
            // Title, head, and eleven lines.
            #expect(page.text.components(separatedBy: text.printable).count - 1 >= 12, "\(text): \(page.text)")
            #expect(!page.text.contains("\u{1B}") && !page.text.contains("\u{202E}"))
        }
    }

    /// What Chromium does with a page on its own: no network, no profile that stays.
    private static func chromium(_ arguments: [String], _ page: URL, in folder: URL) async throws -> Program.Outcome {
        try await Program.run(
            [
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--disable-extensions", "--user-data-dir=\(folder.path)/profile", "--hide-scrollbars",
            ] + arguments + [page.absoluteString], environment: ["HOME": folder.path], timeout: .seconds(180))
    }

    @Test(
        "B4: Chromium shows the receipt, and runs nothing in it",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"))
    func chromium() async throws {
        let folder = try TemporaryFolder()
        let page = folder.url.appending(path: "receipt.html")
        let script = "<script>document.title='RUN'</script><img src=x onerror=\"document.title='RUN'\">"
        let html = HTMLRenderer().render(ReceiptDocument(try Self.content(script), language: .french))
        try Data(html.utf8).write(to: page)
        let tree = try await Self.chromium(["--dump-dom"], page, in: folder.url)
        #expect(tree.output.contains("MONTANT PAYÉ") && !tree.output.contains("<title>RUN"), "\(tree)")
    }

    @Test(
        "Chromium draws and prints the receipt",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
        .thorough("it starts Chromium twice; that Chromium shows the receipt, and WeasyPrint prints it, stays fast"))
    func chromiumPrints() async throws {
        let folder = try TemporaryFolder()
        let page = folder.url.appending(path: "receipt.html")
        let html = HTMLRenderer().render(ReceiptDocument(try Self.content(""), language: .french))
        try Data(html.utf8).write(to: page)
        let picture = folder.url.appending(path: "receipt.png"), print = folder.url.appending(path: "receipt.pdf")
        _ = try await Self.chromium(
            ["--screenshot=\(picture.path)", "--window-size=400,1200"], page, in: folder.url)
        // Signature, and width and height of PNG; a page that is empty is a few hundred bytes.
        let png = try Data(contentsOf: picture)
        #expect(png.starts(with: [0x89, 0x50, 0x4E, 0x47]) && png.count > 10_000, "\(png.count)")

        _ = try await Self.chromium(["--print-to-pdf=\(print.path)", "--no-pdf-header-footer"], page, in: folder.url)
        try await Self.expectReceipt(in: print)
    }

    /// poppler reads the receipt's lines in `file`.
    private static func expectReceipt(in file: URL) async throws {
        let text = try await Program.run(["pdftotext", "-layout", file.path, "-"])
        for line in ["MONTANT PAYÉ.*12,34 EUR", "AID.*A0000000031010", "Carte.*Visa \\*\\*\\*\\* 0010", "Sous-total"] {
            #expect(text.output.contains(try Regex(line)), "\(line) in \(text)")
        }
    }

    @Test(
        "PDF: WeasyPrint makes it, and poppler reads it on the paper it is for",
        .enabled(if: Program.isInstalled("weasyprint"), "weasyprint is not installed"),
        .enabled(if: Program.isInstalled("pdftotext"), "poppler-utils is not installed"),
        arguments: Tier.few(
            zip(HTMLRenderer.Paper.allCases, ["226.77[0-9]* x 841.89", "288 x 432", "595.2[0-9]* x 841.89"])
                .map { ($0, $1) }, 1))
    func pdf(_ paper: HTMLRenderer.Paper, _ size: String) async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appending(path: "receipt.pdf")
        let document = ReceiptDocument(try Sample.content(note: "é<b>"), language: .french)
        try await PDFRenderer(paper: paper).render(document).write(to: file)
        try await Self.expectReceipt(in: file)
        let information = try await Program.run(["pdfinfo", file.path])
        #expect(information.output.contains(try Regex("Page size: +\(size)")), "\(information)")
    }

    @Test("PDF: a program that is missing, fails or takes too long is an error with a hint")
    func pdfErrors() async throws {
        let document = ReceiptDocument(try Sample.content())
        let folder = try TemporaryFolder()
        func program(_ name: String, _ script: String) async throws -> String {
            let path = folder.url.appending(path: name).path
            try await Program.write(script: script, to: path)
            return path
        }
        await #expect(throws: ExternalProgramError.missing(program: "no-such-program", package: "weasyprint")) {
            try await PDFRenderer(program: "no-such-program").render(document)
        }
        let failing = try await program("failing", "echo it is broken >&2; exit 7")
        await #expect(
            throws: ExternalProgramError.failed(program: failing, status: 7, message: "it is broken")
        ) {
            try await PDFRenderer(program: failing).render(document)
        }
        // Success without a document is none.
        let empty = try await program("empty", "exit 0")
        await #expect(throws: ExternalProgramError.failed(program: empty, status: 0, message: "")) {
            try await PDFRenderer(program: empty).render(document)
        }
        let slow = try await program("slow", "exec sleep 600")
        await #expect(throws: ExternalProgramError.tooSlow(program: slow, limit: .milliseconds(300))) {
            try await PDFRenderer(program: slow, limit: .milliseconds(300)).render(document)
        }
        let task = Task { try await PDFRenderer(program: slow).render(document) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(ExternalProgramError.missing(program: "weasyprint", package: "weasyprint").hint.contains("apt-get"))
    }
}
