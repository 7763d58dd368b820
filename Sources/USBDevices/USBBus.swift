/// Where devices are plugged in: the machine's USB, or software in this process.
///
/// It has what a driver needs and no more, so that everything above is tested without a bus.
package protocol USBBus: Sendable {
    /// The devices that are present, none opened.
    ///
    /// - Throws: ``USBError``.
    func devices() async throws(USBError) -> [USBDevice]

    /// Opens `device` and claims the interface numbered `interface`.  A kernel driver that has it gives way, until
    /// the link is closed.
    ///
    /// - Throws: ``USBError``, which says who is in the way.
    func open(_ device: USBDevice, interface: UInt8) async throws(USBError) -> any USBLink

    /// Says when devices may have come or gone, until the task that reads it is cancelled.
    ///
    /// - Throws: ``USBError`` if the system cannot tell.
    func changes() throws(USBError) -> AsyncStream<Void>
}

/// A claimed interface and its endpoints.
///
/// An endpoint has one transfer at a time.  A completion is called exactly once, on any thread, perhaps before the call
/// that starts the transfer returns; it must not block.
package protocol USBLink: AnyObject, Sendable {
    typealias Completion = @Sendable (Result<[UInt8], USBStatus>) -> Void

    /// Sends `bytes` to a bulk OUT endpoint.  Completes with nothing.
    func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion)

    /// Reads one transfer of at most `count` bytes from a bulk or interrupt IN endpoint.
    ///
    /// What has come when the time is over is handed in as a success, if it is anything.
    ///
    /// - Parameter timeout: nil to wait for ever.
    func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion)

    /// A class request to the interface, without data (USB 2.0, 9.3).
    func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion)

    /// A class request to the interface that reads at most `count` bytes.
    func request(
        _ request: UInt8, value: UInt16, reading count: Int, timeout: Duration, _ completion: @escaping Completion)

    /// Ends the transfer at `endpoint`, if there is one: it completes with ``USBStatus/interrupted``.
    func cancel(_ endpoint: UInt8)

    /// Makes a bulk endpoint that has stalled work again.
    func clearHalt(_ endpoint: UInt8) async throws(USBStatus)

    /// Resets the device as if it had been plugged in anew, all its interfaces with it.
    ///
    /// - Throws: ``USBStatus``; `notFound` for a device that came back as another, which has to be opened anew.
    func reset() async throws(USBStatus)

    /// Ends all transfers, each by its completion, gives the interface back and calls `completion`.  Afterwards every
    /// transfer fails with ``USBStatus/noDevice``.
    ///
    /// Returns at once, and yet an interface that is opened after this call finds it closed.
    func close(_ completion: @escaping @Sendable () -> Void)
}

extension USBLink {
    /// Of what cannot be reset.
    package func reset() async throws(USBStatus) { throw .notSupported }

    /// Of what has no such requests.
    package func request(
        _ request: UInt8, value: UInt16, reading count: Int, timeout: Duration, _ completion: @escaping Completion
    ) { completion(.failure(.notSupported)) }

    package func close() async {
        await withCheckedContinuation { continuation in close { continuation.resume() } }
    }
}

/// A USB device, as its descriptors tell.
package struct USBDevice: Hashable, Sendable {
    package var bus: UInt8
    /// Given anew each time a device is plugged in.
    package var address: UInt8
    /// The ports from the root hub on.
    package var ports: [UInt8]
    package var vendorID: UInt16
    package var productID: UInt16
    /// bcdDevice.
    package var release: UInt16
    package var manufacturer: String?
    package var product: String?
    package var serialNumber: String?
    /// bConfigurationValue of the configuration that is set, or of the first.
    package var configuration: UInt8
    package var interfaces: [USBInterface]

    package init(
        bus: UInt8, address: UInt8, ports: [UInt8], vendorID: UInt16, productID: UInt16, release: UInt16,
        manufacturer: String? = nil, product: String? = nil, serialNumber: String? = nil,
        configuration: UInt8 = 1, interfaces: [USBInterface] = []
    ) {
        (self.bus, self.address, self.ports) = (bus, address, ports)
        (self.vendorID, self.productID, self.release) = (vendorID, productID, release)
        (self.manufacturer, self.product, self.serialNumber) = (manufacturer, product, serialNumber)
        (self.configuration, self.interfaces) = (configuration, interfaces)
    }

    /// The device's place in sysfs, such as `1-2.3`: the bus and the ports.
    package var place: String { "\(bus)-\(ports.map(String.init).joined(separator: "."))" }

    /// The path of the device's node, such as `/dev/bus/usb/001/004`.
    package var node: String {
        func digits(_ number: UInt8) -> String { String(String(1000 + Int(number)).dropFirst()) }
        return "/dev/bus/usb/\(digits(bus))/\(digits(address))"
    }
}

/// A device's bus and address, which are its own until it leaves.
struct USBAddress: Hashable {
    let bus: UInt8
    let device: UInt8
}

/// An interface, in its first setting.
package struct USBInterface: Hashable, Sendable {
    package struct Endpoint: Hashable, Sendable {
        /// bEndpointAddress: bit 7 set for IN.
        package var address: UInt8
        /// bmAttributes: 2 bulk, 3 interrupt in the two low bits.
        package var attributes: UInt8
        package var packetSize: UInt16
        /// The descriptors after its own.
        package var extra: [UInt8]

        package init(address: UInt8, attributes: UInt8, packetSize: UInt16, extra: [UInt8] = []) {
            (self.address, self.attributes, self.packetSize, self.extra) = (address, attributes, packetSize, extra)
        }
    }

    package var number: UInt8
    /// bInterfaceClass.
    package var interfaceClass: UInt8
    /// The name in iInterface.
    package var name: String?
    package var endpoints: [Endpoint]
    /// The descriptors between its own and the first endpoint's.
    package var extra: [UInt8]

    package init(number: UInt8, interfaceClass: UInt8, name: String? = nil, endpoints: [Endpoint], extra: [UInt8]) {
        (self.number, self.interfaceClass, self.name) = (number, interfaceClass, name)
        (self.endpoints, self.extra) = (endpoints, extra)
    }
}
