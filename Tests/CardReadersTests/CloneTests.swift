import CardReaders
import SmartCard
import SmartCardPN532
import SmartCardSimulator
import SmartCardUSB
import TestSupport
import Testing
import USBTestSupport

/// Copies of the ACR122U, with its ids but different behavior.
@Suite(.simulatedTime) struct CloneTests {
    @Test(arguments: [
        (ACR122UProfile.twoSlotClone, ["A02014090501#0", "A02014090501#1"], "ACR122U207"),
        (.renamedClone, ["072F:2200@1-2#0"], "CCIDRDV100"),
    ])
    func aCloneIsReadAndTakesCommands(_ profile: ACR122UProfile, _ ids: [String], _ firmware: String) async throws {
        let device = SoftwareACR122U(profile: profile)
        device.insert(try #require(VirtualCards.named("visa")))
        let bus = SoftwareUSBBus(device)
        let machine = Machine(.usb, usb: USBReaders(on: bus))
        let readers = try await machine.readers()
        #expect(readers.map(\.id) == ids && readers.allSatisfy { $0.model?.name == "ACS ACR122U" })
        let reader = try await machine.reader()
        #expect(reader.id == ids[0])
        let card = try await reader.connect()
        let selectPPSE = try CommandAPDU([0x00, 0xA4, 0x04, 0x00, 0x0E] + Array("2PAY.SYS.DDF01".utf8) + [0x00])
        #expect(try await card.transmit(selectPPSE).status == .success)
        await card.disconnect(.powerOff)
        #expect(try await ACR122U(over: reader).firmwareVersion() == firmware)
        try await reader.checkFirmware()
        #expect(try await reader.reachesChip())
        #expect(try await reader.withChip { try await $0.firmwareVersion().version } == 1)
        // The card lies there again, and the other slots have none.
        for reader in readers {
            var states = reader.slotStates().makeAsyncIterator()
            #expect(try await states.next()?.hasCard == (reader.id == ids[0]))
        }
        await machine.close()
        #expect(bus.inUse == (0, 0))
    }
}
