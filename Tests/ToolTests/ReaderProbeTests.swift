import Foundation
import SmartCard
import SmartCardSimulatorHosts
import TestSupport
import Testing

/// `reader-probe` from outside, as a person and as a script use it.
///
/// Expected values come from the card files; the account numbers there are published test values.
@Suite struct ReaderProbeTests {
    private let tool = Program.built("reader-probe")
    private let virtualReader = Program.built("virtual-reader")

    static let hasService = PrivatePCSCD.obstacle == nil
    static let needsService = PrivatePCSCD.obstacle ?? ""

    /// Without hardware and without a service.
    private func alone(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments, environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
    }

    /// With Debian's pcscd, libccid and libusb behind a virtual ACR122U.
    private func throughPCSC(
        _ reader: [String], _ arguments: String..., environment: [String: String] = [:]
    ) async throws -> Program.Outcome {
        try await Program.run(
            [virtualReader] + reader + ["--", tool] + arguments, environment: environment)
    }

    private func json(_ outcome: Program.Outcome) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        return try #require(object as? [String: Any], "\(outcome)")
    }

    // MARK: What it reads

    struct Expected: Sendable {
        let card: String
        let aid: String
        let label: String
        let kernel: Int
        let pan: String
        let sequence: Int
        let atc: Int
        let afl: String
        let cryptogramType: String
        let uid: String
    }

    @Test(
        .enabled(if: hasService, "\(needsService)"),
        arguments: [
            Expected(
                card: "visa", aid: "A0000000031010", label: "VISA CREDIT", kernel: 3, pan: "476173******0010",
                sequence: 1, atc: 66, afl: "08010100", cryptogramType: "ARQC", uid: "045A3C127E6180"),
            Expected(
                card: "mastercard", aid: "A0000000041010", label: "MASTERCARD", kernel: 2, pan: "541333******0434",
                sequence: 1, atc: 17, afl: "10010100", cryptogramType: "AAC", uid: "048D215F906680"),
            Expected(
                card: "two-applications", aid: "A0000000421010", label: "CB", kernel: 3, pan: "476173******0119",
                sequence: 0, atc: 4, afl: "08010200", cryptogramType: "ARQC", uid: "0471B30A554E80"),
        ])
    func emvAsJSONThroughTheSystemStack(_ expected: Expected) async throws {
        let outcome = try await throughPCSC(["--card", expected.card], "emv", "--json")
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
        let report = try json(outcome)
        let reader = try #require(report["reader"] as? [String: Any])
        #expect(reader["name"] as? String == "ACS ACR122U PICC Interface 00 00")
        #expect(reader["backend"] as? String == "pcsc")
        let card = try #require(report["card"] as? [String: Any])
        #expect(card["uid"] as? String == expected.uid)
        #expect(card["type"] as? String == "type-a")
        #expect((card["atr"] as? String)?.hasPrefix("3B8") == true)
        let applications = try #require(report["applications"] as? [[String: Any]])
        let application = try #require(applications.first)
        #expect(applications.count == (expected.card == "two-applications" ? 2 : 1))
        #expect(application["aid"] as? String == expected.aid)
        #expect(application["label"] as? String == expected.label)
        #expect(application["kernel"] as? Int == expected.kernel)
        #expect(application["priority"] as? Int == 1)
        #expect(application["pan"] as? String == expected.pan)
        #expect(application["panSequence"] as? Int == expected.sequence)
        #expect(application["expiry"] as? String == "2031-12")
        #expect(application["afl"] as? String == expected.afl)
        #expect(application["cryptogramType"] as? String == expected.cryptogramType)
        #expect((application["cryptogram"] as? String)?.count == 16)
        #expect((application["aip"] as? String)?.count == 4)
        let elements = try #require(application["elements"] as? [[String: Any]])
        #expect(elements.contains { $0["tag"] as? String == "5A" && $0["value"] as? String == expected.pan })
        #expect(elements.contains { ($0["name"] as? String)?.hasPrefix("Application Label") == true })
        #expect(application["findings"] as? [String] == [])
    }

    @Test(
        .enabled(if: hasService, "\(needsService)"),
        arguments: [
            ("mifare-classic-1k", "storage", "MIFARE Classic 1K (ISO 14443 A, part 3)"),
            ("ntag213", "storage", "MIFARE Ultralight or NTAG (ISO 14443 A, part 3)"),
            ("iso-dep", "type-a", "ISO 14443-4 type A"), ("type-b", "type-b", "ISO 14443-4 type B"),
            ("felica", "storage", "FeliCa 212 kbit/s"),
        ])
    func cardsWithoutApplications(_ name: String, _ type: String, _ technology: String) async throws {
        let outcome = try await throughPCSC(["--card", name], "card", "--json")
        #expect(outcome.status == 0, "\(outcome)")
        let card = try #require(try json(outcome)["card"] as? [String: Any])
        #expect(card["type"] as? String == type)
        #expect(card["technology"] as? String == technology)
        let emv = try await throughPCSC(["--card", name], "emv")
        #expect(emv.status == 5 && isComplaint(emv.error), "\(emv)")
    }

    @Test(.enabled(if: hasService, "\(needsService)")) func everySubcommandThroughTheSystemStack() async throws {
        let list = try await throughPCSC(["--card", "visa"], "list", "--json")
        let slots = try #require(try json(list)["readers"] as? [[String: Any]])
        #expect(slots.map { $0["state"] as? String } == ["card"])
        // SELECT 2PAY.SYS.DDF01; FF 00 48 is the firmware version (ACS API v2.04, 6.3)
        let apdu = try await throughPCSC(["--card", "visa"], "apdu", "00A404000E325041592E5359532E444446303100")
        #expect(apdu.status == 0 && apdu.output.contains("< 6F"), "\(apdu)")
        #expect(apdu.output.contains("9000 normal processing"))
        let firmware = try await throughPCSC(["--firmware", "2.14"], "apdu", "FF00480000")
        #expect(firmware.status == 0 && firmware.output.contains("ACR122U214"), "\(firmware)")
        let overview = try await throughPCSC(["--card", "visa"], "--json")
        #expect(Set(try json(overview).keys) == ["readers", "probe"])
    }

    @Test(.enabled(if: hasService, "\(needsService)")) func watchShowsWhatHappens() async throws {
        let reader = try await VirtualReaderProcess(host: "umockdev")
        let watch = try Program([tool, "watch", "--json"], environment: ["PCSCLITE_CSOCK_NAME": reader.socket])
        try await watch.wait(for: "reader") { $0.output.contains("readerAttached") }
        try reader.perform("insert visa")
        try await watch.wait(for: "card") { $0.output.contains("cardInserted") }
        try reader.perform("remove")
        try await watch.wait(for: "removal") { $0.output.contains("cardRemoved") }
        try reader.perform("unplug")
        try await watch.wait(for: "departure") { $0.output.contains("readerRemoved") }
        try reader.perform("plug")
        try await watch.wait(for: "return") { $0.output.components(separatedBy: "readerAttached").count == 3 }
        for line in watch.output.split(separator: "\n") {
            let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(Set(event?.keys.map(\.self) ?? []) == ["event", "reader", "atr", "technology", "usage"])
        }
        watch.signal(SIGINT)
        _ = try await watch.outcome()
    }

    // MARK: What it keeps to itself

    private static let zeros = String(repeating: "00", count: 33)
    static let readings: [[String]] = [
        ["emv"], ["emv", "--json"], ["emv", "--verbose"], [], ["--json", "--verbose"], ["card"],
        [
            "apdu", "00A4040007A000000003101000", "80A80000238321" + zeros + "00",
            "00B2010C00", "00B2010C", "--verbose",
        ],
    ]

    /// The account number, the name and track 2 of the card, in every coding, in every output of every subcommand.
    @Test(arguments: readings)
    func nothingLeaks(_ arguments: [String]) async throws {
        let outcome = try await Program.run([tool] + arguments + ["--virtual"])
        let text = outcome.output + outcome.error
        #expect(!outcome.output.isEmpty)
        let number = "4761739001010010"
        let secrets = [
            number, String(number.dropFirst(6).prefix(6)), Array(number.utf8).hex, "D3112201", "TAPPER", "TESSA",
            Array("TAPPER".utf8).hex, Array("TESSA".utf8).hex, "47 61 73 90 01 01",
        ]
        for secret in secrets { #expect(!text.contains(secret), "\(secret) in \(arguments)") }
    }

    @Test func revealShowsAll() async throws {
        let outcome = try await alone("emv", "--virtual", "--reveal")
        #expect(outcome.output.contains("4761739001010010"))
        #expect(outcome.output.contains("TAPPER/TESSA"))
    }

    /// A card that puts its account number where no table expects it.
    @Test func anAccountNumberInTheLabelIsMaskedToo() async throws {
        let built = try String(contentsOfFile: Self.visaCard, encoding: .utf8)
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("talkative-\(UUID().uuidString).card")
            .path
        try built.replacingOccurrences(of: "\"VISA CREDIT\"", with: "\"4761739001010010\"")
            .write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let outcome = try await alone("emv", "--virtual", "--card", path)
        #expect(outcome.status == 0, "\(outcome)")
        #expect(!outcome.output.contains("4761739001010010"))
        #expect(!outcome.output.contains(Array("4761739001010010".utf8).hex))
    }

    /// An issuer's own objects, and a name in one of them, in a card that has the account number nowhere else; and what a
    /// label may not hold.
    @Test func issuersOwnObjectsAreMaskedToo() async throws {
        let outcome = try await withCard(
            """
            card emv "talkative" {
                type-a {
                    uid  04 5A 3C 12 7E 61 80
                    atqa 0044
                    sak  20
                    ats  05 78 80 70 02
                }
                application A0000000031010 {
                    label    "VISA" 0A 1B "[1mPAN"
                    fci {
                        BF0C {
                            DF01 4761739001010010    # TEST
                            DF02 "4761739001010010"
                        }
                    }
                    processing-options 77 {
                        82   0000
                        94   afl
                    }
                    record 1 1 {
                        70 {
                            DF03 4761739001010010 D 3112 201
                            5F20 "TAPPER/TESSA"
                            DF04 "TAPPER/TESSA"
                        }
                    }
                }
            }
            """, "emv", "--verbose")
        #expect(outcome.status == 0, "\(outcome)")
        let text = outcome.output + outcome.error
        #expect(text.contains("DF01") && text.contains("DF03"))
        for secret in ["4761739001010010", "3437363137333930", "TAPPER"] { #expect(!text.contains(secret), "\(text)") }
        #expect(outcome.output.contains("1  VISA??[1mPAN  A0000000031010"), "\(outcome.output)")
    }

    /// InDataExchange with SELECT: the reader passes on what the card says.
    @Test func whatTheReaderPassesOnIsMaskedToo() async throws {
        let select = ["FF00000004D44A0100", "FF00000010D4400100A4040007A000000003101000"]
        let clear = try await Program.run([tool, "apdu", "--virtual", "--reveal"] + select)
        #expect(clear.output.contains("< D541006F"), "the card must have said something: \(clear)")
        let outcome = try await Program.run([tool, "apdu", "--virtual"] + select)
        let answer = try #require(outcome.output.split(separator: "\n").last)
        #expect(answer.hasPrefix("< D54100**") && answer.dropFirst(8).allSatisfy { $0 == "*" }, "\(answer)")
    }

    /// A hundred records of account numbers, each another one.
    @Test func aCardOfManyAccountNumbersIsReadInTime() async throws {
        let records = (1...6).flatMap { file in
            (1...17).map { number in
                let numbers = (0..<24).map { "5A08\(4_000_000_000_000_000 + (file * 100 + number) * 100 + $0)" }
                return "record \(file) \(number) {\n70 {\nbytes \(numbers.joined())\n}\n}\n"
            }
        }
        let outcome = try await withCard(
            """
            card emv "many accounts" {
            type-a {
            uid  04 5A 3C 12 7E 61 80
            atqa 0044
            sak  20
            ats  05 78 80 70 02
            }
            application A0000000031010 {
            processing-options 77 {
            82   0000
            94   afl
            }
            \(records.joined())
            }
            }
            """, "emv", "--json")
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(!outcome.output.contains("4000000000010100"))
    }

    private func withCard(_ text: String, _ arguments: String...) async throws -> Program.Outcome {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).card").path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await Program.run([tool] + arguments + ["--virtual", "--card", path], timeout: .seconds(300))
    }

    private static let visaCard = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/SmartCardSimulator/Cards/visa.card").path

    // MARK: How it speaks

    @Test func noColorWithoutATerminal() async throws {
        let outcome = try await alone("--virtual")
        #expect(!outcome.output.contains("\u{1B}") && outcome.error.isEmpty)
    }

    /// script(1) gives it a terminal.
    @Test(.enabled(if: Program.isInstalled("script"), "script (bsdutils) is not installed"))
    func colorOnATerminalAndNeverWithNO_COLOR() async throws {
        let command = "\(tool) card --virtual"
        let colored = try await Program.run(
            ["script", "-qec", command, "/dev/null"], environment: ["NO_COLOR": "", "TERM": "xterm"])
        #expect(colored.status == 0)
        let list = "\(tool) list --virtual"
        let bold = try await Program.run(
            ["script", "-qec", list, "/dev/null"], environment: ["NO_COLOR": "", "TERM": "xterm"])
        #expect(bold.output.contains("\u{1B}[1m"), "\(bold)")
        let plain = try await Program.run(
            ["script", "-qec", list, "/dev/null"], environment: ["NO_COLOR": "1", "TERM": "xterm"])
        #expect(!plain.output.contains("\u{1B}[1m"), "\(plain)")
    }

    static let failures: [([String], Int32)] = [
        (["bogus"], 2), (["emv", "--frob"], 2), (["apdu"], 2), (["apdu", "00A4"], 2), (["apdu", "xyz"], 2),
        (["decode", "5A"], 2), (["decode", "zz"], 2), (["decode", ""], 2), (["decode", "9F02", "--aid", "01"], 2),
        (["emv", "--virtual", "--card", "none-such"], 2), (["emv", "--timeout", "-1"], 2),
        (["list"], 6), (["watch"], 6), (["card"], 6), (["emv"], 6), ([], 6), (["apdu", "00A40400"], 6),
        (["list", "--virtual", "--reader", "Omnikey"], 3),
    ]

    @Test(arguments: failures)
    func failuresAreTwoLinesAndAStatus(_ arguments: [String], _ status: Int32) async throws {
        let outcome = try await Program.run([tool] + arguments, environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
        #expect(outcome.status == status, "\(arguments): \(outcome)")
        #expect(outcome.output.isEmpty && isComplaint(outcome.error), "\(arguments): \(outcome)")
    }

    /// A socket that takes connections and says nothing.
    @Test func aServiceThatHangsIsGivenUp() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).comm").path
        let socket = try UnixSocket.listen(at: path)
        defer {
            close(socket)
            unlink(path)
        }
        let outcome = try await Program.run([tool, "list"], environment: ["PCSCLITE_CSOCK_NAME": path])
        #expect(outcome.status == 6 && isComplaint(outcome.error), "\(outcome)")
    }

    @Test(arguments: ["decode 9F3602000A >/dev/full", "list --virtual >&-", "--help >/dev/full"])
    func outputThatGoesNowhereIsAComplaint(_ command: String) async throws {
        let outcome = try await Program.run(["sh", "-c", "\(tool) \(command)"])
        #expect(outcome.status == 2 && isComplaint(outcome.error), "\(outcome)")
    }

    @Test(.enabled(if: hasService, "\(needsService)")) func noCardAndNoReader() async throws {
        let noCard = try await throughPCSC([], "emv", "--timeout", "1")
        #expect(noCard.status == 4 && isComplaint(noCard.error), "\(noCard)")
        let mute = try await throughPCSC(["--card", "visa", "--fault", "mute-card"], "emv", "--timeout", "1")
        #expect(mute.status == 5 && mute.error.contains("the card does not answer"), "\(mute)")
        let reader = try await VirtualReaderProcess(host: "umockdev")
        try reader.perform("unplug")
        for _ in 0..<300 {
            let noReader = try await Program.run([tool, "list"], environment: ["PCSCLITE_CSOCK_NAME": reader.socket])
            if noReader.status == 3 {
                #expect(isComplaint(noReader.error), "\(noReader)")
                return
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        Issue.record("a reader that was unplugged stays listed")
    }

    /// What a reader or a card can do wrong, and what is to come of it: an answer, or a complaint that fits.
    static let faults: [(String, Int32, String)] = [
        ("empty-answers", 5, "no answer"), ("one-byte-answers", 5, "makes no sense"),
        ("status-only-answers", 5, "no EMV application"), ("broken-atr", 5, "protocols"),
        ("field-loss=1", 5, "no answer"),
        ("field-loss=5", 5, "no answer"), ("stale-frame", 0, ""),
        ("sequence-behind", 0, ""),
        ("slow=50", 0, ""), ("time-extension=1", 0, ""), ("truncated-answers=2", 5, "failed"),
        ("truncated-answers=9", 5, "failed"), ("oversized-length=400", 5, "failed"),
        ("oversized-length=65000", 5, "failed"),
    ]

    @Test(.enabled(if: hasService, "\(needsService)"), arguments: faults)
    func faultsAreToldApart(_ fault: String, _ status: Int32, _ complaint: String) async throws {
        let outcome = try await throughPCSC(["--card", "visa", "--fault", fault], "emv", "--json", "--timeout", "10")
        #expect(outcome.status == status, "\(fault): \(outcome)")
        #expect(complaint.isEmpty || outcome.error.contains(complaint), "\(fault): \(outcome)")
        if status != 0 { #expect(isComplaint(outcome.error), "\(fault): \(outcome)") }
        if !outcome.output.isEmpty { _ = try json(outcome) }
    }

    /// Wherever the reader is when it leaves the bus: in time, and never a crash.
    @Test(.enabled(if: hasService, "\(needsService)"), arguments: [30, 40, 45, 50, 55])
    func aReaderThatLeavesTheBus(_ transfer: Int) async throws {
        let outcome = try await throughPCSC(
            ["--card", "visa", "--fault", "unplug=\(transfer)"], "emv", "--json", "--timeout", "3")
        #expect([0, 3, 4, 5, 125].contains(outcome.status), "\(transfer): \(outcome)")
    }

    /// One line that says what is wrong, one that says what to do.
    private func isComplaint(_ text: String) -> Bool {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.count == 3 && lines[0].hasPrefix("reader-probe: ") && lines[0].count > 20
            && lines[1].hasPrefix("  ") && lines[1].count > 10 && lines[2].isEmpty
    }

    // MARK: decode

    /// The FCI of a PPSE, EMV Contactless Book B, table 3-2; TVR bits, EMV Book 3, Annex C5.
    @Test func decodeNamesWhatItReads() async throws {
        let fci = "6F23840E325041592E5359532E4444463031A511BF0C0E610C4F07A0000000031010870101"
        let outcome = try await alone("decode", fci)
        #expect(outcome.status == 0)
        for text in ["File Control Information (FCI) Template", "A0000000031010", "Application Priority Indicator"] {
            #expect(outcome.output.contains(text), "\(text)")
        }
        let tvr = try await alone("decode", "95 05 80 00 00 80 00", "--json")
        let elements = try #require(try json(tvr)["elements"] as? [[String: Any]])
        let bits = (elements.first?["bits"] as? [String] ?? []).joined(separator: "; ").lowercased()
        #expect(bits.contains("byte 1 bit 8: offline data authentication was not performed"))
        #expect(bits.contains("byte 4 bit 8: transaction exceeds floor limit"))
    }

    @Test func decodeReadsStandardInputAndMasks() async throws {
        let outcome = try await Program.run([tool, "decode"], input: "70 0A 5A 08 47 61 73 90\n01 01 00 10\n")
        #expect(outcome.status == 0 && outcome.output.contains("476173******0010"), "\(outcome)")
        #expect(!outcome.output.contains("4761739001010010"))
    }

    /// Kernel 2's data record begins with FF, which cards use as filling (EMV Contactless Book C-2, A.1).
    @Test func decodeReadsObjectsThatBeginWithFF() async throws {
        let outcome = try await alone("decode", "FF8105039F2700")
        #expect(outcome.output.hasPrefix("FF8105"), "\(outcome)")
    }

    @Test func decodeHandlesWhatSteersATerminal() async throws {
        // 50 with an escape sequence that would clear the screen
        let outcome = try await alone("decode", "50051B5B324A41")
        #expect(!outcome.output.contains("\u{1B}"), "\(outcome)")
    }

    // MARK: Help

    @Test(arguments: ["", "list", "watch", "card", "emv", "apdu", "decode"]) func help(_ subcommand: String)
        async throws
    {
        let outcome = try await Program.run([tool] + (subcommand.isEmpty ? [] : [subcommand]) + ["--help"])
        #expect(outcome.status == 0 && outcome.output.contains("USAGE: reader-probe"), "\(outcome)")
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func completions(_ shell: String) async throws {
        let outcome = try await alone("--generate-completion-script", shell)
        #expect(outcome.status == 0 && outcome.output.contains("reader-probe"), "\(outcome.error)")
        guard shell == "bash" else { return }
        let check = try await Program.run(["bash", "-n"], input: outcome.output)
        #expect(check.status == 0, "\(check.error)")
    }
}
