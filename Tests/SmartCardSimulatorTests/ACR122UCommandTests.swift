import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// Pseudo-APDUs of the ACS ACR122U API v2.04, and the PN532 behind `FF 00 00 00` (NXP UM0701-02).
@Suite struct ACR122UCommandTests {
    // MARK: Cards

    @Test func identifierAndATS() {
        let bus = ACR122UBus(card: TableCard.desfire)
        expectEqual(bus.apdu("FF CA 00 00 00"), "63 00", "nothing is selected yet")
        bus.powerOn()
        expectEqual(bus.apdu("FF CA 00 00 00"), "04 1C 2B 3A 49 58 67 90 00")
        expectEqual(bus.apdu("FF CA 00 00 04"), "63 00", "an Le too short for the UID")
        // API v2.04, 3.1.2
        expectEqual(bus.apdu("FF CA 01 00 00"), "06 75 77 81 02 80 90 00")
        expectEqual(bus.apdu("FF CA 02 00 00"), "6A 81")

        let classic = ACR122UBus(card: TableCard.typeA(sak: 0x08))
        classic.powerOn()
        expectEqual(classic.apdu("FF CA 00 00 00"), "82 AC B9 5D 90 00")
        expectEqual(classic.apdu("FF CA 01 00 00"), "6A 81", "no ATS without ISO-DEP")
    }

    @Test func identifierOfTypeB() {
        let bus = ACR122UBus(card: TableCard(.typeB(atqb: bytes("50 12 23 45 56 12 53 54 4E 33 81 C3"))))
        bus.powerOn()
        expectEqual(bus.apdu("FF CA 00 00 00"), "12 23 45 56 90 00")
        expectEqual(bus.apdu("FF CA 01 00 00"), "6A 81")
    }

    @Test func cardAPDUs() {
        let select = "00 A4 04 00 07 A0 00 00 00 03 10 10 00"
        let card = TableCard(
            .typeA(uid: bytes("01 02 03 04"), atqa: [0x00, 0x04], sak: 0x20, ats: bytes("05 78 80 70 02")),
            [select: "6F 03 84 01 AA 90 00", "60": "AF", "90 60 00 00 00": "04 01 01"])
        let bus = ACR122UBus(card: card)
        expectEqual(bus.apdu(select), "", "not before IccPowerOn")
        bus.powerOn()
        expectEqual(card.history(), ["reset", "reset"])
        expectEqual(bus.apdu(select), "6F 03 84 01 AA 90 00")
        expectEqual(card.history(), [select])
        // A native answer of one byte gets a status word (API v2.04, 7.2), a longer one does not.
        expectEqual(bus.apdu("60"), "AF 90 00")
        expectEqual(bus.apdu("90 60 00 00 00"), "04 01 01")
        // An unknown command: the card is silent.
        expectEqual(bus.send("6F 05000000 00 07 00 0000 00 B2 01 0C 00"), ["80 00 00 00 00 00 07 00 FE 00"])
        // Off, and on again.
        expectEqual(bus.send("63 00000000 00 08 00 0000"), ["81 00 00 00 00 00 08 01 FE 00"])
        expectEqual(bus.apdu(select), "")
        expectEqual(bus.powerOn(), "3B 85 80 01 05 78 80 70 02 8B".replacingTCK)
        expectEqual(bus.apdu(select), "6F 03 84 01 AA 90 00")
    }

    @Test func classicAuthenticatesReadsAndWrites() {
        // As a PN532 sends it: 60 block key UID.
        let card = TableCard.typeA(
            sak: 0x08,
            native: [
                "60 04 FF FF FF FF FF FF 82 AC B9 5D": "",
                "61 04 A0 A1 A2 A3 A4 A5 82 AC B9 5D": "",
                "30 04": "00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F",
                "A0 05 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F": "",
            ])
        let bus = ACR122UBus(card: card)
        bus.powerOn()
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 04 60 00"), "63 00", "no key loaded")
        expectEqual(bus.apdu("FF 82 00 00 06 FF FF FF FF FF FF"), "90 00")
        expectEqual(bus.apdu("FF 82 00 01 06 A0 A1 A2 A3 A4 A5"), "90 00")
        expectEqual(bus.apdu("FF 82 00 02 06 FF FF FF FF FF FF"), "63 00", "two slots")
        expectEqual(bus.apdu("FF 82 00 00 05 FF FF FF FF FF"), "63 00")
        // API v2.04, 5.2: both forms
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 04 60 00"), "90 00")
        expectEqual(bus.apdu("FF 88 00 04 61 01"), "90 00")
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 04 61 00"), "63 00", "the other key")
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 04 62 00"), "63 00")
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 04 60 02"), "63 00")
        // 5.3: read; 5.4: update
        expectEqual(bus.apdu("FF B0 00 04 10"), "00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 90 00")
        expectEqual(bus.apdu("FF B0 00 04 04"), "00 01 02 03 90 00")
        expectEqual(bus.apdu("FF B0 00 04 11"), "63 00")
        expectEqual(bus.apdu("FF B0 00 05 10"), "63 00", "refused by the card")
        expectEqual(bus.apdu("FF D6 00 05 10 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F"), "90 00")
        expectEqual(bus.apdu("FF D6 00 06 10 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F"), "63 00")
        expectEqual(bus.apdu("FF D6 00 05 03 00 01 02"), "63 00")
    }

