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
        let device = CountedDevice(SoftwareACR122U())
        try host.plug(device)
        guard let reader = try await USBReaders().readers().first else { throw CardError(.noReader) }
        try await link(to: reader, device, "over USB", limit: 0.2) { await reader.close() }

        let service = try PrivatePCSCD(.usb(host))
        defer { service.stop() }
        try service.waitForReader(withCard: false)
        for (name, value) in service.environment { setenv(name, value, 1) }
        guard let reader = try await PCSCService().readers().first else { throw CardError(.noReader) }
        // A connection to pcscd takes two messages and costs about as much as a command; this code cannot change that.
        try await link(to: reader, device, "through pcscd", limit: nil) {}
    }

    private static func link(
        to reader: some CardReader, _ device: CountedDevice, _ route: String, limit: Double?,
        disconnect: () async -> Void
    ) async throws {
        let command: [UInt8] = [0xFF, 0x00, 0x48, 0x00, 0x00]  // Get Firmware Version
        let rounds = 20
        func single() async throws {
            try await reader.withLink { _ = try await $0.transmit(command) }
            await disconnect()
        }
        try await reader.withLink { link in
            try await printTransfers("link", of: device, command: "a command to the reader \(route)", limit: 2) {
                _ = try await link.transmit(command)
            }
        }
        await disconnect()
        guard !Limit.isGate else { return }
        let comparison = try await Comparison(.time, limit: limit) {
            try await time { for _ in 0..<rounds { try await single() } }
        } _: {
            let held = try await reader.withLink { link in
                try await time { for _ in 0..<rounds { _ = try await link.transmit(command) } }
            }
            await disconnect()
            return held
        }
        report(comparison, per: Double(rounds), "with a connection for each", "through a link", limit: limit)
    }
}
