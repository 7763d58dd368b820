import ComposableCheckout
import Foundation
import Testing

@Suite("D7 navigator") struct NavigatorTests {
    let navigator = CheckoutNavigator()
    static let result = PaymentResult(
        paymentID: "pay_1", status: .success, amount: 1, currency: "EUR", method: .card)

    @Test("D7 push, replace, reset and back, by the routes that stay behind")
    func stack() {
        navigator.reset(to: .methodSelection)
        navigator.push(.method("card"))
        #expect(navigator.stackedRoutes == [.start, .methodSelection, .method("card")])
        navigator.push(.processing)
        navigator.replace(with: .success(Self.result))
        #expect(navigator.stackedRoutes == [.start, .methodSelection, .method("card"), .success(Self.result)])
        #expect(navigator.back() && navigator.route == .method("card"))
        navigator.reset(to: .methodSelection)
        #expect(navigator.stackedRoutes == [.start, .methodSelection])
        #expect(navigator.back() && !navigator.back())
        #expect(navigator.route == .start)
    }

    @Test("D7 any number of listeners receive the present route first, then each change; the same route twice is one")
    func listeners() async {
        navigator.reset(to: .methodSelection)
        let streams = (0..<5).map { _ in navigator.navigationEvents }
        navigator.push(.method("card"))
        navigator.push(.method("card"))
        navigator.replace(with: .method("card"))
        navigator.reset(to: .method("card"))
        navigator.back()
        for stream in streams {
            var events: [CheckoutRoute] = []
            for await event in stream.prefix(3) { events.append(event) }
            #expect(events == [.methodSelection, .method("card"), .methodSelection])
        }
        var late = navigator.navigationEvents.makeAsyncIterator()
        #expect(await late.next() == .methodSelection)
    }

    @Test("D7 retry returns to the last method, with the selection behind it")
    func retry() {
        navigator.reset(to: .methodSelection)
        navigator.push(.method("card"))
        navigator.replace(with: .processing)
        navigator.replace(with: .failure(.configuration("nothing")))
        navigator.retry()
        #expect(navigator.stackedRoutes == [.start, .methodSelection, .method("card")])
    }

    @Test("D7 idle returns to the start, and a retry after it knows no method")
    func idle() {
        navigator.push(.method("card"))
        navigator.idle()
        #expect(navigator.stackedRoutes == [.start])
        navigator.retry()
        #expect(navigator.stackedRoutes == [.start, .methodSelection])
    }

    @Test("D7 the stack is bounded")
    func bounded() {
        for number in 0..<100 { navigator.push(.method("\(number)")) }
        #expect(navigator.stackedRoutes.count == 16)
        #expect(navigator.route == .method("99"))
    }
}
