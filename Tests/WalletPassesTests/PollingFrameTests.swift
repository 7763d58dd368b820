import SmartCard
import Testing

@testable import WalletPasses

/// Frames against kormax' table; those of passes and of Transport for London were also sniffed by proxmark3.
@Suite struct PollingFrameTests {
    @Test(
        "Each frame is that of the published table",
        arguments: [
            (PollingFrame.passOrPayment, "6A01000000"), (.passAndPayment, "6A01000001"), (.passOnly, "6A01000002"),
            (.payment, "6A01000003"), (.ignore, "6A01CF0000"), (.identity, "6A0281030000"),
            (.transportForLondon, "6A02C801000300027900000000"),
        ])
    func frames(_ frame: PollingFrame, _ bytes: String) { #expect(frame.bytes.hex == bytes) }

    @Test("Frames are built from their parts, within the lengths that their bytes can state")
    func parts() {
        #expect(PollingFrame(capabilities: [0xC3, 0x00, 0x00])?.bytes.hex == "6A01C30000")
        #expect(PollingFrame(capabilities: [0xC3, 0x00]) == nil)
        #expect(PollingFrame(.identity, presentment: .automatic, data: [0x00]) == .identity)
        #expect(PollingFrame(.access, presentment: [], data: [UInt8](repeating: 0, count: 16)) == nil)
        #expect(PollingFrame(.access, presentment: .init(rawValue: 0x01), data: []) == nil)
        #expect(
            PollingFrame.transit(operatorCode: (1, 2, 3), networks: [.jcb, .visa]).bytes.hex
                == "6A02C801000102032001000000")
    }

    @Test("The frame follows from what the tap is for")
    func modes() {
        let frames = AppleVAS.Mode.allCases.map { PollingFrame(for: $0) }
        #expect(frames == [.passOrPayment, .passAndPayment, .passOnly, .payment])
    }
}
