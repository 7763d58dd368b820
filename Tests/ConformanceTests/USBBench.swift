import SmartCard
import SmartCardSimulator
import SmartCardUSB
import TestSupport
import USBDevices
import USBTestSupport

/// The USB driver over a software reader in this process.
struct SoftwareUSBBench: Bench {
    let reader: any CardReader
    private let device = SoftwareACR122U()
    private let bus: SoftwareUSBBus

    init() async throws {
        bus = SoftwareUSBBus(device)
        guard let first = try await USBReaders(on: bus).readers().first else { throw CardError(.noReader) }
        reader = first
    }

    func insert(_ card: String) throws { device.replaceCards(by: card) }
    func add(_ card: String) throws { device.addCard(card) }
    func remove() throws { device.remove() }
    func unplug() throws {
        device.unplug()
        bus.unplug()
    }
}

/// The USB driver over Debian's libusb, with the reader on a mock bus.
struct LibUSBBench: Bench {
    let reader: any CardReader
    private let device = SoftwareACR122U()

    init() async throws { reader = try await MockBus.shared().replug(device) }

    func insert(_ card: String) throws { device.replaceCards(by: card) }
    func add(_ card: String) throws { device.addCard(card) }
    func remove() throws { device.remove() }
    func unplug() throws { try MockBus.shared().pull() }
}
