import CardReaders
import Foundation
import SmartCard
import SmartCardPCSC
import SmartCardPN532
import Synchronization
import TestSupport
import Testing
import Waiting

/// Links to the reader itself, with a pcscd that counts connections.
@Suite(.pcscExclusive, .simulatedTime, .serialized, .timeLimit(.minutes(10))) struct LinkTests {
    /// SCARD_CONNECT, SCARD_DISCONNECT, SCARD_BEGIN_TRANSACTION (pcsc-lite, winscard_msg.h).
    private static let (connect, disconnect, begin): (UInt32, UInt32, UInt32) = (0x04, 0x06, 0x07)
    private static let name = "ACS ACR122U PICC Interface 00 00"

    /// A pcscd with an ACR122U: the answers of ACS API v2.04, 6, and of a PN532 that has nothing to say (NXP UM0701-02, 7).
    private func bench() throws -> (pcscd: FakePCSCD, reader: PCSCReader) {
        let socket = PCSCSocket.folder + "/link-\(UUID().uuidString.prefix(8)).comm"
        PCSCSocket.point(to: socket)
        let parameter = Parameter()
        var behavior = FakePCSCD.Behavior()
        behavior.transmit = { _, command in
            switch (command[0], command[2], command.dropFirst(5).first) {
            case (0xFF, 0x48, _): .data(Array("ACR122U216".utf8))
            case (0xFF, 0x50, _): .data([0x90, parameter.value.withLock { $0 }])
            case (0xFF, 0x51, _):
                .data([
                    0x90,
                    parameter.value.withLock { value in
                        value = command[3]
                        return value
                    },
                ])
            case (0xFF, 0x00, 0xD4) where command[6] == 0x02: .data([0xD5, 0x03, 0x32, 0x01, 0x06, 0x07, 0x90, 0x00])
            case (0xFF, 0x00, 0xD4) where [0x44, 0x52].contains(command[6]):
                .data([0xD5, command[6] + 1, 0x00, 0x90, 0x00])
            case (0xFF, 0x00, 0xD4): .data([0xD5, command[6] + 1, 0x90, 0x00])
            default: .data([0x63, 0x00])
            }
        }
        return (
            try FakePCSCD(path: socket, readers: [.init(Self.name)], behavior: behavior), PCSCReader(name: Self.name)
        )
    }

    private final class Parameter: Sendable {
        let value = Mutex<UInt8>(0xFF)
    }

    @Test("a link is one connection for any number of commands; without a link, each command makes its own")
    func oneConnection() async throws {
        let (pcscd, reader) = try bench()
        defer { pcscd.stop() }
        let link = try await reader.open(exclusively: false)
        for _ in 0..<20 { _ = try await ACR122U(over: link).firmwareVersion() }
        await link.close()
        #expect(pcscd.count(of: Self.connect) == 1 && pcscd.count(of: Self.disconnect) == 1)
        #expect(pcscd.count(of: Self.begin) == 0)
        for _ in 0..<5 { _ = try await ACR122U(over: reader).firmwareVersion() }
        #expect(pcscd.count(of: Self.connect) == 6 && pcscd.count(of: Self.disconnect) == 6)
    }

    /// IOCTL_CCID_ESCAPE is SCARD_CTL_CODE(1), 42000001 (libccid, ccid_ifdhandler.h).
    @Test("if the driver accepts only escape commands, a link sends each command as one, over one connection")
    func escape() async throws {
        let socket = PCSCSocket.folder + "/link-\(UUID().uuidString.prefix(8)).comm"
        PCSCSocket.point(to: socket)
        var behavior = FakePCSCD.Behavior()
        // Whether a driver takes other commands is asked once for each reader: this one is not that of the other tests.
        let name = "ACS ACR122U PICC Interface 07 00"
        behavior.transmit = { _, _ in .status(0x8010_0016) }
        behavior.control = { code, _ in
            code == 0x4200_0001 ? .data(Array("ACR122U216".utf8)) : .status(0x8010_0016)
        }
        let pcscd = try FakePCSCD(path: socket, readers: [.init(name)], behavior: behavior)
        defer { pcscd.stop() }
        let link = try await PCSCReader(name: name).open(exclusively: false)
        for _ in 0..<3 { #expect(try await link.transmit([0xFF, 0x00, 0x48, 0x00, 0x00]).count == 10) }
        await link.close()
        #expect(pcscd.count(of: Self.connect) == 1)
    }

    /// SCARD_W_REMOVED_CARD and SCARD_W_RESET_CARD (pcsc-lite, pcsclite.h), before anything has gone to the driver.
    @Test(
        "a link survives a card that comes or goes, and is a transaction again",
        arguments: [0x8010_0069, 0x8010_0068])
    func cardGone(_ status: UInt32) async throws {
        let socket = PCSCSocket.folder + "/link-\(UUID().uuidString.prefix(8)).comm"
        PCSCSocket.point(to: socket)
        let commands = Parameter()
        var behavior = FakePCSCD.Behavior()
        behavior.transmit = { _, _ in
            let isOver = commands.value.withLock { count in
                count &+= 1
                return count == 2
            }
            return isOver ? .status(status) : .data(Array("ACR122U216".utf8))
        }
        let pcscd = try FakePCSCD(path: socket, readers: [.init(Self.name)], behavior: behavior)
        defer { pcscd.stop() }
        let link = try await PCSCReader(name: Self.name).open(exclusively: true)
        for _ in 0..<3 { #expect(try await link.transmit([0xFF, 0x00, 0x48, 0x00, 0x00]).count == 10) }
        await link.close()
        #expect(pcscd.count(of: Self.connect) == 2 && pcscd.count(of: Self.begin) == 2)
    }

    @Test("simultaneous commands share the connection")
    func atOnce() async throws {
        let (pcscd, reader) = try bench()
        defer { pcscd.stop() }
        try await reader.withLink { link in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { _ = try await ACR122U(over: link).firmwareVersion() } }
                try await group.waitForAll()
            }
        }
        #expect(pcscd.count(of: Self.connect) == 1)
    }

    @Test("an exclusive link is one transaction; it ends when the link does")
    func exclusive() async throws {
        let (pcscd, reader) = try bench()
        defer { pcscd.stop() }
        try await reader.withLink(exclusively: true) { link in
            _ = try await ACR122U(over: link).firmwareVersion()
            #expect(pcscd.count(of: Self.begin) == 1 && pcscd.count(of: Self.disconnect) == 0)
        }
        #expect(pcscd.count(of: Self.connect) == 1 && pcscd.count(of: Self.disconnect) == 1)
    }

    @Test("a closed link rejects commands, and a released link disconnects")
    func closed() async throws {
        let (pcscd, reader) = try bench()
        defer { pcscd.stop() }
        let link = try await reader.open(exclusively: false)
        _ = try await link.transmit([0xFF, 0x00, 0x48, 0x00, 0x00])
        await link.close()
        await link.close()
        await #expect { try await link.transmit([0xFF, 0x00, 0x48, 0x00, 0x00]) } throws: {
            ($0 as? CardError)?.kind == .disconnected
        }
        #expect(pcscd.count(of: Self.disconnect) == 1)
        _ = try await reader.open(exclusively: false).transmit([0xFF, 0x00, 0x48, 0x00, 0x00])
        try await wait(for: "the second disconnection") { pcscd.count(of: Self.disconnect) >= 2 }
    }

    enum End: CaseIterable { case `return`, `throw`, cancel }

    private struct Stop: Error {}

    /// ACS API v2.04, 6.5: FF when the reader is plugged in; without bit 7 it does not look for cards.
    @Test(
        "borrowing the chip leaves the reader polling for cards, however it ends, over one connection",
        arguments: End.allCases)
    func putBack(_ end: End) async throws {
        let (pcscd, reader) = try bench()
        defer { pcscd.stop() }
        let during = Mutex<PICCOperatingParameter?>(nil)
        let work = Task {
            try await reader.withChip { chip in
                _ = try await chip.firmwareVersion()
                let parameter = try await ACR122U(over: reader).operatingParameter()
                during.withLock { $0 = parameter }
                switch end {
                case .return: return
                case .throw: throw Stop()
                case .cancel: try await Time.sleep(for: .seconds(600))
                }
            }
        }
        try await wait(for: "the parameter") { during.withLock { $0 } != nil }
        work.cancel()
        let result = await work.result
        #expect(during.withLock { $0 } == PICCOperatingParameter.initial.subtracting(.automaticPolling))
        if case .return = end { _ = try result.get() } else { #expect(throws: (any Error).self) { try result.get() } }
        let after = try await ACR122U(over: reader).operatingParameter()
        #expect(after == .initial)
        // The link's, and one for each of the two questions beside it.
        #expect(pcscd.count(of: Self.connect) == 3 && pcscd.count(of: Self.disconnect) == 3)
    }
}

