import Foundation
import Synchronization
import TestSupport
import Testing
import USBDevices
import Waiting

@testable import CardReceipts

extension ESCPOSPrinter.Limits {
    /// Where an answer comes.
    static let generous = Self(
        opening: .seconds(300), answer: .seconds(300), progress: .seconds(300), printing: .seconds(300))
    /// Where none comes.
    static let short = Self(
        opening: .seconds(300), answer: .seconds(1), progress: .seconds(1), printing: .seconds(1))
}

@Suite(.timeLimit(.minutes(10))) struct ESCPOSPrinterTests {
    private static func expected(_ content: ReceiptContent) -> [UInt8] {
        ESCPOSRenderer().render(ReceiptDocument(content))
    }

    /// More than the kernel keeps for a printer that does not read.
    private static func long() throws -> ReceiptContent {
        let titles = (0..<2500).map { ReceiptLineItem(title: "Item \($0)", amount: $0) }
        return try Sample.content(lineItems: titles)
    }

    private static func printer(
        _ port: FakePort, answers: ESCPOSPrinter.Answers = .all, limits: ESCPOSPrinter.Limits = .generous
    ) -> ESCPOSPrinter {
        ESCPOSPrinter(.tcp(host: "127.0.0.1", port: port.number), answers: answers, limits: limits)
    }

    @Test("a receipt goes to port 9100 and to a device, whole and once", arguments: ESCPOSPrinter.Answers.allCases)
    func prints(_ answers: ESCPOSPrinter.Answers) async throws {
        let content = try Sample.full()
        let behavior = FakePrinter.Behavior(
            status: answers == .none ? nil : [1: 0x12, 2: 0x12, 3: 0x12, 4: 0x12],
            paperSensor: answers == .all ? 0x00 : nil, noise: [0x11, 0x13])
        let remote = FakePrinter(behavior), local = FakePrinter(behavior)
        let port = try FakePort(remote), device = try FakeDevice(local)
        let services = [
            Self.printer(port, answers: answers),
            ESCPOSPrinter(.device(path: device.path), answers: answers, limits: .generous),
        ]
        for (service, printer) in zip(services, [remote, local]) {
            #expect(await service.printReceipt(content: content) == .success)
            let expected = Self.expected(content)
            try await wait(for: "all bytes") { printer.received.count >= expected.count }
            #expect(printer.received == expected)
            #expect((printer.questions == 0) == (answers == .none))
            if answers != .none { #expect(await service.condition() == nil) }
        }
        withExtendedLifetime((port, device)) {}
    }

    @Test("an app that has completions gets one, once")
    func completion() async throws {
        let printer = FakePrinter()
        let port = try FakePort(printer)
        let service: any PrinterService = Self.printer(port)
        let content = try Sample.content()
        // A continuation that is resumed twice ends the test program.
        let result = await withCheckedContinuation { continuation in
            service.printReceipt(content: content) { continuation.resume(returning: $0) }
        }
        #expect(result == .success && printer.received == Self.expected(content))
    }

    /// DLE EOT 1 to 4, bit by bit as Epson's manual of ESC/POS has them.
    private static let states: [(status: [UInt8: UInt8], condition: PrinterCondition)] = [
        ([1: 0x1A, 2: 0x16, 3: 0x12, 4: 0x12], .coverOpen),
        ([1: 0x1A, 2: 0x36, 3: 0x12, 4: 0x72], .coverOpen),
        ([1: 0x1A, 2: 0x32, 3: 0x12, 4: 0x12], .paperOut),
        ([1: 0x12, 2: 0x12, 3: 0x12, 4: 0x72], .paperOut),
        ([1: 0x1A, 2: 0x52, 3: 0x1A, 4: 0x12], .jam),
        ([1: 0x1A, 2: 0x12, 3: 0x12, 4: 0x12], .offline),
        ([1: 0x1A, 2: 0x52, 3: 0x32, 4: 0x12], .failed("it reports an error that it cannot recover from")),
        ([1: 0x1A, 2: 0x52, 3: 0x16, 4: 0x12], .failed("it reports an error")),
        ([1: 0x1A, 2: 0x52, 3: 0x12, 4: 0x12], .failed("it reports an error")),
    ]

    @Test("B7: what keeps a printer from printing is told before a byte goes out", arguments: states.indices)
    func b7(_ index: Int) async throws {
        let (status, condition) = Self.states[index]
        let printer = FakePrinter(.init(status: status))
        let port = try FakePort(printer)
        let service = Self.printer(port)
        #expect(await service.condition() == condition)
        let content = try Sample.content()
        #expect(
            await service.printReceipt(content: content)
                == .failure(
                    PrintingFailure(
                        condition, PrintingProgress(sent: 0, total: Self.expected(content).count))))
        #expect(printer.received.isEmpty)
    }

    @Test("B7: paper that is only low keeps nothing from printing")
    func b7Low() async throws {
        // Bits 2 and 3 of DLE EOT 4, bits 0 and 1 of GS r: near its end.
        let printer = FakePrinter(.init(status: [1: 0x16, 2: 0x12, 3: 0x12, 4: 0x1E], paperSensor: 0x03))
        let port = try FakePort(printer)
        #expect(await Self.printer(port).printReceipt(content: try Sample.content()) == .success)
    }

    @Test("B7: paper that ends while it prints is told, with what had gone out")
    func b7During() async throws {
        let content = try Sample.content()
        let total = Self.expected(content).count
        let ended: [UInt8: UInt8] = [1: 0x1A, 2: 0x32, 3: 0x12, 4: 0x72]
        let told = FakePrinter(.init(paperSensor: 0x0C))
        let silent = FakePrinter(.init(statusAfter: (total, ended), paperSensor: nil))
        let answers: [(FakePrinter, ESCPOSPrinter.Limits)] = [
            (told, .generous),
            // It answers GS r when there is paper again: not in time.
            (
                silent,
                .init(opening: .seconds(300), answer: .seconds(300), progress: .seconds(300), printing: .seconds(1))
            ),
        ]
        for (printer, limits) in answers {
            let port = try FakePort(printer)
            let result = await Self.printer(port, limits: limits).printReceipt(content: content)
            #expect(result == .failure(PrintingFailure(.paperOut, PrintingProgress(sent: total, total: total))))
        }
    }

    @Test("an ordinary file is no printer and keeps its content, also under another name")
    func ordinaryFile() async throws {
        let folder = try TemporaryFolder()
        let (file, link) = (folder.url.appending(path: "file"), folder.url.appending(path: "link"))
        try Data("kept".utf8).write(to: file)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        for path in [file.path, link.path] {
            let service = ESCPOSPrinter(.device(path: path), answers: .none, limits: .generous)
            guard case .failure(let failure) = await service.printReceipt(content: try Sample.content()) else {
                Issue.record("printed to \(path)")
                continue
            }
            #expect(failure.condition == .absent && failure.progress.sent == 0)
            #expect(try Data(contentsOf: file) == Data("kept".utf8))
        }
    }

    @Test("B7: no printer, no permission, a printer in use")
    func b7Absent() async throws {
        let port = try ReservedPort()
        defer { withExtendedLifetime(port) {} }
        let absent: [ESCPOSPrinter.Address] = [
            .tcp(host: "127.0.0.1", port: port.number), .tcp(host: "no-such-host.invalid"),
            .device(path: "/dev/usb/no-such-printer"),
        ]
        for address in absent {
            let service = ESCPOSPrinter(address, limits: .generous)
            #expect(await service.condition() == .absent, "\(address)")
            guard case .failure(let failure) = await service.printReceipt(content: try Sample.content()) else {
                Issue.record("\(address)")
                continue
            }
            #expect(failure.condition == .absent && failure.progress.sent == 0)
            #expect(!failure.hint.isEmpty && !failure.progress.mayBePrinted)
        }
        // What open() says of a usblp that another program has, and of one that is somebody else's.
        #expect(PrinterCondition(opening: EBUSY) == .busy && PrinterCondition(opening: EACCES) == .permissionDenied)
        // LPGETSTATUS: USB Printing Devices 1.1, 4.2.2
        let ports: [(UInt8, PrinterCondition?)] = [
            (0x18, nil), (0x38, .paperOut), (0x30, .paperOut), (0x08, .offline), (0x00, .offline),
            (0x10, .failed("it reports an error")),
        ]
        for (status, condition) in ports { #expect(PrinterCondition(portStatus: status) == condition, "\(status)") }
        #expect(PrinterCondition(using: ENOSPC) == .paperOut && PrinterCondition(using: ENODEV) == .disconnected)
    }

    @Test("B9: a printer that says nothing is silent, and gets nothing")
    func b9Silent() async throws {
        let printer = FakePrinter(.init(status: nil))
        let port = try FakePort(printer)
        let content = try Sample.content()
        let result = await Self.printer(port, limits: .short).printReceipt(content: content)
        #expect(
            result
                == .failure(
                    PrintingFailure(.silent, PrintingProgress(sent: 0, total: Self.expected(content).count))))
        #expect(printer.received.isEmpty)
    }

    @Test("B9: a printer that stops reading ends in a partial write", arguments: [false, true])
    func b9Partial(_ isDevice: Bool) async throws {
        let content = try Self.long()
        let total = Self.expected(content).count
        let printer = FakePrinter(.init(stopsReadingAfter: 3000))
        let port = try FakePort(printer)
        let device = try FakeDevice(printer)
        let address: ESCPOSPrinter.Address =
            isDevice ? .device(path: device.path) : .tcp(host: "127.0.0.1", port: port.number)
        let service = ESCPOSPrinter(address, answers: .none, limits: .short)
        guard case .failure(let failure) = await service.printReceipt(content: content) else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == .silent && failure.progress.total == total)
        // What the printer has read has gone out, and not all has.
        #expect(failure.progress.sent >= 3000 && failure.progress.sent < total, "\(failure)")
        #expect(failure.progress.mayBePrinted && failure.hint.contains("before you print again"))
        #expect(Self.expected(content).starts(with: printer.received))
    }

    @Test("B9: a printer that leaves while it prints is told, at once", arguments: [false, true])
    func b9Unplugged(_ isDevice: Bool) async throws {
        let content = try Self.long()
        let printer = FakePrinter(.init(leavesAfter: 2000))
        let port = try FakePort(printer, holdsAfterEnd: false)
        let device = try FakeDevice(printer, leavesAfter: 2000)
        let address: ESCPOSPrinter.Address =
            isDevice ? .device(path: device.path) : .tcp(host: "127.0.0.1", port: port.number)
        let limits = ESCPOSPrinter.Limits(
            opening: .seconds(300), answer: .seconds(300), progress: .seconds(300), printing: .seconds(300))
        let result = await ESCPOSPrinter(address, answers: .none, limits: limits).printReceipt(content: content)
        guard case .failure(let failure) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(failure.condition == .disconnected && failure.progress.mayBePrinted, "\(failure)")
    }

    @Test("B9: a task that is cancelled stops printing, wherever it is", arguments: 0..<3)
    func b9Cancelled(_ place: Int) async throws {
        let content = try Self.long()
        // It does not answer; it does not read on; it does not say that it has printed.
        let behavior = [
            FakePrinter.Behavior(status: nil), .init(stopsReadingAfter: 3000), .init(paperSensor: nil),
        ][place]
        let printer = FakePrinter(behavior)
        let port = try FakePort(printer)
        let limits = ESCPOSPrinter.Limits(
            opening: .seconds(600), answer: .seconds(600), progress: .seconds(600), printing: .seconds(600))
        let short = try Sample.content()
        let task = Task {
            await Self.printer(port, answers: place == 1 ? .none : .all, limits: limits)
                .printReceipt(content: place == 2 ? short : content)
        }
        try await wait(for: "the printer has been asked, or sent to") {
            place == 0 || (place == 1 ? printer.received.count >= 3000 : printer.questions >= 5)
        }
        task.cancel()
        guard case .cancel(let progress) = await task.value else {
            Issue.record("not cancelled")
            return
        }
        switch place {
        case 0: #expect(progress.sent == 0)
        case 1: #expect(progress.sent >= 3000 && progress.sent < progress.total)
        default: #expect(progress.sent == progress.total)
        }
    }
}

