import CardReaders
import Glibc
import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import SmartCardSimulatorHosts
import SmartCardUSB

extension Benchmarks {
    /// Measures commands to the reader itself over an open link, and with a connection for each: directly over USB, and
    /// through pcscd.
    static func link() async throws {
        let host = try UMockdevHost()
        try host.plug(SoftwareACR122U())
        guard let reader = try await USBReaders().readers().first else { throw CardError(.noReader) }
        try await link(to: reader, "over USB", limit: 0.2) { await reader.close() }

        let service = try PrivatePCSCD(.usb(host))
        defer { service.stop() }
        try service.waitForReader(withCard: false)
        for (name, value) in service.environment { setenv(name, value, 1) }
        guard let reader = try await PCSCService().readers().first else { throw CardError(.noReader) }
        // A connection to pcscd takes two messages and costs about as much as a command; this code cannot change that.
        try await link(to: reader, "through pcscd", limit: nil) {}
    }

    private static func link(
        to reader: some CardReader, _ route: String, limit: Double?, disconnect: () async -> Void
    ) async throws {
        let command: [UInt8] = [0xFF, 0x00, 0x48, 0x00, 0x00]  // Get Firmware Version
        let rounds = 20
        var held: [Double] = []
        var single: [Double] = []
        for _ in 0..<11 {
            single.append(
                try await time {
                    for _ in 0..<rounds {
                        try await reader.withLink { _ = try await $0.transmit(command) }
                        await disconnect()
                    }
                })
            try await reader.withLink { link in
                held.append(try await time { for _ in 0..<rounds { _ = try await link.transmit(command) } })
            }
            await disconnect()
        }
        print("link: \(rounds) commands to the reader, \(route)")
        report((single, held), per: Double(rounds), "with a connection for each", "through a link", limit: limit)
    }
}
