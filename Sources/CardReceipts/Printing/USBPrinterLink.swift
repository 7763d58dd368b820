import USBDevices
import Waiting

/// A printer on the machine's USB: an interface of class 7 with a bulk OUT endpoint and an optional bulk IN endpoint
/// (USB Printing Devices 1.1).
struct USBPort: PrinterPort {
    let bus: any USBBus
    let vendorID: UInt16?
    let productID: UInt16?
    let serialNumber: String?

    /// The bus, opened on first use.
    static let machine = LibUSBBus()

    init(on bus: any USBBus = machine, vendorID: UInt16?, productID: UInt16?, serialNumber: String?) {
        (self.bus, self.vendorID, self.productID, self.serialNumber) = (bus, vendorID, productID, serialNumber)
    }

    func open(within limit: Duration) async throws(PrinterCondition) -> any PrinterLink {
        do throws(USBError) {
            let found = try await bus.devices().lazy.filter(isMeant).compactMap { device in
                device.interfaces.lazy.compactMap(PrinterFunction.init).first.map { (device, $0) }
            }.first
            guard let (device, function) = found else { throw USBError(.gone, .notFound) }
            return USBPrinterLink(try await bus.open(device, interface: function.interface), function)
        } catch {
            throw PrinterCondition(error)
        }
    }

    private func isMeant(_ device: USBDevice) -> Bool {
        vendorID.map { $0 == device.vendorID } != false && productID.map { $0 == device.productID } != false
            && serialNumber.map { $0 == device.serialNumber } != false
    }
}

/// The printer interface of a USB device.
struct PrinterFunction: Hashable, Sendable {
    let interface: UInt8
    let bulkOut: UInt8
    let packetSize: Int
    /// The bulk IN endpoint; nil for printers that send nothing.
    let bulkIn: UInt8?
    let inPacketSize: Int

    init?(_ interface: USBInterface) {
        func bulk(isIn: Bool) -> USBInterface.Endpoint? {
            interface.endpoints.first { $0.attributes & 0x03 == 2 && ($0.address & 0x80 != 0) == isIn }
        }
        guard interface.interfaceClass == 0x07, let bulkOut = bulk(isIn: false) else { return nil }
        let bulkIn = bulk(isIn: true)
        self.interface = interface.number
        self.bulkOut = bulkOut.address
        self.bulkIn = bulkIn?.address
        // wMaxPacketSize: bits 0 to 10
        packetSize = max(Int(bulkOut.packetSize & 0x07FF), 8)
        inPacketSize = max(Int((bulkIn?.packetSize ?? 0) & 0x07FF), 8)
    }
}

private final class USBPrinterLink: PrinterLink {
    private let link: any USBLink
    private let function: PrinterFunction

    init(_ link: any USBLink, _ function: PrinterFunction) { (self.link, self.function) = (link, function) }

    /// Sends packet by packet: each is sent completely or not at all, whenever the transfer ends.
    func send(_ bytes: [UInt8], within limit: Duration) async -> (count: Int, condition: PrinterCondition?) {
        var count = 0
        while count < bytes.count, !Task.isCancelled {
            let packet = Array(bytes[count..<min(count + function.packetSize, bytes.count)])
            let result = await transfer(function.bulkOut) { completion in
                link.write(packet, to: function.bulkOut, timeout: limit, completion)
            }
            if case .failure(let status) = result { return (count, PrinterCondition(status)) }
            count += packet.count
        }
        return (count, count < bytes.count ? .silent : nil)
    }

    func receive(within limit: Duration) async throws(PrinterCondition) -> [UInt8] {
        guard let bulkIn = function.bulkIn else {
            try? await Time.sleep(for: limit)
            return []
        }
        let result = await transfer(bulkIn) { completion in
            link.read(function.inPacketSize, from: bulkIn, timeout: limit, completion)
        }
        switch result {
        case .success(let bytes): return bytes
        case .failure(.timeout), .failure(.interrupted): return []
        case .failure(let status): throw PrinterCondition(status)
        }
    }

    /// Reads the port status with GET_PORT_STATUS (USB Printing Devices 1.1, 4.2.2).
    func condition() async -> PrinterCondition? {
        let result = await transfer(0x00) { completion in
            link.request(1, value: 0, reading: 1, timeout: Self.statusLimit, completion)
        }
        switch result {
        case .success(let bytes): return bytes.first.flatMap { PrinterCondition(portStatus: $0) }
        case .failure(.noDevice): return .disconnected
        // A printer that does not support the request reports no condition by it.
        case .failure: return nil
        }
    }

    private static let statusLimit = Duration.seconds(5)

    func close() async { await link.close() }

    private func transfer(
        _ endpoint: UInt8, _ start: (@escaping USBLink.Completion) -> Void
    ) async -> Result<[UInt8], USBStatus> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                start { continuation.resume(returning: $0) }
                // The task was canceled before there was a transfer to cancel.
                if Task.isCancelled { link.cancel(endpoint) }
            }
        } onCancel: {
            link.cancel(endpoint)
        }
    }
}

extension PrinterCondition {
    /// Maps an error of opening a printer.
    init(_ error: USBError) {
        switch error.obstacle {
        case .gone, .noBus, .omitted: self = .absent
        case .heldByDriver, .heldByProgram: self = .busy
        case .denied: self = .permissionDenied
        case .failed: self.init(error.status)
        }
    }

    /// Maps the status of a failed transfer.
    init(_ status: USBStatus) {
        switch status {
        case .timeout, .interrupted: self = .silent
        case .noDevice: self = .disconnected
        case .busy: self = .busy
        case .access: self = .permissionDenied
        default: self = .failed("\(status)")
        }
    }
}
