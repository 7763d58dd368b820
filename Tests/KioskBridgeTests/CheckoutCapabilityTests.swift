import ComposableCheckout
import Foundation
import KioskKit
import Synchronization
import TestSupport
import Testing

@testable import KioskBridge

/// The checkout as a page has it: messages in, states out.
@MainActor @Suite(.timeLimit(.minutes(5))) struct CheckoutCapabilityTests {
    /// A published test number (Stripe, "Testing"), and a security code that is nowhere else.
    private static let (number, code) = ("4242424242424242", "739")

    @MainActor private final class Kiosk {
        let orders = Orders()
        let host = BridgeHost(hostVersion: "1")
        let service: InMemoryCheckoutRepository
        private(set) var page: Page

        init(_ configure: (InMemoryCheckoutRepository) async -> Void = { _ in }) async throws {
            service = try InMemoryCheckoutRepository(session: "s", amount: 12.34, currency: "EUR")
            await configure(service)
            let service = service
            host.register(
                CheckoutCapability(orders: orders) { _, locale in
                    try await CompositionRoot(
                        configurations: service, methods: service, tokens: service, payments: service,
                        permitsCardEntry: true, idleTime: nil, language: locale.identifier(.bcp47),
                        pauses: [.milliseconds(1)]
                    ).checkout()
                })
            page = try #require(Page(host))
        }

        func newPage() throws { page = try #require(Page(host)) }

        /// The last state that the page was told; empty if there is none.
        var state: [String: Any] { page.events("checkout.state").last ?? [:] }
        var route: String? { state["route"] as? String }

        func wait(for route: String) async throws { try await page.wait(route) { self.route == route } }

        func select(_ method: String) async throws {
            #expect(try await page.request("checkout.start").status == "success")
            try await page.wait("methods") { !self.methods.isEmpty }
            #expect(try await page.request("checkout.select", #"{"method":"\#(method)"}"#).status == "success")
            try await page.wait("form") { self.state["form"] != nil }
        }

        var methods: [String] {
            let selection = state["selection"] as? [String: Any]
            return (selection?["methods"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
        }

        /// The elements of the form, groups opened.
        var elements: [[String: Any]] { Self.flat((state["form"] as? [String: Any])?["elements"]) }

        private static func flat(_ elements: Any?) -> [[String: Any]] {
            (elements as? [[String: Any]] ?? []).flatMap { [$0] + flat($0["elements"]) }
        }

        func field(_ name: String) -> [String: Any]? { elements.first { $0["field"] as? String == name } }
        var isSubmitEnabled: Bool { elements.last?["isEnabled"] as? Bool == true }

        func enter(_ field: String, _ value: String) async throws {
            #expect(
                try await page.request("checkout.update", #"{"field":"\#(field)","value":"\#(value)"}"#).status
                    == "success")
            _ = try await page.request("checkout.leave", #"{"field":"\#(field)"}"#)
        }

        func fillCard() async throws {
            try await select("card")
            try await enter("CARD_NUMBER", CheckoutCapabilityTests.number)
            try await enter("EXPIRY_DATE", "12/49")
            try await enter("CVV", CheckoutCapabilityTests.code)
            try await page.wait("button") { self.isSubmitEnabled }
        }
    }

    @Test("A card typed on a page pays once, the order has the outcome before the page, and the card is nowhere else")
    func card() async throws {
        let kiosk = try await Kiosk()
        var seen = kiosk.host.messages.makeAsyncIterator()
        try await kiosk.fillCard()
        #expect(kiosk.field("CARD_NUMBER")?["value"] as? String == "424242******4242")
        #expect(kiosk.field("CVV")?["value"] as? String == "")
        // A customer who presses twice.
        let first = await kiosk.page.begin("checkout.submit")
        _ = try await kiosk.page.request("checkout.submit")
        try await kiosk.wait(for: "success")
        #expect(await kiosk.orders.told == ["approved 12.34"])
        #expect(await kiosk.orders.payments.map(\.lastFour) == ["4242"])
        #expect(await kiosk.service.payments.count == 1)
        #expect(!kiosk.page.responses(to: first).isEmpty)
        // Masked for everybody but the form.
        var observed: [BridgeMessage] = []
        while observed.last?.payload.action != "checkout.submit", let message = await seen.next() {
            observed.append(message)
        }
        let entered = observed.filter { $0.payload.action == "checkout.update" }
        #expect(entered.count == 3 && entered.allSatisfy { $0 == $0.masked })
        let everything = "\(kiosk.page.texts)\(kiosk.host.receivedMessages)\(kiosk.host.pendingRequests)\(observed)"
        #expect(!everything.contains(Self.number) && !everything.contains(Self.code))
    }

    @Test("Every text is in the page's language, which can change with a form half filled in")
    func languages() async throws {
        let kiosk = try await Kiosk()
        try await kiosk.select("card")
        #expect(kiosk.field("CARD_NUMBER")?["label"] as? String == "Card number")
        try await kiosk.enter("CARD_NUMBER", Self.number)
        _ = try await kiosk.page.request("checkout.locale", #"{"locale":"de-DE"}"#)
        try await kiosk.page.wait("German") { kiosk.field("CARD_NUMBER")?["label"] as? String == "Kartennummer" }
        #expect(kiosk.field("CARD_NUMBER")?["value"] as? String == "424242******4242")
        let amount = kiosk.state["amount"] as? [String: Any]
        #expect((amount?["text"] as? String)?.hasPrefix("12,34") == true)
    }

    @Test("A page that goes away ends the checkout; one that comes during a payment is shown its outcome")
    func pages() async throws {
        let (asked, ask) = AsyncStream<Void>.makeStream()
        let goOn = Mutex(false)
        let kiosk = try await Kiosk { service in
            await service.setDecisions { _ in
                ask.yield()
                while !goOn.withLock({ $0 }) { usleep(1000) }
                return .approve
            }
        }
        try await kiosk.select("card")
        try await kiosk.enter("CARD_NUMBER", Self.number)
        kiosk.page.leave()
        try kiosk.newPage()
        try await kiosk.page.wait("snapshot") { !kiosk.page.events("host.ready").isEmpty }
        // The next customer begins anew, and pays.
        try await kiosk.page.wait("end") { kiosk.host.capabilities["checkout.start"]?.isSupported == true }
        try await eventuallyFree(kiosk)
        try await kiosk.fillCard()
        _ = try await kiosk.page.request("checkout.submit")
        for await _ in asked { break }
        kiosk.page.leave()
        try kiosk.newPage()
        goOn.withLock { $0 = true }
        try await kiosk.page.wait("outcome") {
            kiosk.page.events("checkout.state").contains { $0["route"] as? String == "success" }
        }
        #expect(await kiosk.orders.told == ["approved 12.34"])
    }

    /// Waits until the last page's checkout is gone.
    private func eventuallyFree(_ kiosk: Kiosk) async throws {
        try await wait(for: "end of the checkout") {
            let probe = try await kiosk.page.request("checkout.leave", #"{"field":"CVV"}"#)
            return probe.code == "INVALID_REQUEST"
        }
    }

    @Test("A payment that nobody answers for is unknown to the order, and asking again tells what became of it")
    func unknown() async throws {
        let kiosk = try await Kiosk { service in
            // The payment, and each question about it.
            await service.failNext(.pay, afterEffect: true)
            for _ in 0..<3 { await service.failNext(.result, afterEffect: true) }
        }
        try await kiosk.fillCard()
        _ = try await kiosk.page.request("checkout.submit")
        try await kiosk.wait(for: "failure")
        #expect(await kiosk.orders.told == ["unknown"])
        #expect(kiosk.state["recovery"] as? String == "retry")
        // A customer who asks again until there is an answer.
        try await wait(for: "success") {
            _ = try await kiosk.page.request("checkout.retry")
            return kiosk.route == "success"
        }
        #expect(await kiosk.orders.told.last == "approved 12.34")
        #expect(await kiosk.orders.told.dropLast().allSatisfy { $0 == "unknown" })
        #expect(await kiosk.service.payments.count == 1)
    }

    @Test("An order that was paid elsewhere, is being paid, or has another price by now is not paid")
    func paidElsewhere() async throws {
        let kiosk = try await Kiosk()
        let till = Till()
        kiosk.host.register(till)
        try await kiosk.fillCard()
        till.isBusy = true
        #expect(try await kiosk.page.request("checkout.submit").code == "BUSY")
        till.isBusy = false
        let order = try #require(await kiosk.orders.order)
        for change: (inout KioskOrder) -> Void in [
            { $0.status = .paid }, { $0.status = .unknown }, { $0.total = 1 },
        ] {
            var changed = order
            change(&changed)
            await kiosk.orders.setOrder(changed)
            #expect(try await kiosk.page.request("checkout.submit").code == "BUSY")
        }
        #expect(await kiosk.service.payments.isEmpty)
        await kiosk.orders.setOrder(order)
        #expect(try await kiosk.page.request("checkout.submit").status == "success")
        try await kiosk.wait(for: "success")
        #expect(await kiosk.service.payments.count == 1)
    }

    @Test("While a checkout pays, and until the order knows of it, nothing else takes a payment")
    func nothingElse() async throws {
        let (asked, ask) = AsyncStream<Void>.makeStream()
        let goOn = Mutex(false)
        let kiosk = try await Kiosk { service in
            await service.setDecisions { _ in
                ask.yield()
                while !goOn.withLock({ $0 }) { usleep(1000) }
                return .approve
            }
        }
        let till = Till()
        kiosk.host.register(till)
        #expect(await !kiosk.host.isTakingPayment(besides: till))
        try await kiosk.fillCard()
        #expect(await !kiosk.host.isTakingPayment(besides: till))
        _ = try await kiosk.page.request("checkout.submit")
        for await _ in asked { break }
        #expect(await kiosk.host.isTakingPayment(besides: till))
        goOn.withLock { $0 = true }
        while await kiosk.host.isTakingPayment(besides: till) { await Task.yield() }
        #expect(await kiosk.orders.told == ["approved 12.34"])
    }

    @Test(
        "What a page may not ask is refused, and nothing is begun",
        arguments: [
            ("checkout.select", #"{"method":"card"}"#), ("checkout.update", #"{"field":"CVV","value":"1"}"#),
            ("checkout.submit", "{}"), ("checkout.search", "{}"), ("checkout.cancel", "{}"),
        ])
    func beforeTheStart(_ action: String, _ data: String) async throws {
        let kiosk = try await Kiosk()
        #expect(try await kiosk.page.request(action, data).code == "INVALID_REQUEST")
        await kiosk.orders.setOrder(nil)
        #expect(try await kiosk.page.request("checkout.start").code == "INVALID_REQUEST")
    }

    @Test(
        "Lies about what is shown are refused",
        arguments: [
            ("checkout.select", #"{"method":"cash"}"#), ("checkout.select", #"{"method":1}"#),
            ("checkout.update", #"{"field":"VOUCHER_CODE","value":"ABCDEF"}"#),
            ("checkout.update", #"{"field":"CARD_NUMBER"}"#), ("checkout.leave", #"{"field":"cvv"}"#),
            ("checkout.start", "{}"),
        ])
    func lies(_ action: String, _ data: String) async throws {
        let kiosk = try await Kiosk()
        try await kiosk.select("card")
        let code = try await kiosk.page.request(action, data).code
        #expect(code == (action == "checkout.start" ? "BUSY" : "INVALID_REQUEST"))
        #expect(kiosk.route == "method")
    }

    @Test(
        "All that a page is told in a checkout is as the schema says",
        .enabled(if: schemaJudge != nil, "jsonschema is not installed from PyPI"))
    func schema() async throws {
        let kiosk = try await Kiosk()
        try await kiosk.select("voucher")
        try await kiosk.enter("VOUCHER_CODE", "A")
        _ = try await kiosk.page.request("checkout.back")
        try await kiosk.wait(for: "methodSelection")
        _ = try await kiosk.page.request("checkout.select", #"{"method":"card"}"#)
        try await kiosk.enter("CARD_NUMBER", "1")
        try await kiosk.enter("CARD_NUMBER", Self.number)
        try await kiosk.enter("EXPIRY_DATE", "12/49")
        try await kiosk.enter("CVV", Self.code)
        _ = try await kiosk.page.request("checkout.submit")
        try await kiosk.wait(for: "success")
        let texts = try JSONSerialization.data(withJSONObject: kiosk.page.texts)
        let file = FileManager.default.temporaryDirectory.appending(path: "checkout-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try texts.write(to: file)
        let outcome = try await Program.run(
            ["/usr/bin/python3", "-c", try #require(schemaJudge), file.path], timeout: .seconds(60))
        #expect(outcome.status == 0 && outcome.output.contains("messages are valid"), "\(outcome)")
    }
}

/// A program that holds messages of a host against the published schema; nil without jsonschema.
private let schemaJudge: String? = {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized.path
    guard FileManager.default.fileExists(atPath: root + "/.build/jsonschema") else { return nil }
    return """
        import json, sys
        sys.path.insert(0, "\(root)/.build/jsonschema")
        import jsonschema
        schema = json.load(open("\(root)/Sources/KioskBridge/Documentation.docc/Resources/bridge.schema.json"))
        judge = jsonschema.Draft202012Validator({"$ref": "#/$defs/fromHost", "$defs": schema["$defs"]})
        messages = json.load(open(sys.argv[1]))
        for message in messages:
            judge.validate(message)
        print(len(messages), "messages are valid")
        """
}()