// MARK: - USB

/// A printer on a bus of software.
private final class FakeUSBPrinter: USBBus, USBLink, Sendable {
    struct Behavior: Sendable {
        var opening: USBError.Obstacle?
        /// What a transfer to it ends with, from this byte on.
        var failure: (after: Int, status: USBStatus)?
        var answers = true
    }

    private struct State: Sendable {
        var received: [UInt8] = []
        var outgoing: [UInt8] = []
        var isClosed = true
        var opened: [UInt8] = []
    }

    static let device = USBDevice(
        bus: 1, address: 9, ports: [2], vendorID: 0x04B8, productID: 0x0E15, release: 0x0100,
        interfaces: [
            USBInterface(number: 0, interfaceClass: 0xFF, endpoints: [], extra: []),
            USBInterface(
                number: 1, interfaceClass: 0x07,
                endpoints: [
                    .init(address: 0x82, attributes: 2, packetSize: 64),
                    .init(address: 0x01, attributes: 2, packetSize: 64),
                ], extra: []),
        ])

    private let behavior: Behavior
    private let state = Mutex(State())

    init(_ behavior: Behavior = Behavior()) { self.behavior = behavior }

    var received: [UInt8] { state.withLock { $0.received } }
    var isClosed: Bool { state.withLock { $0.isClosed } }
    var opened: [UInt8] { state.withLock { $0.opened } }

