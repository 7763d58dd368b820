package import SmartCardSimulator
package import SmartCardSimulatorHosts
package import SmartCardUSB
import Synchronization
import TestSupport
import Testing

/// The mock USB bus of a preloaded process.  There is one for as long as the process lives, since libusb listens to the
/// udev that it found first.
package final class MockBus: Sendable {
    private static let instance = Mutex<MockBus?>(nil)

    package static func shared() throws -> MockBus {
        try instance.withLock { instance in
            if let instance { return instance }
            let new = MockBus(try UMockdevHost())
            instance = new
            return new
        }
    }

    package let host: UMockdevHost

    private init(_ host: UMockdevHost) { self.host = host }

    /// Puts `device` on the bus in place of what is there, and returns the reader when libusb has it.
    package func replug(_ device: any SoftwareUSBDevice) async throws -> USBReader {
        try await unplug()
        try host.plug(device)
        return try await wait { $0.first }
    }

    /// Takes the device off the bus; libusb hears of it a little later.
    package func pull() { host.unplug() }

    /// Takes the device off the bus, and returns when libusb knows.
    package func unplug() async throws {
        // libusb begins to listen when it is first used.
        _ = try await USBReaders().readers()
        host.unplug()
        try await wait { $0.isEmpty ? () : nil }
    }

    private func wait<R>(for find: ([USBReader]) -> R?) async throws -> R {
        var found: R?
        try await TestSupport.wait(for: "what libusb sees") {
            found = find(try await USBReaders().readers())
            return found != nil
        }
        return try #require(found)
    }
}
