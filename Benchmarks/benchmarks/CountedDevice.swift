import SmartCardSimulator
import Synchronization

/// A software device whose transfers are counted on their way.
final class CountedDevice: SoftwareUSBDevice {
    private let device: any SoftwareUSBDevice
    private let count = Atomic<Int>(0)

    init(_ device: any SoftwareUSBDevice) { self.device = device }

    /// The transfers so far: those to the device, and those that were asked of it.
    var transfers: Int { count.load(ordering: .relaxed) }

    var deviceDescriptor: [UInt8] { device.deviceDescriptor }
    var configurationDescriptor: [UInt8] { device.configurationDescriptor }
    var strings: [String] { device.strings }

    func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        count.add(1, ordering: .relaxed)
        return device.control(setup: setup, data: data)
    }

    func transferOut(endpoint: UInt8, _ bytes: [UInt8]) {
        count.add(1, ordering: .relaxed)
        device.transferOut(endpoint: endpoint, bytes)
    }

    func willTransferIn(endpoint: UInt8) {
        // Endpoint 1 tells of cards, at times of its own.
        if endpoint == SoftwareACR122U.Endpoint.bulkIn { count.add(1, ordering: .relaxed) }
        device.willTransferIn(endpoint: endpoint)
    }

    func reset() { device.reset() }
    func observe(_ observer: @escaping @Sendable (SoftwareUSBEvent) -> Void) { device.observe(observer) }
}
