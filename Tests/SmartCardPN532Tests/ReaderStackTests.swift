import Foundation
import SmartCard
import SmartCardPCSC
import SmartCardPN532
import TestSupport
import Testing

/// The same through Debian's pcscd and libccid, over a software ACR122U under umockdev.
@Suite(
    .timeLimit(.minutes(5)), .pcscExclusive, .serialized,
    .enabled(if: umockdevObstacle == nil, "\(umockdevObstacle ?? "")"))
struct ReaderStackTests {
    @Test func everythingOverPCSC() async throws {
        let process = try await VirtualReaderProcess(host: "umockdev")
        PCSCSocket.point(to: process.socket)
        let reader = try #require(try await PCSCService().readers().first)

        // The reader, with no card on it.
        let acr = ACR122U(over: reader)
        #expect(try await acr.firmwareVersion() == "ACR122U216")
        #expect(try await acr.setLights(.steady(green: true)) == .green)
        #expect(try await acr.chip.firmwareVersion().chip == 0x32)
        let nothing = try await acr.withChip { try await $0.poll([.typeA, .typeB], within: .zero) }
        #expect(nothing == nil)
        #expect(try await acr.operatingParameter().rawValue == 0xFF)

        // 2.4 s of blinking, where libccid waits 3 s for an answer.
        let blink = Blinking(on: 2, off: 2, times: 6)
        let time = try await ContinuousClock().measure {
            try await acr.setLights([.blinkGreen, .startGreen], blinking: blink)
        }
        #expect(time >= .milliseconds(2350))

        func card(_ name: String) async throws -> any CardConnection {
            try process.perform("remove")
            try process.perform("insert \(name)")
            _ = try await reader.waitForCard()
            return try await reader.connect()
        }

        // MIFARE Classic: a wrong key, and the card is there again for the right one.
        var connection = try await card("mifare-classic-1k")
        let classic = MIFAREClassic(connection)
        await #expect(throws: TagError.authenticationFailed(block: 8)) {
            try await classic.authenticate(block: 8, with: .delivery)
        }
        #expect(try await classic.readSector(1, with: .delivery).starts(with: Array("swift-contactless".utf8)))
        await connection.disconnect(.powerOff)

        // Type 2 and Type 4 Tag: version, message read, message written.
        connection = try await card("ntag213")
        #expect(try await Type2Tag(connection).version()?.name == "NTAG213")
        try await rewrite(Type2Tag(connection))
        await connection.disconnect(.powerOff)
        connection = try await card("ndef-type4")
        try await rewrite(Type4Tag(connection))
        await connection.disconnect(.powerOff)
    }

    private func rewrite(_ tag: some NDEFTag) async throws {
        #expect(try await tag.readNDEF().records.map(\.uri) == ["https://swift.org"])
        let new = NDEFMessage([try #require(.text(String(repeating: "long ", count: 20), language: "en"))])
        try await tag.writeNDEF(new)
        #expect(try await tag.readNDEF() == new)
    }
}

/// Why the stack cannot be had on this machine; nil if it can.
private let umockdevObstacle: String? = {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
    let found = folders.contains { FileManager.default.fileExists(atPath: "\($0)/libumockdev-preload.so.0") }
    return found ? PrivatePCSCD.obstacle : "umockdev is not installed"
}()
