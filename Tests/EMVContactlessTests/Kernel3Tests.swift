import EMVContactless
import SmartCard
import Testing

/// A made-up card that asks to go online; 4761739001010010 is Visa's published test account number.
private let aip = "82 02 00 00"
private let track2 = "57 11 47 61 73 90 01 01 00 10 D3 11 22 01 11 43 80 44 89"
private let arqc = """
    9F 10 07 06 01 12 03 A0 00 00    # issuer application data: DKI 01, CVN 18, CVR with an ARQC
    9F 26 08 4A 8C F7 AC 9A 93 78 A0  9F 27 01 80  9F 36 02 00 42
    """

@Suite struct Kernel3Tests {
    @Test func allInTheProcessingOptions() throws {
        let run = try Kernel3Bench().run(template(0x77, aip, track2, arqc, "9F 6C 02 00 00"))
        #expect(run.commands == [try bytes(Kernel3Bench.gpo).hex])
        #expect(run.outcome.kind == .onlineRequest)
    }
}