    @Test func ultralightWritesPages() {
        let card = TableCard.typeA(
            sak: 0x00,
            native: ["A2 04 01 02 03 04": "", "30 04": "01 02 03 04 00 00 00 00 00 00 00 00 00 00 00 00"])
        let bus = ACR122UBus(card: card)
        bus.powerOn()
        expectEqual(bus.apdu("FF D6 00 04 04 01 02 03 04"), "90 00")
        expectEqual(bus.apdu("FF B0 00 04 04"), "01 02 03 04 90 00")
    }

    @Test func valueBlocks() {
        // A value block of 1, and the commands on the radio: values least significant byte first.
        let one = "01 00 00 00 FE FF FF FF 01 00 00 00 05 FA 05 FA"
        let card = TableCard.typeA(
            sak: 0x08,
            native: [
                "A0 05 \(one)": "", "30 05": one, "30 06": "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
                "C1 05 05 00 00 00": "", "C0 05 02 01 00 00": "", "B0 05": "",
                "C2 05 00 00 00 00": "", "B0 06": "",
            ])
        let bus = ACR122UBus(card: card)
        bus.powerOn()
        _ = card.history()
        // API v2.04, 5.5: store 1, most significant byte first
        expectEqual(bus.apdu("FF D7 00 05 05 00 00 00 00 01"), "90 00")
        expectEqual(bus.apdu("FF B1 00 05 04"), "00 00 00 01 90 00")
        expectEqual(bus.apdu("FF B1 00 06 04"), "63 00", "no value block")
        expectEqual(bus.apdu("FF D7 00 05 05 01 00 00 00 05"), "90 00")
        expectEqual(bus.apdu("FF D7 00 05 05 02 00 00 01 02"), "90 00")
        expectEqual(bus.apdu("FF D7 00 05 02 03 06"), "90 00")
        expectEqual(
            card.history(),
            [
                "native A0 05 \(one)", "native 30 05", "native 30 06",
                "native C1 05 05 00 00 00", "native B0 05", "native C0 05 02 01 00 00", "native B0 05",
                "native C2 05 00 00 00 00", "native B0 06",
            ])
        expectEqual(bus.apdu("FF D7 00 05 02 03 08"), "63 00", "another sector")
        expectEqual(bus.apdu("FF D7 00 05 05 04 00 00 00 05"), "63 00")
    }

    // MARK: The reader itself

    @Test func operatingParameter() {
        let bus = ACR122UBus(.firmware214)
        expectEqual(bus.apdu("FF 00 50 00 00"), "90 FF")
        expectEqual(bus.apdu("FF 00 51 3F 00"), "90 3F")
        expectEqual(bus.apdu("FF 00 50 00 00"), "90 3F")
    }

    /// The type bits of the operating parameter decide what is found.
    @Test func operatingParameterSelectsTypes() {
        let bus = ACR122UBus(card: TableCard.typeA(sak: 0x08))
        expectEqual(bus.apdu("FF 00 51 FE 00"), "90 FE")
        expectEqual(bus.powerOn(), "3B 00")
        expectEqual(bus.send("65 00000000 00 00 00 0000"), ["81 00 00 00 00 00 00 02 81 00"])
        expectEqual(bus.apdu("FF 00 51 FF 00"), "90 FF")
        #expect(bus.powerOn() != "3B 00")
    }

