import Foundation
import TestSupport
import Testing

/// `kiosk` from outside.
@Suite(.timeLimit(.minutes(5))) struct KioskTests {
    /// The card's file: TEST.
    private static let account = "4761739001010010"

    private func kiosk(_ arguments: String...) async throws -> Program.Outcome {
        let state = FileManager.default.temporaryDirectory.appending(path: "kiosk-\(UUID().uuidString)").path
        return try await Program.run(
            [Program.built("kiosk")] + arguments,
            environment: ["XDG_STATE_HOME": state, "STATE_DIRECTORY": "", "PCSCLITE_CSOCK_NAME": "/nonexistent"])
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
        let curl = try await Program.run(["curl", "-s", "-m", "5", "\(address)/keys"])
        #expect(curl.status == 7, "still there: \(curl)")
    }

    @Test("what is declined, by the payment service or by the card, ends with 1")
    func declined() async throws {
        let outcome = try await kiosk("5.00", "10.51")
        #expect(outcome.status == 1 && outcome.output.hasSuffix("  Declined: Insufficient funds\n"), "\(outcome)")
        #expect(outcome.output.contains("  Approved\n10.51 EUR\n"))
        let card = try await kiosk("--card", "visa-decline")
        #expect(card.status == 1 && card.output.hasSuffix("  Not paid: The card declined.\n"), "\(card)")
    }

    @Test("an answer that is lost or late is asked for again, and the payment is made once")
    func lost() async throws {
        let sandbox = try await RunningSandbox("--late", "3600")
        let outcome = try await kiosk("--service", sandbox.address, "--patience", "1", "1.96", "1.98")
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output.components(separatedBy: "  Approved\n").count == 3)
        let payments = try await sandbox.payments()
        #expect(payments.map { $0["amount"] as? String } == ["1.96", "1.98"])
        #expect(payments.allSatisfy { $0["card"] as? String == "476173******0010" })
        #expect(sandbox.output.contains("the connection is closed without an answer"))
        #expect(!(outcome.output + sandbox.output).contains(Self.account))
    }

    @Test(
        "nonsense is refused, and a payment service that is not there is said so",
        arguments: [
            (["twelve"], 64, "“twelve” is no amount"), (["-1"], 64, "Unknown option"), (["0"], 64, "“0” is no amount"),
            (["--card", "none"], 64, "No card “none”"), (["--service", "here"], 64, "--service"),
            (["--service", "http://127.0.0.1:1"], 1, "The payment service did not answer"),
        ])
    func nonsense(_ arguments: [String], _ status: Int32, _ message: String) async throws {
        let state = FileManager.default.temporaryDirectory.appending(path: "kiosk-\(UUID().uuidString)").path
        let outcome = try await Program.run(
            [Program.built("kiosk")] + arguments, environment: ["XDG_STATE_HOME": state, "STATE_DIRECTORY": ""])
        #expect(outcome.status == status && outcome.error.contains(message), "\(outcome)")
    }

    @Test(
        "with --reader it takes the payment through pcscd, as with a reader on the desk",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"))
    func attachedReader() async throws {
        let state = FileManager.default.temporaryDirectory.appending(path: "kiosk-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: state) }
        // One payment each: the card stays where it is, and pays once.
        for (amount, status, end) in [("1.00", 0, "  Approved\n"), ("10.51", 1, "  Declined: Insufficient funds\n")] {
            let outcome = try await Program.run(
                [
                    Program.built("virtual-reader"), "--card", "visa", "--", Program.built("kiosk"), "--reader", amount,
                ], environment: ["XDG_STATE_HOME": state.path, "STATE_DIRECTORY": ""])
            #expect(outcome.status == status && outcome.output.hasSuffix(end), "\(outcome)")
            #expect(
                outcome.output.contains("Reader: the one that is attached\n\(amount) EUR\n"), "\(outcome)")
            #expect(!(outcome.output + outcome.error).contains(Self.account))
        }
    }

    @Test("both have help", arguments: ["kiosk", "psp-sandbox"]) func help(_ tool: String) async throws {
        let outcome = try await Program.run([Program.built(tool), "--help"])
        #expect(outcome.status == 0 && outcome.output.contains("USAGE: \(tool)"), "\(outcome)")
    }
}
