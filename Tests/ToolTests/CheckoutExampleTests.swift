import Foundation
import TestSupport
import Testing

/// `checkout`, the checkout on a terminal, from outside.
@Suite(.timeLimit(.minutes(5))) struct CheckoutExampleTests {
    // Published test numbers: Visa; Stripe's for 3-D Secure.  TEST.
    private static let visa = "4111111111111111"
    private static let challenged = "4000000000003220"

    private func checkout(_ arguments: String..., input: String) async throws -> Program.Outcome {
        try await Program.run([Program.built("checkout")] + arguments, input: input)
    }

    @Test("a card's form in German: errors where they are, the number masked, and the payment")
    func card() async throws {
        let input = ["1", "4111111111111112", Self.visa, "12/39", "123", "Zoë Test", "DE", "5066", "50667", "", ""]
        let outcome = try await checkout(
            "--card-entry", "--country", "DE", "--language", "de", input: input.joined(separator: "\n"))
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
        let expected = """
            Einen Moment bitte …
            Wie möchten Sie bezahlen?
              1  Karte, American Express + 0,50 EUR
              2  Gutschein
            2 Zahlungsarten:\u{20}
            Kartendaten
              Kartennummer (1234 1234 1234 1234):\u{20}
              ! Diese Kartennummer ist nicht gültig.
              Kartennummer (1234 1234 1234 1234):\u{20}
              Gültig bis (MM/JJ):\u{20}
              Prüfnummer (CVV):\u{20}
              Name auf der Karte (Wie auf der Karte):\u{20}
            Rechnungsadresse
              Land (Land wählen):\u{20}
              Postleitzahl:\u{20}
              ! Diese Postleitzahl ist nicht gültig.
              Postleitzahl:\u{20}
            Kartendaten
              Kartennummer: 411111******1111
              Gültig bis: 12/39
              Prüfnummer: •••
              Name auf der Karte: Zoë Test
            Rechnungsadresse
              Land: DE
              Postleitzahl: 50667
            12,30 EUR bezahlen:\u{20}
            Die Zahlung wird bearbeitet.
            Danke. Die Zahlung ist erfolgt.
              12,30 EUR 411111******1111

            """
        #expect(outcome.output == expected)
    }

    @Test("without --card-entry there is no form, and a voucher pays; its second use is declined")
    func voucher() async throws {
        let sandbox = try await RunningSandbox()
        for (status, amount) in [(Int32(0), "12.30"), (1, "5.00")] {
            let outcome = try await checkout("--service", sandbox.address, amount, input: "1\nno\nGIFT-2026\n<\n")
            #expect(outcome.status == status && outcome.output.contains("  1  Voucher\n1 way to pay"), "\(outcome)")
            #expect(outcome.output.contains("  ! This voucher code is not valid.\nVoucher code: "))
        }
        #expect(try await sandbox.payments().map { $0["status"] as? String } == ["approved", "declined"])
    }

    @Test("a challenge is shown, and the payment goes on when the customer has met it")
    func challenge() async throws {
        let sandbox = try await RunningSandbox()
        let input = ["1", Self.challenged, "12/39", "123", "Test", "DE", "50667", "", ""].joined(separator: "\n")
        let program = try Program(
            [Program.built("checkout"), "--service", sandbox.address, "--card-entry"], input: input)
        try await program.wait(for: "challenge") { $0.output.contains("/challenges/") }
        let page = try #require(program.output.firstMatch(of: #/http\S*challenges\S+/#)).output
        _ = try await Program.run(["curl", "-s", "-m", "60", "-d", "outcome=passed", String(page)])
        let outcome = try await program.outcome()
        #expect(outcome.status == 0 && outcome.output.contains("Please confirm the payment with your bank."))
        #expect(!outcome.output.contains(Self.challenged))
        #expect(try await sandbox.payments().map { $0["status"] as? String } == ["approved"])
    }

    @Test("a decline ends with 1, as does the end of the input, and what is no amount with 64")
    func ends() async throws {
        let sandbox = try await RunningSandbox()
        let declined = try await checkout("--service", sandbox.address, "1.51", input: "1\nGIFT-2026\n<\n")
        #expect(declined.status == 1 && declined.output.contains("The payment was not made."), "\(declined)")
        #expect(try await checkout("--service", sandbox.address, input: "").status == 1)
        for arguments in [
            ["12,30"], ["1", "--currency", "EURO"], ["1", "--country", "XX"], ["1", "--service", "x"],
            ["1", "--patience", "0"],
        ] {
            let outcome = try await Program.run([Program.built("checkout")] + arguments)
            #expect(outcome.status == 64, "\(outcome)")
        }
        let absent = try await checkout("--service", "http://127.0.0.1:9", input: "")
        #expect(absent.status == 1 && absent.error.contains("was not reached"), "\(absent)")
    }
}
