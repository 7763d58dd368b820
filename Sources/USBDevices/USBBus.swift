/// A bus that devices are plugged into: the machine's USB, or software in this process.
///
/// It offers only what a driver needs, so that everything above can be tested without a bus.
package protocol USBBus: Sendable {
    /// Returns the present devices without opening them.
    ///
    /// - Throws: ``USBError``.
    func devices() async throws(USBError) -> [USBDevice]

    /// Opens `device` and claims the interface numbered `interface`.  A kernel driver is detached until the link
    /// closes.
    ///
    /// - Throws: ``USBError``, which names the obstacle.
    func open(_ device: USBDevice, interface: UInt8) async throws(USBError) -> any USBLink

    /// Notifies when devices may have come or gone, until the reading task is canceled.
    ///
    /// - Throws: ``USBError`` if the system does not report changes.
    func changes() throws(USBError) -> AsyncStream<Void>
}

/// A claimed interface and its endpoints.
///
/// An endpoint has one transfer at a time.  A completion is called exactly once, on any thread, possibly before the
/// call that starts the transfer returns.  It must not block.
package protocol USBLink: AnyObject, Sendable {
    typealias Completion = @Sendable (Result<[UInt8], USBStatus>) -> Void

    /// Sends `bytes` to a bulk OUT endpoint.  The result is empty.
    func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion)

    /// Reads one transfer of at most `count` bytes from a bulk or interrupt IN endpoint.
    ///
    /// Data that arrived before the timeout is delivered as a success.
    ///
    /// - Parameter timeout: nil: no limit.
    func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion)

    /// Sends a class request without data to the interface (USB 2.0, 9.3).
    func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion)

    /// Sends a class request to the interface and reads at most `count` bytes.
    func request(
        _ request: UInt8, value: UInt16, reading count: Int, timeout: Duration, _ completion: @escaping Completion)

    /// Cancels the transfer at `endpoint`, if any: it completes with ``USBStatus/interrupted``.
    func cancel(_ endpoint: UInt8)

    /// Clears the halt condition of a stalled bulk endpoint.
    func clearHalt(_ endpoint: UInt8) async throws(USBStatus)

    /// Resets the device with all its interfaces, as if it were plugged in anew.
    ///
    /// - Throws: ``USBStatus``; `notFound` if the device came back as another and must be opened anew.
    func reset() async throws(USBStatus)

    /// Cancels all transfers, each of which completes, releases the interface and calls `completion`.  Later transfers
    /// fail with ``USBStatus/noDevice``.
    ///
    /// Returns at once.  An interface that is opened after this call nevertheless finds it released.
    func close(_ completion: @escaping @Sendable () -> Void)
}

extension USBLink {
    /// Throws: by default, a link cannot reset its device.
    package func reset() async throws(USBStatus) { throw .notSupported }

    /// Fails: by default, a link has no such requests.
    package func request(
        _ request: UInt8, value: UInt16, reading count: Int, timeout: Duration, _ completion: @escaping Completion
    ) { completion(.failure(.notSupported)) }

    package func close() async {
        await withCheckedContinuation { continuation in close { continuation.resume() } }
    }
}

/// A USB device as its descriptors describe it.
package struct USBDevice: Hashable, Sendable {
    package var bus: UInt8
    /// The address, assigned anew each time a device is plugged in.
    package var address: UInt8
    /// The port numbers, beginning at the root hub.
    package var ports: [UInt8]
    package var vendorID: UInt16
    package var productID: UInt16
    /// bcdDevice.
    package var release: UInt16
    package var manufacturer: String?
    package var product: String?
    package var serialNumber: String?
    /// The bConfigurationValue of the current configuration, or of the first.
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

    /// The device's name in sysfs, such as `1-2.3`: bus and ports.
    package var place: String { "\(bus)-\(ports.map(String.init).joined(separator: "."))" }

    /// The path of the device node, such as `/dev/bus/usb/001/004`.
    package var node: String {
        func digits(_ number: UInt8) -> String { String(String(1000 + Int(number)).dropFirst()) }
        return "/dev/bus/usb/\(digits(bus))/\(digits(address))"
    }
}

/// The bus and address of a device, unique until it leaves.
struct USBAddress: Hashable {
    let bus: UInt8
    let device: UInt8
}

/// An interface in its first alternate setting.
package struct USBInterface: Hashable, Sendable {
    package struct Endpoint: Hashable, Sendable {
        /// bEndpointAddress: bit 7 set for IN.
        package var address: UInt8
        /// bmAttributes; the two low bits: 2 bulk, 3 interrupt.
        package var attributes: UInt8
        package var packetSize: UInt16
        /// The descriptors that follow this one.
        package var extra: [UInt8]

        package init(address: UInt8, attributes: UInt8, packetSize: UInt16, extra: [UInt8] = []) {
            (self.address, self.attributes, self.packetSize, self.extra) = (address, attributes, packetSize, extra)
        }
    }

    package var number: UInt8
    /// bInterfaceClass.
    package var interfaceClass: UInt8
    /// The name from iInterface.
    package var name: String?
    package var endpoints: [Endpoint]
    /// The descriptors between this one and the first endpoint's.
    package var extra: [UInt8]

    package init(number: UInt8, interfaceClass: UInt8, name: String? = nil, endpoints: [Endpoint], extra: [UInt8]) {
        (self.number, self.interfaceClass, self.name) = (number, interfaceClass, name)
        (self.endpoints, self.extra) = (endpoints, extra)
    }
}
