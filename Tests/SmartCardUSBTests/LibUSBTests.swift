import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import Testing
import USBTestSupport

@testable import SmartCardUSB

/// libusb as Debian has it, and a software reader on a mock USB bus.
@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct LibUSBTests {
    @Test func aCardIsRead() async throws {
        let device = SoftwareACR122U()
        let reader = try await MockBus.shared().replug(device)
        #expect(reader.id.description == "072F:2200@1-2#0")
        #expect(reader.identity.name == "ACS ACR122U PICC Interface 072F:2200@1-2#0")
        device.insert(try #require(VirtualCards.named("visa")))
        let card = try await reader.connect()
        #expect(card.transmissionProtocol == .t1)
        let response = try await card.transmit(.select(Array("2PAY.SYS.DDF01".utf8)))
        #expect(response.status == .success)
        let start = ContinuousClock.now
        for _ in 0..<200 { _ = try await card.transmit(.select(Array("2PAY.SYS.DDF01".utf8))) }
        print((ContinuousClock.now - start) / 200)
        await card.disconnect(.powerOff)
        await reader.close()
        #expect(USBUse.now == (0, 0))
    }
}
