import Foundation
import TestSupport
import Testing

/// `kiosk` from outside.
@Suite(.timeLimit(.minutes(5))) struct KioskTests {
    /// The card's file: TEST.
    private static let account = "4761739001010010"
    /// A published test number of Visa: TEST.
    private static let typed = "4111111111111111"

    /// A folder for what a kiosk keeps, removed with this object.
    private final class Folder: Sendable {
        let path = FileManager.default.temporaryDirectory.appending(path: "kiosk-\(UUID().uuidString)").path
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    private static func environment(_ folder: Folder) -> [String: String] {
        ["XDG_STATE_HOME": folder.path, "STATE_DIRECTORY": "", "PCSCLITE_CSOCK_NAME": "/nonexistent"]
    }

    private func kiosk(_ arguments: String..., folder: Folder = Folder()) async throws -> Program.Outcome {
        try await Program.run([Program.built("kiosk")] + arguments, environment: Self.environment(folder))
    }

    @Test("one command takes a payment from the card to the payment service, which it starts and ends")
    func oneCommand() async throws {
        let outcome = try await kiosk()
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
        let lines = outcome.output.split(separator: "\n").map(String.init)
        #expect(lines.first?.hasPrefix("Payment service: http://127.0.0.1:") == true)
        #expect(
            lines.dropFirst(2) == [
                "12.34 EUR", "  Present your card", "  Remove your card", "  Asking the payment service…", "  Approved",
            ])
        let address = try #require(lines.first?.split(separator: " ").last)
        // It ends with its input.
        try await wait(for: "end") {
            try await Program.run(["curl", "-s", "-m", "60", "\(address)/keys"]).status == 7
        }
    }

    @Test("a decline, by the payment service or by the card, ends with 1")
    func declined() async throws {
        let outcome = try await kiosk("5.00", "10.51")
        #expect(outcome.status == 1 && outcome.output.hasSuffix("  Declined: Insufficient funds\n"), "\(outcome)")
        #expect(outcome.output.contains("  Approved\n10.51 EUR\n"))
        let card = try await kiosk("--card", "visa-decline")
        #expect(
            card.status == 1 && card.output.hasSuffix("  Not paid: The card declined. Try another one.\n"), "\(card)")
    }

    @Test("with --checkout the customer chooses: a tap, a voucher, a declined tap and another way, in their language")
    func checkout() async throws {
        let sandbox = try await RunningSandbox()
        let outcome = try await Program.run(
            [
                Program.built("kiosk"), "--service", sandbox.address, "--checkout", "--language", "de", "5.00", "6.00",
                "10.51",
            ],
            environment: Self.environment(Folder()), input: "1\n2\nGIFT-2026\n1\n<\n")
        #expect(outcome.status == 1 && outcome.error.isEmpty, "\(outcome)")
        // What the reader says, and how often, is the reader's.
        let steps = ["Kontaktlos", "Halten Sie Karte oder Telefon an den Leser.", "Danke. Die Zahlung ist erfolgt."]
        let places = steps.compactMap { outcome.output.range(of: $0)?.lowerBound }
        #expect(places.count == 3 && places == places.sorted(), "\(outcome)")
        #expect(outcome.output.contains("\n  5,00 EUR\n") && outcome.output.contains("\n  6,00 EUR\n"))
        #expect(outcome.output.contains("Die Zahlung ist nicht erfolgt."))
        #expect(
            try await sandbox.payments().map { $0["status"] as? String } == ["approved", "approved", "declined"])
    }

    @Test("with --card-entry a card is typed, and only with --checkout")
    func cardEntry() async throws {
        let input = ["2", Self.typed, "12/39", "123", "Test", "DE", "50667", "", ""].joined(separator: "\n")
        let outcome = try await Program.run(
            [Program.built("kiosk"), "--checkout", "--card-entry"], environment: Self.environment(Folder()),
            input: input)
        #expect(outcome.status == 0 && outcome.output.contains("  12.34 EUR 411111******1111\n"), "\(outcome)")
        #expect(!outcome.output.contains(Self.typed))
        for arguments in [["--card-entry"], ["--checkout", "--loyalty"], ["--checkout", "--offline"]] {
            #expect(try await Program.run([Program.built("kiosk")] + arguments).status == 64)
        }
    }

    @Test("with --loyalty one tap of a phone has the member's number, the discount and the payment")
    func loyalty() async throws {
        let sandbox = try await RunningSandbox()
        let outcome = try await kiosk("--service", sandbox.address, "--loyalty", "12.34", "5")
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
        #expect(
            outcome.output.split(separator: "\n").dropFirst(2) == [
                "12.34 EUR", "  Present your card", "  Member ****0001: 10 % off, 11.11 EUR", "  Remove your card",
                "  Approved", "  Receipt: 11.11 EUR, member ****0001, saved 1.23 EUR", "5 EUR", "  Present your card",
                "  Member ****0001: 10 % off, 4.50 EUR", "  Remove your card", "  Approved",
                "  Receipt: 4.50 EUR, member ****0001, saved 0.50 EUR",
            ])
        let amounts = try await sandbox.payments().map { ($0["amount"] as? String).flatMap { Decimal(string: $0) } }
        #expect(Set(amounts) == [Decimal(string: "11.11"), Decimal(string: "4.5")], "\(amounts)")
        let card = try await kiosk("--service", sandbox.address, "--loyalty", "--card", "visa", "2")
        #expect(card.status == 0 && card.output.hasSuffix("  Approved\n  Receipt: 2.00 EUR\n"), "\(card)")
        for secret in ["MEMBER", Self.account] { #expect(!(outcome.output + sandbox.output).contains(secret)) }
    }

    @Test("a lost or late answer is requested again, and the payment is made once")
    func lost() async throws {
        let sandbox = try await RunningSandbox("--late", "3600")
        // A late one takes the kiosk's patience.
        let amounts = Tier.first(["1.96"], then: ["1.98"])
        let outcome = try await Program.run(
            [Program.built("kiosk"), "--service", sandbox.address, "--patience", "10"] + amounts,
            environment: Self.environment(Folder()))
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output.components(separatedBy: "  Approved\n").count == 1 + amounts.count)
        let payments = try await sandbox.payments()
        #expect(payments.map { $0["amount"] as? String } == amounts)
        #expect(payments.allSatisfy { $0["card"] as? String == "476173******0010" })
        #expect(sandbox.output.contains("the connection is closed without an answer"))
        #expect(!(outcome.output + sandbox.output).contains(Self.account))
    }

    @Test(
        "invalid arguments are refused, and a missing payment service is reported",
        arguments: [
            (["twelve"], 64, "“twelve” is no amount"), (["12,50"], 64, "“12,50” is no amount"),
            (["1x"], 64, "“1x” is no amount"), (["1.2.3"], 64, "“1.2.3” is no amount"),
            (["1.234"], 64, "“1.234” is no amount"), (["--currency", "XYZ"], 64, "“XYZ” is no currency"),
            (["--forward", "--offline"], 64, "--forward goes without"),
            (["--loyalty", "--offline"], 64, "--loyalty goes without"), (["--hold"], 64, "--hold goes with"),
            (["-1"], 64, "Unknown option"), (["0"], 64, "“0” is no amount"),
            (["--card", "none"], 64, "No card “none”"), (["--service", "here"], 64, "--service"),
            (["--service", "http://127.0.0.1:1"], 1, "The payment service did not answer"),
        ])
    func nonsense(_ arguments: [String], _ status: Int32, _ message: String) async throws {
        let folder = Folder()
        let outcome = try await Program.run(
            [Program.built("kiosk")] + arguments, environment: ["XDG_STATE_HOME": folder.path, "STATE_DIRECTORY": ""])
        #expect(outcome.status == status && outcome.error.contains(message), "\(outcome)")
    }

    @Test(
        "with --reader, it takes the payment through pcscd, as with a real reader",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"))
    func attachedReader() async throws {
        let folder = Folder()
        // One payment each: the card stays where it is, and pays once.
        for (amount, status, end) in [("1.00", 0, "  Approved\n"), ("10.51", 1, "  Declined: Insufficient funds\n")] {
            let outcome = try await Program.run(
                [
                    Program.built("virtual-reader"), "--card", "visa", "--", Program.built("kiosk"), "--reader", amount,
                ], environment: ["XDG_STATE_HOME": folder.path, "STATE_DIRECTORY": ""])
            #expect(outcome.status == status && outcome.output.hasSuffix(end), "\(outcome)")
            #expect(
                outcome.output.contains("Reader: the one that is attached\n\(amount) EUR\n"), "\(outcome)")
            #expect(!(outcome.output + outcome.error).contains(Self.account))
        }
    }

    /// What the reader's drivers pass on of the frames: without them this phone answers nothing.
    @Test(
        "with --reader and --loyalty, frames wake a phone through pcscd, and it gives pass and payment in one tap",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"))
    func attachedReaderWithLoyalty() async throws {
        let folder = Folder()
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        let phone = "\(folder.path)/closed.card"
        try "variant phone-apple {\nscreen closed\n}\n".write(toFile: phone, atomically: true, encoding: .utf8)
        let outcome = try await Program.run(
            [
                Program.built("virtual-reader"), "--card", phone, "--", Program.built("kiosk"), "--reader", "--loyalty",
                "12.34",
            ], environment: ["XDG_STATE_HOME": folder.path, "STATE_DIRECTORY": ""])
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output.contains("  Member ****0001: 10 % off, 11.11 EUR\n"), "\(outcome)")
        #expect(outcome.output.hasSuffix("  Receipt: 11.11 EUR, member ****0001, saved 1.23 EUR\n"), "\(outcome)")
    }

    // MARK: Store and forward

    /// psp-sandbox with books that outlive it, and what it was told when it was started again.
    private struct Sandboxes {
        let folder = Folder()
        func start() async throws -> RunningSandbox {
            try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
            return try await RunningSandbox(
                "--books", "\(folder.path)/books", "--card-data-key", "\(folder.path)/key", "--late", "1")
        }
    }

    /// The payments that a kiosk has stored, as it has told: id and amount.
    private func stored(_ output: String) -> [String: String] {
        var stored: [String: String] = [:]
        var amount = ""
        for line in output.split(separator: "\n") {
            if line.hasSuffix(" EUR") { amount = String(line.dropLast(4)) }
            if line.hasPrefix("  Stored as ") { stored[String(line.dropFirst(12))] = amount }
        }
        return stored
    }

    /// What a sandbox has decided, by id: the amount, or nil where it was declined.
    private func charged(_ sandbox: RunningSandbox) async throws -> [String: String] {
        let payments = try await sandbox.payments()
        #expect(Set(payments.compactMap { $0["idempotencyKey"] as? String }).count == payments.count, "twice")
        return Dictionary(
            payments.filter { $0["status"] as? String == "approved" }.map {
                ($0["idempotencyKey"] as? String ?? "", $0["amount"] as? String ?? "")
            }
        ) { first, _ in first }
    }

    @Test("one command stores payments without a payment service, and forwards them once it is there")
    func offline() async throws {
        let outcome = try await kiosk("--offline", "5.00", "10.51", "1.96", "3.13", "7.00")
        #expect(outcome.status == 1 && outcome.error.isEmpty, "\(outcome)")
        let ids = stored(outcome.output)
        #expect(ids.values.sorted() == ["1.96", "10.51", "3.13", "5.00", "7.00"])
        let lines = outcome.output.split(separator: "\n").map(String.init)
        let forwarding = try #require(lines.firstIndex(of: "Forwarding: 5"))
        #expect(lines.contains("The payment service is gone."))
        for (id, amount) in ids where amount != "3.13" {
            let end = amount == "10.51" ? "declined: Insufficient funds" : "approved"
            #expect(lines[forwarding...].contains { $0.contains(id) && $0.hasSuffix(end) }, "\(outcome)")
        }
        // What it refuses stays, and is told.
        #expect(lines.dropLast().last == "Approved: 3, declined: 1, set aside: 0, left: 1")
        let refused = try #require(ids.first { $0.value == "3.13" }?.key)
        let last = try #require(lines.last)
        #expect(last.hasPrefix("  \(refused) not decided: ") && last.contains("amount_refused"))
        #expect(try await kiosk("--offline", "5.00", "1.96").status == 0)
    }

    @Test("payments are also stored and forwarded if each kiosk starts its own payment service")
    func heldWithoutService() async throws {
        let folder = Folder()
        let held = try await kiosk("--offline", "--hold", "5.00", "10.00", folder: folder)
        #expect(held.status == 0 && stored(held.output).count == 2, "\(held)")
        let forwarded = try await kiosk("--forward", folder: folder)
        #expect(forwarded.status == 0, "\(forwarded)")
        #expect(forwarded.output.contains("Forwarding: 2\n") && forwarded.output.contains("Approved: 2, "))
    }

    @Test(
        "a payment service that comes late, refuses, loses its answer and dies in a batch charges each payment once",
        .thorough("six starts of kiosk against four of the service; one that stores and forwards stays"))
    func forwarded() async throws {
        let sandboxes = Sandboxes()
        let folder = Folder()
        let amounts = ["1.00", "2.00", "3.97", "4.51", "5.96", "6.13", "7.98", "8.00", "9.97", "10.00"]
        var sandbox = try await sandboxes.start()
        let outcome = try await Program.run(
            [Program.built("kiosk"), "--offline", "--hold", "--service", sandbox.address] + amounts,
            environment: Self.environment(folder))
        #expect(outcome.status == 0, "\(outcome)")
        let ids = stored(outcome.output)
        #expect(ids.values.sorted() == amounts.sorted())
        #expect(try await sandbox.payments().isEmpty, "they are only stored")
        try await sandbox.kill()

        func forward(_ patience: String = "60") async throws -> Program.Outcome {
            try await kiosk(
                "--forward", "--batch", "4", "--service", sandbox.address, "--patience", patience, folder: folder)
        }
        // Nobody is there.
        let alone = try await forward()
        #expect(alone.status == 1 && alone.error.contains("did not answer"), "\(alone)")
        // It dies within a batch, …97, twice.
        for count in 1...2 {
            sandbox = try await sandboxes.start()
            let died = try await forward()
            #expect(died.status == 1 && died.error.contains("did not answer"), "\(count): \(died)")
            try await sandbox.end()
        }
        sandbox = try await sandboxes.start()
        let done = try await forward()
        let refused = try #require(ids.first { $0.value == "6.13" }?.key)
        #expect(done.output.contains("left: 1\n  \(refused) not decided: "), "\(done)")
        // What it refuses stays; all else was charged once, to the cent.
        let expected = ids.filter { $0.value != "4.51" && $0.value != "6.13" }
        #expect(try await charged(sandbox) == expected)
        #expect(try await sandbox.payments().count == 9)
        #expect(!(outcome.output + done.output + sandbox.output).contains(Self.account))
        // Whether it is that payment that is wrong, or the payment service, no other can tell any more.
        let again = try await forward()
        #expect(
            again.status == 1 && again.output.hasSuffix("Forwarding: 1\n") && again.error.contains("amount_refused"),
            "\(again)")
    }

    @Test(
        "a kiosk that is repeatedly killed while forwarding loses no payment and charges none twice",
        .thorough("a dozen kills; a lost answer stays"))
    func killed() async throws {
        let sandboxes = Sandboxes()
        let folder = Folder()
        // Answers that come late leave time to be killed in, those that are lost are asked for again.
        let amounts = (1...24).map { $0 % 2 == 0 ? "\($0).98" : $0 % 9 == 0 ? "\($0).96" : "\($0).00" }
        let sandbox = try await sandboxes.start()
        let outcome = try await Program.run(
            [Program.built("kiosk"), "--offline", "--hold", "--service", sandbox.address] + amounts,
            environment: Self.environment(folder))
        #expect(outcome.status == 0, "\(outcome)")
        let ids = stored(outcome.output)
        #expect(ids.count == 24)
        var random = SplitMix(state: 7)
        var kills = 0
        var last = ""
        for _ in 0..<40 {
            let kiosk = try Program(
                [Program.built("kiosk"), "--forward", "--batch", "2", "--service", sandbox.address],
                environment: Self.environment(folder))
            try await kiosk.wait(for: "beginning") { $0.output.contains("Forwarding: ") || !$0.error.isEmpty }
            if kills < 12 {
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...900, using: &random)))
                kiosk.signal(SIGKILL)
            }
            let outcome = try await kiosk.outcome()
            last = outcome.output
            if outcome.status == 0 { break }
            if outcome.status == 128 + SIGKILL { kills += 1 } else { Issue.record("\(outcome)") }
        }
        #expect(last.hasSuffix("left: 0\n"), "\(last)")
        #expect(kills >= 3, "it was hardly ever killed")
        #expect(try await charged(sandbox) == ids)
    }

    @Test("both have help", arguments: ["kiosk", "psp-sandbox"]) func help(_ tool: String) async throws {
        let outcome = try await Program.run([Program.built(tool), "--help"])
        #expect(outcome.status == 0 && outcome.output.contains("USAGE: \(tool)"), "\(outcome)")
    }
}
