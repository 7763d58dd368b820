import Glibc
import SmartCardSimulator
import SmartCardSimulatorHosts
import Synchronization

/// A virtual reader and the pcscd that sees it, and what can be done to it while it runs.
protocol Setup: Sendable {
    /// As PC/SC lists it.
    var readerName: String { get }
    /// What a program needs to see it through PC/SC.
    var environment: [String: String] { get }
    /// What a program needs to see it on the USB bus.
    var usbEnvironment: [String: String] { get }

    func plug() throws
    func unplug() throws
    func insert(_ card: any VirtualCard) throws
    func remove() throws
    /// Nil mends everything.
    func fail(_ fault: ACR122UFault?) throws
    /// Ends it all.
    func stop()
}

/// A software ACR122U on a mock USB bus.
final class USBSetup: Setup {
    let readerName: String
    private let host: UMockdevHost
    private let service: PrivatePCSCD
    private let profile: ACR122UProfile
    /// A reader that has left the bus keeps its cards: they are on the one that is plugged in after it.
    private let reader: Mutex<SoftwareACR122U>

    init(profile: ACR122UProfile, faults: [ACR122UFault], cards: [any VirtualCard], log: String?) throws {
        self.profile = profile
        let reader = SoftwareACR122U(profile: profile, faults: faults)
        for card in cards { reader.insert(card) }
        self.reader = Mutex(reader)
        host = try UMockdevHost()
        try host.plug(reader)
        service = try PrivatePCSCD(.usb(host), log: log)
        readerName = try service.waitForReader(withCard: !cards.isEmpty)
    }

    var environment: [String: String] { service.environment }
    var usbEnvironment: [String: String] { host.environment }

    func plug() throws {
        guard !host.isPlugged else { throw HostError("the reader is plugged in", hint: "Unplug it first.") }
        try reader.withLock { reader in
            let next = SoftwareACR122U(profile: profile, faults: reader.faults.filter { $0.kind != .unplug })
            for card in reader.cards { next.insert(card) }
            reader = next
            try host.plug(next)
        }
    }

    func unplug() throws {
        guard host.isPlugged else { throw HostError("the reader is not plugged in", hint: "Plug it in first.") }
        host.unplug()
    }

    func insert(_ card: any VirtualCard) { reader.withLock { $0.insert(card) } }
    func remove() { reader.withLock { $0.remove() } }

    func fail(_ fault: ACR122UFault?) {
        reader.withLock { reader in
            reader.faults = fault.map { fault in reader.faults.filter { $0.kind != fault.kind } + [fault] } ?? []
        }
    }

    func stop() { service.stop() }
}

/// A bare card in vsmartcard's reader.
final class VPCDSetup: Setup {
    let readerName: String
    private let host: VPCDHost
    private let service: PrivatePCSCD

    init(faults: [ACR122UFault], cards: [any VirtualCard], log: String?) throws {
        guard faults.isEmpty else { throw Self.noReader("fail") }
        guard cards.count <= 1 else {
            throw HostError("vpcd's reader holds one card", hint: "Give one --card, or take --host umockdev.")
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
    func fail(_ fault: ACR122UFault?) throws { throw Self.noReader("fail") }

    func stop() {
        host.remove()
        service.stop()
    }

    private static func noReader(_ what: String) -> HostError {
        HostError("behind vpcd there is no reader that could \(what)", hint: "Take --host umockdev.")
    }
}
