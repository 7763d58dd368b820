import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import TestSupport

/// Everything in this process.
struct InProcessBench: Bench {
    let device = SoftwareACR122U()
    let reader: any CardReader

    init() { reader = VirtualReader(device) }

    func insert(_ card: String) throws { device.replaceCards(by: card) }
    func add(_ card: String) throws { device.addCard(card) }
    func remove() { device.remove() }
    func unplug() { device.unplug() }
}

/// Debian's libpcsclite and pcscd, with the tool virtual-reader.
struct PCSCBench: Bench {
    let reader: any CardReader
    private let process: VirtualReaderProcess

    init(host: String) async throws {
        process = try await VirtualReaderProcess(host: host)
        PCSCSocket.point(to: process.socket)
        guard let first = try await PCSCService().readers().first else { throw CardError(.noReader) }
        reader = first
    }

    func insert(_ card: String) throws {
        try process.perform("remove")
        try add(card)
    }

    func add(_ card: String) throws { try process.perform("insert \(card)") }

    func remove() throws { try process.perform("remove") }
    func unplug() throws { try process.perform("unplug") }
}

extension SoftwareACR122U {
    func replaceCards(by name: String) {
        remove()
        addCard(name)
    }

    func addCard(_ name: String) {
        if let card = VirtualCards.named(name) { insert(card) }
    }
}
