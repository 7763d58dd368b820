import CardEncryption
import Foundation
import Synchronization
import Testing
import Waiting

@testable import ComposableCheckout

@Suite(.timeLimit(.minutes(2))) struct CheckoutTests {
    // MARK: D6

    @Test("D6 the selection goes from loading to ready, and a method to its scope")
    func selection() async throws {
        let fixture = try await Fixture()
        #expect(fixture.checkout.currentState == .initializing)
        #expect(fixture.checkout.paymentMethodSelection.currentState == .loading)
        try await fixture.select("card")
        #expect(fixture.checkout.currentState == .ready(fixture.service.now.configuration))
        #expect(fixture.checkout.navigator.stackedRoutes == [.start, .methodSelection, .method("card")])
        let form = await fixture.checkout.getPaymentMethodScope(CardFormScope.self)
        #expect(form != nil && form?.method.id == "card")
        await fixture.checkout.back()
        #expect(fixture.checkout.navigator.route == .methodSelection)
    }

    @Test("D6 an error while loading is told, and the next start tries again")
    func loadErrors() async throws {
        let fixture = try await Fixture()
        let error = CheckoutError.transport(reason: "no network", mayHaveHappened: false)
        fixture.service.set { $0.loadErrors = [error] }
        await fixture.checkout.start()
        #expect(fixture.checkout.currentState == .failure(error))
        #expect(fixture.checkout.navigator.route == .failure(error))
        await fixture.checkout.retry()
        #expect(fixture.checkout.navigator.route == .methodSelection)
        #expect(await fixture.ready() == ["card", "tap", "voucher"])
    }

    @Test("D6 tap is hidden while there is no reader, and a method that was hidden meanwhile is not chosen")
    func readerPresence() async throws {
        let fixture = try await Fixture()
        await fixture.checkout.start()
        #expect(await fixture.ready() == ["card", "tap", "voucher"])
        fixture.reader.present.send(false)
        #expect(await fixture.ready { $0.count == 2 } == ["card", "voucher"])
        let tap = fixture.service.now.configuration.methods[1]
        await fixture.checkout.paymentMethodSelection.onPaymentMethodSelected(tap)
        #expect(fixture.checkout.navigator.route == .methodSelection)
        fixture.reader.present.send(true)
        #expect(await fixture.ready { $0.count == 3 } == ["card", "tap", "voucher"])
    }

    @Test("D6 cards by hand are off unless the application permits them")
    func cardEntry() async throws {
        let fixture = try await Fixture(permitsCardEntry: false)
        await fixture.checkout.start()
        #expect(await fixture.ready() == ["tap", "voucher"])
        #expect(await fixture.checkout.getPaymentMethodScope(CardFormScope.self) == nil)
        let card = fixture.service.now.configuration.methods[0]
        let refused = await checkoutError { try await fixture.checkout.getPaymentMethodScope(for: card) }
        #expect(refused?.recovery == .askStaff)
    }

    @Test("D6 a search finds methods by name, in the customer's language, and by network")
    func search() async throws {
        let fixture = try await Fixture()
        await fixture.checkout.start()
        _ = await fixture.ready()
        let selection = fixture.checkout.paymentMethodSelection
        await selection.search("VOUCH")
        #expect(await fixture.ready() == ["voucher"])
        await selection.setTexts(InputLocalizable(language: "de"))
        await selection.search("kont")
        #expect(await fixture.ready() == ["tap"])
        await selection.search("")
        #expect(await fixture.ready() == ["card", "tap", "voucher"])
    }

    @Test("D6 choosing tap starts the reader; the kernel's messages are its states, and the surcharge is charged")
    func tap() async throws {
        let fixture = try await Fixture()
        try await fixture.select("tap")
        let tap = try #require(await fixture.checkout.getPaymentMethodScope(TapScope.self))
        let states = tap.state
        while fixture.reader.amounts.isEmpty { await Task.yield() }
        #expect(fixture.reader.amounts == [10.5])
        for message in [TapMessage.presentCard, .reading, .tryAgain, .seePhone, .removeCard] {
            fixture.reader.shown.send(message)
            #expect(await first(states) { $0.rawValue == message.rawValue } != nil)
        }
        fixture.reader.answer(.success(.success))
        #expect(await first(states) { $0 == .approved } != nil)
        let state = await first(fixture.checkout.state) { if case .success = $0 { true } else { false } }
        guard case .success(let result) = state else {
            Issue.record("\(String(describing: state))")
            return
        }
        #expect(result.method == .tap && result.amount == 10.5)
        #expect(fixture.checkout.navigator.route == .success(result))
    }

    @Test("D6 going back ends the wait for a card: nothing was paid, and the selection is shown")
    func tapCancelled() async throws {
        let fixture = try await Fixture()
        try await fixture.select("tap")
        let tap = try #require(await fixture.checkout.getPaymentMethodScope(TapScope.self))
        while fixture.reader.amounts.isEmpty { await Task.yield() }
        let routes = fixture.checkout.navigator.navigationEvents
        await fixture.checkout.back()
        #expect(await first(tap.state) { $0 == .cancelled || $0 == .idle } != nil)
        #expect(await first(routes) { $0 == .methodSelection } != nil)
        #expect(fixture.checkout.currentState == .ready(fixture.service.now.configuration))
    }

    @Test("D6 idling ends the wait for a card, and shows the start")
    func tapIdle() async throws {
        let fixture = try await Fixture()
        try await fixture.select("tap")
        while fixture.reader.amounts.isEmpty { await Task.yield() }
        let routes = fixture.checkout.navigator.navigationEvents
        await fixture.checkout.idle()
        #expect(await first(routes) { $0 == .start } != nil)
    }

    @Test("D6 a tap whose result is not known is asked for by its key")
    func tapUnknown() async throws {
        let fixture = try await Fixture()
        try await fixture.select("tap")
        while fixture.reader.amounts.isEmpty { await Task.yield() }
        fixture.reader.answer(.failure(.unknown(key: "read-1")))
        let isUnknown: @Sendable (CheckoutState) -> Bool = { state in
            if case .failure(.transport(_, mayHaveHappened: true)) = state { true } else { false }
        }
        #expect(await first(fixture.checkout.state, where: isUnknown) != nil)
        fixture.reader.resolved.withLock {
            $0 = PaymentResult(
                paymentID: "tap_1", status: .success, amount: 10.5, currency: "EUR", method: .tap)
        }
        await fixture.checkout.retry()
        guard case .success(let result) = fixture.checkout.currentState else {
            Issue.record("\(fixture.checkout.currentState)")
            return
        }
        #expect(result.paymentID == "tap_1" && fixture.reader.amounts.count == 1)
    }

    // MARK: D2

    @Test("D2 two submits at once pay once")
    func doubleSubmit() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        let gate = Delivery<Void>()
        fixture.service.set { $0.gate = gate }
        async let first = form.submit()
        while form.currentState?.isLoading != true { await Task.yield() }
        #expect(try await form.submit() == nil)
        gate.deliver(.success(()))
        #expect(try await first?.status == .success)
        #expect(fixture.service.now.requests.count == 1)
        #expect(fixture.service.now.tokens.count == 1)
    }

    @Test("D4 the surcharge of the network is paid, and the card is sealed for the session's recipient")
    func amexSurcharge() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form("378282246310005", cvv: "1234")
        _ = try await form.submit()
        let request = try #require(fixture.service.now.requests.first).request
        #expect(request.amount == 12 && request.network == .amex && request.token == "tok_1")
        guard case .jwe(let jwe) = fixture.service.now.tokens.first?.card else {
            Issue.record("\(fixture.service.now.tokens)")
            return
        }
        let key = try #require(TestService.key)
        let json = try key.open(jwe) { try JSONDecoder().decode([String: String].self, from: Data($0)) }
        #expect(json == ["number": "378282246310005", "cvv": "1234", "expiryMonth": "12", "expiryYear": "2027"])
    }

    // MARK: D9

    @Test("D9 the gate runs before anything is shown, and knows the amount; an abort pays nothing")
    func gate() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        let navigator = fixture.checkout.navigator
        let asked = Mutex<[(BeforePayment, CheckoutRoute)]>([])
        await fixture.checkout.onBeforePaymentCreate { payment in
            asked.withLock { $0.append((payment, navigator.route)) }
            return .abort
        }
        #expect(try await form.submit() == nil)
        #expect(navigator.route == .method("card") && fixture.service.now.requests.isEmpty)
        let first = try #require(asked.withLock { $0 }.first)
        #expect(first.1 == .method("card") && first.0.amount == 10 && first.0.network == .visa)
        await fixture.checkout.onBeforePaymentCreate { _ in .proceed }
        let again = try await fixture.form()
        #expect(try await again.submit()?.status == .success)
    }

    @Test("D9 a failure is shown, and retry returns to the method, with the secrets gone")
    func failure() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set { $0.answers = [.result(.failed)] }
        _ = try await form.submit()
        let declined = CheckoutError.refused(code: "declined", message: "declined")
        #expect(fixture.checkout.currentState == .failure(declined))
        #expect(fixture.checkout.navigator.route == .failure(declined))
        await fixture.checkout.retry()
        #expect(fixture.checkout.navigator.stackedRoutes == [.start, .methodSelection, .method("card")])
        #expect(form.currentState?.inputFields[.cardNumber] == "")
        // What is no secret stays for the next card.
        #expect(form.currentState?.inputFields[.expiryDate]?.isEmpty == false)
        let again = try await fixture.form()
        #expect(again === form)
        #expect(try await again.submit()?.status == .success)
        #expect(Set(fixture.service.now.requests.map(\.key)).count == 2)
    }

    @Test("D9 after a failure a customer can take another method, but not while it is not known whether they paid")
    func otherMethod() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set { $0.answers = [.result(.failed)] }
        _ = try await form.submit()
        await fixture.checkout.back()
        #expect(fixture.checkout.navigator.stackedRoutes == [.start, .methodSelection])
        let voucher = try #require(fixture.service.now.configuration.methods.first { $0.id == "voucher" })
        await fixture.checkout.paymentMethodSelection.onPaymentMethodSelected(voucher)
        #expect(fixture.checkout.navigator.route == .method("voucher"))

        let other = try await Fixture()
        let unknown = try await other.form()
        other.service.set { $0.answers = [.result(.unknown)] }
        _ = try await unknown.submit()
        let route = other.checkout.navigator.route
        #expect(route != .methodSelection)
        await other.checkout.back()
        #expect(other.checkout.navigator.route == route)
    }

    @Test("D9 fields that the payment service refuses are shown in the form")
    func fieldErrors() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set { $0.answers = [.error(.validation([.init(.cvv, "invalid-cvv")]))] }
        let refused = await checkoutError { try await form.submit() }
        #expect(refused?.recovery == .correctFields)
        #expect(fixture.checkout.navigator.route == .method("card"))
        #expect(form.currentState?.fieldErrors == [.init(.cvv, "invalid-cvv")])
    }

    @Test("A voucher pays with its code, without spaces")
    func voucher() async throws {
        let fixture = try await Fixture()
        try await fixture.select("voucher")
        let voucher = try #require(await fixture.checkout.getPaymentMethodScope(VoucherScope.self))
        await voucher.updateCode("A!")
        await voucher.leave()
        #expect(voucher.currentState.errorKey == "error.invalid-voucher" && !voucher.currentState.isSubmitEnabled)
        await voucher.updateCode(" ABCD－１２３４ ")
        #expect(try await voucher.submit()?.method == .voucher)
        #expect(fixture.service.now.requests.first?.request.voucher == "ABCD-1234")
        #expect(voucher.currentState == VoucherState())
    }

    @Test("D1 a refreshed configuration changes an open form")
    func refresh() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        fixture.service.set { $0.configuration.card?.billingFields = [.city] }
        await fixture.checkout.refresh()
        #expect(form.currentState?.billingFields == [.city] && form.currentState?.isSubmitEnabled == false)
        await form.updateCity("Ulm")
        #expect(form.currentState?.isSubmitEnabled == true)
        fixture.service.set { $0.configuration.methods[0].surcharge = 3 }
        await fixture.checkout.refresh()
        #expect(form.currentState?.surcharge == 3)
        let changed = fixture.service.now.configuration.methods[0]
        #expect(try await fixture.checkout.getPaymentMethodScope(for: changed) === form)
        #expect(try await form.submit()?.amount == 13)
    }

    @Test("D5 D7 idle wipes what was entered and shows the start, also by itself after the time")
    func idle() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        await fixture.checkout.idle()
        #expect(form.currentState?.inputFields[.expiryDate] == "" && fixture.checkout.navigator.route == .start)
        let timed = try await Fixture(idleTime: .milliseconds(20))
        let other = try await timed.form()
        #expect(await first(timed.checkout.navigator.navigationEvents) { $0 == .start } != nil)
        #expect(await first(other.state) { $0.inputFields[.expiryDate] == "" } != nil)
    }

    @Test("A session that was paid is over when the customer has gone")
    func paid() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        #expect(try await form.submit()?.status == .success)
        await fixture.checkout.idle()
        #expect(fixture.checkout.currentState == .dismissed && fixture.checkout.navigator.route == .start)
    }

    @Test("A checkout that was dismissed begins nothing")
    func dismissed() async throws {
        let fixture = try await Fixture()
        let form = try await fixture.form()
        await fixture.checkout.dismiss()
        #expect(fixture.checkout.currentState == .dismissed && fixture.checkout.navigator.route == .start)
        #expect(try await form.submit() == nil)
        await fixture.checkout.start()
        #expect(fixture.checkout.currentState == .dismissed)
    }

    @Test("A method of the application's own is added by its registration alone")
    func ownMethod() async throws {
        final class Cash: PaymentMethodScope {
            let method: PaymentMethod
            init(_ method: PaymentMethod) { self.method = method }
            func start() async {}
            func cancel() async {}
        }
        struct CashProvider: PaymentMethodProvider {
            func scope(
                for method: PaymentMethod, _ configuration: CheckoutConfiguration, in checkout: CheckoutScope
            ) async throws(CheckoutError) -> any PaymentMethodScope { Cash(method) }
        }
        let kind = PaymentMethod.Kind(rawValue: "cash")
        let service = TestService(methods: [PaymentMethod(id: "cash", kind: kind)])
        let root = CompositionRoot(
            configurations: service, methods: service, tokens: service, payments: service)
        await root.register(kind) { _ in CashProvider() }
        let checkout = try await root.checkout()
        await checkout.start()
        let state = await first(checkout.paymentMethodSelection.state()) { $0 != .loading }
        #expect(state == .ready(methods: service.now.configuration.methods, currency: "EUR"))
        await checkout.paymentMethodSelection.onPaymentMethodSelected(service.now.configuration.methods[0])
        #expect(checkout.navigator.route == .method("cash"))
        #expect(await checkout.getPaymentMethodScope(Cash.self) != nil)
    }
}
