import SmartCard
import SmartCardPCSC
import TestSupport
import Testing

/// A card that Debian's pcscd takes for mute, although it answers: what happens to one that leaves the field while pcscd powers it.
@Suite struct MuteCardTests {
    @Test(
        "A mute card is powered once more, and found",
        .pcscExclusive, .timeLimit(.minutes(4)),
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func poweredAgain() async throws {
        let process = try await VirtualReaderProcess(host: "umockdev")
        PCSCSocket.point(to: process.socket)
        let reader = try #require(try await PCSCService().readers().first)
        try process.perform("fault mute-card")
        try process.perform("insert visa")
        for try await state in reader.slotStates() where state == .muteCard { break }
        // pcscd does not try again by itself.
        try process.perform("fault none")
        #expect(try await reader.waitForCard().defects.isEmpty)
        let card = try await reader.connect()
        #expect(try await card.transmit(.select(Array("2PAY.SYS.DDF01".utf8))).status == .success)
        await card.disconnect(.leave)
    }
}
