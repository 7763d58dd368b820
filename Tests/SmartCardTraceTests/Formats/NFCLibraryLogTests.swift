import SmartCardTrace
import Testing

@Suite("Logs of libnfc and nfcpy")
struct NFCLibraryLogTests {
    /// https://github.com/nfc-tools/libnfc/issues/691, made shorter.
    static let libnfc = """
        debug   libnfc.general  log_level is set to 3
        debug   libnfc.driver.acr122_usb        device found: Bus 003 Device 012 Name ACS ACR122
        debug   libnfc.driver.acr122_usb        3 element(s) have been decoded from "acr122_usb:003:012"
        debug   libnfc.driver.acr122_usb        TX: 62 00 00 00 00 00 00 01 00 00\u{20}
        debug   libnfc.driver.acr122_usb        RX: 80 02 00 00 00 00 00 00 81 00 3b 00\u{20}
        debug   libnfc.chip.pn53x       GetFirmwareVersion
        debug   libnfc.driver.acr122_usb        TX: 6f 07 00 00 00 00 00 00 00 00 ff 00 00 00 02 d4 02\u{20}
        error   libnfc.driver.acr122_usb        Unable to read

        """

    /// https://github.com/nfcpy/nfcpy/issues/105, made shorter.
    static let nfcpy = """
        [nfc.clf] searching for reader on path usb
        [nfc.clf.transport] using libusb-1.0.21
        [nfc.clf.transport] >>> 6f050000000000000000ff00480000
        [nfc.clf.transport] <<< 800a000000000002fe0041435231323255323135
        [nfc.clf.acr122] initialize ACR122U215
        [nfc.clf.transport] >>> 62000000000000000000
        [nfc.clf.transport] <<< 800200000000000281003b00

        """

    @Test("of libnfc with an ACR122 are messages of CCID")
    func acr122() throws {
        let (lines, omissions) = try imported(Self.libnfc, as: "libnfc")
        #expect(
            lines.map { String($0.dropFirst(12)) } == [
                #"reader usb "ACS ACR122""#,
                "> ccid 62000000000000010000",
                "< ccid 800200000000000081003B00",
                "> ccid 6F070000000000000000FF00000002D402",
                #"! ccid other "Unable to read""#,
            ])
        #expect(omissions == ["lines without frames": 2])
    }

    /// Frames of https://github.com/nfc-tools/libnfc/issues/534 and 86, in the pieces in which a serial line gives them.
    @Test("of libnfc with a PN532 are its frames, put together")
    func pn532() throws {
        let text = """
            debug\tlibnfc.bus.uart\tTX: 55 55 00 00 00 00 00 00 00 00 00 00 00 00 00 00\u{20}
            debug\tlibnfc.bus.uart\tTX: 00 00 ff 03 fd d4 44 00 e8 00\u{20}
            debug\tlibnfc.bus.uart\tRX: 00 00 ff 00 ff 00\u{20}
            debug\tlibnfc.bus.uart\tRX: 00 00 ff 03 fd\u{20}
            debug\tlibnfc.bus.uart\tRX: d5 45 00 e6 00\u{20}

            """
        let (lines, omissions) = try imported(text, as: "libnfc")
        #expect(lines == ["0.000000000 > pn532 0000FF03FDD44400E800", "0.000000000 < pn532 0000FF03FDD54500E600"])
        #expect(omissions == ["bytes that are no frame of a PN532": 1, "acknowledgments of a PN532": 1])
    }

    @Test("of nfcpy, in its own words and those of Python's logging")
    func nfcpy() throws {
        let lines = [
            "> ccid 6F050000000000000000FF00480000", "< ccid 800A000000000002FE0041435231323255323135",
            "> ccid 62000000000000000000", "< ccid 800200000000000281003B00",
        ]
        #expect(try imported(Self.nfcpy, as: "nfcpy").lines.map { String($0.dropFirst(12)) } == lines)
        let python = Self.nfcpy.replacing("[nfc.clf.transport] ", with: "DEBUG:nfc.clf.transport:")
        #expect(try imported(python, as: "nfcpy").lines.map { String($0.dropFirst(12)) } == lines)
        let timed = "12 ms [nfc.clf.transport] >>> 0000ff02fed4022a00\n15 ms [nfc.clf.transport] <<< 0000ff00ff00\n"
        let (frames, omissions) = try imported(timed, as: "nfcpy")
        #expect(frames == ["0.000000000 > pn532 0000FF02FED4022A00"])
        #expect(omissions == ["acknowledgments of a PN532": 1])
    }

    @Test("with a frame of a PN532 that is longer than what there is of it: that is told")
    func cutFrames() throws {
        let cut = ["frames of a PN532 without their end": 1]
        let nfcpy =
            "12 ms [nfc.clf.transport] >>> 0000ff05fbd4022a00\n13 ms [nfc.clf.transport] >>> 0000ff02fed4022a00\n"
        let (lines, omissions) = try imported(nfcpy, as: "nfcpy")
        #expect(lines == ["0.000000000 > pn532 0000FF02FED4022A00"])
        #expect(omissions == cut)
        let next = "debug\tlibnfc.bus.uart\tTX: 00 00 ff 03 fd d4 44 00 e8 00\n"
        let part = "debug\tlibnfc.bus.uart\tRX: 00 00 ff 03 fd\n"
        #expect(try imported(next + part, as: "libnfc").omissions == cut)
        #expect(try imported(next + part + next, as: "libnfc").omissions == cut)
    }
}
