import SmartCard
import Testing

@testable import SmartCardSimulator

/// Frames captured from real readers; each names the report it was published in.
@Suite struct ACR122UTranscriptTests {
    // MARK: No card

    @Test func firmwareStringWithoutStatusWord() {
        // nfcpy#154, firmware 2.16
        #expect(
            ACR122UBus(.firmware216).send("6F 05000000 00 00 00 0000  FF 00 48 00 00")
                == ["80 0A 00 00 00 00 00 02 81 00 41 43 52 31 32 32 55 32 31 36"])
    }

    @Test func powerOnWithoutCard() {
        // nfcpy#154, libnfc
        #expect(
            ACR122UBus(.firmware216).send("62 00000000 00 00 00 0000")
                == ["80 02 00 00 00 00 00 00 81 00 3B 00"])
    }

    @Test func setOperatingParameter() {
        // nfcpy#154
        #expect(
            ACR122UBus(.firmware216).send("6F 05000000 00 00 00 0000  FF 00 51 7F 00")
                == ["80 02 00 00 00 00 00 02 81 00 90 7F"])
        // nfcpy#105, firmware 2.15, after a timeout: the parameter alone
        let bus = ACR122UBus(.firmware215)
        _ = bus.send("6F 05000000 00 00 00 0000  00 84 00 00 08")
        #expect(
            bus.send("6F 05000000 00 00 00 0000  FF 00 51 7F 00")
                == ["80 01 00 00 00 00 00 02 FE 00 7F"])
    }

    @Test func lights() {
        // nfcpy#154
        #expect(
            ACR122UBus(.firmware216).send("6F 09000000 00 00 00 0000  FF 00 40 0E 04 00 00 00 00")
                == ["80 02 00 00 00 00 00 02 81 00 90 02"])
    }

    @Test func chipVersionByEscape() {
        // libnfc, comments of acr122_usb.c.  The chip is of revision 4 as in our 2.07; bSeq 0A.
        var profile = ACR122UProfile.firmware216
        profile.chipRevision = 0x04
        #expect(
            ACR122UBus(profile).send("6B 07000000 00 0A 00 0000  FF 00 00 00 02 D4 02")
                == ["83 08 00 00 00 00 0A 02 81 00 D5 03 32 01 04 07 90 00"])
    }

    @Test func configureRadio() {
        // libnfc#666
        #expect(
            ACR122UBus(.firmware214).send("6F 0B000000 00 00 00 0000  FF 00 00 00 06 D4 32 05 00 01 02")
                == ["80 04 00 00 00 00 00 00 81 00 D5 33 90 00"])
    }

    @Test func listWithoutCard() {
        // libnfc#666
        #expect(
            ACR122UBus(.firmware214).send("6F 09000000 00 00 00 0000  FF 00 00 00 04 D4 4A 01 00")
                == ["80 05 00 00 00 00 00 00 81 00 D5 4B 00 90 00"])
    }

    // MARK: With a card

    @Test func listClassic() {
        // libnfc#476: MIFARE Classic 1K, after a timeout; the reader gave SENS_RES as 04 00.
        let card = TableCard(.typeA(uid: bytes("82 AC B9 5D"), atqa: [0x04, 0x00], sak: 0x08, ats: nil))
        let bus = ACR122UBus(.firmware214)
        _ = bus.send("6F 05000000 00 00 00 0000  00 84 00 00 08")
        bus.reader.insert(card)
        #expect(
            bus.send("6F 09000000 00 00 00 0000  FF 00 00 00 04 D4 4A 01 00")
                == ["80 0E 00 00 00 00 00 00 FE 00 D5 4B 01 01 04 00 08 04 82 AC B9 5D 90 00"])
        // InDeselect, libnfc#476
        #expect(
            bus.send("6F 08000000 00 00 00 0000  FF 00 00 00 03 D4 44 00")
                == ["80 05 00 00 00 00 00 00 FE 00 D5 45 00 90 00"])
    }

    @Test func listWithoutAutomaticRATS() {
        // libnfc#263: SAK 28, RATS not sent.
        let card = TableCard(
            .typeA(uid: bytes("A0 D9 89 78"), atqa: [0x00, 0x04], sak: 0x28, ats: bytes("05 78 80 70 02")))
        let bus = ACR122UBus(.firmware214, card: card)
        #expect(bus.apdu("FF 00 00 00 03 D4 12 04") == "D5 13 90 00")
        #expect(
            bus.send("6F 09000000 00 00 00 0000  FF 00 00 00 04 D4 4A 01 00")
                == ["80 0E 00 00 00 00 00 00 81 00 D5 4B 01 01 00 04 28 04 A0 D9 89 78 90 00"])
    }

    @Test func timeout() {
        // libnfc#263: an exchange that times out is a success without data and with bError FE.
        let card = TableCard(
            .typeA(uid: bytes("A0 D9 89 78"), atqa: [0x00, 0x04], sak: 0x28, ats: bytes("05 78 80 70 02")))
        let bus = ACR122UBus(.firmware214, card: card)
        #expect(bus.apdu("FF 00 00 00 04 D4 4A 01 00").hasPrefix("D5 4B 01 "))
        #expect(
            bus.send("6F 13000000 00 00 00 0000  FF 00 00 00 0E D4 40 01 00 A4 04 00 06 F7 52 46 54 41 01")
                == ["80 00 00 00 00 00 00 00 FE 00"])
        // … which stays for all that follows.
        #expect(
            bus.send("6F 05000000 00 00 00 0000  FF 00 48 00 00").map { $0.prefix(29) }
                == ["80 0A 00 00 00 00 00 00 FE 00"])
    }

    // MARK: Stale frames

    /// nfcpy#167 and #200: the first answer twice, so a host that does not look at bSeq reads one behind.
    @Test func staleFirstFrame() {
        let bus = ACR122UBus(.firmware216, faults: [ACR122UFault(.staleFrame)])
        let name = "80 0A 00 00 00 00 00 02 81 00 41 43 52 31 32 32 55 32 31 36"
        var pipe = bus.send("6F 05000000 00 00 00 0000  FF 00 48 00 00")
        #expect(pipe.removeFirst() == name)
        pipe += bus.send("62 00000000 00 00 00 0000")
        #expect(pipe.removeFirst() == name)
        pipe += bus.send("6F 05000000 00 00 00 0000  FF 00 51 7F 00")
        #expect(pipe.removeFirst() == "80 02 00 00 00 00 00 00 81 00 3B 00")
    }

    /// libnfc#201: the Touchatag does not know Escape.
    @Test func escapeRefused() {
        var profile = ACR122UProfile.firmware214
        profile.hasEscape = false
        #expect(
            ACR122UBus(profile).send("6B 07000000 00 00 00 0000  FF 00 00 00 02 D4 02")
                == ["83 00 00 00 00 00 00 41 05 00"])
    }
}
