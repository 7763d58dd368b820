import CUMockdev
import CardReceipts
import Foundation
import SmartCardSimulator
import SmartCardSimulatorHosts
import Synchronization
import TestSupport
import Testing
import USBTestSupport

// What umockdev cannot play is the kernel's usblp itself: that a second open(2) is EBUSY, that write(2) says ENOSPC, and that
// libusb takes the device from it.  ESCPOSPrinterTests have what we make of those errors.

extension ESCPOSPrinter.Limits {
    fileprivate static let ample = Self(
        opening: .seconds(120), answer: .seconds(120), progress: .seconds(120), printing: .seconds(120))
}

/// `/dev/usb/lp0`: umockdev answers its ioctls, and a ``FakePrinter`` its bytes.
private final class MockLine: @unchecked Sendable {
    // Unchecked: umockdev locks its own.
    private let testbed: UnsafeMutablePointer<UMockdevTestbed>?
    private let device: FakeDevice
    /// What LPGETSTATUS says.
    private let status: @Sendable () -> Int32

    init(_ printer: FakePrinter, status: @escaping @Sendable () -> Int32) throws {
        self.status = status
        // There is no /dev/ptmx on the mock bus.
        device = try FakeDevice(printer)
        testbed = umockdev_testbed_new()
        var error: UnsafeMutablePointer<GError>?
        let added = umockdev_testbed_add_from_string(
            testbed,
            """
            P: /devices/usb1/1-2/1-2:1.0/usbmisc/lp0
            N: usb/lp0
            E: DEVNAME=/dev/usb/lp0
            E: SUBSYSTEM=usbmisc

            """, &error)
        try #require(added != 0)
        let directory = try #require(umockdev_testbed_get_root_dir(testbed))
        defer { g_free(directory) }
        let node = String(cString: directory) + "/dev/usb/lp0"
        unlink(node)
        try FileManager.default.createSymbolicLink(atPath: node, withDestinationPath: device.path)
        let handler = try #require(umockdev_ioctl_base_new())
        defer { g_object_unref(handler) }
        cumockdev_on_ioctl(
            handler,
            { _, client, context in
                guard let client, let context else { return 0 }
                return Unmanaged<MockLine>.fromOpaque(context).takeUnretainedValue().answer(client)
            }, Unmanaged.passUnretained(self).toOpaque(), { _, _ in })
        try #require(umockdev_testbed_attach_ioctl(testbed, "/dev/usb/lp0", handler, &error) != 0)
    }

    deinit { g_object_unref(testbed) }

    private func answer(_ client: UnsafeMutablePointer<UMockdevIoctlClient>) -> gboolean {
        // LPGETSTATUS: its number carries no size, and its argument points to an int.
        guard umockdev_ioctl_client_get_request(client) == 0x060B, let argument = umockdev_ioctl_client_get_arg(client),
            let memory = umockdev_ioctl_data_resolve(argument, 0, 4, nil)
        else {
            umockdev_ioctl_client_complete(client, -1, ENOTTY)
            return 1
        }
        var value = status()
        withUnsafeMutableBytes(of: &value) { bytes in
            umockdev_ioctl_data_update(
                memory, 0, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(bytes.count))
        }
        g_object_unref(memory)
        umockdev_ioctl_client_complete(client, 0, 0)
        return 1
    }
}

@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct UsblpTests {
    private static func service(_ answers: ESCPOSPrinter.Answers = .all) -> ESCPOSPrinter {
        ESCPOSPrinter(.device(path: "/dev/usb/lp0"), answers: answers, limits: .ample)
    }

    private static func expected(_ content: ReceiptContent) -> [UInt8] {
        ESCPOSRenderer().render(ReceiptDocument(content))
    }

    @Test("a receipt goes through usblp whole and once, where the port says that all is well")
    func prints() async throws {
        let printer = FakePrinter()
        let line = try MockLine(printer) { 0x18 }
        let content = try Sample.full()
        for answers in ESCPOSPrinter.Answers.allCases {
            let before = printer.received.count
            #expect(await Self.service(answers).printReceipt(content: content) == .success)
            try await wait(for: "receipt") { printer.received.count >= before + Self.expected(content).count }
            #expect(Array(printer.received.dropFirst(before)) == Self.expected(content))
        }
        withExtendedLifetime(line) {}
    }

    /// USB Printing Devices 1.1, 4.2.2: bit 5 paper empty, bit 4 selected, bit 3 no error.
    @Test(
        "B7: what usblp says keeps a printer from printing",
        arguments: [
            (Int32(0x38), PrinterCondition.paperOut), (0x30, .paperOut), (0x08, .offline),
            (0x10, .failed("it reports an error")),
        ])
    func b7(_ status: Int32, _ condition: PrinterCondition) async throws {
        let printer = FakePrinter()
        let line = try MockLine(printer) { status }
        #expect(await Self.service(.none).condition() == condition)
        guard case .failure(let failure) = await Self.service().printReceipt(content: try Sample.content()) else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == condition && !failure.progress.mayBePrinted && printer.received.isEmpty)
        withExtendedLifetime(line) {}
    }

    @Test("B7: paper that ends while it prints is told by usblp, with what had gone out")
    func b7During() async throws {
        let content = try Sample.content()
        let total = Self.expected(content).count
        let printer = FakePrinter()
        // Asked before, it is well; asked afterwards, it answers when it has all.
        let questions = Mutex(0)
        let line = try MockLine(printer) {
            let isFirst = questions.withLock { count in
                count += 1
                return count == 1
            }
            guard !isFirst else { return 0x18 }
            printer.block(until: total)
            return 0x30
        }
        let result = await Self.service(.none).printReceipt(content: content)
        #expect(result == .failure(PrintingFailure(.paperOut, PrintingProgress(sent: total, total: total))))
        withExtendedLifetime(line) {}
    }
}

