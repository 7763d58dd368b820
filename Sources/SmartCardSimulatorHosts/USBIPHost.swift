import Dispatch
import Glibc
public import SmartCardSimulator
import Synchronization

/// A host that exports a software USB device over USB/IP to this machine.
///
/// `usbip attach` makes it a true device of the kernel, complete with drivers, udev rules and /dev/bus/usb.
///
/// The server listens on the loopback interface alone.  The device has the bus ID ``busID``.  One client at a time can
/// import it, and it is listed while no client has it.  When it is unplugged, the client's connection ends, which tells
/// the client's kernel that the device has left the bus.
///
/// Clients are not trusted.  A client that violates the protocol (Linux, Documentation/usb/usbip_protocol.rst), or
/// requires more memory than a reader's driver needs, is disconnected.
public final class USBIPHost: Sendable {
    /// The port that `usbip` takes unless told otherwise: 3240.
    public static let usualPort: UInt16 = 3240
    /// The bus ID by which a client names the device.
    public static let busID = "1-1"

    /// The server's port, on 127.0.0.1.
    public var port: UInt16 { listener.port }

    private let listener: USBIPListener
    private let bus = Mutex(Bus())

    private struct Bus {
        var plugged: Plugged?
        /// The last device number, at first the root hub's.
        var lastNumber: UInt16 = 1
        var connections: [USBIPConnection] = []
        var isClosed = false
    }

    private struct Plugged {
        let device: any SoftwareUSBDevice
        let record: USBIP.DeviceRecord
        var session: USBIPSession?
    }

    /// The maximum number of clients served at a time.
    static let maximumConnections = 16

    /// A server with no device.
    ///
    /// - Parameter port: where to listen; 0 is any port that is free.
    /// - Throws: ``HostError`` if the port is taken.
    public init(port: UInt16 = USBIPHost.usualPort) throws {
        let listener = try USBIPListener(port: port)
        self.listener = listener
        DispatchQueue(label: "usbip-host").async { [weak self] in
            while let connection = listener.accept() { self?.welcome(connection) }
        }
    }

    deinit { close() }

    public var isPlugged: Bool { bus.withLock { $0.plugged != nil } }

    /// True if a client has imported the device.
    public var isImported: Bool { bus.withLock { $0.plugged?.session != nil } }

    /// The device can be imported from now on, under a new device number.  One that is there leaves first.
    ///
    /// - Throws: ``HostError`` if the server is closed.
    public func plug(_ device: any SoftwareUSBDevice) throws {
        unplug()
        let number = try bus.withLock { bus in
            guard !bus.isClosed else { throw HostError("the USB/IP server is closed", hint: "Make a new one.") }
            bus.lastNumber = bus.lastNumber >= 127 ? 2 : bus.lastNumber + 1
            bus.plugged = Plugged(
                device: device,
                record: .init(
                    path: "/sys/devices/pci0000:00/0000:00:14.0/usb1/\(Self.busID)", busID: Self.busID, busNumber: 1,
                    deviceNumber: bus.lastNumber, deviceDescriptor: device.deviceDescriptor,
                    configurationDescriptor: device.configurationDescriptor))
            return bus.lastNumber
        }
        watch(device, number: number, for: nil)
    }

    /// Unplugs the device: pending requests of the client end with an error, and its connection is closed.  Does
    /// nothing without a device.
    public func unplug() { unplug(number: nil) }

    /// Unplugs the device, ends all connections and listens no more.
    public func close() {
        unplug()
        listener.end()
        let connections = bus.withLock { bus in
            bus.isClosed = true
            return bus.connections
        }
        for connection in connections { connection.end() }
    }

    /// - Parameter number: the device that is meant; nil for any.
    private func unplug(number: UInt16?) {
        let session = bus.withLock { bus -> USBIPSession? in
            guard let plugged = bus.plugged, number == nil || number == plugged.record.deviceNumber else { return nil }
            bus.plugged = nil
            return plugged.session
        }
        session?.unplug()
    }

    /// Carries the device's events to the session, if there is one.
    private func watch(_ device: any SoftwareUSBDevice, number: UInt16, for session: USBIPSession?) {
        device.observe { [weak self] event in
            session?.deviceDid(event)
            if event == .unplugged { self?.unplug(number: number) }
        }
    }

    // MARK: Clients

    private func welcome(_ connection: USBIPConnection) {
        let isWelcome = bus.withLock { bus in
            guard !bus.isClosed, bus.connections.count < Self.maximumConnections else { return false }
            bus.connections.append(connection)
            return true
        }
        guard isWelcome else { return }
        DispatchQueue(label: "usbip-connection").async { [weak self] in
            self?.serve(connection)
            self?.bus.withLock { bus in bus.connections.removeAll { $0 === connection } }
            connection.end()
        }
    }

    private func serve(_ connection: USBIPConnection) {
        guard let header = connection.receive(USBIP.requestHeaderSize), let request = USBIP.request(header),
            let body = connection.receive(request.bodySize)
        else { return }
        switch request {
        case .deviceList:
            let free = bus.withLock { $0.plugged.flatMap { $0.session == nil ? $0.record : nil } }
            _ = connection.send(USBIP.deviceList(free.map { [$0] } ?? []))
        case .importDevice:
            switch importDevice(USBIP.busID(body), for: connection) {
            case .failure(let refusal): _ = connection.send(USBIP.importRefusal(refusal.status))
            case .success(let (session, record)): carryOut(session, record, connection)
            }
        }
    }

    private struct Refusal: Error {
        let status: USBIP.RequestStatus
    }

    private func importDevice(
        _ busID: String, for connection: USBIPConnection
    ) -> Result<(USBIPSession, USBIP.DeviceRecord), Refusal> {
        let result = bus.withLock { bus -> Result<(USBIPSession, Plugged), Refusal> in
            guard let plugged = bus.plugged, busID == plugged.record.busID else {
                return .failure(Refusal(status: .noDevice))
            }
            guard plugged.session == nil else { return .failure(Refusal(status: .busy)) }
            let session = USBIPSession(plugged.device, connection)
            bus.plugged?.session = session
            return .success((session, plugged))
        }
        return result.map { session, plugged in
            watch(plugged.device, number: plugged.record.deviceNumber, for: session)
            return (session, plugged.record)
        }
    }

    /// Until the client leaves, or the device does.
    private func carryOut(_ session: USBIPSession, _ record: USBIP.DeviceRecord, _ connection: USBIPConnection) {
        connection.waitForever()
        if connection.send(USBIP.importReply(record)) {
            while let header = connection.receive(USBIP.commandHeaderSize),
                let command = USBIP.Command(header, deviceID: record.id),
                let data = connection.receive(command.bodySize), session.perform(command, data: data)
            {}
        }
        session.end()
        let device = bus.withLock { bus -> (any SoftwareUSBDevice)? in
            guard bus.plugged?.session === session else { return nil }
            bus.plugged?.session = nil
            return bus.plugged?.device
        }
        // What the device did for this client is not for the next one.
        if let device { watch(device, number: record.deviceNumber, for: nil) }
    }
}
