import Foundation
import TestSupport
import Testing

/// `reader-probe pass`, and `reader-probe pay` with passes, from outside.  Passes and keys are those of the virtual phones, which
/// are published.
@Suite struct PassTests {
    private let tool = Program.built("reader-probe")
    private static let member = "MEMBER-0001"

    /// A configuration with its keys, and cards; gone with the value.
    private final class Folder: Sendable {
        let url = FileManager.default.temporaryDirectory.appending(path: "passes-\(UUID().uuidString)")
        var configuration: String { url.appending(path: "merchants.json").path }

        /// TEST: the key of proxmark3's demonstration, d = 3d1547f2…
        private static let apple = """
            -----BEGIN EC PRIVATE KEY-----
            MHcCAQEEID0VR/I814rQUqWIYPEhno+3kexN/jN2n1ub+mJ6ZWyhoAoGCCqGSM49
            AwEHoUQDQgAEwKMBv29ByaSLiGF0FctuyB+Hs2oZ1kDIYhTVllPexNGudAlm8IWO
            H0e+Exc97/zBdawu7Yl+XytQONszGzAK7w==
            -----END EC PRIVATE KEY-----

            """
        /// TEST: the key of Google's sample application for Smart Tap, d = 826d17e5…
        private static let google = """
            -----BEGIN EC PRIVATE KEY-----
            MHcCAQEEIIJtF+UHZ7FlsOTZ4zL40dHiAiQoT7Ta8eUKAyRucHl9oAoGCCqGSM49
            AwEHoUQDQgAEchyXj869zfmKhRi9xP7f2AK07kEo4lE7ZlWTN14jh4YBTny+hRGR
            XcUzevV9zSSPJlPHpqqu5pEwlv1xyFvE1w==
            -----END EC PRIVATE KEY-----

            """
        private static let merchants = """
            { "merchants": [
                { "id": "loyalty",
                  "apple": { "passTypeIdentifier": "pass.com.passkit.pksamples.nfcdemo", "keys": ["apple.pem"] },
                  "google": { "collectorID": 20180608, "keys": { "1": "google.pem" } } } ] }
            """

        /// - Parameter change: a part of the configuration, and what is in its place.
        init(_ change: (String, String)? = nil) throws {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            let text = change.map { Self.merchants.replacing($0.0, with: $0.1) } ?? Self.merchants
            try text.write(toFile: configuration, atomically: true, encoding: .utf8)
            for (name, key) in [("apple.pem", Self.apple), ("google.pem", Self.google)] {
                let path = url.appending(path: name).path
                try #require(
                    FileManager.default.createFile(
                        atPath: path, contents: Data(key.utf8), attributes: [.posixPermissions: 0o600]))
            }
        }

        deinit { try? FileManager.default.removeItem(at: url) }

