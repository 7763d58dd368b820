import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

@Suite struct ACR122UDescriptorTests {
    /// lsusb dumps of firmware 2.07 and 2.14 (nfcpy#28, coinkite-tap-proto#37, libnfc#646).
    @Test func device() {
        expectEqual(
            SoftwareACR122U(profile: .firmware207).deviceDescriptor,
            bytes("12 01 10 01 00 00 00 08 2F 07 00 22 07 02 01 02 00 01"))
        expectEqual(
            SoftwareACR122U(profile: .firmware214).deviceDescriptor,
            bytes("12 01 10 01 00 00 00 40 2F 07 00 22 14 02 01 02 00 01"))
        expectEqual(ACR122UProfile.all.map(\.deviceRelease), [0x0207, 0x0214, 0x0215, 0x0216])
    }

    /// libccid's readers/ACR122U_PICC.txt.
    @Test func configuration() {
        let expected = bytes(
            """
            09 02 5D 00 01 01 00 80 64
            09 04 00 00 03 0B 00 00 00
            36 21 00 01 00 07 02 00 00 00 A0 0F 00 00 A0 0F 00 00 00
            00 2A 00 00 90 D0 03 00 00 00 01 00 00 00 00 00 00 00 00 00
            00 40 00 02 00 0F 01 00 00 00 00 00 00 00 01
            07 05 81 03 08 00 02
            07 05 02 02 40 00 00
            07 05 82 02 40 00 00
            """)
        let reader = SoftwareACR122U()
        expectEqual(reader.configurationDescriptor, expected)
        expectEqual(reader.configurationDescriptor.count, 93)
        expectEqual(reader.strings, ["ACS", "ACR122U PICC Interface"])
    }

    @Test func controlRequests() {
        let reader = SoftwareACR122U(profile: .firmware214)
        expectEqual(reader.control(setup: bytes("00 09 01 00 00 00 00 00"), data: []), [])
        expectEqual(reader.control(setup: bytes("80 08 00 00 00 00 01 00"), data: []), [0x01])
        // CLEAR_FEATURE(ENDPOINT_HALT) of 82
        expectEqual(reader.control(setup: bytes("02 01 00 00 82 00 00 00"), data: []), [])
        // GET_DATA_RATES: nothing but zeros (pyscard#18).
        expectEqual(reader.control(setup: bytes("A1 03 00 00 00 00 08 00"), data: []), [UInt8](repeating: 0, count: 8))
        // ABORT
        expectEqual(reader.control(setup: bytes("21 01 00 00 00 00 00 00"), data: []), nil)
        expectEqual(reader.control(setup: [], data: []), nil)
    }

    @Test func clonesStallSetInterface() {
        var profile = ACR122UProfile.firmware207
        let setInterface = bytes("01 0B 00 00 00 00 00 00")
        expectEqual(SoftwareACR122U(profile: profile).control(setup: setInterface, data: []), [])
        profile.stallsSetInterface = true
        expectEqual(SoftwareACR122U(profile: profile).control(setup: setInterface, data: []), nil)
    }
}