    @Test func lightsTakeTheirTime() {
        let bus = ACR122UBus(.firmware214)
        // API v2.04, 6.2, example: both blink, T1 200 ms, T2 300 ms, 4 times.
        bus.reader.transferOut(endpoint: 0x02, bytes("6F 09000000 00 00 00 0000 FF 00 40 F0 04 02 03 04 01"))
        expectEqual(
            bus.events(),
            [
                .ready(
                    endpoint: 0x82, bytes: bytes("80 02000000 00 00 00 81 00 90 01"), delay: .milliseconds(2000))
            ])
        expectEqual(bus.apdu("FF 00 40 0F 04 00 00 00 00"), "90 03")
        expectEqual(bus.apdu("FF 00 40 04 04 00 00 00 00"), "90 02")
        expectEqual(bus.apdu("FF 00 40 03 04 00 00 00 00"), "90 02", "without masks nothing changes")
        expectEqual(bus.apdu("FF 00 40 0F 03 00 00 00"), "63 00")
    }

    @Test func timeoutAndBuzzer() {
        let bus = ACR122UBus(.firmware214)
        expectEqual(bus.apdu("FF 00 41 01 00"), "90 00")
        expectEqual(bus.apdu("FF 00 52 00 00"), "90 00")
        expectEqual(bus.apdu("FF 00 52 FF 00"), "90 00")
        expectEqual(bus.apdu("FF 00 52 01 00"), "63 00")
        // chrome-nfc#14
        expectEqual(ACR122UBus(.firmware207).apdu("FF 00 52 00 00"), "63 00")
    }

    @Test func firmwareStrings() {
        expectEqual(
            ACR122UProfile.all.map { ACR122UBus($0).apdu("FF 00 48 00 00") },
            ["32 30 37", "32 31 34", "32 31 35", "32 31 36"].map { "41 43 52 31 32 32 55 " + $0 })
    }

    @Test(arguments: [
        "FF", "FF 00", "FF 00 00 00", "FF 99 00 00 00", "FF 00 00 00 05 D4 02", "FF 86 00 00 05 02 00 04 60 00",
    ])
    func malformedPseudoAPDUs(apdu: String) {
        #expect(["63 00", "63 7F"].contains(ACR122UBus(card: TableCard.desfire).apdu(apdu)))
    }

    // MARK: PN532

    func chip(_ bus: ACR122UBus, _ command: String) -> String {
        let data = bytes(command)
        return bus.apdu("FF 00 00 00 \([UInt8(data.count)].hex) \(command)")
    }

    @Test func chipCommands() {
        let bus = ACR122UBus(.firmware216)
        expectEqual(chip(bus, "D4 02"), "D5 03 32 01 06 07 90 00")
        expectEqual(chip(bus, "D4 00 00 01 02 03"), "D5 01 00 01 02 03 90 00", "Diagnose echoes")
        expectEqual(chip(bus, "D4 04"), "D5 05 00 00 00 80 90 00", "ACS API v2.04, 7.5: no tag")
        expectEqual(chip(bus, "D4 12 14"), "D5 13 90 00")
        expectEqual(chip(bus, "D4 14 01"), "D5 15 90 00")
        expectEqual(chip(bus, "D4 08 63 05 40 63 0D 01"), "D5 09 90 00")
        expectEqual(chip(bus, "D4 06 63 0D 63 05 63 00"), "D5 07 01 40 00 90 00")
        expectEqual(chip(bus, "D4 32 02 00 0B 0A"), "D5 33 90 00")
        // Unknown commands and lengths that are wrong: the chip's error frame.
        for command in ["D4 99", "D4", "D4 40", "D4 32 01", "D4 4A 03 00", "D4 4A 01", "D4 06 63", "D5 02", "D4 12"] {
            expectEqual(chip(bus, command), "63 7F", "\(command)")
        }
        // No target: not in this context.
        expectEqual(chip(bus, "D4 40 01 00 A4 04 00"), "D5 41 27 90 00")
        expectEqual(chip(bus, "D4 54 01"), "D5 55 27 90 00")
        expectEqual(chip(bus, "D4 52 00"), "D5 53 00 90 00")
    }

