import CardReaders
import SmartCard
import SmartCardSimulator
import SmartCardUSB
import Synchronization
import TestSupport
import Testing
import USBTestSupport

/// Commands that are too long for the reader: acsccid#15 and LudovicRousseau/PCSC#54 for the ACR1252U, libccid's
/// readers/ACR122U_PICC.txt for the ACR122U.
@Suite(.simulatedTime) struct ChainingTests {
    private func reader(_ device: any SoftwareUSBDevice) async throws -> MachineReader {
        try #require(try await Machine(.usb, usb: USBReaders(on: SoftwareUSBBus(device))).readers().first)
    }

    private static func command(_ count: Int) throws -> CommandAPDU {
        let data = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        return try CommandAPDU(cla: 0x00, ins: 0xDA, p1: 0x01, p2: 0x02, data: data, ne: 65_536)
    }

    @Test("a command of 1000 bytes passes a reader that fails beyond 512, and its response is complete")
    func failsBeyond() async throws {
        let (device, card) = (SoftwareACR1252U(refusesLongAPDUs: true), Chained())
        device.insert(card)
        let reader = try await reader(device)
        let connection = try await reader.connect()
        let command = try Self.command(1000)
        // What it is without.
        await #expect(throws: CardError.self) { try await connection.transmit(command) }
        let response = try await Stack(for: reader).over(connection).transmit(command)
        #expect(response.status == .success && response.data == command.data)
        // ISO/IEC 7816-4, 5.3.3: bit 5 of CLA in all parts but the last; three of 255 bytes, and 235.
        #expect(card.headers.withLock { $0.suffix(4) } == ["10DA0102FF", "10DA0102FF", "10DA0102FF", "00DA0102EB"])
        await reader.close()
    }

    @Test("a long command passes a reader with short APDUs")
    func shortAPDUs() async throws {
        let (device, card) = (SoftwareACR122U(), Chained())
        device.insert(card)
        let reader = try await reader(device)
        let command = try Self.command(300)
        let response = try await Stack(for: reader).over(try await reader.connect()).transmit(command)
        #expect(response.status == .success && response.data == command.data)
        await reader.close()
    }

    @Test("a command that is short enough passes unchanged, even with extended length")
    func shortEnough() async throws {
        let (device, card) = (SoftwareACR1252U(), Chained())
        device.insert(card)
        let reader = try await reader(device)
        let response = try await Stack(for: reader).over(try await reader.connect()).transmit(Self.command(400))
        #expect(response.data.count == 400)
        // Lc of three bytes.
        #expect(card.headers.withLock { $0 } == ["00DA010200"])
        await reader.close()
    }

    @Test("a refused part ends the chain")
    func refused() async throws {
        let (device, card) = (SoftwareACR1252U(), Chained(refusing: 0x6A84))
        device.insert(card)
        let reader = try await reader(device)
        let response = try await Stack(for: reader).over(try await reader.connect()).transmit(Self.command(1000))
        #expect(response.status == 0x6A84 && card.headers.withLock { $0.count } == 1)
        await reader.close()
    }

    @Test("a proprietary class has no chaining")
    func proprietary() async throws {
        let channel = CommandChainingLayer(Nothing(), longestCommand: 261)
        let command = try CommandAPDU(cla: 0x80, ins: 0xE8, p1: 0, p2: 0, data: [UInt8](repeating: 0, count: 300))
        await #expect { try await channel.transmit(command) } throws: { ($0 as? CardError)?.kind == .tooLong }
    }

    private struct Nothing: CardChannel {
        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { throw CardError(.noAnswer) }
    }

    /// A card that sends back what it was sent: in parts of 256 bytes behind 61xx, unless the command asks for more.
    private final class Chained: VirtualCard {
        let radio = VirtualCardRadio.typeA(
            uid: [0x04, 0x1C, 0x2B, 0x3A, 0x49, 0x58, 0x67], atqa: [0x03, 0x44], sak: 0x20,
            ats: [0x06, 0x75, 0x77, 0x81, 0x02, 0x80])
        /// CLA to the first byte of Lc of each command but GET RESPONSE.
        let headers = Mutex<[String]>([])
        private let data = Mutex<[UInt8]>([])
        private let refusal: UInt16?

        init(refusing refusal: UInt16? = nil) { self.refusal = refusal }

        func reset() { data.withLock { $0 = [] } }
        func exchangeNative(_ command: [UInt8]) -> [UInt8]? { nil }

        func exchange(_ bytes: [UInt8]) -> [UInt8]? {
            guard let command = try? CommandAPDU(bytes) else { return [0x67, 0x00] }
            return data.withLock { data in
                if command.ins != 0xC0 {
                    headers.withLock { $0.append(Array(bytes.prefix(5)).hex) }
                    if let refusal { return [UInt8(refusal >> 8), UInt8(refusal & 0xFF)] }
                    data += command.data
                    if command.cla & 0x10 != 0 { return [0x90, 0x00] }
                }
                let part = data.prefix(min(command.ne ?? 256, data.count))
                data = Array(data.dropFirst(part.count))
                return part + (data.isEmpty ? [0x90, 0x00] : [0x61, UInt8(min(data.count, 255))])
            }
        }
    }
}
