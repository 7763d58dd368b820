import EMVContactless
import Foundation
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// A kernel that only the public interface was used for, registered from outside.
@Suite struct DomesticKernelTests {
    /// Decodes a terminal for the virtual Mastercard, whose kernel the domestic one replaces.
    private func configuration(_ options: String, _ kernels: Kernels) throws -> ReaderConfiguration.Validated {
        let decoder = JSONDecoder()
        decoder.userInfo[.kernels] = kernels
        let json = """
            { "environment": "test", "terminal": { "9F1A": "0276", "9F35": "22" }, "combinations": [
              { "aid": "A0000000041010", "kernel": "02", "transactionLimit": 10000, "options": \(options) } ] }
            """
        return try decoder.decode(ReaderConfiguration.self, from: Data(json.utf8)).validated(for: kernels)
    }

    private static let kernels: Kernels = [2: DomesticKernel.self]

    /// The virtual card approves up to 25.00 offline (mastercard.card).
    @Test(
        "an amount up to the option's is approved offline, one above goes online, with a receipt from the other option on"
    )
    func optionsDecide() throws {
        let entryPoint = EntryPoint(
            configuration: try configuration(#"{ "onlineAbove": 2000, "receiptAbove": 1000 }"#, Self.kernels))
        for (amount, kind, receipt) in [
            (UInt64(10_00), Outcome.Kind.approved, false), (10_01, .approved, true), (20_01, .onlineRequest, true),
        ] {
            var entryPoint = entryPoint
            let final = try pay(amount, with: &entryPoint)
            expectEqual(final.outcome.kind, kind, "\(final.outcome.reason)")
            #expect(final.outcome.receipt == receipt && final.kernel == 2)
            expectEqual(final.outcome.dataRecord?[0x9F27]?.hex, kind == .approved ? "40" : "80")
            expectEqual(final.outcome.dataRecord?[0x9F02]?.hex, "00000000\(amount)")
        }
    }

    @Test("what the kernel keeps decides about the next transaction, and another terminal has its own memory")
    func memory() throws {
        let entryPoint = EntryPoint(configuration: try configuration(#"{ "onlineAbove": 2000 }"#, Self.kernels))
        var first = entryPoint
        try expectEqual(pay(10_00, with: &first).outcome.kind, .approved)
        expectEqual((first.memory[2] as? DomesticKernel.Memory)?.approvals, 1)
        expectEqual("\(first.memory)", "memory of 1 kernel")
        try expectEqual(pay(10_00, with: &first).outcome.kind, .onlineRequest)
        try expectEqual(pay(10_00, with: &first).outcome.kind, .approved)
        var other = entryPoint
        try expectEqual(pay(10_00, with: &other).outcome.kind, .approved)
    }

    @Test("a closure creates the kernel, once for each activation")
    func factory() throws {
        var kernels = Kernels()
        kernels.register(2) { activation in
            #expect(activation.kernel == 2 && activation.start == .a && !activation.isRestart)
            Self.made.withLock { $0 += 1 }
            return DomesticKernel(activation)
        }
        #expect(kernels.identifiers == [2] && kernels[2] is DomesticKernel.Type)
        var entryPoint = EntryPoint(configuration: try configuration("{}", kernels))
        for activations in 1...2 {
            try expectEqual(pay(10_00, with: &entryPoint).outcome.kind, .onlineRequest)
            expectEqual(Self.made.withLock { $0 }, activations)
        }
    }

    /// The kernels that the closure has created.
    private static let made = Mutex(0)

    @Test(
        "the kernel checks its options, and the door their keys",
        arguments: [
            (#"{ "onlineAbove": 10000 }"#, "combinations[0].options.onlineAbove"),
            (#"{ "onlineabove": 1 }"#, "onlineabove"),
            (#"{ "onlineAbove": "much" }"#, "onlineAbove"),
        ])
    func mistakes(_ options: String, _ complaint: String) {
        let error = #expect(throws: (any Error).self) { try configuration(options, Self.kernels) }
        expectEqual(error.map { "\($0)" }?.contains(complaint), true)
    }

    /// Plays one transaction with a new virtual card.
    private func pay(_ amount: UInt64, with entryPoint: inout EntryPoint) throws -> FinalOutcome {
        let card = try #require(VirtualCards.named("mastercard"))
        var event = EntryPoint.Event.startA(try purchase(amount))
        while true {
            switch entryPoint.next(event).action {
            case .activateField:
                card.reset()
                event = .cardPresent
            case .send(let command):
                let answer = try #require(card.exchange(command.bytes))
                event = .response(try ResponseAPDU(answer), after: .milliseconds(5))
            case .exchange: event = .terminalData(DataRecord())
            case .switchFieldOff: event = .fieldIsOff
            case .finish(let final): return final
            }
        }
    }
}
