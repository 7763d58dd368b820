import Glibc
import SmartCardSimulator
import SmartCardSimulatorHosts
import Synchronization

/// A software reader, the programs that see it, and its controls while it runs.
protocol Setup: Sendable {
    /// The name in PC/SC, where there is PC/SC.
    var readerName: String { get }
    /// The variables with which a program sees it through PC/SC.
    var environment: [String: String] { get }
    /// The variables with which a program sees it on the USB bus.
    var usbEnvironment: [String: String] { get }
    /// The command with which this machine's kernel sees it; nil if it cannot.
    var attachCommand: String? { get }

    func plug() throws
    func unplug() throws
    func insert(_ card: any VirtualCard) throws
    func remove() throws
    /// `NAME` or `NAME=ARGUMENT`; nil deactivates all faults.
    func fail(_ fault: String?) throws
    /// Ends it all.
    func stop()
}

extension Setup {
    var attachCommand: String? { nil }
}

/// The model of the reader.
enum ReaderModel: Sendable {
    case acr122u(ACR122UProfile)
    case acr1252u

    var name: String {
        switch self {
        case .acr122u: "ACR122U"
        case .acr1252u: "ACR1252U"
        }
    }

    func makeReader(faults: [SoftwareReaderFault]) -> any SoftwareReader {
        switch self {
        case .acr122u(let profile): SoftwareACR122U(profile: profile, faults: faults)
        case .acr1252u: SoftwareACR1252U(faults: faults)
        }
    }
}

/// A software reader on a mock USB bus, and the pcscd that sees it.
final class USBSetup: ReaderSetup {
    let readerName: String
    let reader: PluggedReader
    private let host: UMockdevHost
    private let service: PrivatePCSCD

    init(model: ReaderModel, faults: [SoftwareReaderFault], cards: [any VirtualCard], log: String?) throws {
        host = try UMockdevHost()
        reader = try PluggedReader(into: host, model: model, faults: faults, cards: cards)
        service = try PrivatePCSCD(.usb(host), log: log)
        readerName = try service.waitForReader(withCard: !cards.isEmpty)
    }

    var environment: [String: String] { service.environment }
    var usbEnvironment: [String: String] { host.environment }

    func stop() { service.stop() }
}

/// A software reader on a mock USB bus that no program holds.
final class FreeUSBSetup: ReaderSetup {
    let readerName: String
    let reader: PluggedReader
    private let host: UMockdevHost

    init(model: ReaderModel, faults: [SoftwareReaderFault], cards: [any VirtualCard]) throws {
        readerName = model.name
        host = try UMockdevHost()
        reader = try PluggedReader(into: host, model: model, faults: faults, cards: cards)
    }

    var environment: [String: String] { host.environment }
    var usbEnvironment: [String: String] { [:] }

    func stop() { host.close() }
}

/// A software PN532 board on a pseudo-terminal.
final class BoardSetup: Setup {
    let readerName: String
    private let board: SoftwarePN532Board
    private let host: PseudoTerminalHost

    init(faults: [PN532BoardFault], cards: [any VirtualCard]) throws {
        board = SoftwarePN532Board(faults: faults)
        for card in cards { board.insert(card) }
        host = try PseudoTerminalHost(board)
        readerName = "PN532 on \(host.path)"
    }

    var environment: [String: String] {
        ["VIRTUAL_READER_DEVICE": host.path, "LIBNFC_DEVICE": "pn532_uart:\(host.path)"]
    }
    var usbEnvironment: [String: String] { [:] }

    func plug() throws {
        throw HostError("the board cannot be plugged in again", hint: "Restart virtual-reader.")
    }
    func unplug() { board.unplug() }
    func insert(_ card: any VirtualCard) { board.insert(card) }
    func remove() { board.remove() }

    func fail(_ fault: String?) throws {
        let fault = try fault.map { try readBoardFault($0) }
        board.faults = fault.map { fault in board.faults.filter { $0.kind != fault.kind } + [fault] } ?? []
    }

    func stop() { host.close() }
}

/// A software reader that this machine's kernel can attach.
final class USBIPSetup: ReaderSetup {
    let readerName: String
    let reader: PluggedReader
    private let host: USBIPHost

