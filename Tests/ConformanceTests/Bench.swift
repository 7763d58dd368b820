import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import TestSupport

/// A reader of some tier, and the hands that put cards on it.
protocol Bench: Sendable {
    var reader: any CardReader { get }
    /// Whether the reader itself takes commands, and can be unplugged.
    var isACR122U: Bool { get }

    /// Puts a built-in card on the reader, in place of what lies there.
    func insert(_ card: String) throws
    func remove() throws
    func unplug() throws
}

/// Everything in this process.
struct InProcessBench: Bench {
    let device = SoftwareACR122U()
    let reader: any CardReader
    let isACR122U = true

    init() { reader = VirtualReader(device) }

    func insert(_ card: String) throws {
        guard let card = VirtualCards.named(card) else { return }
        device.remove()
        device.insert(card)
    }

    func remove() { device.remove() }
    func unplug() { device.unplug() }
}

/// libpcsclite and pcscd as Debian has them, over the tool virtual-reader.
struct PCSCBench: Bench {
    let reader: any CardReader
    let isACR122U: Bool
    private let process: VirtualReaderProcess

    init(host: String) async throws {
        process = try await VirtualReaderProcess(host: host)
        PCSCSocket.point(to: process.socket)
        guard let first = try await PCSCService().readers().first else { throw CardError(.noReader) }
        reader = first
        isACR122U = host == "umockdev"
    }

    func insert(_ card: String) throws {
        try process.perform("remove")
        try process.perform("insert \(card)")
    }

    func remove() throws { try process.perform("remove") }
    func unplug() throws { try process.perform("unplug") }
}
