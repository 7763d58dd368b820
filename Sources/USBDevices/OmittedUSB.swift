#if !USB

package import Logging

/// The machine's USB in a program without libusb: there is none.
package final class LibUSBBus: USBBus {
    package init(
        isTold: Bool? = nil, refusal: USBStatus? = nil, pause: Duration = .seconds(1),
        logger: Logger = Logger(label: "USBDevices")
    ) {}

    package func devices() async throws(USBError) -> [USBDevice] { throw .omitted }
    package func open(_ device: USBDevice, interface: UInt8) async throws(USBError) -> any USBLink { throw .omitted }
    package func changes() throws(USBError) -> AsyncStream<Void> { throw .omitted }
}

extension USBError {
    fileprivate static let omitted = USBError(.omitted, .notSupported)
}

#endif
