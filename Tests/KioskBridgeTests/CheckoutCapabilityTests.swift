import ComposableCheckout
import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
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
        /// Nil where no customer is challenged.
        let bank: Bank?
        private(set) var page: Page

        /// - Parameters:
        ///   - configure: sets the service's answers.
        ///   - amount: of the service's session.
        ///   - methods: fetches the methods; nil: the service.
        ///   - challenge: the address at which the bank challenges each customer; nil: at none.
        ///   - opening: takes the order at its price, before a checkout is opened.
        init(
            _ configure: (InMemoryCheckoutRepository) async -> Void = { _ in }, amount: Decimal = 12.34,
            methods: (any PaymentMethodRepository)? = nil, pricing: PaymentCapability.Pricing? = nil,
            passes: PassCapability? = nil, challenge: String? = nil, qrCode: CheckoutCapability.QRCodeDrawing? = nil,
            opening: @escaping @Sendable (KioskOrder) async throws -> Void = { _ in }
        ) async throws {
            service = try InMemoryCheckoutRepository(session: "s", amount: amount, currency: "EUR")
            await configure(service)
            let service = service
            let bank = challenge.map { Bank(service: service, page: $0) }
            self.bank = bank
            if bank != nil { await service.setDecisions { _ in .challenge } }
            if let passes { host.register(passes) }
            host.register(
                CheckoutCapability(orders: orders, pricing: pricing, passes: passes, qrCode: qrCode) { order, locale in
                    try await opening(order)
                    return try await CompositionRoot(
                        configurations: service, methods: methods ?? service, tokens: service,
                        payments: bank ?? service,
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

        /// What the customer may ask for, besides what a form or a selection has.
        var actions: [String] {
            (state["actions"] as? [[String: Any]] ?? []).compactMap { $0["action"] as? String }
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

    /// A bank that challenges each customer at an address of the test's, which is met when the test says so.
    private final class Bank: PaymentRepository {
        let service: InMemoryCheckoutRepository
        let page: String
        private let (met, meet) = AsyncStream<Void>.makeStream()

        init(service: InMemoryCheckoutRepository, page: String) { (self.service, self.page) = (service, page) }

        func confirm() { meet.yield() }

        func pay(_ request: PaymentRequest, idempotencyKey: String) async throws(CheckoutError)
            -> ComposableCheckout.PaymentResult
        {
            var result = try await service.pay(request, idempotencyKey: idempotencyKey)
            result.challenge = URL(string: page)
            return result
        }

        func result(for idempotencyKey: String) async throws(CheckoutError) -> ComposableCheckout.PaymentResult? {
            try await service.result(for: idempotencyKey)
        }

        func completeChallenge(of paymentID: String) async throws(CheckoutError) -> ComposableCheckout.PaymentResult {
            for await _ in met { break }
            await service.answerChallenge(of: paymentID, passed: true)
            return try await service.completeChallenge(of: paymentID)
        }
    }

    /// A payment service that takes its time to decide.
    private final class Decision: Sendable {
        private let (asked, ask) = AsyncStream<Void>.makeStream()
        private let approval = DispatchSemaphore(value: 0)

        var decide: @Sendable (PaymentRequest) -> InMemoryCheckoutRepository.Decision {
            { _ in
                self.ask.yield()
                self.approval.wait()
                return .approve
            }
        }

        /// Waits until it is asked.
        func isAsked() async { for await _ in asked { break } }

        func approve() { approval.signal() }
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
        #expect(await kiosk.orders.payments.map(\.hasReceipt) == [true])
        #expect(kiosk.state["receipt"] as? Bool == true)
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

    @Test(
        "The bank's challenge has a code for the customer's phone: of a page of the web that a code holds, and where there are codes",
        arguments: [
            ("https://bank.example/challenges/1?id=%C3%A9", true, true),
            ("http://127.0.0.1:8080/challenges/1", true, true), ("HTTPS://bank.example/", true, true),
            ("https://bank.example/" + String(repeating: "x", count: 80), true, false),
            ("https://bank.example/challenges/1", false, false), ("javascript:alert(1)", true, false),
            ("data:text/html,pay", true, false), ("tel:+4930901820", true, false), ("otpauth://totp/bank", true, false),
            ("//bank.example/challenges/1", true, false),
        ])
    func challenge(_ address: String, _ hasCodes: Bool, _ isCoded: Bool) async throws {
        // A row for each byte of the address, which the test reads back.
        let drawing: CheckoutCapability.QRCodeDrawing = { text in
            guard text.utf8.count < 80 else { return nil }
            return text.utf8.map { byte in (0..<8).map { byte << $0 & 0x80 != 0 } }
        }
        let kiosk = try await Kiosk(challenge: address, qrCode: hasCodes ? drawing : nil)
        try await kiosk.fillCard()
        _ = try await kiosk.page.request("checkout.submit")
        try await kiosk.wait(for: "challenge")
        #expect(kiosk.state["page"] as? String == address)
        let code = kiosk.state["code"] as? [String: Any]
        let rows = code?["modules"] as? [String]
        let read = rows.map { String(decoding: $0.compactMap { UInt8($0, radix: 2) }, as: UTF8.self) }
        #expect(read == (isCoded ? address : nil))
        #expect(code?["label"] as? String == (isCoded ? "QR code of the bank’s address" : nil))
        #expect((kiosk.state["hint"] as? String)?.hasPrefix("Scan the code") == (isCoded ? true : nil))
        let said = (kiosk.state["said"] as? [[String: Any]] ?? []).compactMap { $0["key"] as? String }
        #expect(said.contains("checkout.challenge-code") == isCoded)
        _ = try await kiosk.page.request("checkout.locale", #"{"locale":"fr-FR"}"#)
        try await kiosk.page.wait("French") { (kiosk.state["text"] as? String)?.contains("banque") == true }
        #expect((kiosk.state["code"] as? [String: Any])?["modules"] as? [String] == rows)
        kiosk.bank?.confirm()
        try await kiosk.wait(for: "success")
        #expect(kiosk.state["code"] == nil && kiosk.state["page"] == nil && kiosk.state["hint"] == nil)
    }

    @Test("A page that goes away ends the checkout; one that comes during a payment is shown its outcome")
    func pages() async throws {
        let decision = Decision()
        let kiosk = try await Kiosk { await $0.setDecisions(decision.decide) }
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
        await decision.isAsked()
        kiosk.page.leave()
        try kiosk.newPage()
        decision.approve()
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
        let decision = Decision()
        let kiosk = try await Kiosk { await $0.setDecisions(decision.decide) }
        let till = Till()
        kiosk.host.register(till)
        #expect(await !kiosk.host.isTakingPayment(besides: till))
        try await kiosk.fillCard()
        #expect(await !kiosk.host.isTakingPayment(besides: till))
        _ = try await kiosk.page.request("checkout.submit")
        await decision.isAsked()
        #expect(await kiosk.host.isTakingPayment(besides: till))
        decision.approve()
        while await kiosk.host.isTakingPayment(besides: till) { await Task.yield() }
        #expect(await kiosk.orders.told == ["approved 12.34"])
    }

    @Test("Who has shown a loyalty card pays a member's price, and the next customer does not")
    func member() async throws {
        let passes = try KioskBench.passes()
        let bench = try await KioskBench {
            $0.passes = passes
            $0.now = { Date() }
        }
        let opened = Mutex<[Decimal]>([])
        let pricing: PaymentCapability.Pricing = { order, passes in
            guard let member = passes?.maskedNumber else { return KioskPrice(order.total) }
            return KioskPrice(order.total - 1.23, member: member)
        }
        let kiosk = try await Kiosk(
            amount: 11.11, pricing: pricing, passes: PassCapability(bench.service),
            opening: { order in opened.withLock { $0.append(order.total) } })
        try bench.insert("phone-apple")
        let read = try await kiosk.page.request("pass.read")
        #expect(read.status == "success", "\(read)")
        try await kiosk.fillCard()
        let loyalty = try #require(kiosk.state["loyalty"] as? [String: Any])
        #expect((loyalty["saved"] as? [String: Any])?["amount"] as? Int == 123)
        #expect((kiosk.state["amount"] as? [String: Any])?["amount"] as? Int == 1111)
        #expect(kiosk.state["sums"] as? [String] == ["Total: €11.11"])
        _ = try await kiosk.page.request("checkout.submit")
        try await kiosk.wait(for: "success")
        #expect(await kiosk.orders.told == ["approved 11.11"])
        kiosk.page.leave()
        try kiosk.newPage()
        try await eventuallyFree(kiosk)
        let first = try #require(await kiosk.orders.order)
        var next = first
        next.status = .open
        await kiosk.orders.setOrder(next)
        #expect(try await kiosk.page.request("checkout.start").status == "success")
        // Until then the page may have the end of the one before.
        try await kiosk.page.wait("methods") { !kiosk.methods.isEmpty }
        #expect(opened.withLock { $0 } == [11.11, 12.34])
        #expect(kiosk.state["loyalty"] == nil)
    }

    @Test("A page that goes away while its checkout is opened has canceled it, and leaves none behind")
    func leavesEarly() async throws {
        let (isOpening, opening) = AsyncStream<Void>.makeStream()
        let answers = Mutex<[String]>([])
        let capability = CheckoutCapability(orders: Orders()) { _, _ in
            opening.yield()
            try await waitUntilCanceled()
            throw CancellationError()
        }
        let request = BridgeMessage(
            correlationId: "r", type: .request, payload: BridgePayload(action: "checkout.start", data: [:]))
        let start = Task {
            await capability.handle(
                request, BridgeResponder("r") { _, _, error in answers.withLock { $0.append(error?.code ?? "") } })
        }
        for await _ in isOpening { break }
        start.cancel()
        await start.value
        #expect(answers.withLock { $0 } == ["CANCELLED"])
        #expect(capability.snapshot == ["checkout": .null])
    }

    @Test("Methods that could not be fetched are fetched again, and a customer can take another one after a failure")
    func retries() async throws {
        let flaky = FlakyMethods()
        let kiosk = try await Kiosk({ await $0.setDecisions { _ in .decline("no") } }, methods: flaky)
        #expect(try await kiosk.page.request("checkout.start").status == "success")
        var selection: [String: Any] { kiosk.state["selection"] as? [String: Any] ?? [:] }
        try await kiosk.page.wait("error") { selection["status"] as? String == "error" }
        #expect(kiosk.actions == ["checkout.retry", "checkout.cancel"])
        _ = try await kiosk.page.request("checkout.retry")
        try await kiosk.page.wait("methods") { !kiosk.methods.isEmpty }
        #expect(kiosk.actions == ["checkout.cancel"])
        _ = try await kiosk.page.request("checkout.select", #"{"method":"voucher"}"#)
        try await kiosk.page.wait("form") { kiosk.state["form"] != nil }
        #expect(kiosk.actions == ["checkout.back", "checkout.cancel"])
        try await kiosk.enter("VOUCHER_CODE", "ABCD-1")
        _ = try await kiosk.page.request("checkout.submit")
        try await kiosk.wait(for: "failure")
        #expect(kiosk.actions == ["checkout.retry", "checkout.back", "checkout.cancel"])
        _ = try await kiosk.page.request("checkout.back")
        try await kiosk.page.wait("methods") { !kiosk.methods.isEmpty }
        _ = try await kiosk.page.request("checkout.select", #"{"method":"card"}"#)
        try await kiosk.page.wait("card") { kiosk.field("CARD_NUMBER") != nil }
    }

    /// A service whose first answer is lost.
    private actor FlakyMethods: PaymentMethodRepository {
        private var hasFailed = false

        func paymentMethods() async throws(CheckoutError) -> [PaymentMethod] {
            guard hasFailed else {
                hasFailed = true
                throw .transport(reason: "a test's failure", mayHaveHappened: false)
            }
            return [PaymentMethod.Kind.card, .voucher].map { PaymentMethod(id: $0.rawValue, kind: $0) }
        }
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
        let kiosk = try await Kiosk(
            challenge: "https://bank.example/challenges/1",
            qrCode: { _ in [[Bool]](repeating: [Bool](repeating: true, count: 21), count: 21) })
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
        try await kiosk.wait(for: "challenge")
        kiosk.bank?.confirm()
        try await kiosk.wait(for: "success")
        // Whatever is to be said can be said.
        let spoken = try SpeechTexts(languages: ["en"], rows: [:]).withCheckout()
        let said = kiosk.page.events("checkout.state").flatMap { $0["said"] as? [[String: Any]] ?? [] }
        let keys = try said.map { one in
            let key = try #require(one["key"] as? String)
            #expect(try !spoken.text(key, "en", one["values"] as? [String: String] ?? [:]).isEmpty)
            return key
        }
        #expect(
            Set(keys).isSuperset(of: [
                "selection.title", "method.card", "checkout.total", "checkout.challenge-code", "checkout.success",
            ]))
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