    @Test func listTypeAWithATS() {
        let bus = ACR122UBus(card: TableCard.desfire)
        expectEqual(chip(bus, "D4 4A 01 00"), "D5 4B 01 01 03 44 20 07 04 1C 2B 3A 49 58 67 06 75 77 81 02 80 90 00")
        expectEqual(chip(bus, "D4 04"), "D5 05 00 00 01 01 00 00 00 80 90 00")
        // By UID, with the cascade tag
        #expect(chip(bus, "D4 4A 01 00 88 04 1C 2B 3A 49 58 67").hasPrefix("D5 4B 01 01 "))
        expectEqual(chip(bus, "D4 4A 01 00 88 04 1C 2B 3A 49 58 68"), "D5 4B 00 90 00")
        expectEqual(chip(bus, "D4 4A 01 03 00"), "D5 4B 00 90 00", "no type B")
    }

    @Test func listTypeB() {
        let bus = ACR122UBus(
            card: TableCard(.typeB(atqb: bytes("50 12 23 45 56 12 53 54 4E 33 81 C3")), otherwise: "90 00"))
        expectEqual(chip(bus, "D4 4A 01 00"), "D5 4B 00 90 00")
        expectEqual(chip(bus, "D4 4A 01 03 00"), "D5 4B 01 01 50 12 23 45 56 12 53 54 4E 33 81 C3 01 00 90 00")
        expectEqual(chip(bus, "D4 40 01 00 B0 00 00 00"), "D5 41 00 90 00 90 00")
    }

    @Test func twoCards() {
        let bus = ACR122UBus(card: TableCard.typeA(sak: 0x08, native: ["30 00": "AA"]))
        bus.reader.insert(TableCard.desfire)
        expectEqual(
            chip(bus, "D4 4A 02 00"),
            "D5 4B 02 01 00 04 08 04 82 AC B9 5D 02 03 44 20 07 04 1C 2B 3A 49 58 67 06 75 77 81 02 80 90 00")
        expectEqual(chip(bus, "D4 40 01 30 00"), "D5 41 00 AA 90 00")
        expectEqual(chip(bus, "D4 40 02 00 B0 00 00 00"), "D5 41 00 90 00 90 00")
        expectEqual(chip(bus, "D4 4A 01 00"), "D5 4B 01 01 00 04 08 04 82 AC B9 5D 90 00")
        // The reader takes one.
        #expect(bus.powerOn().hasSuffix("00 01 00 00 00 00 6A"))
    }

    @Test func chaining() {
        let long = (0..<300).map { [UInt8(truncatingIfNeeded: $0)].hex }.joined(separator: " ")
        let card = TableCard(
            .typeA(uid: bytes("01 02 03 04"), atqa: [0x00, 0x04], sak: 0x20, ats: bytes("05 78 80 70 02")),
            ["00 B0 00 00 00": long + " 90 00", "00 D6 00 00 02 AA BB": "90 00"])
        let bus = ACR122UBus(card: card)
        _ = chip(bus, "D4 4A 01 00")
        // Response in two parts, MI in the first status byte
        let first = chip(bus, "D4 40 01 00 B0 00 00 00")
        #expect(first.hasPrefix("D5 41 40 00 01 02") && first.hasSuffix("FE FF 90 00"))
        let second = chip(bus, "D4 40 01")
        #expect(second.hasPrefix("D5 41 00 00 01 02") && second.hasSuffix("2A 2B 90 00 90 00"))
        // Command in two parts, MI in Tg
        expectEqual(chip(bus, "D4 40 41 00 D6 00 00 02"), "D5 41 00 90 00")
        expectEqual(chip(bus, "D4 40 01 AA BB"), "D5 41 00 90 00 90 00")
    }

    @Test func nativeExchanges() {
        let card = TableCard.typeA(sak: 0x00, native: ["30 04": "01 02 03 04", "A2 04 01 02 03 04": "", "60": "00 04"])
        let bus = ACR122UBus(card: card)
        _ = chip(bus, "D4 4A 01 00")
        expectEqual(chip(bus, "D4 40 01 30 04"), "D5 41 00 01 02 03 04 90 00")
        expectEqual(chip(bus, "D4 40 01 A2 04 01 02 03 04"), "D5 41 00 90 00")
        expectEqual(chip(bus, "D4 40 01 60 04 FF FF FF FF FF FF 82 AC B9 5D"), "D5 41 14 90 00", "authentication error")
        expectEqual(chip(bus, "D4 42 60"), "D5 43 00 00 04 90 00", "GET_VERSION through InCommunicateThru")
        expectEqual(chip(bus, "D4 42 61"), "D5 43 01 90 00")
    }