        /// A phone with these parameters.  Apple's answers no reader that has not said what it wants.
        func phone(_ parameters: String, of card: String = "phone-apple") throws -> String {
            let path = url.appending(path: "phone.card").path
            let closed = card == "phone-apple" && !parameters.contains("screen") ? "screen closed\n" : ""
            try "variant \(card) {\n\(closed)\(parameters)\n}\n"
                .write(toFile: path, atomically: true, encoding: .utf8)
            return path
        }
    }

    private func run(_ folder: Folder, _ arguments: String...) async throws -> Program.Outcome {
        let config = arguments[0] == "pay" ? ["--amount", "12.34", "--pass-config"] : ["--config"]
        // A busy machine wakes a phone slowly.
        let patience = arguments.contains("--timeout") ? [] : ["--timeout", "60"]
        return try await Program.run(
            [tool, arguments[0]] + config + [folder.configuration] + patience + arguments.dropFirst(),
            environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
    }

    private func json(_ outcome: Program.Outcome) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
        return try #require(object as? [String: Any], "\(outcome)")
    }

    // MARK: pass

    @Test(
        "the pass of either wallet is read, masked, and shown where that is asked for",
        arguments: [("phone-apple", "Apple's"), ("phone-google", "Google's")])
    func reads(_ card: String, _ wallet: String) async throws {
        let folder = try Folder()
        let masked = try await run(folder, "pass", "--card", card)
        #expect(masked.status == 0 && masked.error.isEmpty, "\(masked)")
        #expect(masked.output.contains("   Wallet       \(wallet)\n"))
        #expect(masked.output.contains("   Merchant     loyalty\n   Status       read\n   Pass         ******-****\n"))
        #expect(masked.output.hasSuffix("\n\nPasses read\n"))
        let shown = try await run(folder, "pass", "--card", card, "--reveal")
        #expect(shown.output.contains("   Pass         \(Self.member)\n"), "\(shown)")
    }

    @Test("nothing of a pass is printed otherwise", arguments: ["phone-apple", "phone-google"])
    func masked(_ card: String) async throws {
        let folder = try Folder()
        for arguments in [["--json"], ["--verbose"], ["--json", "--verbose"]] {
            let outcome = try await Program.run(
                [tool, "pass", "--config", folder.configuration, "--card", card, "--timeout", "60"] + arguments)
            #expect(outcome.status == 0)
            let found = Taint.found(Taint.forms(of: Self.member), in: Data((outcome.output + outcome.error).utf8))
            #expect(found == [], "\(outcome)")
        }
    }

    @Test("the JSON object has each documented key") func json() async throws {
        let folder = try Folder()
        let apple = try json(try await run(folder, "pass", "--card", "phone-apple", "--json", "--reveal"))
        #expect(Set(apple.keys) == ["reader", "wallet", "isPlainCard", "entries", "failure", "isRead"])
        let entry = try #require((apple["entries"] as? [[String: Any]])?.first)
        #expect(
            Set(entry.keys) == ["merchant", "status", "text", "data", "date", "mobileToken", "objects"])
        #expect(entry["data"] as? String == Self.member && entry["status"] as? String == "success")
        #expect(apple["wallet"] as? String == "apple" && apple["isRead"] as? Bool == true)
        let date = try Date((entry["date"] as? String) ?? "", strategy: .iso8601)
        #expect(abs(date.timeIntervalSinceNow) < 60)
        let google = try json(try await run(folder, "pass", "--card", "phone-google", "--json", "--reveal"))
        let objects = ((google["entries"] as? [[String: Any]])?.first?["objects"] as? [[String: Any]])
        let object = try #require(objects?.first)
        #expect(object["kind"] as? String == "loyalty")
        let fields = try #require(object["fields"] as? [[String: String]])
        #expect(fields.contains(["name": "redemptionValue", "value": Self.member]))
        #expect(fields.contains(["name": "objectID", "value": "0000000000000001"]))
    }

    @Test(
        "a phone that is locked is asked again, and its holder told once", arguments: ["phone-apple", "phone-google"])
    func unlocks(_ card: String) async throws {
        let folder = try Folder()
        let outcome = try await run(folder, "pass", "--card", try folder.phone("locked 2", of: card))
        #expect(outcome.status == 0 && outcome.output.contains("******-****"), "\(outcome)")
        #expect(outcome.error == "reader-probe: see phone: it is locked, or asks its holder for something\n")
    }

    @Test(
        "a phone that stays locked, or asks its holder for something, says so, and the status is 7",
        arguments: [
            ("phone-apple", "", "locked, or the pass waits for its holder: see phone", "notActivated"),
            (
                "phone-apple", "status 6984", "the phone asks its holder for something: see phone",
                "userInterventionRequired"
            ),
            ("phone-google", "", "locked, or the pass waits for its holder: see phone", "notActivated"),
            (
                "phone-google", "status 9302", "the phone asks its holder for something: see phone",
                "userInterventionRequired"
            ),
        ])
    func staysLocked(_ card: String, _ parameters: String, _ text: String, _ status: String) async throws {
        let folder = try Folder()
        let awake = card == "phone-apple" ? "wakes at-once\nscreen both\n" : ""
        let phone = try folder.phone("\(awake)locked 100\n" + parameters, of: card)
        for command in ["pass", "pay"] {
            let outcome = try await run(folder, command, "--card", phone, "--timeout", "1")
            #expect(outcome.status == 7, "\(outcome)")
            #expect(outcome.output.contains("   Status       \(text)\n"), "\(outcome)")
            #expect(outcome.output.hasSuffix("\n\nNo pass read\n") && !outcome.output.contains("Outcome"))
        }
        let report = try json(try await run(folder, "pass", "--card", phone, "--timeout", "1", "--json"))
        #expect((report["entries"] as? [[String: Any]])?.first?["status"] as? String == status)
    }

    @Test(
        "a card without passes, and a phone without such a pass, are told apart; the status is 7",
        arguments: [
            ("visa", "Wallet       none: a plain card, or a phone that shows no passes\n", true),
            ("phone-apple", "Status       no such pass\n", false),
        ])
    func nothingThere(_ card: String, _ text: String, _ isPlain: Bool) async throws {
        let folder = try Folder(("pksamples.nfcdemo", "pksamples.other"))
        let outcome = try await run(folder, "pass", "--card", card)
        #expect(outcome.status == 7 && outcome.output.contains(text), "\(outcome)")
        let report = try json(try await run(folder, "pass", "--card", card, "--json"))
        #expect(report["isPlainCard"] as? Bool == isPlain && report["isRead"] as? Bool == false)
    }

    @Test("a pass that cannot be accepted has its reason, and the status is 7")
    func refused() async throws {
        let folder = try Folder(("\"apple.pem\"", "\"google.pem\""))
        let other = try await run(folder, "pass", "--card", "phone-apple")
        #expect(other.status == 7, "\(other)")
        #expect(
            other.output.contains("   Status       the pass is encrypted to another key, c0 b7 73 75\n"), "\(other)")
    }

    @Test("a phone that leaves between two merchants has given nothing, and the status is 5")
    func leaves() async throws {
        let folder = try Folder(
            (
                "\"merchants\": [",
                """
                "merchants": [ { "id": "first",
                "apple": { "passTypeIdentifier": "pass.com.passkit.pksamples.nfcdemo", "keys": ["apple.pem"] } },
                """
            ))
        let outcome = try await run(
            folder, "pay", "--card", try folder.phone("wakes at-once\nscreen both\nleaves 60000"), "--timeout", "1")
        #expect(outcome.status == 5, "\(outcome)")
        #expect(outcome.error.contains("the phone left before its passes were read\n"), "\(outcome)")
        #expect(outcome.output.isEmpty)
    }

    @Test(
        "a configuration that cannot be used is refused at its place, without a reader",
        arguments: [
            ("20180608", "0", "merchants[0].google.collectorID: a collector identifier is not 0"),
            ("\"apple.pem\"", "\"none.pem\"", "merchants[0].apple.keys[0]: "),
            ("\"id\"", "\"name\"", "merchants[0].\"name\": none of this name"),
        ])
    func configuration(_ part: String, _ other: String, _ message: String) async throws {
        let folder = try Folder((part, other))
        for command in ["pass", "pay"] {
            let outcome = try await run(folder, command)
            #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
            #expect(outcome.error.contains("\(folder.configuration): \(message)"), "\(outcome)")
        }
    }

    @Test("a key that others can read is refused, with what to do")
    func keyOfOthers() async throws {
        let folder = try Folder()
        let key = folder.url.appending(path: "google.pem").path
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
        let outcome = try await run(folder, "pass", "--card", "phone-google")
        #expect(outcome.status == 2 && outcome.error.contains("chmod 600"), "\(outcome)")
    }

    // MARK: pay

    @Test(
        "pass and payment are one tap: one SELECT of the wallet, then the payment application",
        arguments: ["phone-apple", "phone-google"])
    func pays(_ card: String) async throws {
        let folder = try Folder()
        let outcome = try await run(folder, "pay", "--card", card, "--verbose")
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output.contains("   Pass         ******-****\n"))
        #expect(outcome.output.contains("   Outcome      online request\n"))
        #expect(Taint.found(Taint.forms(of: Self.member), in: Data((outcome.output + outcome.error).utf8)) == [])
        // OSE.VAS.01, 2PAY.SYS.DDF01.
        let selected = outcome.error.matches(of: /-> 00 A4 04 00, ([0-9A-F]+)/).map { String($0.1) }
        #expect(
            selected.first == "4F53452E5641532E3031" && selected.dropFirst().first == "325041592E5359532E4444463031")
        let report = try json(try await run(folder, "pay", "--card", card, "--json", "--reveal"))
        let passes = try #require(report["passes"] as? [String: Any])
        #expect((passes["entries"] as? [[String: Any]])?.first?["data"] as? String == Self.member)
        #expect(report["outcome"] as? String == "onlineRequest")
    }

    @Test("a plain card pays, and a phone without the pass, too", arguments: ["visa", "phone-apple"])
    func paysWithoutPass(_ card: String) async throws {
        let folder = try Folder(("pksamples.nfcdemo", "pksamples.other"))
        let outcome = try await run(folder, "pay", "--card", card)
        #expect(outcome.status == 0 && outcome.output.contains("   Outcome      online request\n"), "\(outcome)")
        #expect(outcome.output.contains(card == "visa" ? "Wallet       none: a plain card" : "no such pass"))
    }

    @Test("a phone that answers no reader by itself is woken by the frames of the purpose", arguments: ["pass", "pay"])
    func wakes(_ command: String) async throws {
        let folder = try Folder()
        let outcome = try await run(folder, command, "--card", try folder.phone("screen closed"))
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
        #expect(outcome.output.contains("   Pass         ******-****\n"))
        #expect(outcome.output.contains("   Outcome      online request\n") == (command == "pay"))
    }

    /// A reader whose chip cannot be reached.
    @Test("a reader that sends no frames is used all the same, and says so", arguments: ["pass", "pay"])
    func withoutFrames(_ command: String) async throws {
        let folder = try Folder()
        let machine = try DoctorMachine()
        try machine.startService { $0.transmit = { _, _ in .data([0x6A, 0x82]) } }
        let arguments = command == "pay" ? ["--amount", "12.34", "--pass-config"] : ["--config"]
        func run(_ more: String...) async throws -> Program.Outcome {
            try await Program.run(
                [tool, command] + arguments + [folder.configuration, "--backend", "pcsc", "--timeout", "20"] + more,
                environment: ["PCSCLITE_CSOCK_NAME": machine.socket])
        }
        let outcome = try await run()
        #expect(outcome.status == (command == "pay" ? 0 : 7), "\(outcome)")
        #expect(outcome.output.contains("Wallet       none: a plain card"), "\(outcome)")
        #expect(outcome.error.contains("phones that wait for them are not found. Use an ACR122U or a PN532 board"))
        guard command == "pay" else { return }
        let collisions = try await run("--detect-collisions")
        #expect(collisions.status == 5 && collisions.output.isEmpty, "\(collisions)")
    }

    @Test("a phone with a pass alone gives it, and does not pay")
    func cannotPay() async throws {
        let folder = try Folder()
        let phone = try folder.phone("wakes at-once\nscreen pass")
        let outcome = try await run(folder, "pay", "--card", phone, "--timeout", "2")
        #expect(outcome.output.contains("   Pass         ******-****\n"), "\(outcome)")
        #expect(outcome.output.contains("   Because      no application of the card can be used\n"), "\(outcome)")
    }

    @Test("the pass of a phone that leaves before it pays stands, and the status is 5", arguments: [false, true])
    func leavesBeforePayment(_ isJSON: Bool) async throws {
        let folder = try Folder()
        let phone = try folder.phone("wakes at-once\nscreen both\nleaves 60000")
        if isJSON {
            let outcome = try await run(folder, "pay", "--card", phone, "--timeout", "2", "--json", "--reveal")
            let report = try json(outcome)
            #expect(outcome.status == 5 && report["isRead"] as? Bool == true, "\(outcome)")
            return
        }
        let outcome = try await run(folder, "pay", "--card", phone, "--timeout", "2")
        #expect(outcome.status == 5, "\(outcome)")
        #expect(outcome.output.contains("   Pass         ******-****\n") && outcome.output.hasSuffix("\nPasses read\n"))
        #expect(outcome.error.contains("the phone left after its passes were read, and has not paid\n"), "\(outcome)")
    }

    // MARK: Traces

    /// A recorded conversation with a phone about its pass, in the clear.
    private func recorded(_ folder: Folder, _ card: String) async throws -> String {
        let file = folder.url.appending(path: "clear.apdu").path
        let phone = try folder.phone("", of: card)
        let outcome = try await Program.run([
            Program.built("virtual-reader"), "--card", phone, "--", Program.built("apdu-trace"), "record", "--clear",
            "-o",
            file, "--", tool, "pass", "--config", folder.configuration, "--backend", "pcsc", "--reveal",
            "--timeout", "60",
        ])
        try #require(outcome.output.contains(Self.member), "\(outcome)")
        return file
    }

    @Test(
        "a recorded pass is found, shown masked, redacted, and then not found",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"),
        arguments: [("phone-apple", "GET VAS DATA", 1), ("phone-google", "GET SMART TAP DATA", 1)])
    func traces(_ card: String, _ command: String, _ findings: Int) async throws {
        let folder = try Folder()
        let clear = try await recorded(folder, card)
        func trace(_ arguments: String...) async throws -> Program.Outcome {
            try await Program.run([Program.built("apdu-trace")] + arguments)
        }
        let found = try await trace("verify", clear)
        #expect(found.status == 1, "\(found)")
        let lines = found.output.split(separator: "\n")
        #expect(
            lines.count == findings && lines.allSatisfy { $0.hasSuffix(": a pass of a phone's wallet in the clear") })
        let shown = try await trace("show", "--no-pager", clear)
        #expect(shown.output.contains("  \(command)\n"), "\(shown)")
        #expect(Taint.found(Taint.forms(of: Self.member), in: Data(shown.output.utf8)) == [], "\(shown)")
        if card == "phone-apple" { #expect(shown.output.contains("   9F27  VAS Data  ****"), "\(shown)") }

        let new = folder.url.appending(path: "redacted.apdu").path
        let redacted = try await trace("redact", clear, "-o", new)
        #expect(redacted.error.contains("pass"), "\(redacted)")
        let verified = try await trace("verify", new)
        #expect(verified.status == 0, "\(verified)")
        let again = folder.url.appending(path: "again.apdu").path
        _ = try await trace("redact", new, "-o", again)
        #expect(try Data(contentsOf: URL(filePath: again)) == Data(contentsOf: URL(filePath: new)))
    }

    /// What is recorded is redacted unless that is prevented; what is in the clear in a phone's answer is sealed.
    @Test(
        "neither pass nor cryptogram is in what is recorded by default",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"),
        arguments: ["phone-apple", "phone-google"])
    func recording(_ card: String) async throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "new.apdu").path
        let phone = try folder.phone("", of: card)
        let outcome = try await Program.run([
            Program.built("virtual-reader"), "--card", phone, "--", Program.built("apdu-trace"), "record", "-o", file,
            "--",
            tool, "pass", "--config", folder.configuration, "--backend", "pcsc", "--timeout", "60",
        ])
        #expect(outcome.output.contains("******-****"), "\(outcome)")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.contains("redacted") && text.contains("pass"), "\(text)")
        for text in [outcome.output + outcome.error, text] {
            #expect(Taint.found(Taint.forms(of: Self.member), in: Data(text.utf8)) == [], "\(text)")
        }
        let zeros = String(repeating: "0", count: 60)
        #expect(text.contains(card == "phone-apple" ? "C0B77375\(zeros)" : "72656203\(zeros)"), "\(text)")
    }
}
