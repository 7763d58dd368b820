import CardReceipts
import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import TestSupport
import Testing
import Waiting

@testable import KioskBridge

@MainActor @Suite(.timeLimit(.minutes(5))) struct PaymentTests {
    private struct Kiosk {
        let bench: KioskBench
        let orders = Orders()
        let host: BridgeHost
        let page: Page

        @MainActor init(
            _ script: [ScriptedService.Answer] = [], pricing: PaymentCapability.Pricing? = nil
        ) async throws {
            let passes = try KioskBench.passes()
            bench = try await KioskBench(script: script) {
                if pricing != nil {
                    $0.passes = passes
                    $0.now = { Date() }
                }
            }
            let host = BridgeHost(hostVersion: "1")
            host.register(PaymentCapability(bench.service, orders: orders, pricing: pricing, canPrintReceipts: true))
            page = try #require(Page(host))
            self.host = host
            try await page.wait("reader") { host.capabilities["payment.start"]?.isSupported == true }
        }

        @MainActor var states: [String] { page.events("payment.state").compactMap { $0["state"] as? String } }
    }

    @Test("A payment: the page names the order, and is told each state and the outcome after the order knows it")
    func approved() async throws {
        let kiosk = try await Kiosk()
        let order = try await kiosk.page.request("order.get", #"{"locale":"de_DE"}"#).data["order"] as? [String: Any]
        let total = try #require(order?["total"] as? [String: Any])
        #expect(total["amount"] as? Int == 1234 && total["exponent"] as? Int == 2)
        #expect((total["text"] as? String)?.hasPrefix("12,34") == true)
        try kiosk.bench.insert()
        let answer = try await kiosk.page.request("payment.start", #"{"order":"1001","amount":1}"#)
        #expect(answer.data["outcome"] as? String == "approved")
        #expect((answer.data["amount"] as? [String: Any])?["amount"] as? Int == 1234)
        #expect(await kiosk.bench.psp.calls.map(\.amount) == [12.34])
        #expect(await kiosk.orders.told == ["approved 12.34"])
        #expect(kiosk.states.last == "approved" && kiosk.states.contains("removeCard"), "\(kiosk.states)")
        // What a receipt must say: the application's name and identifier, the last four digits, the response code.
        let charged = try #require(await kiosk.orders.payments.first)
        let receipt = try ReceiptContent(
            merchant: .init(name: "Museum", address: ["Street 1"], country: "DE", merchantID: "1", terminalID: "2"),
            order: ReceiptOrder(
                id: "1001", lineItems: [.init(title: "Ticket", amount: 1234)], totals: .init(subtotal: 1234)),
            payment: charged, date: Date(timeIntervalSince1970: 0))
        let text = TextRenderer().render(ReceiptDocument(receipt, language: .english))
        for part in ["12.34", "Visa", "0010", "A0000000031010", "AMOUNT PAID"] {
            #expect(text.uppercased().contains(part.uppercased()), "\(part) in \(text)")
        }
        #expect(PaymentResult(id: "1", status: .approved, lastFour: "4761739001010010").lastFour == nil)
        #expect(charged.hasReceipt)
        // No more of the card than that it paid.
        #expect(!"\(kiosk.page.texts)".contains("4761"))
        let again = try await kiosk.page.request("payment.start", #"{"order":"1001"}"#)
        #expect(again.code == "ALREADY_PAID" && again.isRecoverable == false)
        kiosk.page.leave()
        let next = try #require(Page(kiosk.host))
        try await next.wait("host.ready") { !next.events("host.ready").isEmpty }
        let snapshot = next.events("host.ready").first?["snapshot"] as? [String: Any]
        let payment = try #require(snapshot?["payment"] as? [String: Any])
        #expect(payment["state"] as? String == "approved" && payment["order"] as? String == "1001")
        #expect(payment["outcome"] as? String == "approved")
        #expect((payment["amount"] as? [String: Any])?["amount"] as? Int == 1234)
        // The customer has seen it.
        await next.send(
            #"{"v":1,"type":"event","correlationId":"e","payload":{"action":"journey.complete"}}"#)
        try await next.wait("end of the journey") { kiosk.host.receivedMessages.last?.type == .event }
        next.leave()
        var third = try #require(Page(kiosk.host))
        func snapshotPayment() async throws -> Any? {
            try await third.wait("host.ready") { !third.events("host.ready").isEmpty }
            return (third.events("host.ready").first?["snapshot"] as? [String: Any])?["payment"]
        }
        while try await !(snapshotPayment() is NSNull) {
            third.leave()
            third = try #require(Page(kiosk.host))
        }
    }

    @Test("A declined payment can be tried again, and a refused one too")
    func declined() async throws {
        let kiosk = try await Kiosk([.declined, .refused])
        try kiosk.bench.insert()
        let declined = try await kiosk.page.request("payment.start", #"{"order":"1001"}"#)
        #expect(declined.data["outcome"] as? String == "declined")
        #expect(declined.data["message"] as? String == "Insufficient funds")
        try kiosk.bench.insert()
        #expect(try await kiosk.page.request("payment.start", #"{"order":"1001"}"#).code == "NOT_PAID")
        try kiosk.bench.insert()
        let third = try await kiosk.page.request("payment.start", #"{"order":"1001"}"#)
        #expect(third.data["outcome"] as? String == "approved")
        #expect(
            await kiosk.orders.told == ["declined: Insufficient funds", "cancelled", "approved 12.34"])
    }

    @Test("A payment whose answer is lost is unknown, and the order is not open for another")
    func unknown() async throws {
        let kiosk = try await Kiosk([.lost, .lost, .lost])
        await kiosk.bench.psp.setLookups(false)
        try kiosk.bench.insert()
        let answer = try await kiosk.page.request("payment.start", #"{"order":"1001"}"#)
        #expect(answer.data["outcome"] as? String == "unknown", "\(answer)")
        guard case .unknown? = await kiosk.orders.outcomes.first else {
            Issue.record("\(await kiosk.orders.outcomes)")
            return
        }
        #expect(try await kiosk.page.request("payment.start", #"{"order":"1001"}"#).code == "OUTCOME_UNKNOWN")
        #expect(kiosk.states.last == "unknown")
    }

    @Test("What a page may not ask: another order, no order, a second payment")
    func refused() async throws {
        let kiosk = try await Kiosk()
        for data in [#"{"order":"1002"}"#, "{}", #"{"order":1001}"#] {
            #expect(try await kiosk.page.request("payment.start", data).code == "INVALID_REQUEST")
        }
        let till = Till()
        kiosk.host.register(till)
        till.isBusy = true
        #expect(try await kiosk.page.request("payment.start", #"{"order":"1001"}"#).code == "BUSY")
        till.isBusy = false
        let first = await kiosk.page.begin("payment.start", #"{"order":"1001"}"#)
        #expect(try await kiosk.page.request("payment.start", #"{"order":"1001"}"#).code == "BUSY")
        try await kiosk.page.wait("present card") { kiosk.states.contains("presentCard") }
        #expect(try await kiosk.page.request("payment.cancel").data["cancelled"] as? Bool == true)
        try await kiosk.page.wait("answer") { kiosk.page.responses(to: first).first?.status == "cancelled" }
        #expect(kiosk.states.last == "cancelled")
        #expect(try await kiosk.page.request("payment.cancel").data["cancelled"] as? Bool == false)
        await kiosk.orders.setOrder(nil)
        #expect(try await kiosk.page.request("payment.start", #"{"order":"1001"}"#).code == "INVALID_REQUEST")
        #expect(try await kiosk.page.request("order.get").data["order"] is NSNull)
        #expect(await kiosk.bench.psp.calls.isEmpty)
    }

    @Test(
        "A page that goes away ends the wait for a card; a payment that is being decided goes on, and the next page sees it"
    )
    func pageGone() async throws {
        let kiosk = try await Kiosk([.held])
        _ = await kiosk.page.begin("payment.start", #"{"order":"1001"}"#)
        try await kiosk.page.wait("present card") { kiosk.states.contains("presentCard") }
        kiosk.page.leave()
        let second = try #require(Page(kiosk.host))
        var answer = try await second.request("payment.cancel")
        while await kiosk.orders.outcomes.isEmpty { answer = try await second.request("payment.cancel") }
        #expect(answer.status == "success")
        #expect(await kiosk.orders.outcomes == [.cancelled])

        try kiosk.bench.insert()
        _ = await second.begin("payment.start", #"{"order":"1001"}"#)
        try await wait(for: "the payment service's call") { await !kiosk.bench.psp.calls.isEmpty }
        second.leave()
        let third = try #require(Page(kiosk.host))
        try await third.wait("host.ready") { !third.events("host.ready").isEmpty }
        let snapshot = third.events("host.ready").first?["snapshot"] as? [String: Any]
        let payment = try #require(snapshot?["payment"] as? [String: Any])
        #expect(payment["order"] as? String == "1001" && payment["outcome"] == nil, "\(payment)")
        await kiosk.bench.psp.release()
        try await third.wait("approval") { third.events("payment.state").last?["state"] as? String == "approved" }
        #expect(await kiosk.orders.told == ["cancelled", "approved 12.34"])
        #expect(await kiosk.bench.psp.calls.count == 1)
    }

    @Test("Pass, discount and payment in one tap: the page sees the member's last characters and what was saved")
    func loyalty() async throws {
        let kiosk = try await Kiosk { order, passes in
            guard let member = passes?.maskedNumber else { return KioskPrice(order.total) }
            return KioskPrice(10, member: member)
        }
        kiosk.bench.insert(try KioskBench.phone())
        let answer = try await kiosk.page.request("payment.start", #"{"order":"1001"}"#)
        #expect(answer.data["outcome"] as? String == "approved", "\(answer)")
        #expect((answer.data["amount"] as? [String: Any])?["amount"] as? Int == 1000)
        let loyalty = try #require(answer.data["loyalty"] as? [String: Any])
        #expect(loyalty["member"] as? String == "****0001")
        #expect((loyalty["saved"] as? [String: Any])?["amount"] as? Int == 234)
        #expect(await kiosk.bench.psp.calls.map(\.amount) == [10])
        #expect(await kiosk.orders.told == ["approved 10"])
    }

    @Test("pass.read gives the last characters of a pass and its status")
    func passes() async throws {
        let kiosk = try await Kiosk { order, _ in KioskPrice(order.total) }
        kiosk.host.register(PassCapability(kiosk.bench.service))
        kiosk.bench.insert(try KioskBench.phone())
        let answer = try await kiosk.page.request("pass.read")
        let pass = try #require((answer.data["passes"] as? [[String: Any]])?.first, "\(answer)")
        #expect(pass["member"] as? String == "****0001" && pass["status"] as? String == "success")
        #expect(!"\(kiosk.page.texts)".contains("MEMBER"))
    }

    @Test("Nobody shows a phone: TIMEOUT, and the reader is free for a payment")
    func noPhone() async throws {
        let kiosk = try await Kiosk { order, _ in KioskPrice(order.total) }
        kiosk.host.register(PassCapability(kiosk.bench.service, limit: .milliseconds(200)))
        #expect(try await kiosk.page.request("pass.read").code == "TIMEOUT")
        try kiosk.bench.insert()
        let answer = try await kiosk.page.request("payment.start", #"{"order":"1001"}"#)
        #expect(answer.data["outcome"] as? String == "approved", "\(answer)")
    }

    @Test("A typed card has a receipt, and nothing that is not approved or not complete")
    func typed() throws {
        func result(
            _ status: PaymentResult.Status = .approved, amount: Decimal? = 12.84, lastFour: String? = "0005",
            brand: CardBrand? = .amex
        ) -> PaymentResult {
            PaymentResult(
                id: "1", status: status, amount: amount, currency: "EUR", lastFour: lastFour, keyedBrand: brand,
                surcharge: 0.5)
        }
        func receipt(_ payment: PaymentResult) throws -> ReceiptContent {
            try ReceiptContent(
                merchant: .init(name: "Museum", address: ["Street 1"], country: "DE", merchantID: "1", terminalID: "2"),
                order: ReceiptOrder(
                    id: "1001", lineItems: [.init(title: "Ticket", amount: 1234)], totals: .init(subtotal: 1234)),
                payment: payment, date: Date(timeIntervalSince1970: 0))
        }
        #expect(result().hasReceipt)
        #expect(try receipt(result()).parameters.card.entryMode == .keyed)
        let others = [
            result(.declined), result(amount: nil), result(lastFour: nil), result(brand: nil), result(brand: .unknown),
        ]
        for payment in others {
            #expect(!payment.hasReceipt)
            #expect(throws: ReceiptError.self) { try receipt(payment) }
        }
    }

    @Test("A receipt is printed once at a time, and a printer's failure is told")
    func receipt() async throws {
        let host = BridgeHost(hostVersion: "1")
        let paper = Delivery<Void>()
        host.register(
            ReceiptCapability { order, locale in
                if order == "german", locale != "de" { throw CancellationError() }
                if order == "slow" { try await paper.receive() }
                if order == "broken" { throw CancellationError() }
                if order == "unknown" { throw BridgeErrorPayload(.invalidRequest, "no such order") }
            })
        let page = try #require(Page(host))
        #expect(try await page.request("receipt.print", #"{"order":"1001"}"#).data["printed"] as? Bool == true)
        let german = try await page.request("receipt.print", #"{"order":"german","locale":"de"}"#)
        #expect(german.data["printed"] as? Bool == true)
        let slow = await page.begin("receipt.print", #"{"order":"slow"}"#)
        #expect(try await page.request("receipt.print", #"{"order":"1001"}"#).code == "BUSY")
        paper.deliver(.success(()))
        try await page.wait("receipt") { !page.responses(to: slow).isEmpty }
        #expect(try await page.request("receipt.print", #"{"order":"broken"}"#).code == "PRINT_FAILED")
        #expect(try await page.request("receipt.print", #"{"order":"unknown"}"#).code == "INVALID_REQUEST")
        #expect(try await page.request("receipt.print").code == "INVALID_REQUEST")
    }
}