    /// The blocks that hosts send by hand: libnfc's presence check R(NAK), I-blocks, DESELECT, RATS.
    @Test func rawBlocks() {
        let bus = ACR122UBus(card: TableCard.desfire)
        _ = chip(bus, "D4 4A 01 00")
        // ISO/IEC 14443-4, 7.5.4.2, rule 12: R(ACK) with the card's block number, 1 after activation
        expectEqual(chip(bus, "D4 42 B2"), "D5 43 00 A3 90 00")
        expectEqual(chip(bus, "D4 42 02 00 B0 00 00 00"), "D5 43 00 02 90 00 90 00")
        expectEqual(chip(bus, "D4 42 B3"), "D5 43 00 A2 90 00")
        expectEqual(chip(bus, "D4 42 C2"), "D5 43 00 C2 90 00")
        expectEqual(chip(bus, "D4 42 B2"), "D5 43 01 90 00")
        _ = chip(bus, "D4 12 04")
        _ = chip(bus, "D4 4A 01 00")
        expectEqual(chip(bus, "D4 42 E0 80"), "D5 43 00 06 75 77 81 02 80 90 00")
        expectEqual(chip(bus, "D4 40 01 00 B0 00 00 00"), "D5 41 00 90 00 90 00")
    }

    @Test func fieldOffAndOn() {
        let card = TableCard.desfire
        let bus = ACR122UBus(card: card)
        bus.powerOn()
        _ = card.history()
        expectEqual(chip(bus, "D4 32 01 00"), "D5 33 90 00")
        expectEqual(card.history(), ["reset"])
        expectEqual(bus.apdu("00 B0 00 00 00"), "")
        expectEqual(chip(bus, "D4 32 01 01"), "D5 33 90 00")
        #expect(chip(bus, "D4 4A 01 00").hasPrefix("D5 4B 01 "))
        expectEqual(bus.apdu("00 B0 00 00 00"), "90 00")
        // InListPassiveTarget switches the field on by itself: nfcpy, which mutes the chip between its looks, counts on it.
        expectEqual(chip(bus, "D4 32 01 00"), "D5 33 90 00")
        #expect(chip(bus, "D4 4A 01 00").hasPrefix("D5 4B 01 "))
        expectEqual(bus.apdu("00 B0 00 00 00"), "90 00")
    }

    @Test func deselectAndSelect() {
        let card = TableCard.desfire
        let bus = ACR122UBus(card: card)
        _ = chip(bus, "D4 4A 01 00")
        _ = card.history()
        expectEqual(chip(bus, "D4 44 01"), "D5 45 00 90 00")
        expectEqual(chip(bus, "D4 40 01 00 B0 00 00 00"), "", "silent, as a halted card is")
        expectEqual(chip(bus, "D4 54 01"), "D5 55 00 90 00")
        expectEqual(card.history(), ["reset"])
        expectEqual(chip(bus, "D4 40 01 00 B0 00 00 00"), "D5 41 00 90 00 90 00")
        expectEqual(chip(bus, "D4 52 01"), "D5 53 00 90 00")
        expectEqual(chip(bus, "D4 44 01"), "D5 45 27 90 00")
    }

    // MARK: FeliCa

    /// The card of ACS's ACR122L Communication Protocol V1.03, whose PN532 is reached by the same commands.
    static let felica = """
        card felica {
        type-f {
        idm 01 01 05 01 86 04 02 02
        pmm 03 00 4B 02 4F 49 8A 8A
        }
        system 8008 {
        service 0109 {
        block 0 00000000 00000000 00000000 00000000
        }
        }
        }
        """

