import SmartCardTrace
import Testing

@Suite("The frames in a log of libccid")
struct LibCCIDLogTests {
    /// libccid 1.5.2 with an ACR122U in software; then a failure as libccid words it (src/ccid_usb.c).
    static let sample = """
        00000009 readerfactory.c:1093:RFInitializeReader() Attempting startup of ACS ACR122U PICC Interface 00 00 using /usr/lib/pcsc/drivers/ifd-ccid.bundle/Contents/Linux/libccid.so
        00000022 -> 000000 65 00 00 00 00 00 00 00 00 00\u{20}
        00001432 <- 000000 81 00 00 00 00 00 00 01 81 00\u{20}
        00000004 -> 000000 62 00 00 00 00 00 05 01 00 00\u{20}
        00001380 <- 000000 80 10 00 00 00 00 05 00 81 00 3B 8B 80 01 0B 78 80 70 02 20 63 CB B6 80 0F 3A\u{20}
        00000018 NotifySlotChange: 50 03\u{20}
        00000018 NotifySlotChange: 50 02\u{20}
        00000006 -> 000000 63 00 00 00 00 00 08 00 00 00\u{20}
        00000100 ccid_usb.c:912:ReadUSB() read failed (1/2): -4 LIBUSB_ERROR_NO_DEVICE

        """

    @Test("are messages of CCID, by reader and slot")
    func reads() throws {
        let (lines, omissions) = try imported(Self.sample, as: "libccid")
        #expect(
            lines == [
                #"0.000000000 reader usb "ACS ACR122U PICC Interface 00 00""#,
                "0.000000000 > ccid 65000000000000000000",
                "0.001432000 < ccid 81000000000000018100",
                "0.001436000 > ccid 62000000000005010000",
                "0.002816000 < ccid 801000000000050081003B8B80010B788070022063CBB6800F3A",
                "0.002852000 slot empty",
                "0.002858000 > ccid 63000000000008000000",
                #"0.002958000 ! ccid readerGone "-4 LIBUSB_ERROR_NO_DEVICE""#,
            ])
        #expect(omissions == ["notices that a slot has changed": 1])
    }

    @Test("of several slots are told apart by the number of the reader and bSlot")
    func slots() throws {
        let text = """
            -> 000000 62 00 00 00 00 00 01 00 00 00
            -> 000000 62 00 00 00 00 01 02 00 00 00
            -> 000001 62 00 00 00 00 00 03 00 00 00
            <- 000001 80 00 00 00 00 00 03 00 00 00
            <- 000000 80 00 00 00 00 00 01 00 00 00

            """
        for (slot, sequences) in [(0, ["01", "01"]), (1, ["02"]), (2, ["03", "03"])] {
            let lines = try imported(text, as: "libccid", slot: slot).lines
            #expect(lines.map { String($0.dropFirst(31).prefix(2)) } == sequences)
        }
    }

    @Test("leave the log to pcscd's importer where it has APDUs, too")
    func withAPDUs() throws {
        let text = "00000004 APDU: 00 A4 00 00 \n00000004 -> 000000 6F 04 00 00 00 00 01 00 00 00 00 A4 00 00 \n"
        #expect(try imported(text, as: "pcscd").lines == ["0.000000000 > apdu 00A40000"])
    }
}