    func devices() async -> [USBDevice] { [Self.device] }
    func changes() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    func open(_ device: USBDevice, interface: UInt8) async throws(USBError) -> any USBLink {
        if let obstacle = behavior.opening { throw USBError(obstacle, .other) }
        state.withLock { ($0.isClosed, $0.opened) = (false, $0.opened + [interface]) }
        return self
    }

    func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion) {
        let failure: USBStatus? = state.withLock { state in
            switch Array(bytes.prefix(2)) {
            case [0x10, 0x04] where bytes.count == 3: state.outgoing += behavior.answers ? [0x12] : []
            case [0x1D, 0x72] where bytes.count == 3: state.outgoing += behavior.answers ? [0x00] : []
            default:
                if let failure = behavior.failure, state.received.count >= failure.after { return failure.status }
                state.received += bytes
            }
            return nil
        }
        completion(failure.map { .failure($0) } ?? .success([]))
    }

    func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion) {
        let bytes = state.withLock { state in
            defer { state.outgoing = [] }
            return state.outgoing
        }
        if !bytes.isEmpty { return completion(.success(bytes)) }
        Task {
            try? await Time.sleep(for: timeout ?? .seconds(1))
            completion(.failure(.timeout))
        }
    }

    func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion) {
        completion(.failure(.notSupported))
    }

    func cancel(_ endpoint: UInt8) {}
    func clearHalt(_ endpoint: UInt8) async throws(USBStatus) {}

    func close(_ completion: @escaping @Sendable () -> Void) {
        state.withLock { $0.isClosed = true }
        completion()
    }
}