/// ACS API v2.04; USB ids from libccid's readers/*.txt.
@Suite struct ModelLookupTests {
    @Test(
        "a model is identified by its ids, else by its name",
        arguments: [
            ("ACS ACR122U PICC Interface 00 00", nil, "ACS ACR122U"), ("Whatever", 0x072F_2200, "ACS ACR122U"),
            // A copy with ids of its own, and what has the Touchatag's.
            ("Some ACR122U clone", 0x1234_5678, "ACS ACR122U"), ("ACS ACR122", 0x072F_90CC, "ACS ACR122 (Touchatag)"),
            ("ACS ACR38U-CCID", 0x072F_90CC, nil), ("Built-in Contact Reader", nil, nil),
            ("NXP PN532 v1.6 on /dev/ttyUSB0", nil, "NXP PN532 board"),
        ] as [(String, UInt32?, String?)])
    func known(_ name: String, _ id: UInt32?, _ model: String?) {
        #expect(Model.of(name: name, id: id)?.name == model)
    }

    @Test("no two rows claim the same id, and every row can be found")
    func table() {
        let unshared = Model.all.filter { !$0.sharesItsIDs }.flatMap(\.ids)
        #expect(Set(unshared).count == unshared.count)
        for model in Model.all {
            #expect(!model.ids.isEmpty || !model.names.isEmpty, "\(model.name)")
            #expect(!model.sharesItsIDs || !model.names.isEmpty, "\(model.name)")
        }
    }

    @Test("the first readers' firmware is refused")
    func firmware() throws {
        let model = try #require(Model.of(name: "ACR122U", id: nil))
        #expect(throws: CardError.self) { try model.check(firmware: "ACR122U102") }
        #expect(throws: Never.self) { try model.check(firmware: "ACR122U214") }
    }
}
