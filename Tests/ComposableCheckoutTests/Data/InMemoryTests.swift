import CardEncryption
import ComposableCheckout
import Foundation
import Testing

/// The repositories for tests and demonstrations keep the promises of a payment service.
@Suite struct InMemoryTests {
    private let amount = Decimal(1230) / 100

    private func request(_ checkout: InMemoryCheckoutRepository) async throws -> PaymentRequest {
        let configuration = try await checkout.configuration()
        let recipient = try JWERecipient(jwk: try #require(configuration.card).recipient)
        // A published test number of Visa.  TEST.
        let card = try CardPaymentData(
            number: "4111111111111111".utf8, securityCode: "123".utf8, expiryMonth: 12, expiryYear: 2039)
        let token = try await checkout.tokenize(card.sealed(for: recipient), idempotencyKey: "t")
        #expect(token.masked == "411111******1111" && token.network == .visa)
        return PaymentRequest(session: "s", method: "card", token: token.id, amount: amount, currency: "EUR")
    }

    private func code(_ body: () async throws(CheckoutError) -> PaymentResult) async -> String? {
        do throws(CheckoutError) {
            _ = try await body()
            return nil
        } catch {
            guard case .refused(let code, _) = error else { return "\(error)" }
            return code
        }
    }

    @Test("a lost answer is found under its key, and nothing is paid twice")
    func lost() async throws {
        let checkout = try InMemoryCheckoutRepository(session: "s", amount: amount, currency: "EUR")
        let request = try await request(checkout)
        await checkout.failNext(.pay, afterEffect: false)
        await checkout.failNext(.pay, afterEffect: true)
        for mayHaveHappened in [false, true] {
            do throws(CheckoutError) {
                _ = try await checkout.pay(request, idempotencyKey: "k")
                Issue.record("it did not fail")
            } catch {
                guard case .transport(_, mayHaveHappened) = error else {
                    Issue.record("\(error)")
                    continue
                }
            }
            #expect((try await checkout.result(for: "k") != nil) == mayHaveHappened)
        }
        let again = try await checkout.pay(request, idempotencyKey: "k")
        #expect(again.status == .success && again.token?.network == .visa)
        #expect(await checkout.payments == [again])
        #expect(
            await code { () throws(CheckoutError) in try await checkout.pay(request, idempotencyKey: "l") }
                == "already_paid")
        var other = request
        other.voucher = "V"
        #expect(
            await code { () throws(CheckoutError) in try await checkout.pay(other, idempotencyKey: "k") }
                == "idempotency_key_reused")
    }

    @Test("decisions and challenges are as they were set", arguments: [true, false])
    func challenges(_ passed: Bool) async throws {
        let checkout = try InMemoryCheckoutRepository(session: "s", amount: amount, currency: "EUR")
        let request = try await request(checkout)
        await checkout.setDecisions { _ in .decline("Not today") }
        let declined = try await checkout.pay(request, idempotencyKey: "a")
        #expect(declined.status == .failed && declined.errorMessage == "Not today")
        await checkout.setDecisions { _ in .challenge }
        let pending = try await checkout.pay(request, idempotencyKey: "b")
        #expect(pending.status == .pending && pending.challenge != nil)
        await checkout.answerChallenge(of: pending.paymentID, passed: passed)
        await checkout.answerChallenge(of: pending.paymentID, passed: !passed)
        let result = try await checkout.completeChallenge(of: pending.paymentID)
        #expect(result.status == (passed ? .success : .failed) && result.challenge == nil)
        func refusal(_ change: (inout PaymentRequest) -> Void) async -> String? {
            var other = request
            change(&other)
            return await code { () throws(CheckoutError) in try await checkout.pay(other, idempotencyKey: "c") }
        }
        #expect(await refusal { $0.amount = 1 } == (passed ? "already_paid" : "wrong_amount"))
        #expect(await refusal { $0.session = "x" } == "unknown_session")
        #expect(await refusal { $0.method = "x" } == "unknown_method")
        #expect(await refusal { $0.token = nil } == "unknown_token")
        #expect(
            await code { () throws(CheckoutError) in try await checkout.completeChallenge(of: "x") }
                == "unknown_payment")
    }

    @Test("offline, the reader is the only method, and nothing else is sent")
    func offline() async throws {
        let online = try InMemoryCheckoutRepository(session: "s", amount: amount, currency: "EUR")
        let offline = OfflineCheckoutRepository(configuration: try await online.configuration())
        #expect(try await offline.paymentMethods().map(\.kind) == [.tap])
        #expect(try await offline.configuration().card == nil)
        let request = PaymentRequest(session: "s", method: "voucher", voucher: "V", amount: amount, currency: "EUR")
        let failure = await code { () throws(CheckoutError) in try await offline.pay(request, idempotencyKey: "k") }
        #expect(failure?.contains("not reached") == true)
        await #expect(throws: CheckoutError.self) { try await offline.result(for: "k") }
    }
}
