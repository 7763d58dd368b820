import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ComposableCheckout

@Suite(.timeLimit(.minutes(10))) struct GrowthTests {
    private final class Weak: Sendable {
        private let objects = Mutex<[Reference]>([])

        private struct Reference: Sendable {
            weak let object: (any AnyObject & Sendable)?
        }

        func note(_ object: any AnyObject & Sendable) { objects.withLock { $0.append(Reference(object: object)) } }
        var alive: Int { objects.withLock { $0.count { $0.object != nil } } }
        var count: Int { objects.withLock { $0.count } }
    }

    /// The pages of secrets: mappings of this process that are left out of core dumps.
    private func secretPages() throws -> Int {
        try String(contentsOfFile: "/proc/self/smaps", encoding: .utf8).split(separator: "\n")
            .count { $0.hasPrefix("VmFlags:") && $0.contains(" dd") && $0.contains(" dc") }
    }

    @Test("After ten thousand checkouts none of them is there any more, nor a page of its secrets")
    func checkouts() async throws {
        let service = TestService()
        let root = CompositionRoot(
            configurations: service, methods: service, tokens: service, payments: service, permitsCardEntry: true,
            clock: CheckoutClock(timeZone: .gmt) { Date(timeIntervalSince1970: 1_764_072_000) }, idleTime: nil)
        let weak = Weak()
        let card = service.now.configuration.methods[0]
        let before = try secretPages()
        for number in 0..<10_000 {
            let checkout = try await root.checkout()
            await checkout.start()
            let scope = try await checkout.getPaymentMethodScope(for: card)
            let form = try #require(scope as? CardFormScope)
            await form.updateCardNumber("4242424242424242")
            if number.isMultiple(of: 100) {
                await form.updateCvv("123")
                await form.updateExpiryDate("12/27")
                #expect(try await form.submit()?.status == .success)
            }
            weak.note(checkout)
            weak.note(form)
            weak.note(checkout.navigator)
            weak.note(checkout.paymentMethodSelection)
        }
        // The last tasks that watch the methods end.
        try await wait(for: "their end") { weak.alive == 0 }
        #expect(weak.count == 40_000)
        #expect(try secretPages() <= before + 16)
    }

    @Test("A thousand registrations are resolved, each made once")
    func registrations() async throws {
        let container = ComposableContainer()
        let made = Mutex(0)
        for number in 0..<1000 {
            await container.register(Int.self, named: "\(number)", as: .singleton) { _ in
                made.withLock { $0 += 1 }
                return number
            }
        }
        for _ in 0..<2 {
            for number in 0..<1000 { #expect(try await container.resolve(Int.self, named: "\(number)") == number) }
        }
        #expect(try await container.resolveAll(Int.self) == Array(0..<1000))
        #expect(made.withLock { $0 } == 1000)
    }
}
