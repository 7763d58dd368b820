import ComposableCheckout
import FlyingFox
import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing

/// Whole payments at psp-sandbox over a network that loses, doubles and delays: the books have each once.
@Suite(.timeLimit(.minutes(5))) struct CheckoutMoneyTests {
    // Published test numbers: Visa; Stripe's for 3-D Secure.  TEST.
    private static let visa = "4111111111111111"
    private static let challenged = "4000000000003220"

    /// psp-sandbox, on a port of its own.
    private final class Sandbox: Sendable {
        let address: String
        private let program: Program

        init(_ arguments: String...) async throws {
            program = try Program([Program.built("psp-sandbox"), "--port", "0"] + arguments)
            try await program.wait(for: "address") { $0.output.contains("\n") }
            address = try #require(
                program.output.split(separator: "\n").first?.split(separator: " ").last.map(String.init))
        }

        var output: String { program.output + program.error }

        /// Every entry of the books, as curl gets them.
        func books() async throws -> [[String: Any]] {
            let outcome = try await Program.run(["curl", "-s", "-m", "60", "\(address)/payments"])
            return try #require(
                try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]], "\(outcome)")
        }

        /// Meets a challenge as a browser does.
        func confirm(_ challenge: URL?) async throws {
            // The host is the proxy's, which only the client talks to.
            let path = try #require(challenge?.path)
            _ = try await Program.run(["curl", "-s", "-m", "60", "-d", "outcome=passed", address + path])
        }
    }

    enum Mishap: String, CaseIterable {
        /// The request does not arrive.
        case lostRequest
        /// The request arrives, and its answer is lost.
        case lostAnswer
        /// The request arrives twice.
        case twice
        /// The request arrives twice at the same time, and both answers are lost.
        case storm
        /// The answer comes after the client has gone.
        case late
        /// The request arrives after the client has gone.
        case delayed
    }

    enum Step: String, CaseIterable {
        case session = "GET /checkout-sessions"
        case token = "POST /checkout-tokens"
        case payment = "POST /checkout-payments"
        case question = "GET /checkout-payments"
    }

    /// A network between client and sandbox, on which the first request of each step meets a mishap.
    private static func network(
        to address: String, _ steps: [Step], _ mishap: Mishap
    ) async throws -> LyingService {
        let state = Mutex((ahead: steps, count: 0))
        return try await LyingService { request in
            let (isMet, count) = state.withLock { state in
                state.count += 1
                let call = "\(request.method.rawValue) \(request.path)"
                guard let index = state.ahead.firstIndex(where: { call.hasPrefix($0.rawValue) }) else {
                    return (false, state.count)
                }
                state.ahead.remove(at: index)
                return (true, state.count)
            }
            /// A client that asks something else, or once more, has given this request up.
            func waitUntilGone() async throws {
                try await wait(for: "further request") { state.withLock { $0.count > count } }
            }
            guard isMet else { return try await LyingService.forward(request, to: address) }
            let nothing = HTTPResponse(webSocket: LyingService.NoAnswer())
            switch mishap {
            case .lostRequest: return nothing
            case .lostAnswer:
                _ = try await LyingService.forward(request, to: address)
                return nothing
            case .twice:
                _ = try await LyingService.forward(request, to: address)
                return try await LyingService.forward(request, to: address)
            case .storm:
                async let first = LyingService.forward(request, to: address)
                async let second = LyingService.forward(request, to: address)
                _ = try await (first, second)
                return nothing
            case .late:
                let answer = try await LyingService.forward(request, to: address)
                try await waitUntilGone()
                return answer
            case .delayed:
                try await waitUntilGone()
                _ = try await LyingService.forward(request, to: address)
                return nothing
            }
        }
    }

    /// Repeats a question until there is an answer.
    private func insist<Value: Sendable>(
        _ body: () async throws(CheckoutError) -> Value
    ) async throws -> Value {
        for _ in 0..<100 {
            do throws(CheckoutError) {
                return try await body()
            } catch {
                guard case .transport = error else { throw error }
            }
        }
        throw CheckoutError.configuration("no outcome after a hundred attempts")
    }

    /// Pays as a customer with a card does.
    private func pay(
        _ client: HTTPCheckoutRepository, _ number: String, confirm: (URL?) async throws -> Void
    ) async throws -> PaymentResult {
        let configuration = try await insist { () throws(CheckoutError) in try await client.configuration() }
        let recipient = try #require(configuration.card).recipient
        let card = try CardPaymentData(
            number: number.utf8, securityCode: "123".utf8, expiryMonth: 12, expiryYear: 2039,
            cardholderName: "TEST CARD", network: .visa)
        let pauses = Array(repeating: Duration.milliseconds(50), count: 10)
        let token = try await ProcessCardPaymentInteractor(client, pauses: pauses)
            .token(for: card, recipient: recipient, key: "t")
        #expect(token.masked == card.masked && token.network == .visa)
        let method = try #require(configuration.methods.first { $0.kind == .card })
        let request = PaymentRequest(
            session: configuration.session, method: method.id, token: token.id, network: token.network,
            amount: configuration.amount + method.surcharge(for: token.network), currency: configuration.currency,
            billing: [.countryCode: "DE", .city: "“Köln”"])
        let settlement = PaymentSettlement(client, pauses: pauses)
        let result = try await settlement.settle(request, method: method.kind, key: "p")
        guard result.status == .pending else { return result }
        try await confirm(result.challenge)
        return try await settlement.challenge(result.paymentID)
    }

    private func client(_ network: LyingService, of sandbox: Sandbox, amount: Decimal) async throws
        -> HTTPCheckoutRepository
    {
        let direct = try #require(URL(string: sandbox.address))
        let opened = try await HTTPCheckoutRepository.openSession(
            at: direct, amount: amount, currency: "EUR", country: "DE", reference: "cart")
        return try HTTPCheckoutRepository(
            address: network.address, session: opened.session, patience: .milliseconds(700),
            pollInterval: .milliseconds(50), challengePatience: .seconds(30))
    }

    /// Every mishap at every step; in the fast tier every one of the payment, and an answer that is lost at the others.
    private static let cases: [([Step], Mishap)] = {
        let steps = Step.allCases.map { [$0] } + [[.payment, .question], [.payment, .payment, .question]]
        return steps.flatMap { steps in Mishap.allCases.map { (steps, $0) } }
            .filter { Tier.isThorough || $0.0 == [.payment] || $0.1 == .lostAnswer }
    }()

    @Test("whatever happens to a request, the customer pays once", arguments: cases)
    func mishaps(_ steps: [Step], _ mishap: Mishap) async throws {
        let sandbox = try await Sandbox()
        let network = try await Self.network(to: sandbox.address, steps, mishap)
        let client = try await client(network, of: sandbox, amount: Decimal(1230) / 100)
        let result = try await pay(client, Self.challenged) { try await sandbox.confirm($0) }
        #expect(result.status == .success && result.challenge == nil && result.method == .card)
        // A request that was delayed has arrived.
        try await wait(for: "the last answer") { network.answers == network.requests.count }
        let books = try await sandbox.books()
        #expect(books.count == 1 && books.first?["status"] as? String == "approved", "\(books)")
        #expect(books.first?["amount"] as? String == "12.30" && books.first?["id"] as? String == result.paymentID)
        #expect(!sandbox.output.contains(Self.challenged))
    }

    @Test(
        "the sandbox's own lost, late and declined answers end as they should",
        arguments: [("1.96", "approved"), ("1.98", "approved"), ("1.05", "declined"), ("1.51", "declined")])
    func amounts(_ amount: String, _ status: String) async throws {
        let sandbox = try await Sandbox("--late", "3600")
        let network = try await Self.network(to: sandbox.address, [], .lostAnswer)
        let client = try await client(network, of: sandbox, amount: try #require(Decimal(string: amount)))
        let result = try await pay(client, Self.visa) { _ in Issue.record("there is no challenge") }
        #expect(result.status == (status == "approved" ? .success : .failed))
        #expect((result.errorMessage == nil) == (status == "approved"))
        let books = try await sandbox.books()
        #expect(books.count == 1 && books.first?["status"] as? String == status, "\(books)")
    }

    @Test("a payment that the sandbox decides later is pending first, and found by its key")
    func pending() async throws {
        let sandbox = try await Sandbox("--late", "1")
        let network = try await Self.network(to: sandbox.address, [], .lostAnswer)
        let client = try await client(network, of: sandbox, amount: Decimal(1235) / 100)
        let result = try await pay(client, Self.visa) { #expect($0 == nil) }
        #expect(result.status == .success)
        #expect(try await client.result(for: "p")?.status == .success)
        #expect(try await client.result(for: "q") == nil)
    }

    @Test("refusals arrive as such: another session's token, another sum, a second payment, a voucher that is none")
    func refusals() async throws {
        let sandbox = try await Sandbox()
        let network = try await Self.network(to: sandbox.address, [], .lostAnswer)
        let (client, other) = (
            try await client(network, of: sandbox, amount: 5), try await client(network, of: sandbox, amount: 5)
        )
        #expect(try await pay(client, Self.visa) { _ in }.status == .success)
        func code(_ client: HTTPCheckoutRepository, _ change: (inout PaymentRequest) -> Void) async -> String? {
            var request = PaymentRequest(
                session: client.session, method: "voucher", voucher: "GIFT-77", amount: 5, currency: "EUR")
            change(&request)
            do throws(CheckoutError) {
                _ = try await client.pay(request, idempotencyKey: "r")
                return nil
            } catch {
                guard case .refused(let code, _) = error else { return "\(error)" }
                return code
            }
        }
        let token = try await client.result(for: "p")?.token
        #expect(await code(client) { _ in } == "already_paid")
        #expect(await code(other) { ($0.method, $0.voucher, $0.token) = ("card", nil, token?.id) } == "wrong_session")
        #expect(await code(other) { $0.amount = 4 } == "wrong_amount")
        #expect(await code(other) { $0.currency = "USD" } == "wrong_amount")
        #expect(await code(other) { $0.voucher = "gift" } == "invalid_voucher")
        #expect(try await sandbox.books().count == 1)
        #expect(await code(other) { _ in } == nil)
        #expect(try await sandbox.books().count == 2)
    }
}