    /// That document's three examples: polling, a block written, the block read.
    @Test func felicaTranscript() throws {
        let bus = ACR122UBus(card: try CardFile(parsing: Self.felica).makeCard())
        expectEqual(
            bus.apdu("FF 00 00 00 09 D4 4A 01 01 00 FF FF 01 00"),
            "D5 4B 01 01 14 01 01 01 05 01 86 04 02 02 03 00 4B 02 4F 49 8A 8A 80 08 90 00")
        expectEqual(
            bus.apdu(
                "FF 00 00 00 23 D4 40 01 20 08 01 01 05 01 86 04 02 02 01 09 01 01 80 00"
                    + "00 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA"),
            "D5 41 00 0C 09 01 01 05 01 86 04 02 02 00 00 90 00")
        expectEqual(
            bus.apdu("FF 00 00 00 13 D4 40 01 10 06 01 01 05 01 86 04 02 02 01 09 01 01 80 00"),
            "D5 41 00 1D 07 01 01 05 01 86 04 02 02 00 00 01 "
                + "00 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA 90 00")
        // GetGeneralStatus (API v2.04, 7.5): 212 kbit/s both ways, FeliCa.
        expectEqual(chip(bus, "D4 04"), "D5 05 00 00 01 01 01 01 10 80 90 00")
        // The same through InCommunicateThru, as nfcpy speaks to FeliCa cards: the length first.
        expectEqual(
            chip(bus, "D4 42 06 00 FF FF 00 00"),
            "D5 43 00 12 01 01 01 05 01 86 04 02 02 03 00 4B 02 4F 49 8A 8A 90 00")
        expectEqual(chip(bus, "D4 42 06 00 12 FC 00 00"), "D5 43 01 90 00", "another system")
        expectEqual(chip(bus, "D4 40 01 02 06"), "", "no answer")
    }

