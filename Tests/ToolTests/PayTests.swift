import Foundation
import TestSupport
import Testing

/// `reader-probe pay` from outside.  Expected values come from the card files; the account number there is Visa's
/// published test number.
@Suite struct PayTests {
    private let tool = Program.built("reader-probe")
    private static let account = "4761739001010010"
    private static let hasService = PrivatePCSCD.obstacle == nil
    private static let needsService = PrivatePCSCD.obstacle ?? ""

    private func pay(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool, "pay"] + arguments, environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
    }

    private func json(_ outcome: Program.Outcome) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        return try #require(object as? [String: Any], "\(outcome)")
    }

    private func file(_ name: String, _ text: String) throws -> String {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString)-\(name)").path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    /// A reader with a floor limit of 1,000.00.
    private static let offline = """
        {"environment": "test", "abilities": ["pinPad", "paper", "contacts", "magneticStripe", "manualKeyEntry"],
         "terminal": {"9F1A": "0276", "9F33": "E0F8C8", "9F35": "22"},
         "combinations": [{"aid": "A0000000031010", "kernel": "03", "floorLimit": 100000, "cvmRequiredLimit": 5000,
                           "terminalTransactionQualifiers": "36004000"}]}
        """

    @Test func anOnlineRequestAsJSON() async throws {
        let outcome = try await pay("--virtual", "--amount", "12.34", "--json")
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
        let report = try json(outcome)
        #expect(report["outcome"] as? String == "onlineRequest" && report["cvm"] as? String == "none")
        #expect(report["aid"] as? String == "A0000000031010" && report["kernel"] as? Int == 3)
        #expect(report["amount"] as? Int == 1234 && report["currency"] as? String == "EUR")
        #expect(report["type"] as? String == "purchase")
        // Book A, table 9-3: present card; card read OK; authorizing
        let messages = try #require(report["messages"] as? [[String: Any]])
        #expect(messages.map { $0["identifier"] as? String } == ["15", "17", "1B"])
        let exchanges = try #require(report["exchanges"] as? [[String: Any]])
        #expect(exchanges.map { $0["command"] as? String } == ["00A40400", "00A40400", "80A80000", "00B2010C"])
        #expect(exchanges.allSatisfy { $0["status"] as? String == "9000" && $0["duration"] is Double })
        let record = try #require(report["dataRecord"] as? [[String: Any]])
        func value(_ tag: String) -> String? { record.first { $0["tag"] as? String == tag }?["value"] as? String }
        #expect(value("9F02") == "000000001234" && value("9F36") == "0042" && value("9F26")?.count == 16)
        #expect(value("57")?.hasPrefix("476173******0010") == true)
        #expect(!outcome.output.contains(Self.account))
    }

    /// Through Debian's pcscd, libccid and libusb the outcome is the same, with more time between.
    @Test(
        .enabled(if: hasService, "\(needsService)"),
        arguments: [
            ("visa-offline", "approved"), ("phone", "onlineRequest"), ("visa-oda-fails-switch", "tryAnotherInterface"),
        ])
    func throughTheSystemStack(_ card: String, _ expected: String) async throws {
        let config = try file("config.json", Self.offline)
        defer { try? FileManager.default.removeItem(atPath: config) }
        let outcome = try await Program.run([
            Program.built("virtual-reader"), "--card", card, "--", tool, "pay", "--amount", "12.34", "--config", config,
            "--json",
        ])
        #expect(outcome.status == 0, "\(outcome)")
        let report = try json(outcome)
        #expect(report["outcome"] as? String == expected, "\(outcome)")
        #expect((report["reader"] as? [String: Any])?["backend"] as? String == "pcsc")
    }

    /// What pre-processing refuses (Book B, 3.1.1.5 and 3.1.1.13) asks neither for a card nor for a reader.
    @Test func aRefusalAsksForNoCard() async throws {
        let outcome = try await pay("--reader", "no such reader", "--amount", "10000.00", "--json")
        #expect(outcome.status == 0, "\(outcome)")
        let report = try json(outcome)
        #expect(report["outcome"] as? String == "tryAnotherInterface" && report["reader"] is NSNull)
        let messages = try #require(report["messages"] as? [[String: Any]])
        #expect(messages.map { $0["identifier"] as? String } == ["18"])
        let text = try await pay("--reader", "no such reader", "--amount", "10000.00")
        #expect(text.output.contains("Outcome      try another interface"), "\(text)")
    }

    /// A configuration that advertises what its abilities have not.
    @Test func aContradictionIsTold() async throws {
        let config = try file("config.json", Self.offline.replacing(#""pinPad", "#, with: ""))
        defer { try? FileManager.default.removeItem(atPath: config) }
        let outcome = try await pay("--virtual", "--amount", "1", "--config", config)
        #expect(outcome.status == 2 && outcome.error.contains("add “pinPad” to the abilities"), "\(outcome)")
    }

    @Test func revealed() async throws {
        let outcome = try await pay("--virtual", "--amount", "1", "--reveal")
        #expect(outcome.status == 0 && outcome.output.contains(Self.account), "\(outcome)")
    }

    @Test func masked() async throws {
        let outcome = try await pay("--virtual", "--amount", "1", "--verbose")
        #expect(outcome.status == 0 && outcome.output.contains("Outcome      online request"), "\(outcome)")
        #expect(!(outcome.output + outcome.error).contains(Self.account))
    }

    @Test func currenciesAndTypes() async throws {
        let yen = try json(try await pay("--virtual", "--amount", "1234", "--currency", "jpy", "--json"))
        #expect(yen["amount"] as? Int == 1234 && yen["currency"] as? String == "JPY")
        let cashback = try json(
            try await pay(
                "--virtual", "--amount", "50.00", "--cashback", "20.00", "--type", "cashback", "--json"))
        #expect(cashback["type"] as? String == "purchaseWithCashback")
        // The card is American, and its usage control, C080, has no cashback abroad.
        #expect(cashback["outcome"] as? String == "declined")
    }

    /// Kernel 2: the card authenticates no data offline.
    @Test func aMastercardGoesOnline() async throws {
        let outcome = try await pay("--card", "mastercard", "--amount", "1.00")
        #expect(outcome.status == 0 && outcome.output.contains("Outcome      online request"), "\(outcome)")
    }

    /// A card with issuer update processing (Book C-3, Annex A: CTQ byte 2 bit 7) is told what the issuer said; what was
    /// asked of the issuer is not forgotten.
    @Test func theIssuersAnswerGoesToTheCard() async throws {
        let card = "visa-update"
        let asked = try json(try await pay("--card", card, "--amount", "1.00", "--json"))
        #expect(asked["outcome"] as? String == "onlineRequest" && asked["start"] as? String == "B")
        // Book A, table 9-3: present card again
        let message = try #require(asked["messageOnRestart"] as? [String: Any])
        #expect(message["identifier"] as? String == "21" && message["status"] as? String == "readyToRead")

        let answered = try json(
            try await pay(
                "--card", card, "--amount", "1.00", "--online-response", "8A0230309108AABBCCDD11223344", "--json"))
        #expect(answered["outcome"] as? String == "endApplication" && answered["messageOnRestart"] is NSNull)
        let exchanges = try #require(answered["exchanges"] as? [[String: Any]])
        #expect(exchanges.last?["command"] as? String == "00820000" && exchanges.last?["status"] as? String == "6300")
        let record = try #require(answered["dataRecord"] as? [[String: Any]])
        #expect(record.contains { $0["tag"] as? String == "9F26" })
        #expect(answered["cvm"] as? String == "none")
        #expect(record.first { $0["tag"] as? String == "57" }?["value"] as? String != nil)
        #expect(!"\(answered)".contains(Self.account))
    }

    /// The right ARPC, and a script; from the command line, and from a file.  Computed with PyEMV 1.5.0, for this amount and
    /// this unpredictable number.
    @Test(arguments: [false, true])
    func theIssuerIsAuthentic(_ isInFile: Bool) async throws {
        var answer = "8A 02 3030  91 0A 3866196A29768AC9 3030\n71 10 86 0E 04DA9F170905 BC307922A260627C\n"
        let path = try file("host.txt", answer)
        defer { try? FileManager.default.removeItem(atPath: path) }
        if isInFile { answer = path }
        let arguments = [
            "--card", "visa-update", "--amount", "12.34", "--unpredictable-number", "11223344", "--online-response",
            answer,
        ]
        let outcome = try await Program.run([tool, "pay"] + arguments + ["--json"])
        let report = try json(outcome)
        let exchanges = try #require(report["exchanges"] as? [[String: Any]], "\(outcome)")
        #expect(exchanges.suffix(2).map { $0["command"] as? String } == ["00820000", "04DA9F17"])
        #expect(exchanges.suffix(2).allSatisfy { $0["status"] as? String == "9000" }, "\(outcome)")
        let data = try #require(report["discretionaryData"] as? [[String: Any]])
        #expect(data.first { $0["tag"] as? String == "9F5B" }?["value"] as? String == "2000000000")
        let text = try await Program.run([tool, "pay"] + arguments.dropLast(2))
        #expect(text.output.contains("Online data  EMV data"), "\(text)")
    }

    /// A card on the list that would approve offline is declined; one that is not on it is not.
    @Test(arguments: [
        ("# TEST\n4761739001010010", "declined"), ("4761739001010010 01", "declined"),
        ("4761739001010010 02", "approved"), ("5413330089010434\n", "approved"),
    ])
    func exceptionFiles(_ text: String, _ expected: String) async throws {
        let config = try file("config.json", Self.offline)
        let list = try file("exceptions.txt", text)
        defer { [config, list].forEach { try? FileManager.default.removeItem(atPath: $0) } }
        let outcome = try await pay(
            "--card", "visa-offline", "--amount", "12.34", "--config", config, "--exception-file", list)
        #expect(outcome.output.contains("Outcome      \(expected)\n"), "\(outcome)")
        #expect(outcome.output.contains("the account number stands in the exception file") == (expected == "declined"))
        #expect(!(outcome.output + outcome.error).contains(Self.account))
    }

    @Test func anExceptionFileThatIsNone() async throws {
        let list = try file("exceptions.txt", "\n\(Self.account)1234\n")
        defer { try? FileManager.default.removeItem(atPath: list) }
        let outcome = try await pay("--virtual", "--amount", "1", "--exception-file", list)
        #expect(outcome.status == 2 && outcome.error.contains("line 2: an account number has"), "\(outcome)")
        #expect(!outcome.error.contains(Self.account))
    }

    /// Two cards that stay: Book B, 3.2.1.4.
    @Test func twoCards() async throws {
        let outcome = try await pay(
            "--card", "visa", "--card", "mastercard", "--amount", "1", "--detect-collisions", "--timeout", "2", "-v")
        #expect(outcome.status == 4 && outcome.error.contains("more than one"), "\(outcome)")
        #expect(outcome.error.contains("message: Please present one card only, processingError"), "\(outcome)")
        // A reader that finds cards by itself takes one of them.
        let taken = try await pay("--card", "visa", "--card", "mastercard", "--amount", "1")
        #expect(taken.status == 0 && taken.output.contains("Outcome      online request"), "\(taken)")
    }

    /// Through Debian's pcscd, libccid and libusb: two cards, then none, then one (Book B, 3.2.1.4 and 3.2.1.5).
    @Test(.enabled(if: hasService, "\(needsService)"))
    func oneCardOnly() async throws {
        let socket = try file("control", "")
        try FileManager.default.removeItem(atPath: socket)
        let program = try Program([
            Program.built("virtual-reader"), "--card", "visa", "--card", "mastercard", "--control", socket, "--", tool,
            "pay", "--amount", "12.34", "--detect-collisions", "--timeout", "600", "--json", "-v",
        ])
        try await program.wait(for: "the collision") { $0.error.contains("one card only, processingError") }
        try VirtualReaderProcess.perform("remove", at: socket)
        try await program.wait(for: "its end") { $0.error.contains("one card only, readyToRead") }
        try VirtualReaderProcess.perform("insert visa", at: socket)
        let report = try json(try await program.outcome(timeout: .seconds(60)))
        #expect(report["outcome"] as? String == "onlineRequest")
        let messages = try #require(report["messages"] as? [[String: Any]])
        #expect(
            messages.map { "\($0["identifier"] ?? "") \($0["status"] ?? "")" }.prefix(3) == [
                "15 readyToRead", "19 processingError", "19 readyToRead",
            ])
    }

    /// The card's CTQ, 0000, do not have issuer update processing (Book C-3, Annex A: byte 2 bit 7); and 8A alone is nothing
    /// for a card.
    @Test(arguments: [
        ("8A0230309108AABBCCDD11223344", "is not for this card"), ("8A023030", "holds nothing for the card"),
    ])
    func anAnswerThatIsNotPassedOn(_ answer: String, _ note: String) async throws {
        let outcome = try await pay("--virtual", "--amount", "1.00", "--online-response", answer)
        #expect(outcome.status == 0 && outcome.output.contains("Outcome      online request"), "\(outcome)")
        #expect(!outcome.output.contains("emv data"), "\(outcome)")
        #expect(outcome.output.contains("! the issuer's answer \(note)"), "\(outcome)")
    }

    /// The exit status of what is wrong with the command line, and a word that helps.
    @Test(
        arguments: [
            (["--amount", "12.345"], "no amount in EUR"), (["--amount", "-1"], "--amount"),
            (["--amount", "1,00"], "no amount in EUR"), (["--amount", ""], "no amount in EUR"),
            (["--amount", "1", "--currency", "XYZ"], "is no currency"),
            (["--amount", "1", "--currency", "JPY", "--cashback", "0.5"], "no amount in JPY"),
            (["--amount", "10000000000.00"], "no amount in EUR"),
            (["--amount", "1.00", "--cashback", "0.50"], "--type cashback"),
            (["--amount", "1.00", "--cashback", "2.00", "--type", "cashback"], "no more than the amount"),
            (["--amount", "1.00", "--online-response", "9F02"], "8A, 91, 71 and 72"),
            (["--amount", "1.00", "--online-response", "nosuch"], "“nosuch” is neither hexadecimal nor a file"),
            (["--amount", "1.00", "--unpredictable-number", "112233"], "takes 4 bytes"),
            (["--amount", "1.00", "--exception-file", "/nonexistent"], "cannot be read"),
            (["--amount", "1.00", "--config", "/nonexistent"], "cannot be read"),
            (["--amount", "1.00", "--ca-keys", "/nonexistent"], "cannot be read"), ([], "--amount"),
        ])
    func misuse(_ arguments: [String], _ complaint: String) async throws {
        let outcome = try await Program.run([tool, "pay", "--virtual"] + arguments)
        #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.error.contains(complaint), "\(outcome)")
        #expect(outcome.error.split(separator: "\n").count >= 2, "\(outcome)")
    }

    @Test func filesThatAreWrong() async throws {
        let config = try file(
            "config.json", #"{"environment": "test", "terminal": {}, "combinations": [{"aid": "A0"}]}"#)
        let keys = try file("ca.keys", "key test A000000003 99 exponent 03 checksum 00\n")
        defer { [config, keys].forEach { try? FileManager.default.removeItem(atPath: $0) } }
        let one = try await pay("--virtual", "--amount", "1", "--config", config)
        #expect(one.status == 2 && one.error.contains("combinations[0].aid: an AID has 5 to 16 bytes"), "\(one)")
        let other = try await pay("--virtual", "--amount", "1", "--ca-keys", keys)
        #expect(other.status == 2 && other.error.contains("line 1"), "\(other)")
    }

    /// Neither has anything to pay with: a tag, which takes no APDUs, and a card without applications.
    @Test(arguments: [("ntag213", "the card cannot be read"), ("iso-dep", "no application of the card can be used")])
    func cardsThatAreNone(_ card: String, _ reason: String) async throws {
        let outcome = try await pay("--card", card, "--amount", "1")
        #expect(outcome.status == 0 && outcome.output.contains("Outcome      end application"), "\(outcome)")
        #expect(outcome.output.contains(reason) && outcome.error.isEmpty, "\(outcome)")
        // What is sent again and again is said once.
        #expect(outcome.output.components(separatedBy: "00A40400  ").count == 2, "\(outcome)")
    }

    /// Book C-3, 4.3.1.1: the balance, 9F5D, is 123.45.
    @Test func aBalance() async throws {
        let card = try cardFile("visa", replacing: "9F6C 0000", with: "9F5D 000000012345\n9F6C 0000")
        let config = try file(
            "config.json",
            Self.offline.replacing(
                #""floorLimit""#, with: #""options": {"displaysAvailableOfflineSpendingAmount": true}, "floorLimit""#))
        defer { [card, config].forEach { try? FileManager.default.removeItem(atPath: $0) } }
        let report = try json(try await pay("--card", card, "--amount", "1.00", "--config", config, "--json"))
        let messages = try #require(report["messages"] as? [[String: Any]])
        let value = try #require(messages.last?["value"] as? [String: Any], "\(messages)")
        #expect(value["kind"] as? String == "balance" && value["amount"] as? Int == 12345)
        #expect(value["currency"] as? String == "EUR")
        #expect(messages.first?["value"] is NSNull)
    }

    /// A refund to which the card gives an AAC goes through, and is no offline approval.
    @Test func aRefund() async throws {
        let config = try file("config.json", Self.offline)
        defer { try? FileManager.default.removeItem(atPath: config) }
        let outcome = try await pay(
            "--card", "visa-decline", "--amount", "1.00", "--type", "refund", "--config", config)
        #expect(outcome.output.contains("Outcome      approved\n"), "\(outcome)")
        #expect(outcome.output.contains("a refund, which the card need not approve"), "\(outcome)")
    }

    /// A built-in card with something else in one place of its file.
    private func cardFile(_ name: String, replacing old: String, with new: String) throws -> String {
        let source = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/SmartCardSimulator/Cards/\(name).card").standardized
        let text = try String(contentsOf: source, encoding: .utf8)
        try #require(text.contains(old))
        return try file("\(name).card", text.replacing(old, with: new))
    }

    @Test(
        .enabled(if: hasService, "\(needsService)"),
        arguments: [("mute-card", 5), ("field-loss=2", 4)] as [(String, Int32)])
    func whatFails(_ fault: String, _ status: Int32) async throws {
        let outcome = try await Program.run([
            Program.built("virtual-reader"), "--card", "visa", "--fault", fault, "--", tool, "pay", "--amount", "1",
            "--timeout", "2",
        ])
        #expect(outcome.status == status && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.error.split(separator: "\n").count == 2, "\(outcome)")
    }
}
