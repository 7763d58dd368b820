import Foundation
import Testing

@testable import ComposableCheckout

@Suite(.timeLimit(.minutes(2))) struct MoneyTests {
    @Test("A lost answer is asked for by its key, and the payment is not made again")
    func lostAnswer() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set { $0.answers = [.lost(.success)] }
        #expect(try await form.submit()?.status == .success)
        #expect(fixture.service.now.requests.count == 1 && fixture.service.now.questions == 1)
    }

    @Test("A request that never arrived is repeated with its key")
    func repeated() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set {
            $0.answers = [
                .error(.transport(reason: "no network", mayHaveHappened: false)),
                .error(.transport(reason: "no answer", mayHaveHappened: true)),
            ]
        }
        #expect(try await form.submit()?.status == .success)
        #expect(fixture.service.now.requests.count == 3 && Set(fixture.service.now.requests.map(\.key)).count == 1)
    }

    @Test("Nothing else is paid while a payment is not known; retry asks for it")
    func unknown() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set { ($0.answers, $0.silences) = ([.lost(.success)], 10) }
        #expect(try await form.submit()?.status == .unknown)
        guard case .failure(.transport(_, mayHaveHappened: true)) = fixture.checkout.currentState else {
            Issue.record("\(fixture.checkout.currentState)")
            return
        }
        await fixture.checkout.idle()
        try await fixture.select("voucher")
        let voucher = try #require(await fixture.checkout.getPaymentMethodScope(VoucherScope.self))
        await voucher.updateCode("ABCD-1234")
        #expect(try await voucher.submit() == nil)
        #expect(fixture.service.now.requests.count == 1)
        await fixture.checkout.retry()
        guard case .failure = fixture.checkout.currentState else {
            Issue.record("\(fixture.checkout.currentState)")
            return
        }
        fixture.service.set { $0.silences = 0 }
        await fixture.checkout.retry()
        guard case .success(let result) = fixture.checkout.currentState else {
            Issue.record("\(fixture.checkout.currentState)")
            return
        }
        #expect(result.paymentID == "pay_1" && fixture.service.now.requests.count == 1)
    }

    @Test("A result about another amount is not this payment's")
    func otherAmount() async throws {
        let service = TestService()
        let settlement = PaymentSettlement(service, pauses: [.milliseconds(1)])
        let request = PaymentRequest(session: "cs_1", method: "card", amount: 10, currency: "EUR")
        service.set {
            $0.payments["key"] = PaymentResult(
                paymentID: "pay_9", status: .success, amount: 1, currency: "EUR", method: .card)
        }
        let result = try await settlement.settle(request, method: .card, key: "key")
        #expect(result.status == .unknown)
    }

    @Test("A challenge is shown, and its result is the payment's")
    func challenge() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set { $0.answers = [.challenge] }
        let routes = fixture.checkout.navigator.navigationEvents
        #expect(try await form.submit()?.status == .success)
        let shown = await first(routes) { if case .challenge = $0 { true } else { false } }
        #expect(shown == URL(string: "http://127.0.0.1/challenges/1").map(CheckoutRoute.challenge))
        guard case .success = fixture.checkout.navigator.route else {
            Issue.record("\(fixture.checkout.navigator.route)")
            return
        }
    }
}
