import SmartCard
import SmartCardPCSC
import TestSupport
import Testing

/// A card that Debian's pcscd takes for mute, although it answers: what happens to one that leaves the field while pcscd powers it.
@Suite(
    .pcscExclusive, .serialized, .timeLimit(.minutes(4)),
    .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
struct MuteCardTests {
    /// Puts a card on the reader that answers only after pcscd has powered it.  pcscd does not try again by itself.
    private func reader(of process: VirtualReaderProcess) async throws -> PCSCReader {
        PCSCSocket.point(to: process.socket)
        let reader = try #require(try await PCSCService().readers().first)
        try process.perform("fault mute-card")
        try process.perform("insert visa")
        for try await state in reader.slotStates() where state == .muteCard { break }
        try process.perform("fault none")
        return reader
    }

    @Test("A mute card is powered once more, and found")
    func poweredAgain() async throws {
        let process = try await VirtualReaderProcess(host: "umockdev")
        let reader = try await reader(of: process)
        #expect(try await reader.waitForCard().defects.isEmpty)
        let card = try await reader.connect()
        #expect(try await card.transmit(.select(Array("2PAY.SYS.DDF01".utf8))).status == .success)
        await card.disconnect(.leave)
    }

    @Test("The doctor has it powered, before it says that a card is faulty")
    func doctor() async throws {
        let process = try await VirtualReaderProcess(host: "umockdev")
        _ = try await reader(of: process)
        let outcome = try await Program.run(
            [Program.built("reader-probe"), "doctor", "--timeout", "0"],
            environment: ["PCSCLITE_CSOCK_NAME": process.socket])
        #expect(outcome.output.contains("FFCA000000 was answered with 9000"), "\(outcome)")
    }
}
