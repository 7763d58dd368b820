import CardEncryption
import ComposableCheckout
import FlyingFox
import Foundation
import TestSupport
import Testing

/// The repositories against services that lie, keep silent, or never end.
@Suite(.timeLimit(.minutes(2))) struct HostileServiceTests {
    private static let recipient =
        #"{"kty":"EC","crv":"P-256","alg":"ECDH-ES","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}"#

    private static let session = """
        {"id":"s","amount":"12.34","currency":"EUR","methods":[{"id":"card","kind":"card","networks":["visa"],
        "surcharge":"0.10","networkSurcharges":{"visa":"0.30"}}],"card":{"networks":["visa"],"fields":["CARD_NUMBER"],
        "billingFields":["CITY"],"recipient":\(recipient)}}
        """

    private static let payment = """
        {"id":"p-1","session":"s","method":"card","kind":"card","status":"authorized","responseCode":"00",
        "message":"Approved","amount":"12.64","currency":"EUR","masked":"411111******1111","network":"visa",
        "token":"t-1","idempotencyKey":"k"}
        """

    private let request = PaymentRequest(
        session: "s", method: "card", token: "t-1", network: .visa, amount: Decimal(1264) / 100, currency: "EUR")

    /// The error of a call; nil if it succeeded.
    private func failure<Value>(
        _ body: () async throws(CheckoutError) -> Value
    ) async -> CheckoutError? {
        do throws(CheckoutError) {
            _ = try await body()
            return nil
        } catch {
            return error
        }
    }

    private func isUnknown(_ error: CheckoutError?) -> Bool {
        if case .transport(_, mayHaveHappened: true) = error { true } else { false }
    }

    private func isHarmless(_ error: CheckoutError?) -> Bool {
        if case .transport(_, mayHaveHappened: false) = error { true } else { false }
    }

    private func sealed() throws -> SealedCardData {
        try JWERecipient(jwk: Self.recipient).seal(ClearCardData(Array("{}".utf8)))
    }

    // MARK: Honest answers

    @Test("an honest service is understood, member for member")
    func honest() async throws {
        let service = try await LyingService { request in
            let text =
                switch (request.method, request.path) {
                case (.GET, "/checkout-sessions/s"): Self.session
                case (.POST, "/checkout-tokens"):
                    #"{"session":"s","token":"t-1","network":"visa","masked":"411111******1111","more":[1]}"#
                case (.GET, "/checkout-payments"): #"{"payment":null}"#
                default: Self.payment
                }
            return HTTPResponse(statusCode: .ok, body: Data(text.utf8))
        }
        let client = try service.client()
        let configuration = try await client.configuration()
        #expect(configuration.amount == Decimal(1234) / 100 && configuration.currency == "EUR")
        #expect(configuration.methods.first?.surcharge(for: .visa) == Decimal(30) / 100)
        #expect(configuration.methods.first?.surcharge(for: .amex) == Decimal(10) / 100)
        #expect(configuration.card?.fields == [.cardNumber] && configuration.card?.billingFields == [.city])
        let token = try await client.tokenize(sealed(), idempotencyKey: "t")
        #expect(token == PaymentToken(id: "t-1", network: .visa, masked: "411111******1111"))
        let result = try await client.pay(request, idempotencyKey: "k")
        #expect(result.status == .success && result.paymentID == "p-1" && result.token == token)
        #expect(result.amount == request.amount && result.method == .card && result.errorMessage == nil)
        #expect(try await client.result(for: "k") == nil)
        #expect(
            service.requests == [
                "GET /checkout-sessions/s ", "POST /checkout-tokens t", "POST /checkout-payments k",
                "GET /checkout-payments k",
            ])
    }

    // MARK: Lies

    @Test(
        "an answer about a payment that is not the one asked for leaves it unknown",
        arguments: [
            (#""session":"s""#, #""session":"other""#), (#""amount":"12.64""#, #""amount":"12.34""#),
            (#""currency":"EUR""#, #""currency":"USD""#), (#""method":"card""#, #""method":"voucher""#),
            (#""token":"t-1""#, #""token":"t-2""#), (#""idempotencyKey":"k""#, #""idempotencyKey":"l""#),
            (#""status":"authorized""#, #""status":"approved""#), (#""status":"authorized""#, #""status":true"#),
            (#""amount":"12.64""#, #""amount":12.64"#), (#""amount":"12.64""#, #""amount":"-12.64""#),
            (#""amount":"12.64""#, #""amount":"1.264e1""#), (#""id":"p-1""#, #""id":"../p""#),
            (#""id":"p-1""#, #""id":"""#),
            (#""id":"p-1""#, #""id":"p-1","id":"p-2""#), (#""kind":"card""#, #""kind":null"#),
            ("411111******1111", "4111111111111111"), (#"EUR""#, #"EUR"} "#), ("}", ""), ("{", "[{"),
            (#""status":"authorized""#, #""status":"pending","challenge":"javascript:alert(1)""#),
            (#""status":"authorized""#, #""status":"pending","challenge":"http://bank.example/""#),
            (#""status":"authorized""#, #""status":"declined","message":"a\u0007b""#),
        ])
    func payments(_ truth: String, _ lie: String) async throws {
        let service = try await LyingService(Self.payment.replacing(truth, with: lie))
        let error = await failure { () throws(CheckoutError) in
            try await client(service).pay(request, idempotencyKey: "k")
        }
        #expect(isUnknown(error), "\(String(describing: error))")
        #expect(error?.description.contains("4111111111111111") == false)
    }

    private func client(_ service: LyingService) throws(CheckoutError) -> HTTPCheckoutRepository {
        do { return try service.client() } catch { throw .configuration("\(error)") }
    }

    @Test(
        "a session that is another one, or cannot be served, is none",
        arguments: [
            (#""id":"s""#, #""id":"other""#, true), (#""amount":"12.34""#, #""amount":"0""#, true),
            (#""currency":"EUR""#, #""currency":"euro""#, true), ("\"methods\":[", "\"methods\":[7,", true),
            (#""surcharge":"0.10""#, #""surcharge":"0,10""#, true),
            (#""visa":"0.30""#, #""visa":"-0.30""#, true), (#""id":"card""#, #""id":"a/b""#, true),
            (#""fields":["CARD_NUMBER"]"#, #""fields":["CARD_NUMBER","CARD_NUMBER"]"#, true),
            (#""fields":["CARD_NUMBER"]"#, #""fields":["PIN"]"#, false), (#""crv":"P-256""#, #""crv":"P-521""#, false),
            (#""kty":"EC""#, #""d":"AAAA","kty":"EC""#, false), ("\"card\":{", "\"cards\":{", false),
        ])
    func sessions(_ truth: String, _ lie: String, _ isTransport: Bool) async throws {
        let service = try await LyingService(Self.session.replacing(truth, with: lie))
        let error = await failure { () throws(CheckoutError) in try await client(service).configuration() }
        if isTransport {
            #expect(isHarmless(error), "\(String(describing: error))")
        } else {
            #expect(error?.recovery == .askStaff, "\(String(describing: error))")
        }
    }

    @Test(
        "a token of another session, or one that shows the number, is none",
        arguments: [
            #"{"session":"other","token":"t","masked":"411111******1111"}"#,
            #"{"token":"t","masked":"411111******1111"}"#,
            #"{"session":"s","token":"t","masked":"4111111111111111"}"#, #"{"session":"s","token":"a b","masked":"*"}"#,
            #"{"session":"s","masked":"*"}"#,
        ])
    func tokens(_ answer: String) async throws {
        let service = try await LyingService(answer)
        let card = try sealed()
        let error = await failure { () throws(CheckoutError) in
            try await client(service).tokenize(card, idempotencyKey: "t")
        }
        #expect(isUnknown(error), "\(String(describing: error))")
    }

    @Test(
        "a question for a payment is not answered with another one, nor with nothing at all",
        arguments: [
            "{}", #"{"payment":[]}"#, #"{"payment":"# + payment.replacing(#""s""#, with: #""other""#) + "}",
            #"{"payment":"# + payment.replacing(#""k""#, with: #""l""#) + "}", "null", "",
        ])
    func questions(_ answer: String) async throws {
        let service = try await LyingService(answer)
        let error = await failure { () throws(CheckoutError) in try await client(service).result(for: "k") }
        #expect(isUnknown(error), "\(String(describing: error))")
    }

    // MARK: Refusals and states

    @Test(
        "a refusal is one only with its reason; every other status leaves the payment unknown",
        arguments: [
            (409, #"{"error":{"code":"already_paid","message":"The session is paid."}}"#, true),
            (422, #"{"error":{"code":"wrong_amount","message":""}}"#, true), (422, "<html>", false), (404, "", false),
            (408, #"{"error":{"code":"late","message":""}}"#, false),
            (500, #"{"error":{"code":"books","message":""}}"#, false),
            (429, #"{"error":{"code":"busy","message":""}}"#, false), (204, "", false), (201, payment, false),
            (422, #"{"error":{"code":"a code","message":""}}"#, false),
        ])
    func refusals(_ status: Int, _ body: String, _ isRefusal: Bool) async throws {
        let service = try await LyingService(body, status: HTTPStatusCode(status, phrase: "Status"))
        let error = await failure { () throws(CheckoutError) in
            try await client(service).pay(request, idempotencyKey: "k")
        }
        if case .refused? = error {
            #expect(isRefusal)
        } else {
            #expect(!isRefusal && isUnknown(error), "\(String(describing: error))")
        }
    }

    @Test("a redirect is not followed", arguments: [301, 302, 303, 307, 308])
    func redirects(_ status: Int) async throws {
        let other = try await LyingService(Self.payment)
        let target = other.address.appending(path: "checkout-payments").absoluteString
        let service = try await LyingService { _ in
            HTTPResponse(statusCode: HTTPStatusCode(status, phrase: "Elsewhere"), headers: [.location: target])
        }
        // Many times: Foundation has ended the process now and then.
        for _ in 0..<40 {
            let error = await failure { () throws(CheckoutError) in
                try await client(service).pay(request, idempotencyKey: "k")
            }
            #expect(isUnknown(error) && other.requests.isEmpty, "\(String(describing: error))")
        }
    }

    // MARK: Silence

    @Test("an endless body is left, at once")
    func endless() async throws {
        let service = try await LyingService { _ in
            HTTPResponse(statusCode: .ok, body: HTTPBodySequence(from: LyingService.Endless(), count: 1 << 40))
        }
        let error = await failure { () throws(CheckoutError) in
            try await client(service).pay(request, idempotencyKey: "k")
        }
        #expect(isUnknown(error) && error?.description.contains("bytes") == true, "\(String(describing: error))")
    }

    @Test("a connection that closes without an answer, and one that stays silent, leave the payment unknown")
    func silent() async throws {
        let closed = try await LyingService { _ in HTTPResponse(webSocket: LyingService.NoAnswer()) }
        let lost = await failure { () throws(CheckoutError) in
            try await client(closed).pay(request, idempotencyKey: "k")
        }
        #expect(isUnknown(lost) && closed.requests == ["POST /checkout-payments k"], "\(String(describing: lost))")
        let silent = try await LyingService { _ in
            try await waitUntilCanceled()
            return HTTPResponse(statusCode: .ok)
        }
        let patient = try silent.client(patience: .milliseconds(300))
        let late = await failure { () throws(CheckoutError) in try await patient.pay(request, idempotencyKey: "k") }
        #expect(isUnknown(late) && late?.description.contains("in time") == true, "\(String(describing: late))")
        // A canceled task does not wait.
        let canceled = try silent.client()
        let waiting = Task {
            await failure { () throws(CheckoutError) in try await canceled.pay(request, idempotencyKey: "k") }
        }
        try await wait(for: "request") { silent.requests.count >= 2 }
        waiting.cancel()
        #expect(isUnknown(await waiting.value))
    }

    @Test("a service that is not there was not reached: nothing happened")
    func absent() async throws {
        let address = try #require(URL(string: "http://127.0.0.1:9"))
        let client = try HTTPCheckoutRepository(address: address, session: "s")
        let error = await failure { () throws(CheckoutError) in try await client.pay(request, idempotencyKey: "k") }
        #expect(isHarmless(error), "\(String(describing: error))")
    }

    // MARK: What is not sent

    @Test("nothing is sent in the clear, under a key that is none, or for another session")
    func configurations() async throws {
        for address in ["http://psp.example", "ftp://127.0.0.1", "http://127.0.0.1.example", "http:", "https:///x"] {
            let url = try #require(URL(string: address))
            #expect(throws: CheckoutError.self, "\(address)") { try HTTPCheckoutRepository(address: url, session: "s") }
        }
        for session in ["", "a/b", "..", "a b", "a?b", String(repeating: "a", count: 129)] {
            let url = try #require(URL(string: "https://psp.example"))
            #expect(throws: CheckoutError.self) { try HTTPCheckoutRepository(address: url, session: session) }
        }
        let service = try await LyingService(Self.payment)
        let client = try service.client()
        for key in ["", "a\r\nX: y", "é", String(repeating: "k", count: 256)] {
            let error = await failure { () throws(CheckoutError) in try await client.pay(request, idempotencyKey: key) }
            #expect(error?.recovery == .askStaff)
        }
        var other = request
        other.session = "t"
        let error = await failure { () throws(CheckoutError) in try await client.pay(other, idempotencyKey: "k") }
        #expect(error?.recovery == .askStaff && service.requests.isEmpty)
    }

    // MARK: Challenges

    @Test("a challenge is asked about until it is met, whatever the network does meanwhile")
    func challenge() async throws {
        let calls = Calls()
        let service = try await LyingService { _ in
            switch await calls.next() {
            case 1: return HTTPResponse(webSocket: LyingService.NoAnswer())
            case 2, 3:
                let pending = Self.payment.replacing("authorized", with: "pending")
                return HTTPResponse(statusCode: .ok, body: Data(pending.utf8))
            default: return HTTPResponse(statusCode: .ok, body: Data(Self.payment.utf8))
            }
        }
        #expect(try await service.client().completeChallenge(of: "p-1").status == .success)
        #expect(service.requests.count == 4)
    }

    @Test("a challenge that nobody meets is pending at the end; another payment's answer is none")
    func unmet() async throws {
        let pending = Self.payment.replacing("authorized", with: "pending")
        let service = try await LyingService(pending)
        #expect(try await service.client(challengePatience: .zero).completeChallenge(of: "p-1").status == .pending)
        let impatient = try service.client(challengePatience: .zero)
        let error = await failure { () throws(CheckoutError) in try await impatient.completeChallenge(of: "p-2") }
        #expect(isUnknown(error))
        let refusing = try await LyingService(
            #"{"error":{"code":"unknown_payment","message":""}}"#, status: .notFound)
        let refusal = await failure { () throws(CheckoutError) in
            try await client(refusing).completeChallenge(of: "p-1")
        }
        #expect(refusal == .refused(code: "unknown_payment", message: ""))
    }

    @Test("a canceled wait for a challenge ends with what is known, although the network has failed since")
    func canceledChallenge() async throws {
        let calls = Calls()
        let service = try await LyingService { _ in
            guard await calls.next() == 1 else { return HTTPResponse(webSocket: LyingService.NoAnswer()) }
            let pending = Self.payment.replacing("authorized", with: "pending")
            return HTTPResponse(statusCode: .ok, body: Data(pending.utf8))
        }
        let client = try service.client()
        let waiting = Task { try await client.completeChallenge(of: "p-1").status }
        try await wait(for: "third request") { service.requests.count >= 3 }
        waiting.cancel()
        #expect(try await waiting.value == .pending)
    }

    private actor Calls {
        private var count = 0
        func next() -> Int {
            count += 1
            return count
        }
    }
}