/// A receipt printer on the bus: class 7, a bulk endpoint each way.
private final class SoftwarePrinter: SoftwareUSBDevice {
    let deviceDescriptor: [UInt8] = [
        0x12, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x40, 0xB8, 0x04, 0x15, 0x0E, 0x00, 0x01, 0x01, 0x02, 0x00, 0x01,
    ]
    let configurationDescriptor: [UInt8] = [
        0x09, 0x02, 0x20, 0x00, 0x01, 0x01, 0x00, 0xC0, 0x01,
        // Printer, bidirectional.
        0x09, 0x04, 0x00, 0x00, 0x02, 0x07, 0x01, 0x02, 0x00,
        0x07, 0x05, 0x01, 0x02, 0x40, 0x00, 0x00, 0x07, 0x05, 0x82, 0x02, 0x40, 0x00, 0x00,
    ]
    let strings = ["Maker", "Printer"]

    private struct State {
        var observer: (@Sendable (SoftwareUSBEvent) -> Void)?
        var received: [UInt8] = []
        var requests: [[UInt8]] = []
    }

    private let state = Mutex(State())
    /// Nil for one that does not know GET_PORT_STATUS.
    private let portStatus: UInt8?
    private let leavesAfter: Int

    init(portStatus: UInt8?, leavesAfter: Int = .max) {
        (self.portStatus, self.leavesAfter) = (portStatus, leavesAfter)
    }

    var received: [UInt8] { state.withLock { $0.received } }
    var requests: [[UInt8]] { state.withLock { $0.requests } }

    func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        state.withLock { $0.requests.append(setup) }
        return setup.starts(with: [0xA1, 0x01]) ? portStatus.map { [$0] } : nil
    }

    func transferOut(endpoint: UInt8, _ bytes: [UInt8]) {
        let (observer, answer, hasLeft) = state.withLock { state in
            let answers: [[UInt8]: UInt8] = [[0x10, 0x04]: 0x12, [0x1D, 0x72]: 0x00]
            let answer = bytes.count == 3 ? answers[Array(bytes.prefix(2))] : nil
            if answer == nil { state.received += bytes }
            return (state.observer, answer, state.received.count >= leavesAfter)
        }
        if let answer { observer?(.ready(endpoint: 0x82, bytes: [answer], delay: .zero)) }
        if hasLeft { observer?(.unplugged) }
    }

    func willTransferIn(endpoint: UInt8) {}
    func observe(_ observer: @escaping @Sendable (SoftwareUSBEvent) -> Void) {
        state.withLock { $0.observer = observer }
    }
}

@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct USBPrinterDeviceTests {
    private static let service = ESCPOSPrinter(.usb(vendorID: 0x04B8, productID: 0x0E15), limits: .ample)

    /// Puts `printer` on the bus, and waits until libusb has it.
    private static func plug(_ printer: SoftwarePrinter) async throws -> UMockdevHost {
        let host = try MockBus.shared().host
        // libusb listens from its first use.
        _ = await service.condition()
        host.unplug()
        try await wait(for: "the old printer to go") { await service.condition() == .absent }
        try host.plug(printer)
        try await wait(for: "the printer") { await service.condition() != .absent }
        return host
    }

    @Test("a receipt goes straight over USB, whole, and the interface is given back", arguments: [0x18, nil])
    func prints(_ portStatus: UInt8?) async throws {
        let printer = SoftwarePrinter(portStatus: portStatus)
        let host = try await Self.plug(printer)
        let content = try Sample.full()
        #expect(await Self.service.printReceipt(content: content) == .success)
        #expect(printer.received == ESCPOSRenderer().render(ReceiptDocument(content)))
        // GET_PORT_STATUS (USB Printing Devices 1.1, 4.2.2) of interface 0, one byte.
        #expect(printer.requests.contains([0xA1, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00]))
        #expect(!host.isClaimed)
    }

    @Test(
        "B7: what the port says keeps a printer from printing",
        arguments: [(UInt8(0x30), PrinterCondition.paperOut), (0x08, .offline), (0x10, .failed("it reports an error"))])
    func b7(_ portStatus: UInt8, _ condition: PrinterCondition) async throws {
        let printer = SoftwarePrinter(portStatus: portStatus)
        let host = try await Self.plug(printer)
        #expect(await Self.service.condition() == condition)
        guard case .failure(let failure) = await Self.service.printReceipt(content: try Sample.content()) else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == condition && !failure.progress.mayBePrinted)
        #expect(printer.received.isEmpty && !host.isClaimed)
    }

    @Test("B9: a printer that is unplugged while it prints is told, with what had gone out")
    func b9() async throws {
        let printer = SoftwarePrinter(portStatus: 0x18, leavesAfter: 640)
        let host = try await Self.plug(printer)
        guard case .failure(let failure) = await Self.service.printReceipt(content: try Sample.full()) else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == .disconnected && failure.progress.mayBePrinted, "\(failure)")
        #expect(failure.progress.sent <= 704 && failure.progress.total > 704, "\(failure)")
        #expect(!host.isPlugged)
        #expect(await Self.service.condition() == .absent)
    }
}