    init(port: UInt16, model: ReaderModel, faults: [SoftwareReaderFault], cards: [any VirtualCard]) throws {
        readerName = model.name
        host = try USBIPHost(port: port)
        reader = try PluggedReader(into: host, model: model, faults: faults, cards: cards)
    }

    var environment: [String: String] { ["VIRTUAL_READER_PORT": String(host.port)] }
    var usbEnvironment: [String: String] { [:] }

    var attachCommand: String? {
        let port = host.port == USBIPHost.usualPort ? "" : "--tcp-port \(host.port) "
        return "usbip \(port)attach -r 127.0.0.1 -b \(USBIPHost.busID)"
    }

    func stop() { host.close() }
}

/// A host for a software USB device.
protocol USBHost: Sendable {
    var isPlugged: Bool { get }
    func plug(_ device: any SoftwareUSBDevice) throws
    func unplug()
}

extension UMockdevHost: USBHost {}
extension USBIPHost: USBHost {}

/// A setup with a reader on a bus.
protocol ReaderSetup: Setup {
    var reader: PluggedReader { get }
}

extension ReaderSetup {
    func plug() throws { try reader.plug() }
    func unplug() throws { try reader.unplug() }
    func insert(_ card: any VirtualCard) { reader.current.withLock { $0.insert(card) } }
    func remove() { reader.current.withLock { $0.remove(nil) } }

    func fail(_ fault: String?) throws {
        let fault = try fault.map { try readFault($0) }
        reader.current.withLock { reader in
            reader.faults = fault.map { fault in reader.faults.filter { $0.kind != fault.kind } + [fault] } ?? []
        }
    }
}

/// A reader that can be pulled out and plugged in again.
final class PluggedReader: Sendable {
    /// A reader that has left the bus keeps its cards: they are on the one that is plugged in after it.
    let current: Mutex<any SoftwareReader>
    private let host: any USBHost
    private let model: ReaderModel

    init(
        into host: any USBHost, model: ReaderModel, faults: [SoftwareReaderFault], cards: [any VirtualCard]
    ) throws {
        self.host = host
        self.model = model
        let reader = model.makeReader(faults: faults)
        for card in cards { reader.insert(card) }
        current = Mutex(reader)
        try host.plug(reader)
    }

    func plug() throws {
        guard !host.isPlugged else { throw HostError("the reader is plugged in", hint: "Unplug it first.") }
        try current.withLock { reader in
            let next = model.makeReader(faults: reader.faults.filter { $0.kind != .unplug })
            for card in reader.cards { next.insert(card) }
            reader = next
            try host.plug(next)
        }
    }

    func unplug() throws {
        guard host.isPlugged else { throw HostError("the reader is not plugged in", hint: "Plug it in first.") }
        host.unplug()
    }
}

/// A bare card in vsmartcard's reader.
final class VPCDSetup: Setup {
    let readerName: String
    private let host: VPCDHost
    private let service: PrivatePCSCD

    init(faults: [SoftwareReaderFault], cards: [any VirtualCard], log: String?) throws {
        guard faults.isEmpty else { throw Self.noReader("fail") }
        guard cards.count <= 1 else {
            throw HostError("vpcd's reader holds one card", hint: "Give one --card, or use --host umockdev.")
        }
        let port = try VPCDHost.freePort()
        host = VPCDHost(port: port)
        service = try PrivatePCSCD(.vpcd(port: port), log: log)
        var name = try service.waitForReader()
        if let card = cards.first {
            try host.insert(card)
            name = try service.waitForReader(withCard: true)
        }
        readerName = name
    }

    var environment: [String: String] { service.environment }
    var usbEnvironment: [String: String] { [:] }

    func plug() throws { throw Self.noReader("be plugged in") }
    func unplug() throws { throw Self.noReader("be unplugged") }
    func insert(_ card: any VirtualCard) throws { try host.insert(card) }
    func remove() { host.remove() }
    func fail(_ fault: String?) throws { throw Self.noReader("fail") }

    func stop() {
        host.remove()
        service.stop()
    }

    private static func noReader(_ what: String) -> HostError {
        HostError("with vpcd there is no reader that can \(what)", hint: "Use --host umockdev.")
    }
}
