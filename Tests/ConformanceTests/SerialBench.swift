import SmartCard
import SmartCardPN532
import SmartCardSimulator
import SmartCardSimulatorHosts
import TestSupport

/// The driver for serial lines over a pseudo-terminal, with a software board at the other end.
struct SerialBench: Bench {
    private let board: PN532Reader
    private let device = SoftwarePN532Board()
    private let host: PseudoTerminalHost

    var reader: any CardReader { board }

    init() async throws {
        host = try PseudoTerminalHost(device)
        board = try await PN532Reader.open(host.path)
    }

    func insert(_ card: String) throws {
        remove()
        try add(card)
    }

    func add(_ card: String) throws {
        if let card = VirtualCards.named(card) { device.insert(card) }
    }

    func remove() { device.remove() }
    func close() async {
        await board.close()
        host.close()
    }

    func unplug() { device.unplug() }

    func withChip<R: Sendable>(_ body: @Sendable (PN532) async throws -> R) async throws -> R {
        try await board.withChip(body)
    }
}
