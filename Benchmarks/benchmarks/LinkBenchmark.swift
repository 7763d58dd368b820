import CardReaders
import Glibc
import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import SmartCardSimulatorHosts

extension Benchmarks {
    /// Commands to the reader itself through a link that is held, and with a connection for each, behind pcscd.
    static func link() async throws {
        let host = try UMockdevHost()
        try host.plug(SoftwareACR122U())
        let service = try PrivatePCSCD(.usb(host))
        defer { service.stop() }
        try service.waitForReader(withCard: false)
        for (name, value) in service.environment { setenv(name, value, 1) }
        guard let reader = try await PCSCService().readers().first else { throw CardError(.noReader) }
        let command: [UInt8] = [0xFF, 0x00, 0x48, 0x00, 0x00]  // Get Firmware Version
        let rounds = 20
        var held: [Double] = []
        var single: [Double] = []
        for _ in 0..<11 {
            single.append(
                try await time {
                    for _ in 0..<rounds { try await reader.withLink { _ = try await $0.transmit(command) } }
                })
            try await reader.withLink { link in
                held.append(try await time { for _ in 0..<rounds { _ = try await link.transmit(command) } })
            }
        }
        print("link: \(rounds) commands to the reader")
        report((single, held), per: Double(rounds), "with a connection for each", "through a link", limit: 0.2)
    }
}
