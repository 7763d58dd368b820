import CardReaders
import Foundation
import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import SmartCardUSB
import Synchronization
import TestSupport
import Testing
import USBTestSupport
import Waiting

/// A link restores the settings that it changed, by the table of models, for every model.
@Suite(.pcscExclusive, .simulatedTime, .serialized, .timeLimit(.minutes(10))) struct RestoringTests {
    enum Backend: CaseIterable { case pcsc, usb }
    enum End: CaseIterable { case close, `throw`, cancel, drop }

    /// A command that changes something, the command that asks for it, and its answer before and meanwhile.
    struct Change: Sendable, CustomTestStringConvertible {
        let isACR122U: Bool
        let change: String, question: String, before: String, meanwhile: String

        var testDescription: String { change }
    }

    /// ACS API v2.04, 6.4 and 6.5; ACM1252U-Y3 reference manual v1.03, 5.3.8 to 5.3.11.
    static let changes = [
        Change(
            isACR122U: true, change: "FF 00 51 43 00", question: "FF 00 50 00 00", before: "90 FF", meanwhile: "90 43"),
        Change(
            isACR122U: false, change: "E0 00 00 20 01 03", question: "E0 00 00 20 00", before: "E1 00 00 00 01 FF",
            meanwhile: "E1 00 00 00 01 03"),
        Change(
            isACR122U: false, change: "E0 00 00 23 01 8E", question: "E0 00 00 23 00", before: "E1 00 00 00 01 8F",
            meanwhile: "E1 00 00 00 01 8E"),
        Change(
            isACR122U: false, change: "E0 00 00 25 01 00", question: "E0 00 00 25 00", before: "E1 00 00 00 01 01",
            meanwhile: "E1 00 00 00 01 00"),
    ]

    private struct Stop: Error {}

    /// The machine's only reader, and what has to be kept meanwhile.
    private func reader(_ change: Change, _ backend: Backend) async throws -> (reader: MachineReader, any Sendable) {
        switch backend {
        case .usb:
            let device: any SoftwareUSBDevice = change.isACR122U ? SoftwareACR122U() : SoftwareACR1252U()
            let bus = SoftwareUSBBus(device)
            return (try #require(try await Machine(.usb, usb: USBReaders(on: bus)).readers().first), bus)
        case .pcsc:
            let socket = PCSCSocket.folder + "/restoring-\(UUID().uuidString.prefix(8)).comm"
            PCSCSocket.point(to: socket)
            let values = Values()
            var behavior = FakePCSCD.Behavior()
            // IOCTL_CCID_ESCAPE is SCARD_CTL_CODE(1), 42000001 (libccid, ccid_ifdhandler.h).
            behavior.control = { code, command in
                code == 0x4200_0001 ? .data(values.escape(command)) : .status(0x8010_0016)
            }
            behavior.transmit = { _, command in .data(values.pseudoAPDU(command)) }
            let name = change.isACR122U ? "ACS ACR122U PICC Interface 00 00" : "ACS ACR1252 Dual Reader PICC 00 00"
            let pcscd = try FakePCSCD(path: socket, readers: [.init(name)], behavior: behavior)
            return (try #require(try await Machine(.pcsc).readers().first), pcscd)
        }
    }

    /// The settings of a reader.
    private final class Values: Sendable {
        private let values = Mutex<[UInt8: UInt8]>([0x20: 0xFF, 0x23: 0x8F, 0x25: 0x01, 0x51: 0xFF])

        func escape(_ command: [UInt8]) -> [UInt8] {
            values.withLock { values in
                if command.count == 6 { values[command[3]] = command[5] }
                return [0xE1, 0x00, 0x00, 0x00, 0x01, values[command[3]] ?? 0x00]
            }
        }

        func pseudoAPDU(_ command: [UInt8]) -> [UInt8] {
            values.withLock { values in
                if command[2] == 0x51 { values[0x51] = command[3] }
                return [0x90, values[0x51] ?? 0x00]
            }
        }
    }

    @Test("however a link ends, the reader is restored", arguments: changes, Backend.allCases)
    func putBack(_ change: Change, _ backend: Backend) async throws {
        let (reader, kept) = try await reader(change, backend)
        defer { (kept as? FakePCSCD)?.stop() }
        for end in End.allCases {
            let meanwhile = Mutex<[UInt8]>([])
            let task = Task {
                let body: (any ReaderLink) async throws -> Void = { link in
                    _ = try await link.transmit(bytes(change.change))
                    let answer = try await link.transmit(bytes(change.question))
                    meanwhile.withLock { $0 = answer }
                    switch end {
                    case .close, .drop: return
                    case .throw: throw Stop()
                    case .cancel: try await Time.sleep(for: .seconds(600))
                    }
                }
                guard end == .drop else { return try await reader.withLink(body) }
                try await body(try await reader.open(exclusively: false))
            }
            if end == .cancel {
                try await wait(for: "the answer") { meanwhile.withLock { !$0.isEmpty } }
                task.cancel()
            }
            let result = await task.result
            if [.close, .drop].contains(end) {
                try result.get()
            } else {
                #expect(throws: (any Error).self) { try result.get() }
            }
            // As a tool does before it ends.
            await Machine([]).close()
            #expect(meanwhile.withLock { $0 } == bytes(change.meanwhile), "\(end)")
            #expect(try await reader.transmitToReader(bytes(change.question)) == bytes(change.before), "\(end)")
        }
        await reader.close()
    }

    @Test("changes without a link stay")
    func withoutALink() async throws {
        let (reader, kept) = try await reader(Self.changes[2], .usb)
        _ = try await reader.transmitToReader(bytes(Self.changes[2].change))
        await Machine([]).close()
        #expect(
            try await reader.transmitToReader(bytes(Self.changes[2].question)) == bytes(Self.changes[2].meanwhile))
        await reader.close()
        withExtendedLifetime(kept) {}
    }

    @Test("a link that only reads sends no commands of its own; one that changes a setting reads and restores it once")
    func nothingMore() async throws {
        let sent = Mutex<[String]>([])
        let link = RestoringLink(
            over: Noting { command in
                sent.withLock { $0.append(command.hex(separator: " ")) }
                return [0xE1, 0x00, 0x00, 0x00, 0x01, command.count == 6 ? command[5] : 0x8B]
            }, try #require(Model.of(name: "ACR1252", id: nil)).settings)
        _ = try await link.transmit(bytes("E0 00 00 18 00"))
        _ = try await link.transmit(bytes("E0 00 00 23 01 8E"))
        _ = try await link.transmit(bytes("E0 00 00 23 01 9E"))
        await link.close()
        await link.close()
        #expect(
            sent.withLock { $0 } == [
                "E0 00 00 18 00", "E0 00 00 23 00", "E0 00 00 23 01 8E", "E0 00 00 23 01 9E", "E0 00 00 23 01 8B",
            ])
        await #expect { try await link.transmit(bytes("E0 00 00 18 00")) } throws: {
            ($0 as? CardError)?.kind == .disconnected
        }
    }

    @Test("a setting that cannot be read is not changed")
    func unreadable() async throws {
        let sent = Mutex<[[UInt8]]>([])
        let link = RestoringLink(
            over: Noting { command in
                sent.withLock { $0.append(command) }
                throw CardError(.readerTimeout)
            }, try #require(Model.of(name: "ACR1252", id: nil)).settings)
        await #expect(throws: CardError.self) { try await link.transmit(bytes("E0 00 00 23 01 8E")) }
        await link.close()
        #expect(sent.withLock { $0 } == [bytes("E0 00 00 23 00")])
    }

    @Test("a reader whose polling was off polls after the link has ended")
    func foundOff() async throws {
        let bus = SoftwareUSBBus(SoftwareACR1252U())
        let reader = try #require(try await Machine(.usb, usb: USBReaders(on: bus)).readers().first)
        _ = try await reader.transmitToReader(bytes("E0 00 00 23 01 0A"))
        try await reader.withLink { _ = try await $0.transmit(bytes("E0 00 00 23 01 8E")) }
        #expect(try await reader.transmitToReader(bytes("E0 00 00 23 00")) == bytes("E1 00 00 00 01 0B"))
        await reader.close()
    }

    private struct Noting: ReaderLink {
        let answer: @Sendable ([UInt8]) async throws -> [UInt8]

        func transmit(_ command: [UInt8]) async throws -> [UInt8] { try await answer(command) }
        func close() async {}
    }
}

private func bytes(_ hex: String) -> [UInt8] {
    hex.split(separator: " ").compactMap { UInt8($0, radix: 16) }
}
