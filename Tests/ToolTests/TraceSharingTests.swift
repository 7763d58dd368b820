import Foundation
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import TestSupport
import Testing

/// `apdu-trace` prepares traces for others: redaction with valid signatures, virtual cards, drawings.
@Suite struct TraceSharingTests {
    private let tool = Program.built("apdu-trace")
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
        "sharing-\(UUID().uuidString)")

    private func run(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments)
    }

    private func withDirectory(_ body: (String) async throws -> Void) async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(directory.path)
    }

    /// Readers that let the card approve offline, and that authenticate it for an online authorization.
    private static let configurations = [
        "offline": """
        {"environment": "test", "abilities": ["pinPad", "paper", "contacts", "magneticStripe", "manualKeyEntry"],
         "terminal": {"9F1A": "0276", "9F33": "E0F8C8", "9F35": "22"},
         "combinations": [{"aid": "A0000000031010", "kernel": "03", "floorLimit": 100000,
                           "cvmRequiredLimit": 5000, "terminalTransactionQualifiers": "36004000"}]}
        """,
        "online": """
        {"environment": "test", "abilities": ["pinPad", "paper", "contacts", "magneticStripe", "manualKeyEntry"],
         "terminal": {"9F1A": "0276", "9F33": "E0F8C8", "9F35": "22"},
         "combinations": [{"aid": "A0000000031010", "kernel": "03", "floorLimit": 1,
                           "cvmRequiredLimit": 5000, "terminalTransactionQualifiers": "37004000"}]}
        """,
    ]

    /// What `verify-oda`, which shares no code with the library, has verified.
    private func verified(_ file: String, authority index: UInt8, rid: String = "A000000003") async throws -> String {
        let rid = try [UInt8](hex: rid)
        let key = try #require(
            VirtualCards.certificationAuthorityKeys.first { $0.rid == rid && $0.index == index })
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "verify-oda").path
        let outcome = try await Program.run([script, file, key.modulus.hex, key.exponent.hex])
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.output.filter { $0 != "\n" }
    }

    private static func lengths(_ file: String) throws -> [Int] {
        try Trace(path: file).events.compactMap {
            switch $0.what {
            case .sent(_, let bytes), .received(_, let bytes): bytes.count
            default: nil
            }
        }
    }

    @Test(
        "a redacted payment passes offline data authentication only with reissued certificates",
        arguments: [
            ("visa-offline", "offline", 0xF2 as UInt8, "issuer card fdda"),
            ("visa-oda-online", "online", 0xF2, "issuer card fdda"),
            ("visa-sda-online", "online", 0xF2, "issuer sda"),
            ("visa-odd-keys", "offline", 0xF6, "issuer card fdda"),
            ("visa-odd-records", "offline", 0xF2, "issuer card fdda"),
        ])
    func reissue(_ card: String, _ configuration: String, _ authority: UInt8, _ parts: String) async throws {
        try await withDirectory { folder in
            let (clear, reissued, config) = ("\(folder)/clear", "\(folder)/reissued", "\(folder)/config.json")
            try Self.configurations[configuration]?.write(toFile: config, atomically: true, encoding: .utf8)
            let paid = try await run(
                "pay", "--clear", "--card", card, "--amount", "12.34", "--config", config, "-o", clear)
            #expect(paid.status == 0, "\(paid)")
            #expect(try await run("redact", "--reissue", clear, "-o", reissued).status == 0)
            #expect(try await verified(reissued, authority: authority) == parts)
            #expect(try await run("verify", reissued).status == 0)
            #expect(try Self.lengths(reissued) == Self.lengths(clear))
            let replayed = try await run("replay", reissued, "--config", config)
            #expect(replayed.status == 0, "\(replayed)")
        }
    }

    /// The account number can be had from the certificate (EMV Book 2, 6.4), though the objects have another one.
    @Test("a forgotten certificate is found among redacted data")
    func forgottenCertificate() async throws {
        try await withDirectory { folder in
            let (clear, redacted, mixed) = ("\(folder)/clear", "\(folder)/redacted", "\(folder)/mixed")
            let config = "\(folder)/config.json"
            try Self.configurations["offline"]?.write(toFile: config, atomically: true, encoding: .utf8)
            let paid = try await run(
                "pay", "--clear", "--card", "visa-offline", "--amount", "12.34", "--config", config, "-o", clear)
            #expect(paid.status == 0, "\(paid)")
            #expect(try await run("redact", clear, "-o", redacted).status == 0)
            #expect(try await run("verify", redacted).status == 0)
            let before = try String(contentsOfFile: clear, encoding: .utf8).split(separator: "\n")
            var lines = try String(contentsOfFile: redacted, encoding: .utf8).split(separator: "\n")
            let event = try #require(lines.firstIndex { $0.contains(" redacted ") })
            let told = lines.remove(at: event)
            let number = try #require(lines.firstIndex { $0.contains(" < ") && $0.contains("9F4681") })
            let line = lines[number]
            let place = try #require(line.range(of: "9F4681")).lowerBound
            let start = line.distance(from: line.startIndex, to: place)
            let count = 8 + 2 * (Int(line.dropFirst(start + 6).prefix(2), radix: 16) ?? 0)
            lines[number] =
                line.prefix(start) + before[number].dropFirst(start).prefix(count) + line.dropFirst(start + count)
            lines.insert(told, at: event)
            try (lines.joined(separator: "\n") + "\n").write(toFile: mixed, atomically: true, encoding: .utf8)
            let verified = try await run("verify", mixed)
            #expect(verified.status == 1 && verified.output.contains("certificate"), "\(verified)")
            #expect(verified.output.split(separator: "\n").count == 1, "\(verified)")
        }
    }

    /// What redaction takes out by default, and what on request (GENERATE AC without CDOL: all of its data).
    @Test("verify reports PINs, names and keys, and with --cryptograms also cryptograms")
    func leftovers() async throws {
        try await withDirectory { folder in
            let events = [
                "> apdu 0020008008241234FFFFFFFFFF", "< apdu 9000", "> apdu 80CA5F2000", "< apdu 444F452F4A414E459000",
                "> apdu 80D8008103A0A1A2", "< apdu 9000", "> apdu 80AE400008A1A2A3A4A5A6A7A800", "< apdu 9000",
            ]
            let file = "\(folder)/x.apdu"
            try ("apdu-trace 1\n" + events.map { "0.000000000 \($0)\n" }.joined())
                .write(toFile: file, atomically: true, encoding: .utf8)
            let expected = ["line 2: a PIN in the clear", "line 5: a name in the clear", "line 6: a key in the clear"]
            let verified = try await run("verify", file)
            #expect(verified.status == 1 && verified.output.split(separator: "\n").map(String.init) == expected)
            let all = try await run("verify", "--cryptograms", file).output.split(separator: "\n").map(String.init)
            #expect(all == expected + ["line 8: a cryptogram in the clear"])
            #expect(try await run("redact", "--cryptograms", file, "-o", file, "--force").status == 0)
            #expect(try await run("verify", "--cryptograms", file).status == 0)
            #expect(try await run("verify", "--cryptograms", "--clear", file).status == 2)
        }
    }

    /// The commands of a reader of EMV Book 3, with the values of its test: SDA; DDA; CDA.
    @Test(
        "static, dynamic and combined signatures are renewed",
        arguments: [
            (
                "emv-sda", "A000000003", "A0000000031010", 0xF4 as UInt8, "issuer sda",
                ["00B2010C00", "00B2020C00", "00B2011400", "00B2021400"]
            ),
            (
                "emv-dda", "A000000004", "A0000000041010", 0xF2, "issuer card dda",
                ["00B2011400", "00B2012400", "00B2022400", "00880000041122334400"]
            ),
            (
                "emv-cda", "A000000004", "A0000000041010", 0xF2, "issuer card cda",
                [
                    "00B2011400", "00B2012400", "00B2022400",
                    // P1 90: ARQC with a signature; 66 bytes for CDOL1.
                    "80AE900042" + "000000001234" + "000000000000" + "0276" + "0000000000" + "0978" + "261121" + "00"
                        + "11223344" + "22" + "0000" + "0000000000000000" + "1F0302" + "120000"
                        + String(repeating: "00", count: 20) + "00",
                ]
            ),
        ])
    func signatures(
        _ name: String, _ rid: String, _ aid: String, _ authority: UInt8, _ parts: String, _ commands: [String]
    ) async throws {
        try await withDirectory { folder in
            let card = try #require(VirtualCards.named(name))
            var text = "apdu-trace 1\n"
            for command in ["00A4040007\(aid)00", "80A8000002830000"] + commands {
                let answer = try #require(card.exchange([UInt8](hex: command)))
                #expect(answer.suffix(2) == [0x90, 0x00], "\(command)")
                text += "0.000000000 > apdu \(command)\n0.000000000 < apdu \(answer.hex)\n"
            }
            let (clear, reissued) = ("\(folder)/clear", "\(folder)/reissued")
            try text.write(toFile: clear, atomically: true, encoding: .utf8)
            #expect(try await verified(clear, authority: authority, rid: rid) == parts)
            let redacted = try await run("redact", "--reissue", clear, "-o", reissued)
            #expect(redacted.status == 0, "\(redacted)")
            #expect(try await verified(reissued, authority: authority, rid: rid) == parts)
            #expect(try await run("verify", reissued).status == 0)
            #expect(try Self.lengths(reissued) == Self.lengths(clear))
            // Without it nothing is left to verify.
            #expect(try await run("redact", clear, "-o", "\(folder)/redacted").status == 0)
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "verify-oda").path
            #expect(try await Program.run([script, "\(folder)/redacted", "C5", "03"]).status != 0)
        }
    }

    /// What comes of a payment, in one word.
    private func outcome(_ outcome: Program.Outcome) throws -> String {
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
        return try #require(object?["outcome"] as? String, "\(outcome)")
    }

    @Test(
        "the card made from a trace answers another amount as the recorded card did",
        arguments: [
            ("visa", "offline"), ("visa-offline", "offline"), ("visa-oda-online", "online"),
            ("visa-decline", "offline"),
            ("visa-sda-online", "online"), ("visa-oda-fails", "offline"), ("visa-expired", "offline"),
            ("visa-odd-keys", "offline"), ("visa-odd-records", "offline"), ("visa-online-pin", "offline"),
            ("visa-signature", "offline"), ("phone", "offline"), ("multi", "offline"), ("two-applications", "offline"),
            ("visa-msd", "offline"), ("visa-without-ttq", "offline"), ("visa-cdcvm", "offline"),
        ])
    func card(_ name: String, _ configuration: String) async throws {
        try await withDirectory { folder in
            let (clear, card, config) = ("\(folder)/clear", "\(folder)/made.card", "\(folder)/config.json")
            try Self.configurations[configuration]?.write(toFile: config, atomically: true, encoding: .utf8)
            let paid = try await run(
                "pay", "--clear", "--card", name, "--amount", "12.34", "--config", config, "--json", "-o", clear)
            let made = try await run("card", clear, "-o", card)
            #expect(made.status == 0, "\(made)")
            #expect(try !String(contentsOfFile: card, encoding: .utf8).contains("4761739001010010"))
            let again = try await Program.run([
                Program.built("reader-probe"), "pay", "--card", card, "--amount", "7.65", "--config", config, "--json",
            ])
            #expect(try outcome(again) == outcome(paid), "\(paid) \(again)")
        }
    }

    @Test(
        "unsuitable files yield no card and no drawing, and nothing breaks",
        arguments: [
            "", "0.0 nonsense\n", "0.000000000 > apdu 00\n0.000000000 < apdu 90\n",
            // A PPSE alone; an FCI cut short; an AFL that runs on; lengths that lie.
            "0.000000000 > apdu 00A404000E325041592E5359532E444446303100\n0.000000000 < apdu 6F009000\n",
            "0.000000000 > apdu 00A4040007A000000003101000\n0.000000000 < apdu 6F7F84079000\n"
                + "0.000000000 > apdu 80A8000002830000\n0.000000000 < apdu 7706940408FFFF9000\n",
            "0.000000000 > apdu 00A4040007A000000003101000\n0.000000000 < apdu 6F009000\n"
                + "0.000000000 > apdu 80A8000002830000\n0.000000000 < apdu 770A8202200094040801FF019000\n"
                + "0.000000000 > apdu 00B2010C00\n0.000000000 < apdu 70098F01F2900111930122009000\n",
        ])
    func hostile(_ events: String) async throws {
        try await withDirectory { folder in
            let file = "\(folder)/hostile"
            try ("apdu-trace 1\n" + events).write(toFile: file, atomically: true, encoding: .utf8)
            for command in ["card", "plot", "redact"] {
                let more = command == "redact" ? ["--reissue"] : []
                let outcome = try await Program.run([tool, command, file, "-o", "\(folder)/out-\(command)"] + more)
                #expect([0, 2].contains(outcome.status), "\(command): \(outcome)")
                if outcome.status != 0 { #expect(outcome.error.split(separator: "\n").count == 2, "\(outcome)") }
            }
        }
    }

    /// Python's parser of XML is the judge.
    @Test("a drawing is well-formed and contains the trace's times, and a note cannot inject markup")
    func plot() async throws {
        try await withDirectory { folder in
            let (file, svg, html) = ("\(folder)/trace", "\(folder)/plot.svg", "\(folder)/plot.html")
            // Selection 30 ms, 20 ms of the program, options 100 ms, record 50.5 ms.
            try """
            apdu-trace 1
            0.000000000 reader pcsc "<script>alert(1)</script> & \\u{1} 4111111111111111"
            0.100000000 > apdu 00A404000E325041592E5359532E444446303100
            0.130000000 < apdu 6F009000
            0.150000000 > apdu 80A8000002830000
            0.250000000 < apdu 6985
            0.250000000 > apdu 00B2010C00
            0.300500000 < apdu 700A5A0847617390010100109000
            0.300500000 note "]]></style><script>alert('x')</script>"

            """.write(toFile: file, atomically: true, encoding: .utf8)
            for output in [svg, html] {
                #expect(try await run("plot", file, "-o", output).status == 0)
            }
            let text = try String(contentsOfFile: svg, encoding: .utf8)
            let parsed = try await Program.run([
                "python3", "-c",
                """
                import sys, xml.dom.minidom as m
                d = m.parse(sys.argv[1])
                print(len(d.getElementsByTagName("script")))
                print("|".join(t.firstChild.data for t in d.getElementsByTagName("text") if t.firstChild))
                """, svg,
            ])
            #expect(parsed.status == 0 && parsed.output.hasPrefix("0\n"), "\(parsed)")
            for expected in [
                "Transaction, 200.5 ms", "selection|30.0 ms", "processing options|100.0 ms", "records and data|50.5 ms",
                "the program, between|20.0 ms", "SELECT 2PAY.SYS.DDF01|30.0 ms  9000",
                "GET PROCESSING OPTIONS|100.0 ms  6985", "READ RECORD 1.1|50.5 ms  9000",
            ] {
                #expect(parsed.output.contains(expected), "\(expected) in \(parsed.output)")
            }
            #expect(!text.contains("<script") && !text.contains("4111111111111111") && !text.contains("47617390"))
            let page = try String(contentsOfFile: html, encoding: .utf8)
            #expect(
                page.hasPrefix("<!DOCTYPE html>") && !page.contains("<script") && !page.contains("4111111111111111"))
        }
    }
}
