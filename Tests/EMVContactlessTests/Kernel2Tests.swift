import EMVContactless
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Kernel 2 in EMV mode from GET PROCESSING OPTIONS to GENERATE AC (EMV Contactless Book C-2, 6).
@Suite struct Kernel2Tests {
    /// A card without CDA goes online: "offline data authentication was not performed" is in the action codes.
    @Test func mchipGoesOnline() throws {
        let card = MChipCard.unsigned
        let run = try Kernel2Bench().run(try card.read + [MChipCard.cryptogram("80")])
        #expect(
            run.commands == [
                joined("80A8000003", "830122", "00"), "00B2011400", "00B2011C00", "00B2021C00",
                // ARQC without CDA; TVR: ODA not performed, relay resistance not performed; CVM results: no CVM.
                joined(
                    "80AE80001A", "000000001234", "0276", "8000000001", "0978", "261121", "00", "11223344", "1F0302",
                    "00"),
            ])
        #expect(run.outcome.kind == .onlineRequest && run.outcome.start == nil)
        #expect(run.outcome.cvm == Outcome.CVM.none && !run.outcome.receipt && run.outcome.isAuthentic == nil)
        expectEqual(run.outcome.userInterfaceRequest?.message, .authorizing)
        expectEqual(run.outcome.userInterfaceRequest?.status, .notReady)
        expectEqual(run.requests.map(\.message), [.clearDisplay])
        expectEqual(run.requests.map(\.status), [.cardReadSuccessfully])
        expectEqual(run.error, "0000000000FF")
    }

    /// The virtual card, which was written apart from the kernel, at the test terminal.
    @Test(
        arguments: [
            // Amount, CVM, P1 of GENERATE AC
            (12_34, Outcome.CVM.none), (49_99, Outcome.CVM.none), (50_00, .onlinePIN),
        ] as [(UInt64, Outcome.CVM)])
    func mastercardGoesOnline(_ amount: UInt64, _ cvm: Outcome.CVM) throws {
        let card = try #require(VirtualCards.named("mastercard"))
        var entryPoint = EntryPoint(configuration: .test, keys: .published)
        var event = EntryPoint.Event.startA(try purchase(amount))
        var instructions: [String] = []
        while true {
            switch entryPoint.next(event).action {
            case .activateField: event = .cardPresent
            case .exchange, .switchFieldOff:
                Issue.record("neither is needed")
                return
            case .send(let command):
                instructions.append([command.ins].hex)
                let response = try #require(card.exchange(command.bytes))
                event = .response(try ResponseAPDU(response), after: .milliseconds(5))
            case .finish(let final):
                #expect(final.kernel == 2 && final.outcome.kind == .onlineRequest, "\(final.outcome.reason)")
                expectEqual(final.outcome.cvm, cvm)
                expectEqual(instructions, ["A4", "A4", "A8", "B2", "AE"])
                return
            }
        }
    }
}
