import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import TestSupport
import Testing
import Waiting

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PassPaymentTests {
    private let request = PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR")
    private let passes = VASRequest(vasMerchants: [.init(id: KioskBench.passType)])

    /// - Parameter drift: the seconds by which this machine's clock is ahead of the phone's.
    private func bench(_ script: [ScriptedService.Answer] = [], drift: Double = 0) async throws -> KioskBench {
        let passes = try KioskBench.passes()
        return try await KioskBench(script: script) {
            $0.passes = passes
            $0.now = { Date() + drift }
            $0.ownerTime = .milliseconds(300)
        }
    }

    /// Members pay 10.00.
    private static let price: TapToPayService.Pricing = { passes in
        passes?.entries.first?.customerVASData == Data("MEMBER-0001".utf8) ? 10 : 12.34
    }

    @Test("a member's discount is what the card agrees to, the journal has and the payment service charges, in one tap")
    func discount() async throws {
        let bench = try await bench()
        bench.insert(try KioskBench.phone())
        let result = try await bench.service.charge(request, with: passes, price: Self.price)
        #expect(result.amount == 10 && result.payment?.status == .approved)
        #expect(result.passes?.entries.map(\.status) == [.success])
        #expect(await bench.psp.calls.map(\.amount) == [10])
        let card = try #require(result.card)
        // What the card's cryptogram is over.
        let general = try #require(card.generalCardData.flatMap { Data(base64Encoded: $0) })
        #expect(general.range(of: Data([0x9F, 0x02, 0x06, 0, 0, 0, 0, 0x10, 0x00])) != nil)
        #expect(await bench.psp.calls.map(\.key) == [card.id] && bench.entries.isEmpty)
    }

    @Test("the journal has the discounted amount of a payment whose answer is lost")
    func journal() async throws {
        let bench = try await bench([.lost, .lost, .lost])
        bench.insert(try KioskBench.phone())
        await #expect(throws: TapToPayError.self) {
            _ = try await bench.service.charge(request, with: passes, price: Self.price)
        }
        #expect(await bench.service.unsettledPayments.map(\.amount) == [10])
    }

    @Test("a card without passes pays the full price")
    func plainCard() async throws {
        let bench = try await bench()
        try bench.insert()
        let result = try await bench.service.charge(request, with: passes, price: Self.price)
        #expect(result.passes == nil && result.amount == 12.34 && result.payment?.status == .approved)
    }

    @Test("a pass that ends the tap, a phone without a card, and a price of nothing: nobody is charged")
    func noPayment() async throws {
        let bench = try await bench()
        bench.insert(try KioskBench.phone())
        let stopped = try await bench.service.charge(request, with: passes, stopsOnPass: true, price: Self.price)
        #expect(stopped.card == nil && stopped.amount == nil && stopped.passes?.entries.map(\.status) == [.success])
        bench.insert(try KioskBench.phone("screen pass\nwakes at-once"))
        let pass = try await bench.service.charge(request, with: passes, price: Self.price)
        #expect(pass.card == nil && pass.payment == nil && pass.passes?.entries.map(\.status) == [.success])
        bench.insert(try KioskBench.phone())
        let free = try await bench.service.charge(request, with: passes) { _ in 0 }
        #expect(free.card == nil && free.amount == 0 && free.passes?.entries.map(\.status) == [.success])
        #expect(await bench.psp.calls.isEmpty)
    }

    @Test("a pass that is refused is none to the price")
    func refusedPass() async throws {
        let bench = try await bench(drift: 400)
        bench.insert(try KioskBench.phone())
        let result = try await bench.service.charge(request, with: passes) { $0 == nil ? 12.34 : 10 }
        #expect(result.amount == 12.34 && result.passes?.entries.map(\.status) == [.incorrectData])
        #expect(await bench.psp.calls.map(\.amount) == [12.34])
    }

    @Test("a phone that stays locked is neither pass nor payment", arguments: [true, false])
    func staysLocked(stopsOnPass: Bool) async throws {
        let bench = try await bench()
        let phone = try KioskBench.phone("screen closed\nlocked 100")
        bench.device.insert(phone)
        let removal = Task { [device = bench.device, events = bench.reader.events] in
            for await event in events {
                if case .readCompleted = event { return device.remove(phone) }
            }
        }
        defer { removal.cancel() }
        #expect(
            await thrown {
                _ = try await bench.service.charge(request, with: passes, stopsOnPass: stopsOnPass, price: Self.price)
            } == "vasReadFail")
        #expect(await bench.psp.calls.isEmpty && bench.entries.isEmpty)
    }

    @Test("a price that is higher, late or an error ends the tap, and nobody is charged")
    func noPrice() async throws {
        struct Closed: Error {}
        let bench = try await bench()
        func insert() async throws {
            // Of a read that failed the card may still be there.
            _ = await bench.reader.terminal.waitForRemoval {}
            bench.insert(try KioskBench.phone())
        }
        try await insert()
        #expect(
            await thrown { _ = try await bench.service.charge(request, with: passes) { _ in 12.35 } } == "invalidAmount"
        )
        try await insert()
        await #expect(throws: Closed.self) {
            _ = try await bench.service.charge(request, with: passes) { _ in throw Closed() }
        }
        try await insert()
        await #expect(throws: TapToPayError.noPrice) {
            _ = try await bench.service.charge(request, with: passes) { _ in
                try await Time.sleep(for: .seconds(600))
                return 1
            }
        }
        #expect(await bench.psp.calls.isEmpty && bench.entries.isEmpty)
        // And then another one goes through.
        try await insert()
        #expect(try await bench.service.charge(request, with: passes).payment?.status == .approved)
    }
}
