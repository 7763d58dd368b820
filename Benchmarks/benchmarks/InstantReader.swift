import SmartCardSimulator
import Synchronization
import USBDevices

/// A bus with one CCID reader that costs nothing: every transfer ends before the call that starts it returns.
final class InstantBus: USBBus {
    private let device: USBDevice

    /// - Parameter features: dwFeatures, least significant byte first; otherwise the reader is an ACR122U.
    init(vendorID: UInt16, productID: UInt16, features: [UInt8]) {
        // The functional descriptor follows those of configuration and interface; dwFeatures is its byte 40.
        var functional = Array(SoftwareACR122U().configurationDescriptor[18..<72])
        functional.replaceSubrange(40..<44, with: features)
        device = USBDevice(
            bus: 1, address: 2, ports: [2], vendorID: vendorID, productID: productID, release: 0x0216,
            interfaces: [
                USBInterface(
                    number: 0, interfaceClass: 0x0B,
                    endpoints: [
                        .init(address: 0x02, attributes: 2, packetSize: 64),
                        .init(address: 0x82, attributes: 2, packetSize: 64),
                    ], extra: functional)
            ])
    }

    func devices() async -> [USBDevice] { [device] }
    func open(_ device: USBDevice, interface: UInt8) async -> any USBLink { InstantLink() }
    func changes() -> AsyncStream<Void> { AsyncStream { _ in } }
}

/// A link that answers IccPowerOn with an ATR, XfrBlock with 90 00, SetParameters with success and others with a slot
/// status.
final class InstantLink: USBLink {
    /// bMessageType and bSeq of the pending message; 0 if there is none.
    private let message = Atomic<UInt>(0)

    func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion) {
        message.store(UInt(bytes[0]) << 8 | UInt(bytes[6]), ordering: .relaxed)
        completion(.success([]))
    }

    func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion) {
        let message = message.exchange(0, ordering: .relaxed)
        let sequence = UInt8(truncatingIfNeeded: message)
        switch message >> 8 {
        case 0: completion(.failure(.timeout))
        case 0x6F: completion(.success([0x80, 2, 0, 0, 0, 0, sequence, 0, 0, 0, 0x90, 0x00]))
        case 0x62: completion(.success([0x80, 5, 0, 0, 0, 0, sequence, 0, 0, 0, 0x3B, 0x80, 0x80, 0x01, 0x01]))
        case 0x61: completion(.success([0x82, 0, 0, 0, 0, 0, sequence, 0, 0, 1]))
        default: completion(.success([0x81, 0, 0, 0, 0, 0, sequence, 0, 0, 0]))
        }
    }

    func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion) {
        completion(.success([]))
    }

    func cancel(_ endpoint: UInt8) {}
    func clearHalt(_ endpoint: UInt8) async throws(USBStatus) {}
    func close(_ completion: @escaping @Sendable () -> Void) { completion() }
}