@Suite(.simulatedTime) struct USBPrinterTests {
    private static func service(
        _ printer: FakeUSBPrinter, productID: UInt16? = nil, limits: ESCPOSPrinter.Limits = .generous
    ) -> ESCPOSPrinter {
        ESCPOSPrinter(
            USBPort(on: printer, vendorID: nil, productID: productID, serialNumber: nil), renderer: ESCPOSRenderer(),
            language: .english, answers: .all, limits: limits)
    }

    @Test("a receipt goes to the printer's interface over USB, whole, and the interface is given back")
    func prints() async throws {
        let printer = FakeUSBPrinter()
        let content = try Sample.full()
        #expect(await Self.service(printer, productID: 0x0E15).printReceipt(content: content) == .success)
        #expect(printer.received == ESCPOSRenderer().render(ReceiptDocument(content)))
        #expect(printer.opened == [1] && printer.isClosed)
        #expect(await Self.service(printer, productID: 0x0E16).condition() == .absent)
    }

    @Test(
        "B9: a USB printer that fails is told with what had gone out, and is given back",
        arguments: [
            (USBStatus.timeout, PrinterCondition.silent), (.noDevice, .disconnected),
            (.pipe, .failed("LIBUSB_ERROR_PIPE -9")),
        ])
    func b9(_ status: USBStatus, _ condition: PrinterCondition) async throws {
        let printer = FakeUSBPrinter(.init(failure: (after: 128, status: status)))
        let content = try Sample.content()
        let total = ESCPOSRenderer().render(ReceiptDocument(content)).count
        let result = await Self.service(printer).printReceipt(content: content)
        #expect(result == .failure(PrintingFailure(condition, PrintingProgress(sent: 128, total: total))))
        #expect(printer.received.count == 128 && printer.isClosed)
    }

    @Test(
        "B9: a USB printer that cannot be opened",
        arguments: [
            (USBError.Obstacle.heldByProgram, PrinterCondition.busy), (.heldByDriver("usblp"), .busy),
            (.denied, .permissionDenied), (.gone, .absent), (.noBus, .absent), (.omitted, .absent),
        ])
    func b9Opening(_ obstacle: USBError.Obstacle, _ condition: PrinterCondition) async {
        #expect(await Self.service(FakeUSBPrinter(.init(opening: obstacle))).condition() == condition)
    }

    @Test("B9: a USB printer that answers nothing")
    func b9Silent() async throws {
        let printer = FakeUSBPrinter(.init(answers: false))
        #expect(await Self.service(printer, limits: .short).condition() == .silent)
        #expect(printer.received.isEmpty && printer.isClosed)
    }
}