    /// API v2.04, 7.3: the ATR, the UID, and a block read without a pseudo-APDU, to which the reader adds 90 00.
    @Test func felicaThroughPCSC() throws {
        let bus = ACR122UBus(card: try CardFile(parsing: Self.felica).makeCard())
        expectEqual(bus.apdu("10 06 01 01 05 01 86 04 02 02 01 09 01 01 80 00"), "", "nothing is selected yet")
        expectEqual(bus.powerOn(), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 F0 11 00 00 00 00 8A")
        expectEqual(bus.apdu("FF CA 00 00 00"), "01 01 05 01 86 04 02 02 90 00")
        expectEqual(bus.apdu("FF CA 01 00 00"), "6A 81")
        expectEqual(
            bus.apdu("10 06 01 01 05 01 86 04 02 02 01 09 01 01 80 00"),
            "1D 07 01 01 05 01 86 04 02 02 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 90 00")
        expectEqual(bus.apdu("00 A4 04 00"), "", "silence")
        for command in ["FF B0 00 00 10", "FF D6 00 04 04 00 00 00 00"] { expectEqual(bus.apdu(command), "63 00") }
    }

    /// Bits 3 and 4 of the operating parameter (API v2.04, 6.5), and 3.1.1 for the name of 424 kbit/s; PC/SC part 3
    /// has a standard and a name of FeliCa's own (ACS, ACM1252U-Y3 reference manual, 5.2.6).
    @Test func felicaByOperatingParameter() throws {
        func atr(_ parameter: UInt8, _ style: ACR122UProfile.ATRStyle = .acs) throws -> String {
            var profile = ACR122UProfile.firmware216
            (profile.operatingParameter, profile.atrStyle) = (parameter, style)
            return ACR122UBus(profile, card: try CardFile(parsing: Self.felica).makeCard()).powerOn()
        }
        try expectEqual(atr(0xEF), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 F0 11 00 00 00 00 8A")
        try expectEqual(atr(0xF7), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 F0 12 00 00 00 00 89")
        try expectEqual(atr(0xE7), "3B 00")
        try expectEqual(atr(0xFF, .standard), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 11 00 3B 00 00 00 00 42")
    }

    /// Two FeliCa cards are told apart by time slots, and at both bit rates.
    @Test func twoFeliCaCards() throws {
        let bus = ACR122UBus(card: try CardFile(parsing: Self.felica).makeCard())
        bus.reader.insert(try #require(VirtualCards.named("felica")))
        let one = "12 01 01 01 05 01 86 04 02 02 03 00 4B 02 4F 49 8A 8A"
        let other = "12 01 02 FE 00 01 02 03 04 05 03 01 4B 02 4F 49 93 FF"
        expectEqual(chip(bus, "D4 4A 02 01 00 FF FF 00 03"), "D5 4B 02 01 \(one) 02 \(other) 90 00")
        expectEqual(chip(bus, "D4 4A 02 02 00 FF FF 00 0F"), "D5 4B 02 01 \(one) 02 \(other) 90 00")
        expectEqual(chip(bus, "D4 04"), "D5 05 00 00 02 01 02 02 10 02 02 02 10 80 90 00")
        expectEqual(
            chip(bus, "D4 40 02 0A 04 02 FE 00 01 02 03 04 05"), "D5 41 00 0B 05 02 FE 00 01 02 03 04 05 00 90 00")
        expectEqual(chip(bus, "D4 4A 01 01 00 FF FF 00 01"), "D5 4B 01 01 \(one) 90 00")
        expectEqual(chip(bus, "D4 4A 02 01 00 FF FF 00 00"), "D5 4B 00 90 00", "one slot for both")
        expectEqual(chip(bus, "D4 4A 02 01 00 12 FC 00 00"), "D5 4B 01 01 \(other) 90 00", "by its system")
        expectEqual(chip(bus, "D4 4A 02 00"), "D5 4B 00 90 00", "none is of type A")
    }

    /// libnfc#671: initiator data that are no Polling command are answered by an error frame; so are too few of them.
    @Test(arguments: ["D4 4A 01 01 80 40 CE 66 2F", "D4 4A 01 01", "D4 4A 01 01 00 FF FF 01", "D4 4A 01 03"])
    func initiatorDataThatAreNone(command: String) {
        let bus = ACR122UBus(card: VirtualCards.named("felica"))
        expectEqual(chip(bus, command), "63 7F")
    }

    /// A card of each type, each found by the request of its type alone.
    @Test func cardsOfThreeTypes() throws {
        let bus = ACR122UBus(card: VirtualCards.named("felica"))
        for name in ["type-b", "ntag213"] { bus.reader.insert(try #require(VirtualCards.named(name))) }
        expectEqual(chip(bus, "D4 4A 02 00"), "D5 4B 01 01 00 44 00 07 04 6D 2A 91 5C 70 80 90 00")
        expectEqual(chip(bus, "D4 4A 02 03 00"), "D5 4B 01 01 50 12 23 45 56 12 53 54 4E 33 81 C3 01 00 90 00")
        expectEqual(
            chip(bus, "D4 4A 02 02 00 FF FF 01 03"),
            "D5 4B 01 01 14 01 02 FE 00 01 02 03 04 05 03 01 4B 02 4F 49 93 FF 12 FC 90 00")
        #expect(bus.powerOn().hasSuffix("03 00 03 00 00 00 00 68"), "type A is asked for first")
    }

    // MARK: ATR

    func atr(_ card: TableCard, _ style: ACR122UProfile.ATRStyle = .acs, parameter: UInt8 = 0xFF) -> String {
        var profile = ACR122UProfile.firmware216
        profile.atrStyle = style
        profile.operatingParameter = parameter
        return ACR122UBus(profile, card: card).powerOn()
    }

    @Test(arguments: [
        (0x08, "00 01 00 00 00 00 6A"), (0x88, "00 01 00 00 00 00 6A"), (0x18, "00 02 00 00 00 00 69"),
        (0x00, "00 03 00 00 00 00 68"), (0x09, "00 26 00 00 00 00 4D"),
        // FF SAK: an NFC-DEP phone (nfcpy#28), and the TCKs of FF 20, FF 28, FF 88 …
        (0x40, "FF 40 00 00 00 00 D4"), (0x20, "FF 20 00 00 00 00 B4"), (0x28, "FF 28 00 00 00 00 BC"),
    ])
    func storageCards(sak: Int, tail: String) {
        expectEqual(
            atr(TableCard.typeA(sak: UInt8(sak))), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 " + tail)
    }

    @Test func typeA() {
        // API v2.04, 3.1.2, and as PC/SC part 3 has it
        expectEqual(atr(.desfire), "3B 86 80 01 06 75 77 81 02 80 00")
        expectEqual(atr(.desfire, .standard), "3B 81 80 01 80 80")
        // Automatic ATS off: a storage card of the name FF 20, deaf to APDUs
        let bus = ACR122UBus(card: TableCard.desfire)
        _ = bus.apdu("FF 00 51 BF 00")
        expectEqual(bus.powerOn(), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 FF 20 00 00 00 00 B4")
        expectEqual(bus.apdu("00 B0 00 00 00"), "")
        // No historical bytes
        let bare = TableCard(
            .typeA(uid: bytes("01 02 03 04"), atqa: [0x00, 0x04], sak: 0x20, ats: bytes("05 78 80 70 02")))
        expectEqual(atr(bare, .standard), "3B 80 80 01 01")
        // A long ATS is cut off after fifteen bytes, and so are long historical bytes.
        let ats = bytes("14 78 80 70 02 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F")
        let long = TableCard(.typeA(uid: bytes("01 02 03 04"), atqa: [0x00, 0x04], sak: 0x20, ats: ats))
        expectEqual(atr(long), "3B 8F 80 01 14 78 80 70 02 01 02 03 04 05 06 07 08 09 0A 99".replacingTCK)
        expectEqual(atr(long, .standard), "3B 8F 80 01 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 0E".replacingTCK)
    }

    @Test func typeB() {
        // API v2.04, 3.1.2
        let card = TableCard(.typeB(atqb: bytes("50 12 23 45 56 12 53 54 4E 33 81 C3")))
        expectEqual(atr(card), "3B 8C 80 01 50 12 23 45 56 12 53 54 4E 33 81 C3 55")
        expectEqual(atr(card, .standard), "3B 88 80 01 12 53 54 4E 33 81 C3 00 23")
    }
}

extension String {
    /// The ATR with its TCK worked out by ``ATR``, which has tests of its own.
    fileprivate var replacingTCK: String {
        guard case .wrongTCK(let expected, _)? = ATR(bytes(self)).defects.first else { return self }
        return dropLast(2) + [expected].hex
    }
}

/// The cards that come with the library, through the reader.
@Suite struct ACR122UBuiltInCardTests {
    func bus(_ name: String) throws -> ACR122UBus {
        let card = try #require(VirtualCards.named(name))
        return ACR122UBus(card: card)
    }

    @Test func classic() throws {
        let bus = try bus("mifare-classic-1k")
        expectEqual(bus.powerOn(), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 01 00 00 00 00 6A")
        expectEqual(bus.apdu("FF CA 00 00 00"), "5E 8A 31 C4 90 00")
        // Delivery key, sector 1
        expectEqual(bus.apdu("FF 82 00 00 06 FF FF FF FF FF FF"), "90 00")
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 04 60 00"), "90 00")
        expectEqual(bus.apdu("FF B0 00 04 10"), "73 77 69 66 74 2D 63 6F 6E 74 61 63 74 6C 65 73 90 00")
        // Another sector needs an authentication of its own; refused, the card is silent until it is selected.
        expectEqual(bus.apdu("FF B0 00 08 10"), "63 00")
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 04 60 00"), "63 00")
        bus.powerOn()
        // The purse of sector 2, 1000: key A spends, key B fills up.
        expectEqual(bus.apdu("FF 82 00 00 06 A0 A1 A2 A3 A4 A5"), "90 00")
        expectEqual(bus.apdu("FF 82 00 01 06 B0 B1 B2 B3 B4 B5"), "90 00")
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 08 60 00"), "90 00")
        expectEqual(bus.apdu("FF B1 00 08 04"), "00 00 03 E8 90 00")
        expectEqual(bus.apdu("FF D7 00 08 05 02 00 00 00 64"), "90 00")
        expectEqual(bus.apdu("FF B1 00 08 04"), "00 00 03 84 90 00")
        expectEqual(bus.apdu("FF D7 00 08 02 03 09"), "90 00")
        expectEqual(bus.apdu("FF B1 00 09 04"), "00 00 03 84 90 00")
        expectEqual(bus.apdu("FF 86 00 00 05 01 00 08 61 01"), "90 00")
        expectEqual(bus.apdu("FF D7 00 08 05 01 00 00 01 00"), "90 00")
        expectEqual(bus.apdu("FF B1 00 08 04"), "00 00 04 84 90 00")
    }

    @Test func ntag() throws {
        let bus = try bus("ntag213")
        expectEqual(bus.powerOn(), "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 03 00 00 00 00 68")
        expectEqual(bus.apdu("FF D6 00 20 04 DE AD BE EF"), "90 00")
        expectEqual(bus.apdu("FF B0 00 20 04"), "DE AD BE EF 90 00")
        // GET_VERSION of an NTAG213 (NXP data sheet, table 28), as hosts send it
        expectEqual(bus.apdu("FF 00 00 00 03 D4 42 60"), "D5 43 00 00 04 04 02 01 00 0F 03 90 00")
    }

    @Test func isoDEP() throws {
        for (name, answer) in [
            ("visa", "6F "), ("mastercard", "6F "), ("two-applications", "6F "), ("type-b", "6A 82"),
        ] {
            let bus = try bus(name)
            let atr = ATR(bytes(bus.powerOn()))
            #expect(atr.defects.isEmpty && atr.contactless != nil, "\(name)")
            #expect(
                bus.apdu("00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00").hasPrefix(answer), "\(name)")
        }
    }
}
