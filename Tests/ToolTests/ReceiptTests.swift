import Foundation
import TestSupport
import Testing

/// `receipt` from outside.
@Suite(.timeLimit(.minutes(5))) struct ReceiptTests {
    private static let tool = Program.built("receipt")
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../..").standardizedFileURL

    private static func run(_ arguments: String..., input: String = "") async throws -> Program.Outcome {
        try await Program.run([tool] + arguments, input: input)
    }

    private static func example() async throws -> String { try await run("example").output }

    /// The example without what stands at `path`, or with another value there.
    private static func example(_ path: String, _ value: Any? = nil) async throws -> String {
        func change(_ object: Any, _ path: ArraySlice<Substring>) -> Any {
            if var list = object as? [Any], let index = path.first.flatMap({ Int($0) }), list.indices.contains(index) {
                list[index] = change(list[index], path.dropFirst())
                return list
            }
            guard var object = object as? [String: Any], let key = path.first else { return object }
            object[String(key)] = path.count == 1 ? value : object[String(key)].map { change($0, path.dropFirst()) }
            return object
        }
        let object = try JSONSerialization.jsonObject(with: Data(await example().utf8))
        let changed = change(object, path.split(separator: ".")[...])
        return String(decoding: try JSONSerialization.data(withJSONObject: changed), as: UTF8.self)
    }

    @Test("printing receipts needs no reader driver: libcups is loaded, pcsc-lite is not")
    func links() async throws {
        func libraries(_ tool: String) async throws -> String {
            try await Program.run([Program.built(tool)], environment: ["LD_TRACE_LOADED_OBJECTS": "1"]).output
        }
        let receipt = try await libraries("receipt")
        #expect(receipt.contains("libcups.so") && !receipt.contains("libpcsclite"), "\(receipt)")
        #expect(try await libraries("reader-probe").contains("libpcsclite"))
    }

    @Test("show prints the receipt")
    func show() async throws {
        let outcome = try await Self.run("show", "-", "--columns", "32", "--language", "de", input: Self.example())
        #expect(
            outcome.output == """
                         Café am Markt
                            Markt 1
                         04109 Leipzig
                          Händler 0815
                          Terminal T-1
                              KAUF
                --------------------------------
                2 × Cappuccino              7,60
                  Milk: oat
                Apple cake                  4,74
                --------------------------------
                Zwischensumme              12,34
                Steuern                     0,80
                BEZAHLT                12,34 EUR
                --------------------------------
                Karte             Visa **** 0010
                Erfassung             Kontaktlos
                Datum        22.11.2026 14:05:09
                Bestellung                  1001
                --------------------------------
                Anwendung            VISA CREDIT
                AID               A0000000031010
                Konto                     Credit
                Autorisierung             831000
                Modus                Herausgeber
                Antwortcode                   00
                ARQC            3866196A29768AC9
                TVR                   0000000000
                IAD               06010A03A00000
                TSI                         0000
                Keine Prüfung des Karteninhabers
                --------------------------------
                Thank you!

                """, "\(outcome)")
        #expect(outcome.status == 0)
    }

    @Test("render makes every format, and replaces no file without --force")
    func render() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "receipt-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let example = try await Self.example()
        for (format, beginning) in [
            ("text", "   "), ("html", "<!DOCTYPE html>"), ("escpos", "\u{1B}@"), ("pdf", "%PDF-"),
        ] {
            let file = folder.appending(path: "receipt.\(format)").path
            let made = try await Self.run("render", "-", "--format", format, "--output", file, input: example)
            #expect(made.status == 0, "\(made)")
            let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
            #expect(bytes.starts(with: beginning.utf8) && bytes.count > 500)
            let again = try await Self.run("render", "-", "--format", format, "--output", file, input: example)
            #expect(again.status == 2 && again.error.contains("--force"), "\(again)")
            let forced = try await Self.run("render", "-", "--format", "text", "-o", file, "--force", input: example)
            #expect(forced.status == 0, "\(forced)")
        }
        let drawer = try await Self.run(
            "render", "-", "--format", "escpos", "--drawer", "--cut", "none", input: example)
        #expect(drawer.output.hasPrefix("\u{1B}@\u{1B}p\u{0}22"), "\(drawer)")
        #expect(drawer.output.hasSuffix("\u{1B}d\u{6}"))
    }

    @Test(
        "a receipt's fault is reported with its remedy and without the values",
        arguments: [
            ("merchant.name", "no merchant name"), ("merchant.address", "no location"),
            ("merchant.terminal_id", "no terminal number"), ("order.line_items", "no line items"),
            ("order.totals", "no subtotal"), ("payment_intent.created", "payment_intent has no created"),
            ("\(card).receipt.dedicated_file_name", "no application identifier"),
            ("\(card).receipt.account_type", "no account type"), ("\(card).last4", "has no last4"),
            ("\(card).read_method", "no entry mode"),
            ("payment_intent.charges.0.paymentMethod", "no card that was present"),
        ])
    func missing(_ path: String, _ text: String) async throws {
        let outcome = try await Self.run("show", "-", input: Self.example(path))
        #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.error.contains(text) && outcome.error.split(separator: "\n").count == 2, "\(outcome)")
    }

    /// Where the example has what the payment service tells of the card.
    private static let card = "payment_intent.charges.0.paymentMethod.cardPresent.details"

    @Test("a saved receipt is shown as well")
    func kept() async throws {
        let receipt = """
            {
              "merchant": {
                "name": "Diner", "address": ["1 Main St"], "country": "US", "merchant_id": "1", "terminal_id": "2"
              },
              "parameters": {
                "type": "sale", "amount": 500, "currency": "USD", "time": "2026-11-22T14:05:09-05:00",
                "card": {"brand": "visa", "last4": "0010", "entry_mode": "magnetic_stripe"}
              },
              "line_items": [{"title": "Coffee", "amount": 500}], "cart_totals": {"subtotal": 500}
            }
            """
        let outcome = try await Self.run("show", "-", input: receipt)
        #expect(outcome.status == 0 && outcome.output.contains(/AMOUNT PAID +5.00 USD/), "\(outcome)")
    }

    @Test("a refund has its own receipt; an unpaid transaction has none")
    func refund() async throws {
        let refund = try await Self.example("refund", ["amount": 1000, "date": "2026-11-23T13:05:09Z"])
        let outcome = try await Self.run("show", "-", input: refund)
        #expect(outcome.status == 0 && outcome.output.contains(/AMOUNT REFUNDED +10.00 EUR/), "\(outcome)")
        #expect(outcome.output.contains("2026-11-23 14:05:09"), "\(outcome)")
        for status in ["canceled", "requires_payment_method"] {
            let unpaid = try await Self.run("show", "-", input: Self.example("payment_intent.status", status))
            #expect(unpaid.status == 2 && unpaid.error.contains("is not paid"), "\(unpaid)")
        }
        let zone = try await Self.run("show", "-", input: Self.example("time_zone", "Europe/Nowhere"))
        #expect(zone.status == 2 && zone.error.contains("time_zone is not what it should be"), "\(zone)")
    }

    @Test func malformed() async throws {
        let number = "4761739001010010"  // Visa's published test account number.  TEST.
        for (input, text) in [
            (try await Self.example("\(Self.card).last4", number), "last four digits"),
            (try await Self.example("payment_intent.amount", "12.34"), "payment_intent.amount is of another type"),
            (try await Self.example("payment_intent.charges.0.currency", number), "currency"),
            (try await Self.example("merchant.country", "Germany"), "country"),
            (try await Self.example("\(Self.card).brand", "unknown"), "no card brand"),
            ("{", "standard input is no transaction: it is no JSON"),
            ("", "no transaction"),
        ] {
            let outcome = try await Self.run("show", "-", input: input)
            #expect(outcome.status == 2 && outcome.error.contains(text), "\(outcome)")
            #expect(!outcome.error.contains(number) && !outcome.output.contains(number))
        }
        let absent = try await Self.run("show", "/no/such/file")
        #expect(absent.status == 2 && absent.error.contains("cannot be read"), "\(absent)")
    }

    /// A printer that takes connections on a port of its own, answers DLE EOT and GS r, and prints what it got in hexadecimal.
    private static let printer = """
        import socket, sys
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            data = b""
            while True:
                got = connection.recv(4096)
                if not got: break
                for question, answer in ((b"\\x10\\x04\\x02", sys.argv[1]), (b"\\x10\\x04", "12"), (b"\\x1dr", "00")):
                    if got.startswith(question):
                        connection.sendall(bytes.fromhex(answer)); break
                else: data += got
            print(data.hex(), flush=True)
        """

    private static func runPrinter(_ status: String) async throws -> (program: Program, address: String) {
        let program = try Program(["/usr/bin/python3", "-c", printer, status])
        try await program.wait(for: "port") { $0.output.contains("\n") }
        let port = try #require(program.output.split(separator: "\n").first)
        return (program, "tcp://127.0.0.1:\(port)")
    }

    @Test("print prints, once")
    func print() async throws {
        let (printer, address) = try await Self.runPrinter("12")
        let example = try await Self.example()
        let outcome = try await Self.run("print", "-", "--printer", address, "--columns", "32", input: example)
        #expect(outcome.status == 0 && outcome.output.isEmpty, "\(outcome)")
        let file = FileManager.default.temporaryDirectory.appending(path: "receipt-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        let rendered = try await Self.run(
            "render", "-", "--format", "escpos", "--columns", "32", "-o", file.path, input: example)
        #expect(rendered.status == 0, "\(rendered)")
        try await printer.wait(for: "receipt") { $0.output.split(separator: "\n").count == 2 }
        let bytes = try Data(contentsOf: file).map { String(0x100 + UInt16($0), radix: 16).dropFirst() }.joined()
        // To the cut: GS V 66 0.
        #expect(printer.output.split(separator: "\n")[1] == bytes && bytes.hasSuffix("1d564200"))
        let status = try await Self.run("status", "--printer", address)
        #expect(status.status == 0 && status.output == "ready\n", "\(status)")
        let json = try await Self.run("status", "--printer", address, "--json")
        let report = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect(report?["isReady"] as? Bool == true && report?["condition"] is NSNull, "\(json)")
        #expect(report?["printer"] as? String == address)
    }

    @Test("the output of show --json is a saved receipt: it prints as the transaction does")
    func shownAsJSON() async throws {
        let example = try await Self.example()
        let kept = try await Self.run("show", "-", "--json", input: example)
        #expect(kept.status == 0, "\(kept)")
        let again = try await Self.run("show", "-", input: kept.output)
        #expect(try await again.output == Self.run("show", "-", input: example).output && again.status == 0, "\(again)")
    }

    @Test("code pages have their names and numbers")
    func codePages() async throws {
        let (printer, address) = try await Self.runPrinter("12")
        let outcome = try await Self.run(
            "print", "-", "--printer", address, "--code-page", "CP1252=71", "--cut", "none", input: Self.example())
        #expect(outcome.status == 0, "\(outcome)")
        try await printer.wait(for: "receipt") { $0.output.split(separator: "\n").count == 2 }
        // Caf, ESC t 71, é as Windows has it.
        #expect(printer.output.contains("4361661b7447e9"), "\(printer.output)")
        for wrong in ["cp1", "cp858=256", "cp858=", "cp858=1=2"] {
            let refused = try await Self.run(
                "print", "-", "--printer", address, "--code-page", wrong, input: Self.example())
            #expect(refused.status == 2 && refused.error.contains("--code-page"), "\(refused)")
        }
    }

    @Test(
        "an option in the wrong place is refused, and the error names the right place",
        arguments: [
            (["print", "--printer", "ipp://127.0.0.1:1/ipp/print", "--columns", "32"], "--columns"),
            (["print", "--printer", "ipp://127.0.0.1:1/ipp/print", "--cut", "none"], "--cut"),
            (["print", "--printer", "ipp://127.0.0.1:1/ipp/print", "--drawer"], "--drawer"),
            (["print", "--printer", "ipp://127.0.0.1:1/ipp/print", "--code-page", "cp437"], "--code-page"),
            (["print", "--printer", "ipp://127.0.0.1:1/ipp/print", "--answers", "none"], "--answers"),
            (["print", "--printer", "tcp://127.0.0.1:1", "--page", "a4"], "--page"),
            (["render", "--format", "text", "--page", "a4"], "--page"), (["render", "--drawer"], "--drawer"),
            (["render", "--format", "html", "--columns", "32"], "--columns"),
            (["render", "--format", "pdf", "--cut", "full"], "--cut"),
            (["render", "--format", "escpos", "--page", "a4"], "--page"),
        ])
    func optionsWithoutMeaning(_ arguments: [String], _ option: String) async throws {
        let outcome = try await Program.run([Self.tool] + arguments + ["-"], input: Self.example())
        #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
        let lines = outcome.error.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].contains("\(option) has no effect on"), "\(outcome)")
    }

    @Test("each obstacle to printing has its own exit status")
    func printerConditions() async throws {
        let (printer, address) = try await Self.runPrinter("16")
        let open = try await Self.run("status", "--printer", address)
        #expect(open.status == 4 && open.error.contains("cover is open"), "\(open)")
        let refused = try await Self.run("print", "-", "--printer", address, input: Self.example())
        #expect(refused.status == 4 && !refused.error.contains("gone out"), "\(refused)")
        #expect(printer.output.split(separator: "\n").count < 4)

        for absent in ["/dev/usb/no-such-printer", "tcp://no-such-host.invalid:9100", "ipp://127.0.0.1:1/ipp/print"] {
            let outcome = try await Self.run("print", "-", "--printer", absent, input: Self.example())
            #expect(outcome.status == 3 && outcome.error.contains("no printer"), "\(outcome)")
        }
        let file = FileManager.default.temporaryDirectory.appending(path: "receipt-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("precious".utf8).write(to: file)
        let ordinary = try await Self.run(
            "print", "-", "--printer", file.path, "--answers", "none", input: Self.example())
        #expect(ordinary.status == 3 && ordinary.error.contains("no printer"), "\(ordinary)")
        #expect(try String(contentsOf: file, encoding: .utf8) == "precious")
        for wrong in ["printer", "usb:1", "tcp://", "usb:12345:1", "http://host/"] {
            let outcome = try await Self.run("status", "--printer", wrong)
            #expect(outcome.status == 2, "\(outcome)")
        }
    }

    // MARK: Help

    @Test(arguments: ["bash", "zsh", "fish"]) func completions(_ shell: String) async throws {
        let outcome = try await Self.run("--generate-completion-script", shell)
        #expect(outcome.status == 0 && outcome.output.contains("receipt"), "\(outcome.error)")
        guard shell == "bash" else { return }
        let check = try await Program.run(["bash", "-n"], input: outcome.output)
        #expect(check.status == 0, "\(check.error)")
    }

    @Test("the manual page contains every key of the example")
    func manualPage() async throws {
        let path = Self.root.appendingPathComponent("Tools/receipt/receipt.1")
        let page = try String(contentsOf: path, encoding: .utf8)
        for key in try await Self.example().matches(of: /"([a-z0-9_]+)" :/).map(\.1) {
            #expect(page.contains(key), "\(key)")
        }
    }
}
