import Foundation
import TestSupport
import Testing

/// psp-sandbox's checkouts, as an outside party sees them: curl asks, and Python's joserfc seals the cards.
@Suite(.timeLimit(.minutes(5)), .enabled(if: CheckoutParty.isThere, "joserfc is not installed from PyPI"))
struct CheckoutSandboxTests {
    // Published test numbers: Visa, and American Express; Stripe's for 3-D Secure.  TEST.
    private static let visa = "4111111111111111"
    private static let amex = "378282246310005"
    private static let challenged = "4000000000003220"

    private func code(_ answer: RunningSandbox.Answer) -> String? {
        (answer.body["error"] as? [String: Any])?["code"] as? String
    }

    private func status(_ answer: RunningSandbox.Answer) -> String? { answer.body["status"] as? String }

    /// A path that is removed at the end.
    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "checkout-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    @Test("a session has the configured methods, fields and surcharges, and stays the same")
    func sessions() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "checkout.json").path
            let file = """
                {"methods":[{"id":"c","kind":"card","networks":["visa"],"surcharge":"0.10",
                "networkSurcharges":{"visa":"0.30"}},{"id":"x","kind":"crypto"}],
                "card":{"networks":["visa"],"fields":["CARD_NUMBER","CVV"],"billingFields":["CITY"]}}
                """
            try Data(file.utf8).write(to: URL(filePath: path))
            let sandbox = try await RunningSandbox("--checkout-configuration", path)
            let request = #"{"amount":"12.30","currency":"EUR","country":"DE","reference":"cart 7"}"#
            let session = try await sandbox.post("checkout-sessions", request)
            #expect(session.status == 200)
            for (name, value) in ["amount": "12.30", "currency": "EUR", "country": "DE", "reference": "cart 7"] {
                #expect(session.body[name] as? String == value)
            }
            let methods = try #require(session.body["methods"] as? [[String: Any]])
            #expect(methods.map { $0["id"] as? String } == ["c", "x"])
            #expect(methods[0]["networkSurcharges"] as? [String: String] == ["visa": "0.30"])
            let card = try #require(session.body["card"] as? [String: Any])
            #expect(card["fields"] as? [String] == ["CARD_NUMBER", "CVV"])
            let recipient = try #require(card["recipient"] as? [String: String])
            #expect(recipient["crv"] == "P-256" && recipient["d"] == nil)
            let again = try await sandbox.ask("checkout-sessions/\(session.body["id"] as? String ?? "")", nil)
            #expect(NSDictionary(dictionary: again.body) == NSDictionary(dictionary: session.body))
            #expect(code(try await sandbox.ask("checkout-sessions/none", nil)) == "unknown_session")
            for (bad, reason) in [
                (#"{"amount":"12.345","currency":"EUR"}"#, "invalid_amount"),
                (#"{"amount":"0","currency":"EUR"}"#, "invalid_amount"),
                (#"{"amount":"-1","currency":"EUR"}"#, "invalid_amount"),
                (#"{"amount":"1","currency":"eur"}"#, "invalid_amount"),
                (#"{"amount":"1","currency":"JPY"}"#, "invalid_session"),
                (#"{"amount":"1","currency":"EUR","country":"de"}"#, "invalid_session"),
                (#"{"amount":1,"currency":"EUR"}"#, "invalid_request"),
            ] {
                #expect(code(try await sandbox.post("checkout-sessions", bad)) == reason, "\(bad)")
            }
        }
    }

    @Test(
        "a configuration that cannot be used is refused at start, with its reason",
        arguments: [
            ("{", "no JSON"), (#"{"card":null}"#, "methods"), (#"{"methods":[]}"#, "1 to 32"),
            (#"{"methods":[{"id":"a","kind":"tap"},{"id":"a","kind":"tap"}]}"#, "another id"),
            (#"{"methods":[{"id":"a","kind":"card"}]}"#, "needs"),
            (#"{"methods":[{"id":"","kind":"tap"}]}"#, "letters"),
            (#"{"methods":[{"id":"a","kind":"tap","surcharge":"1,5"}]}"#, "no amount"),
            (#"{"methods":[{"id":"a","kind":7}]}"#, "wrong type"),
        ])
    func configurations(_ text: String, _ reason: String) async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "checkout.json").path
            try Data(text.utf8).write(to: URL(filePath: path))
            let outcome = try await Program.run(
                [Program.built("psp-sandbox"), "--port", "0", "--checkout-configuration", path])
            #expect(outcome.status == 2 && outcome.error.contains(path) && outcome.error.contains(reason), "\(outcome)")
        }
    }

    @Test("a card that joserfc seals becomes a token, once under each key, and pays once")
    func tokenAndPayment() async throws {
        let sandbox = try await RunningSandbox()
        let party = try await CheckoutParty(sandbox, amount: "12.34")
        let sealed = try await party.seal(number: Self.visa)
        let token = try await party.tokenize(sealed, key: "t")
        #expect(token.body["masked"] as? String == "411111******1111" && token.body["network"] as? String == "visa")
        #expect(token.body["session"] as? String == party.session)
        let again = try await party.tokenize(sealed, key: "t")
        #expect(again.body["token"] as? String == token.body["token"] as? String)
        let other = try await party.seal(number: Self.amex)
        #expect(code(try await party.tokenize(other, key: "t")) == "idempotency_key_reused")

        let body = try party.payment(token, amount: "12.34")
        let paid = try await sandbox.post("checkout-payments", body, key: "p")
        #expect(status(paid) == "authorized" && paid.body["masked"] as? String == "411111******1111", "\(paid)")
        #expect(paid.body["amount"] as? String == "12.34" && paid.body["method"] as? String == "card")
        let repeated = try await sandbox.post("checkout-payments", body, key: "p")
        #expect(repeated.body["id"] as? String == paid.body["id"] as? String)
        let second = try await sandbox.post("checkout-payments", body, key: "q")
        #expect(second.status == 409 && code(second) == "already_paid")
        let known = try await sandbox.ask("checkout-payments", nil, key: "p").body["payment"] as? [String: Any]
        #expect(known?["id"] as? String == paid.body["id"] as? String && known != nil)
        #expect(try await sandbox.ask("checkout-payments", nil, key: "q").body["payment"] is NSNull)
        let one = try await sandbox.ask("checkout-payments/\(paid.body["id"] as? String ?? "")", nil)
        #expect(one.body["idempotencyKey"] as? String == "p")

        // One set of books.
        let books = try await sandbox.payments()
        #expect(books.count == 1 && books.first?["status"] as? String == "approved")
        #expect(books.first?["card"] as? String == "411111******1111")
        #expect(try await sandbox.post("reversals", "", key: "p").status == 200)
        #expect(status(try await sandbox.post("checkout-payments", body, key: "p")) == "declined")
        // A reversed payment frees the session.
        #expect(status(try await sandbox.post("checkout-payments", body, key: "q")) == "authorized")
    }

    @Test(
        "the amount decides, also in a checkout",
        arguments: [("1.05", "05"), ("0.51", "51"), ("100.54", "54"), ("5.14", "14"), ("0.91", "91")])
    func amounts(_ amount: String, _ code: String) async throws {
        let sandbox = try await RunningSandbox()
        let party = try await CheckoutParty(sandbox, amount: amount)
        let token = try await party.tokenize(party.seal(number: Self.visa), key: "t")
        let body = try party.payment(token, amount: amount)
        let answer = try await sandbox.post("checkout-payments", body, key: "p")
        #expect(status(answer) == "declined" && answer.body["responseCode"] as? String == code)
        // A declined session is not paid.
        #expect(status(try await sandbox.post("checkout-payments", body, key: "q")) == "declined")
    }

    @Test("a card is refused for its digits, expiry, network or key, and no refusal repeats them")
    func refusedCards() async throws {
        let sandbox = try await RunningSandbox()
        let party = try await CheckoutParty(sandbox, amount: "12.34")
        let foreign = try await CheckoutParty(try await RunningSandbox(), amount: "12.34")
        let cards: [(String, String)] = [
            (try await party.seal(number: "4111111111111112"), "invalid_card"),
            (try await party.seal(number: "4111 1111 1111 1111"), "invalid_card"),
            (try await party.seal(number: Self.visa, code: "1234"), "invalid_card"),
            (try await party.seal(number: Self.amex, code: "123"), "invalid_card"),
            (try await party.seal(number: Self.visa, code: nil), "invalid_card"),
            (try await party.seal(number: Self.visa, month: "13"), "invalid_card"),
            (try await party.seal(number: Self.visa, year: "2020"), "expired_card"),
            // Troy's range, which the configuration does not accept.  TEST.
            (try await party.seal(number: "9792030394440796"), "unsupported_network"),
            (try await party.seal(text: "[]"), "card_data"),
            (try await party.seal(text: #"{"number":7}"#), "card_data"),
            (try await party.seal(text: #"{"number":"4111111111111111","pin":"1234"}"#), "card_data"),
            (try await foreign.seal(number: Self.visa), "card_data"), ("a.b.c.d.e", "card_data"),
        ]
        for (number, (card, reason)) in cards.enumerated() {
            let answer = try await party.tokenize(card, key: "t\(number)")
            #expect(answer.status == 422 && code(answer) == reason, "\(number): \(answer)")
        }
        #expect(!sandbox.output.contains("4111111111111111") && !sandbox.output.contains("111111111111"))
    }

    @Test("surcharges follow method and network; other amounts, currencies and another session's token are refused")
    func sums() async throws {
        let sandbox = try await RunningSandbox()
        let party = try await CheckoutParty(sandbox, amount: "12.30")
        let other = try await CheckoutParty(sandbox, amount: "12.30")
        let amex = try await party.tokenize(party.seal(number: Self.amex, code: "1234"), key: "t")
        #expect(amex.body["network"] as? String == "amex")
        let charge = try party.payment(amex, amount: "12.80")
        for (body, reason) in [
            (try party.payment(amex, amount: "12.30"), "wrong_amount"),
            (try party.payment(amex, amount: "12.81"), "wrong_amount"),
            (charge.replacing("EUR", with: "USD"), "wrong_amount"),
            (charge.replacing("12.80", with: "12.805"), "invalid_amount"),
            (charge.replacing(party.session, with: other.session), "wrong_session"),
            (charge.replacing(amex.body["token"] as? String ?? "", with: "none"), "unknown_token"),
            (charge.replacing(party.session, with: "none"), "unknown_session"),
            (charge.replacing(#""method":"card""#, with: #""method":"cash""#), "unknown_method"),
            (charge.replacing(#""method":"card""#, with: #""method":"tap""#), "wrong_method"),
            (charge.replacing(#""method":"card""#, with: #""method":"card","network":"visa""#), "unsupported_network"),
            (charge.replacing(#""method":"card""#, with: #""method":"card","voucher":"GIFT-1234""#), "wrong_method"),
        ] {
            let answer = try await sandbox.post("checkout-payments", body, key: "p")
            #expect((400..<500).contains(answer.status) && code(answer) == reason, "\(body): \(answer)")
        }
        let long = String(repeating: "a", count: 256)
        let billing = charge.dropLast() + #","billing":{"CITY":"\#(long)"}}"#
        #expect(code(try await sandbox.post("checkout-payments", String(billing), key: "p")) == "invalid_billing")
        #expect(code(try await sandbox.post("checkout-payments", charge)) == "no_idempotency_key")
        #expect(try await sandbox.payments().isEmpty)
        #expect(status(try await sandbox.post("checkout-payments", charge, key: "p")) == "authorized")
        #expect(try await sandbox.payments().first?["amount"] as? String == "12.80")
    }

    @Test(
        "a challenge decides the payment, once, by a form or by JSON",
        arguments: [(true, "passed", "authorized"), (false, "passed", "authorized"), (true, "failed", "declined")])
    func challenges(_ isForm: Bool, _ outcome: String, _ result: String) async throws {
        let sandbox = try await RunningSandbox()
        let byAmount = try await CheckoutParty(sandbox, amount: "12.33")
        let byNumber = try await CheckoutParty(sandbox, amount: "12.34")
        for (number, (party, card)) in [(byAmount, Self.visa), (byNumber, Self.challenged)].enumerated() {
            let token = try await party.tokenize(party.seal(number: card), key: "t\(number)")
            let body = try party.payment(token, amount: party.amount)
            let pending = try await sandbox.post("checkout-payments", body, key: "p\(number)")
            let challenge = try #require(pending.body["challenge"] as? String, "\(pending)")
            #expect(status(pending) == "pending" && challenge.hasPrefix(sandbox.address))
            #expect(code(try await sandbox.post("checkout-payments", body, key: "other")) == "payment_pending")
            let page = try await Program.run(["curl", "-s", "-i", "-m", "60", challenge]).output
            #expect(page.contains("Content-Security-Policy") && page.matches(of: #/<button /#).count == 2)
            #expect(page.contains("\(party.amount) EUR"))
            let bad = try await Program.run(["curl", "-s", "-m", "60", "-d", "outcome=maybe", challenge]).output
            #expect(bad.contains("invalid_request"))
            let post = isForm ? ["-d", "outcome=\(outcome)"] : ["--json", #"{"outcome":"\#(outcome)"}"#]
            let answer = try await Program.run(["curl", "-s", "-m", "60"] + post + [challenge]).output
            #expect(isForm ? answer.contains("</html>") : answer.contains(#""status":"\#(result)""#), "\(answer)")
            // A second outcome changes nothing.
            let late = outcome == "passed" ? "failed" : "passed"
            _ = try await Program.run(["curl", "-s", "-m", "60", "-d", "outcome=\(late)", challenge])
            let decided = try await sandbox.post("checkout-payments", body, key: "p\(number)")
            #expect(status(decided) == result && decided.body["challenge"] == nil)
        }
        #expect(
            try await sandbox.payments().map { $0["status"] as? String }
                == Array(repeating: result == "authorized" ? "approved" : "declined", count: 2))
    }

    @Test("a payment that was reversed before its challenge stays declined")
    func reversedChallenge() async throws {
        let sandbox = try await RunningSandbox()
        let party = try await CheckoutParty(sandbox, amount: "12.33")
        let token = try await party.tokenize(party.seal(number: Self.visa), key: "t")
        let pending = try await sandbox.post("checkout-payments", try party.payment(token, amount: "12.33"), key: "p")
        let challenge = try #require(pending.body["challenge"] as? String)
        #expect(try await sandbox.post("reversals", "", key: "p").status == 200)
        let answer = try await Program.run(["curl", "-s", "-m", "60", "--json", #"{"outcome":"passed"}"#, challenge])
        #expect(answer.output.contains(#""status":"declined""#) && answer.output.contains("Reversed"))
        // Reversed before it arrived at all.
        #expect(try await sandbox.post("reversals", "", key: "q").status == 200)
        let early = try await sandbox.ask("checkout-payments", nil, key: "q").body["payment"] as? [String: Any]
        #expect(early?["status"] as? String == "declined")
        let body = try party.payment(token, amount: "12.33")
        let arrived = try await sandbox.post("checkout-payments", body, key: "q")
        #expect(status(arrived) == "declined" && arrived.body["session"] as? String == party.session)
        #expect(try await sandbox.payments().allSatisfy { $0["status"] as? String == "declined" })
    }

    @Test("a payment that is pending without a challenge is decided after its time")
    func pending() async throws {
        let sandbox = try await RunningSandbox("--late", "1")
        let party = try await CheckoutParty(sandbox, amount: "12.35", currency: "USD")
        let token = try await party.tokenize(party.seal(number: Self.visa), key: "t")
        let waiting = try await CheckoutParty(sandbox, amount: "0.35")
        let other = try await waiting.tokenize(waiting.seal(number: Self.visa), key: "t")
        #expect(
            status(try await sandbox.post("checkout-payments", party.payment(token, amount: "12.35"), key: "p"))
                == "pending")
        #expect(
            status(try await sandbox.post("checkout-payments", waiting.payment(other, amount: "0.35"), key: "q"))
                == "pending")
        for key in ["p", "q"] {
            var status: String?
            for _ in 0..<1_000 where status != "authorized" {
                try await Task.sleep(for: .milliseconds(50))
                let known = try await sandbox.ask("checkout-payments", nil, key: key).body["payment"] as? [String: Any]
                status = known?["status"] as? String
            }
            #expect(status == "authorized")
        }
    }

    @Test("a voucher is redeemed once, and shown masked")
    func vouchers() async throws {
        let sandbox = try await RunningSandbox()
        for (number, (voucher, result)) in [
            ("GIFT-2026-77", "authorized"), ("GIFT-2026-77", "declined"), ("GIFT-2026-77", "declined"),
            ("UNKNOWN-1", "declined"), ("EXPIRED-1", "declined"), ("GIFT-2026-78", "authorized"),
        ].enumerated() {
            let party = try await CheckoutParty(sandbox, amount: "5.00")
            let answer = try await sandbox.post("checkout-payments", party.voucher(voucher), key: "v\(number)")
            #expect(status(answer) == result, "\(number): \(answer)")
            #expect((answer.body["masked"] as? String)?.hasPrefix("*****") == true)
        }
        let party = try await CheckoutParty(sandbox, amount: "5.00")
        #expect(code(try await sandbox.post("checkout-payments", party.voucher("gift"), key: "x")) == "invalid_voucher")
        #expect(!sandbox.output.contains("GIFT-2026"))
    }

    @Test("faults apply to tokens, payments and challenges: each is done once, however its answer is lost")
    func faults() async throws {
        let sandbox = try await RunningSandbox("--late", "3600")
        let party = try await CheckoutParty(sandbox, amount: "12.33")
        func fault(_ kind: String) async throws {
            #expect(try await sandbox.post("faults", #"{"kind":"\#(kind)","calls":1}"#).status == 200)
        }
        let sealed = try await party.seal(number: Self.visa)
        // curl's exit status: 52, nothing came; 28, the time was over.
        try await fault("lost")
        #expect(try await party.tokenize(sealed, key: "t").exit == 52)
        try await fault("refused")
        #expect(try await party.tokenize(sealed, key: "t").status == 403)
        let token = try await party.tokenize(sealed, key: "t")
        let body = try party.payment(token, amount: "12.33")
        try await fault("lost")
        #expect(try await sandbox.post("checkout-payments", body, key: "p").exit == 52)
        try await fault("late")
        #expect(try await sandbox.post("checkout-payments", body, key: "p", timeout: 1).exit == 28)
        try await fault("delayed")
        #expect(try await sandbox.post("checkout-payments", body, key: "p", timeout: 1).exit == 28)
        let pending = try await sandbox.post("checkout-payments", body, key: "p")
        let challenge = try #require(pending.body["challenge"] as? String)
        try await fault("lost")
        let lost = try await Program.run(["curl", "-s", "-m", "60", "-d", "outcome=passed", challenge])
        #expect(lost.status == 52)
        #expect(status(try await sandbox.post("checkout-payments", body, key: "p")) == "authorized")
        #expect(try await sandbox.payments().count == 1)
        try await fault("declined")
        let next = try await CheckoutParty(sandbox, amount: "12.34")
        let other = try await next.tokenize(next.seal(number: Self.visa), key: "t")
        #expect(
            status(try await sandbox.post("checkout-payments", next.payment(other, amount: "12.34"), key: "q"))
                == "authorized", "the token's call took the fault")
    }

    @Test("…97 ends the sandbox after the decision, which its books still have; a challenge survives, too")
    func crash() async throws {
        try await withFolder { folder in
            let books = folder.appending(path: "books").path
            let key = folder.appending(path: "key").path
            var sandbox = try await RunningSandbox("--books", books, "--card-data-key", key)
            let waiting = try await CheckoutParty(sandbox, amount: "12.33")
            let first = try await waiting.tokenize(waiting.seal(number: Self.visa), key: "t")
            let pending = try await sandbox.post(
                "checkout-payments", try waiting.payment(first, amount: "12.33"), key: "w")
            let challenge = try #require(URL(string: pending.body["challenge"] as? String ?? "")?.path)
            let party = try await CheckoutParty(sandbox, amount: "1.97")
            let token = try await party.tokenize(party.seal(number: Self.visa), key: "t")
            let body = try party.payment(token, amount: "1.97")
            #expect(try await sandbox.post("checkout-payments", body, key: "p").exit == 52)
            try await sandbox.end()
            sandbox = try await RunningSandbox("--books", books, "--card-data-key", key)
            let known = try await sandbox.ask("checkout-payments", nil, key: "p").body["payment"] as? [String: Any]
            #expect(known?["status"] as? String == "authorized" && known?["session"] as? String == party.session)
            #expect(status(try await sandbox.post("checkout-payments", body, key: "p")) == "authorized")
            let answer = try await sandbox.post(String(challenge.dropFirst()), #"{"outcome":"passed"}"#)
            #expect(status(answer) == "authorized")
            #expect(try await sandbox.payments().count == 2)
            // No number in what it keeps.
            let contents = try Data(contentsOf: URL(filePath: books))
            #expect(
                contents.range(of: Data(Self.visa.utf8)) == nil
                    && contents.range(of: Data("411111******1111".utf8)) != nil)
        }
    }

    @Test("no number is in its memory, its output or its files after tokens and payments")
    func memory() async throws {
        try await withFolder { folder in
            let sandbox = try await RunningSandbox(
                "--books", folder.appending(path: "books").path, "--card-data-key", folder.appending(path: "key").path)
            // A number of a range that no issuer has: TEST.
            let digits = "4999998213746506"
            let party = try await CheckoutParty(sandbox, amount: "12.34")
            let token = try await party.tokenize(party.seal(number: digits), key: "t")
            #expect(
                status(try await sandbox.post("checkout-payments", party.payment(token, amount: "12.34"), key: "p"))
                    == "authorized")
            let refused = try await party.tokenize(party.seal(number: digits, year: "2020"), key: "u")
            #expect(code(refused) == "expired_card")
            #expect(sandbox.output.contains("499999******6506") && !sandbox.output.contains(digits))
            for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
                #expect(try Data(contentsOf: file).range(of: Data(digits.utf8)) == nil, "\(file.lastPathComponent)")
            }
            let count = try sandbox.memory { bytes, line in
                #expect(bytes.range(of: Data(digits.utf8)) == nil, "\(line)")
            }
            #expect(count > 10)
        }
    }
}

/// A merchant's page, which is not ours: it opens a session, and seals cards with joserfc.
private struct CheckoutParty {
    let session: String
    let amount: String
    private let currency: String
    private let recipient: String
    private let sandbox: RunningSandbox

    private static let package = URL(filePath: #filePath).appending(path: "../../..").standardized
    private static let path = package.appending(path: ".build/joserfc").path
    static let isThere = FileManager.default.fileExists(atPath: path)

    init(_ sandbox: RunningSandbox, amount: String, currency: String = "EUR") async throws {
        let request = #"{"amount":"\#(amount)","currency":"\#(currency)"}"#
        let answer = try await sandbox.post("checkout-sessions", request)
        session = try #require(answer.body["id"] as? String, "\(answer)")
        let card = try #require(answer.body["card"] as? [String: Any])
        let key = try JSONSerialization.data(withJSONObject: try #require(card["recipient"]))
        recipient = String(decoding: key, as: UTF8.self)
        (self.sandbox, self.amount, self.currency) = (sandbox, amount, currency)
    }

    func seal(
        number: String, code: String? = "123", month: String = "12", year: String = "2039"
    ) async throws -> String {
        var members = ["number": number, "expiryMonth": month, "expiryYear": year, "cardholderName": "TEST CARD"]
        members["cvv"] = code
        return try await seal(text: String(decoding: JSONEncoder().encode(members), as: UTF8.self))
    }

    func seal(text: String) async throws -> String {
        let request: [String: Any] = [
            "do": "seal", "jwk": recipient, "text": text, "header": ["alg": "ECDH-ES", "enc": "A256GCM"],
        ]
        let input = String(decoding: try JSONSerialization.data(withJSONObject: request), as: UTF8.self)
        let judge = Self.package.appending(path: "Tests/CardEncryptionTests/Judges/jwe.py").path
        let outcome = try await Program.run(
            ["/usr/bin/python3", judge, "joserfc"], environment: ["PYTHONPATH": Self.path], input: input)
        let answer = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
        return try #require(answer?["jwe"] as? String, "\(outcome)")
    }

    func tokenize(_ sealed: String, key: String) async throws -> RunningSandbox.Answer {
        try await sandbox.post("checkout-tokens", #"{"session":"\#(session)","cardData":"\#(sealed)"}"#, key: key)
    }

    func payment(_ token: RunningSandbox.Answer, amount: String) throws -> String {
        let token = try #require(token.body["token"] as? String, "\(token)")
        return
            #"{"session":"\#(session)","method":"card","token":"\#(token)","amount":"\#(amount)","currency":"\#(currency)"}"#
    }

    func voucher(_ code: String) -> String {
        #"{"session":"\#(session)","method":"voucher","voucher":"\#(code)","amount":"\#(amount)","currency":"\#(currency)"}"#
    }
}
