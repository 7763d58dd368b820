package import SmartCardSimulator
import Synchronization

/// A CCID reader whose answers a test makes up, message by message.
package final class ScriptedReader: SoftwareUSBDevice {
    /// What the reader says to a message: bulk IN transfers, one after the other.
    package typealias Answer = @Sendable (_ message: [UInt8]) -> [[UInt8]]

    package let deviceDescriptor: [UInt8]
    package let configurationDescriptor: [UInt8]
    package let strings: [String]

    private struct State {
        var observer: (@Sendable (SoftwareUSBEvent) -> Void)?
        var traffic: [[UInt8]] = []
        var resets = 0
    }

    private let state = Mutex(State())
    private let answer: Answer
    private let knowsAbort: Bool
    private let leftovers: [[UInt8]]

    /// - Parameter functional: the CCID descriptor.
    /// - Parameter interfaceName: what iInterface names, if it names anything.
    /// - Parameter hasInterrupt: whether there is an interrupt endpoint.
    /// - Parameter knowsAbort: whether it takes class requests, or stalls them.
    /// - Parameter leftovers: what somebody before has left in the bulk IN endpoint.
    package init(
        functional: [UInt8], vendor: UInt16 = 0x076B, product: UInt16 = 0x5022, serialNumber: String? = nil,
        interfaceName: String? = nil, hasInterrupt: Bool = false, knowsAbort: Bool = true, leftovers: [[UInt8]] = [],
        answer: @escaping Answer
    ) {
        func word(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
        let names = [0x01, 0x02, serialNumber == nil ? 0x00 : 0x03] as [UInt8]
        deviceDescriptor =
            [0x12, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x40] + word(vendor) + word(product) + [0x00, 0x01] + names + [
                0x01
            ]
        let interfaceIndex: UInt8 = interfaceName == nil ? 0x00 : serialNumber == nil ? 0x03 : 0x04
        let interrupt: [UInt8] = hasInterrupt ? [0x07, 0x05, 0x81, 0x03, 0x08, 0x00, 0x10] : []
        let body =
            [0x09, 0x04, 0x00, 0x00, hasInterrupt ? 0x03 : 0x02, 0x0B, 0x00, 0x00, interfaceIndex] + functional
            + interrupt
            + [0x07, 0x05, 0x02, 0x02, 0x40, 0x00, 0x00, 0x07, 0x05, 0x82, 0x02, 0x40, 0x00, 0x00]
        configurationDescriptor =
            [0x09, 0x02] + word(UInt16(9 + body.count)) + [0x01, 0x01, 0x00, 0x80, 0x32] + body
        strings = ["Maker", "Reader"] + [serialNumber, interfaceName].compactMap(\.self)
        (self.answer, self.knowsAbort, self.leftovers) = (answer, knowsAbort, leftovers)
    }

    /// What has come: the messages, and the setup packets of class requests, which begin with 21.
    package var traffic: [[UInt8]] { state.withLock { $0.traffic } }
    package var messages: [[UInt8]] { traffic.filter { $0.first != 0x21 } }
    package var requests: [[UInt8]] { traffic.filter { $0.first == 0x21 } }

    package func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        state.withLock { $0.traffic.append(setup) }
        return knowsAbort ? [] : nil
    }

    package func transferOut(endpoint: UInt8, _ bytes: [UInt8]) {
        state.withLock { $0.traffic.append(bytes) }
        for bytes in answer(bytes) { send(bytes, endpoint: 0x82) }
    }

    /// How often it was reset over USB.
    package var resets: Int { state.withLock { $0.resets } }
    package func reset() { state.withLock { $0.resets += 1 } }

    package func willTransferIn(endpoint: UInt8) {}

    package func observe(_ observer: @escaping @Sendable (SoftwareUSBEvent) -> Void) {
        state.withLock { $0.observer = observer }
        for bytes in leftovers { send(bytes, endpoint: 0x82) }
    }

    /// Sends something unasked.
    package func send(_ bytes: [UInt8], endpoint: UInt8) {
        state.withLock { $0.observer }?(.ready(endpoint: endpoint, bytes: bytes, delay: .zero))
    }

    /// An answer to `message`, of the type that fits it.
    package static func answer(
        to message: [UInt8], status: UInt8 = 0x00, error: UInt8 = 0x00, last: UInt8 = 0x00, _ data: [UInt8] = []
    ) -> [UInt8] {
        let kinds: [UInt8: UInt8] = [0x62: 0x80, 0x6F: 0x80, 0x6C: 0x82, 0x61: 0x82, 0x6D: 0x82, 0x6B: 0x83]
        let length = [UInt8(data.count & 0xFF), UInt8(data.count >> 8), 0x00, 0x00]
        return [kinds[message[0]] ?? 0x81] + length + [message[5], message[6], status, error, last] + data
    }
}
