import SmartCard
import SmartCardPN532
import SmartCardSimulator
import TestSupport
import Testing

/// Expected bytes: NXP UM0701-02 (PN532 user manual), and bug reports with traces of real readers.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PN532Tests {
    static func chip(_ script: KeyValuePairs<String, String>) -> PN532 {
        ACR122U(over: ScriptedReader(script)).chip
    }

    // MARK: The chip

    /// libnfc's comments in acr122_usb.c; UM0701-02, 7.2.2.
    @Test func firmwareVersion() async throws {
        let version = try await Self.chip(["FF 00 00 00 02 D4 02": "D5 03 32 01 04 07 90 00"]).firmwareVersion()
        #expect((version.chip, version.version, version.revision, version.support) == (0x32, 1, 4, 7))
    }

    /// ACS API v2.04, 7.5: Err Field NbTg Tg BrRx BrTx Type SAM.
    @Test func generalStatus() async throws {
        let reader = ScriptedReader([
            "FF 00 00 00 02 D4 04": "D5 05 00 00 00 80 90 00",
            "FF 00 00 00 02 D4 04": "D5 05 01 01 01 01 00 02 10 80 90 00",
            "FF 00 00 00 02 D4 04": "D5 05 00 00 01 80 90 00",  // a target is missing
            "FF 00 00 00 02 D4 04": "D5 05 00 00 90 00",
            "FF 00 00 00 02 D4 04": "D5 05 00 00 FF 80 90 00",
        ])
        let chip = ACR122U(over: reader).chip
        let idle = try await chip.generalStatus()
        #expect(idle.lastError == nil && idle.targets.isEmpty && idle.samStatus == 0x80)
        let busy = try await chip.generalStatus()
        #expect(busy.lastError == .timeout && busy.isExternalFieldPresent)
        #expect(
            busy.targets.map { [$0.number, $0.receiveRate, $0.transmitRate, $0.modulation] } == [[0x01, 0, 2, 0x10]])
        for _ in 0..<3 { #expect(await failure { try await chip.generalStatus() } == "malformedAnswer") }
    }

    /// libnfc#666 for the retries; ACS API v2.04, 7 for the antenna; libnfc for SetParameters 14.
    @Test func configuration() async throws {
        let chip = Self.chip([
            "FF 00 00 00 06 D4 32 05 00 01 02": "D5 33 90 00", "FF 00 00 00 04 D4 32 01 00": "D5 33 90 00",
            "FF 00 00 00 04 D4 32 01 01": "D5 33 90 00", "FF 00 00 00 04 D4 32 01 03": "D5 33 90 00",
            "FF 00 00 00 06 D4 32 02 00 0B 0A": "D5 33 90 00",  // the defaults, 102.4 and 51.2 ms
            "FF 00 00 00 04 D4 32 04 00": "D5 33 90 00", "FF 00 00 00 06 D4 32 0C 01 02 03": "D5 33 90 00",
            "FF 00 00 00 03 D4 12 14": "D5 13 90 00", "FF 00 00 00 04 D4 32 01 01": "D5 33 00 90 00",
        ])
        try await chip.configure(.retries(atr: 0, psl: 1, passiveActivation: 2))
        try await chip.configure(.field(isOn: false))
        try await chip.configure(.field(isOn: true))
        try await chip.configure(.field(isOn: true, avoidsCollision: true))
        try await chip.configure(
            .timings(
                atr: .init(atLeast: .microseconds(102_400)), exchange: .init(atLeast: .microseconds(51_100))))
        try await chip.configure(.exchangeRetries(0))
        try await chip.configure(.item(0x0C, [1, 2, 3]))
        try await chip.setParameters(.initial)
        #expect(await failure { try await chip.configure(.field(isOn: true)) } == "malformedAnswer")
    }

    /// UM0701-02, 7.3.1, the table of timeouts: 01 100 µs, 0A 51.2 ms, 10 3.28 s.
    @Test func waitingTimes() {
        #expect(PN532.WaitingTime(rawValue: 0x01).duration == .microseconds(100))
        #expect(PN532.WaitingTime(rawValue: 0x0A).duration == .microseconds(51_200))
        #expect(PN532.WaitingTime(rawValue: 0x10).duration == .microseconds(3_276_800))
        #expect(PN532.WaitingTime(rawValue: 0x00).duration == nil)
        #expect(PN532.WaitingTime(rawValue: 0xFF).duration == nil)
        #expect(PN532.WaitingTime(atLeast: .zero).rawValue == 0x01)
        #expect(PN532.WaitingTime(atLeast: .seconds(60)).rawValue == 0x10)
    }

    /// stackoverflow 24777810: registers of a real reader.
    @Test func registers() async throws {
        let chip = Self.chip([
            "FF 00 00 00 08 D4 06 63 05 63 0D 63 38": "D5 07 07 07 15 90 00",
            "FF 00 00 00 08 D4 08 63 02 80 63 03 80": "D5 09 90 00",
            "FF 00 00 00 04 D4 06 63 05": "D5 07 07 07 90 00",
        ])
        #expect(try await chip.readRegisters([0x6305, 0x630D, 0x6338]) == [0x07, 0x07, 0x15])
        try await chip.writeRegisters([(0x6302, 0x80), (0x6303, 0x80)])
        #expect(await failure { try await chip.readRegisters([0x6305]) } == "malformedAnswer")
        #expect(await failure { try await chip.readRegisters([UInt16](repeating: 0, count: 127)) } == "tooLong")
    }

    // MARK: Targets

    /// libnfc#476, a MIFARE Classic 1K whose SENS_RES comes turned round; libnfc#263, a card with SAK 28 as the chip
    /// gives it; libnfc#666, none.
    @Test(arguments: [
        ("01 01 04 00 08 04 82 AC B9 5D", [UInt8](), 0x0004 as UInt16, 0x08 as UInt8, "82 AC B9 5D"),
        ("01 01 00 04 28 04 A0 D9 89 78", [], 0x0004, 0x28, "A0 D9 89 78"),
        // NTAG (NTAG213/215/216, 9.4), DESFire EV1 with its ATS (ACS API v2.04, 3.1.2), both ways round.
        ("01 01 00 44 00 07 04 6D 2A 91 5C 70 80", [], 0x0044, 0x00, "04 6D 2A 91 5C 70 80"),
        ("01 01 44 00 00 07 04 6D 2A 91 5C 70 80", [], 0x0044, 0x00, "04 6D 2A 91 5C 70 80"),
        (
            "01 01 03 44 20 07 04 33 6C 1D 82 59 80 06 75 77 81 02 80", [0x06, 0x75, 0x77, 0x81, 0x02, 0x80], 0x0344,
            0x20, "04 33 6C 1D 82 59 80"
        ),
        (
            "01 01 44 03 20 07 04 33 6C 1D 82 59 80 06 75 77 81 02 80", [0x06, 0x75, 0x77, 0x81, 0x02, 0x80], 0x0344,
            0x20, "04 33 6C 1D 82 59 80"
        ),
        ("01 01 00 84 00 0A 01 02 03 04 05 06 07 08 09 0A", [], 0x0084, 0x00, "01 02 03 04 05 06 07 08 09 0A"),
    ])
    func typeA(answer: String, ats: [UInt8], atqa: UInt16, sak: UInt8, uid: String) async throws {
        let chip = Self.chip(["FF 00 00 00 04 D4 4A 01 00": "D5 4B \(answer) 90 00"])
        let targets = try await chip.listTargets(.typeA)
        #expect(targets.map(\.number) == [1])
        #expect(
            targets.first?.card
                == .typeA(uid: bytes(uid), atqa: atqa, sak: sak, ats: ats.isEmpty ? nil : ats))
        #expect(targets.first?.speaksISODEP == !ats.isEmpty)
        #expect(targets.first?.identifier == bytes(uid))
    }

    /// The cascade tag 88 before each part of a UID but the last (UM0701-02, 7.3.5).
    @Test(arguments: [
        ("82 AC B9 5D", "08", "82 AC B9 5D"), ("04 6D 2A 91 5C 70 80", "0C", "88 04 6D 2A 91 5C 70 80"),
        ("01 02 03 04 05 06 07 08 09 0A", "10", "88 01 02 03 88 04 05 06 07 08 09 0A"),
    ])
    func oneOfMany(uid: String, lc: String, cascaded: String) async throws {
        let chip = Self.chip(["FF 00 00 00 \(lc) D4 4A 01 00 \(cascaded)": "D5 4B 00 90 00"])
        #expect(try await chip.listTarget(uid: bytes(uid)) == nil)
        #expect(await failure { try await chip.listTarget(uid: [1, 2, 3]) } == "unsupported")

        let ntag = VirtualCards.named("ntag213")
        let reader = virtualReader(VirtualCards.named("visa"), ntag)
        let found = try await ACR122U(over: reader).chip.listTarget(uid: bytes("04 6D 2A 91 5C 70 80"))
        #expect(found?.speaksISODEP == false)
    }

    @Test func noTarget() async throws {
        let chip = Self.chip(["FF 00 00 00 04 D4 4A 01 00": "D5 4B 00 90 00"])
        #expect(try await chip.listTargets(.typeA) == [])
    }

    /// Two cards at once: storage cards; two with ATS; with and without one.
    @Test(arguments: [
        ("02 01 00 04 08 04 82 AC B9 5D 02 00 04 08 04 11 22 33 44", [false, false]),
        ("02 01 00 04 20 04 82 AC B9 5D 06 75 77 81 02 80 02 00 04 20 04 11 22 33 44 01", [true, true]),
        ("02 01 00 04 20 04 82 AC B9 5D 05 78 80 70 02 02 00 04 08 04 11 22 33 44", [true, false]),
        // RATS has not been sent: the number 02 is not a TL.
        ("02 01 00 04 20 04 82 AC B9 5D 02 00 04 08 04 11 22 33 44", [false, false]),
    ])
    func twoTargets(answer: String, haveATS: [Bool]) async throws {
        let chip = Self.chip(["FF 00 00 00 04 D4 4A 02 00": "D5 4B \(answer) 90 00"])
        let targets = try await chip.listTargets(.typeA, most: 2)
        #expect(targets.map(\.number) == [1, 2])
        #expect(targets.map(\.identifier) == [bytes("82 AC B9 5D"), bytes("11 22 33 44")])
        #expect(targets.map(\.speaksISODEP) == haveATS)
    }

    /// Two cards at once of the other technologies, made from the single ones of the tests below.
    @Test(arguments: [
        (
            PollingTechnology.typeB, "FF 00 00 00 05 D4 4A 02 03 00",
            "02 01 50 12 23 45 56 12 53 54 4E 33 81 C3 01 00 02 50 12 23 45 57 12 53 54 4E 33 81 C3 00",
            ["12 23 45 56", "12 23 45 57"]
        ),
        (
            .felica212, "FF 00 00 00 09 D4 4A 02 01 00 FF FF 01 03",
            "02 01 14 01 01 01 05 01 86 04 02 02 03 00 4B 02 4F 49 8A 8A 80 08 "
                + "02 12 01 02 FE 00 01 02 03 04 05 03 01 4B 02 4F 49 93 FF",
            ["01 01 05 01 86 04 02 02", "02 FE 00 01 02 03 04 05"]
        ),
    ])
    func twoTargets(technology: PollingTechnology, command: String, answer: String, identifiers: [String]) async throws
    {
        let reader = ScriptedReader(always: bytes("D5 4B \(answer) 90 00"))
        let targets = try await ACR122U(over: reader).chip.listTargets(technology, most: 2)
        #expect(reader.history() == [command])
        #expect(targets.map(\.number) == [1, 2])
        #expect(targets.map(\.identifier) == identifiers.map(bytes))
    }

    /// ACS API v2.04, 3.1.2: the ATQB of the example.
    @Test func typeB() async throws {
        let chip = Self.chip([
            "FF 00 00 00 05 D4 4A 01 03 00": "D5 4B 01 01 50 12 23 45 56 12 53 54 4E 33 81 C3 01 00 90 00",
            "FF 00 00 00 05 D4 4A 01 03 00": "D5 4B 01 01 50 12 23 45 56 12 53 54 4E 33 81 C3 00 90 00",
        ])
        let atqb = bytes("50 12 23 45 56 12 53 54 4E 33 81 C3")
        let target = try #require(try await chip.listTargets(.typeB).first)
        #expect(target.card == .typeB(atqb: atqb, attribResponse: [0x00]))
        #expect(target.identifier == bytes("12 23 45 56") && target.speaksISODEP)
        #expect(try await chip.listTargets(.typeB).first?.card == .typeB(atqb: atqb, attribResponse: []))
    }

    /// UM0701-02, 7.3.5: POL_RES of 12 bytes in hexadecimal, or 14 with the system code.
    @Test func felica() async throws {
        let chip = Self.chip([
            "FF 00 00 00 09 D4 4A 01 01 00 FF FF 01 00":
                "D5 4B 01 01 14 01 01 2E 3D 4C 5B 6A 79 88 03 01 4B 02 4F 49 93 FF 00 03 90 00",
            "FF 00 00 00 09 D4 4A 01 02 00 FF FF 01 00":
                "D5 4B 01 01 12 01 01 2E 3D 4C 5B 6A 79 88 03 01 4B 02 4F 49 93 FF 90 00",
            "FF 00 00 00 09 D4 4A 02 02 00 FF FF 01 03": "D5 4B 00 90 00",
        ])
        let (idm, pmm) = (bytes("01 2E 3D 4C 5B 6A 79 88"), bytes("03 01 4B 02 4F 49 93 FF"))
        #expect(try await chip.listTargets(.felica212).first?.card == .felica(idm: idm, pmm: pmm, systemCode: 0x0003))
        #expect(try await chip.listTargets(.felica424).first?.card == .felica(idm: idm, pmm: pmm, systemCode: nil))
        #expect(try await chip.listTargets(.felica424, most: 2).isEmpty)
    }

    /// The three examples of ACS's ACR122L Communication Protocol V1.03: polling, a block written, the block read.
    @Test func felicaExchange() async throws {
        let chip = Self.chip([
            "FF 00 00 00 09 D4 4A 01 01 00 FF FF 01 00":
                "D5 4B 01 01 14 01 01 01 05 01 86 04 02 02 03 00 4B 02 4F 49 8A 8A 80 08 90 00",
            "FF 00 00 00 23 D4 40 01 20 08 01 01 05 01 86 04 02 02 01 09 01 01 80 00 00 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA":
                "D5 41 00 0C 09 01 01 05 01 86 04 02 02 00 00 90 00",
            "FF 00 00 00 13 D4 40 01 10 06 01 01 05 01 86 04 02 02 01 09 01 01 80 00":
                "D5 41 00 1D 07 01 01 05 01 86 04 02 02 00 00 01 00 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA 90 00",
        ])
        let target = try #require(try await chip.listTargets(.felica212).first)
        #expect(
            target.card
                == .felica(
                    idm: bytes("01 01 05 01 86 04 02 02"), pmm: bytes("03 00 4B 02 4F 49 8A 8A"), systemCode: 0x8008))
        #expect(target.identifier == bytes("01 01 05 01 86 04 02 02") && !target.speaksISODEP)
        let block = "00 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA 55 AA"
        let place = "01 01 05 01 86 04 02 02 01 09 01 01 80 00"
        let written = try await chip.exchange(bytes("20 08 \(place) \(block)"), with: target.number)
        #expect(written == bytes("0C 09 01 01 05 01 86 04 02 02 00 00"))
        let read = try await chip.exchange(bytes("10 06 \(place)"), with: target.number)
        #expect(read == bytes("1D 07 01 01 05 01 86 04 02 02 00 00 01 \(block)"))
    }

    /// Everything that can be cut off or added.
    @Test(arguments: [
        (PollingTechnology.typeA, "01 01 03 44 20 07 04 33 6C 1D 82 59 80 06 75 77 81 02 80"),
        (.typeB, "01 01 50 12 23 45 56 12 53 54 4E 33 81 C3 01 00"),
        (.felica212, "01 01 14 01 01 2E 3D 4C 5B 6A 79 88 03 01 4B 02 4F 49 93 FF 00 03"),
    ])
    func hostileTargets(technology: PollingTechnology, answer: String) async throws {
        let whole = bytes(answer)
        for length in 0..<whole.count {
            let reader = ScriptedReader(always: [0xD5, 0x4B] + whole.prefix(length) + [0x90, 0x00])
            let found = try? await ACR122U(over: reader).chip.listTargets(technology)
            // Only a card whose ATS has not come at all is one.
            #expect(found == nil || length == 13 && technology == .typeA, "\(length)")
        }
        for extra in 1...3 {
            let reader = ScriptedReader(
                always: [0xD5, 0x4B] + whole + [UInt8](repeating: 0, count: extra) + [0x90, 0])
            #expect(await failure { try await ACR122U(over: reader).chip.listTargets(technology) } == "malformedAnswer")
        }
        for index in whole.indices {
            for value in [0x00, 0x01, 0x7F, 0x80, 0xFF] as [UInt8] {
                var mutant = whole
                mutant[index] = value
                let reader = ScriptedReader(always: [0xD5, 0x4B] + mutant + [0x90, 0x00])
                _ = try? await ACR122U(over: reader).chip.listTargets(technology, most: 2)
            }
        }
        // A number that no target has.
        for number: UInt8 in [0x00, 0x03, 0xFF] {
            let reader = ScriptedReader(always: [0xD5, 0x4B, 0x01, number] + whole.dropFirst(2) + [0x90, 0x00])
            #expect(await failure { try await ACR122U(over: reader).chip.listTargets(technology) } == "malformedAnswer")
        }
        // Two, where one was asked for.
        let two = ScriptedReader(always: bytes("D5 4B 02 01 00 04 08 04 11 22 33 44 02 00 04 08 04 11 22 33 44 90 00"))
        #expect(await failure { try await ACR122U(over: two).chip.listTargets(.typeA) } == "malformedAnswer")
    }

    // MARK: Exchanges

    /// libnfc#263, SELECT of an application by D4 40 01, and the silence of the card.
    @Test func exchange() async throws {
        let select = "00 A4 04 00 06 F7 52 46 54 41 01"
        let chip = Self.chip([
            "FF 00 00 00 0E D4 40 01 \(select)": "-", "FF 00 00 00 0E D4 40 02 \(select)": "D5 41 00 6A 82 90 00",
        ])
        #expect(await failure { try await chip.exchange(bytes(select), with: 1) } == "noAnswer")
        #expect(try await chip.exchange(bytes(select), with: 2) == [0x6A, 0x82])
    }

    /// MI both ways (UM0701-02, 7.3.8): 600 bytes out in parts of 251, an answer in three parts.  No
    /// part exceeds the 254 bytes that a chip's normal frame carries (nfcpy, clf/acr122.py).
    @Test func chaining() async throws {
        let command = (0..<600).map { UInt8(truncatingIfNeeded: $0) }
        let reader = ScriptedReader([
            "FF 00 00 00 FE D4 40 41 \(command[..<251].hex)": "D5 41 00 90 00",
            "FF 00 00 00 FE D4 40 41 \(command[251..<502].hex)": "D5 41 00 90 00",
            "FF 00 00 00 65 D4 40 01 \(command[502...].hex)": "D5 41 40 01 02 90 00",
            "FF 00 00 00 03 D4 40 01": "D5 41 40 03 90 00", "FF 00 00 00 03 D4 40 01": "D5 41 00 90 00 90 00",
        ])
        #expect(try await ACR122U(over: reader).chip.exchange(command, with: 1) == bytes("01 02 03 90 00"))
    }

    @Test func chainsEnd() async throws {
        let full = ScriptedReader(always: [0xD5, 0x41, 0x40] + [UInt8](repeating: 0, count: 250) + [0x90, 0x00])
        #expect(await failure { try await ACR122U(over: full).chip.exchange([0x30], with: 1) } == "malformedAnswer")
        #expect(full.history().count < 300)
        for part in ["", "01"] {
            let drip = ScriptedReader(always: bytes("D5 41 40 \(part) 90 00"))
            #expect(await failure { try await ACR122U(over: drip).chip.exchange([0x30], with: 1) } == "malformedAnswer")
            #expect(drip.history().count <= 1024)
        }
        // A NAD that is announced and missing, and one that is there.
        let short = ScriptedReader(["*": "D5 41 80 90 00", "FF 00 00 00 04 D4 40 01 30": "D5 41 80 55 01 90 00"])
        _ = try await ACR122U(over: short).chip.exchange([0x30], with: 1)
        #expect(try await ACR122U(over: short).chip.exchange([0x30], with: 1) == [0x01])
    }

    /// stackoverflow 44243037: PWD_AUTH by InCommunicateThru.
    @Test func communicateThrough() async throws {
        let chip = Self.chip([
            "FF 00 00 00 07 D4 42 1B 52 84 00 08": "D5 43 00 80 80 90 00",
            "FF 00 00 00 03 D4 42 60": "D5 43 01 90 00", "FF 00 00 00 03 D4 42 60": "D5 43 90 00",
        ])
        #expect(try await chip.communicateThrough(bytes("1B 52 84 00 08")) == [0x80, 0x80])
        #expect(
            await failure { try await chip.communicateThrough([0x60]) }
                == "noAnswer, PN532 01 time-out, the card has not answered")
        #expect(await failure { try await chip.communicateThrough([0x60]) } == "malformedAnswer")
        #expect(
            await failure { try await chip.communicateThrough([UInt8](repeating: 0, count: 254)) } == "tooLong")
    }

    /// libnfc#476 for InDeselect.
    @Test func selecting() async throws {
        let chip = Self.chip([
            "FF 00 00 00 03 D4 44 00": "D5 45 00 90 00", "FF 00 00 00 03 D4 52 01": "D5 53 00 90 00",
            "FF 00 00 00 03 D4 54 01": "D5 55 00 90 00", "FF 00 00 00 03 D4 54 02": "D5 55 27 90 00",
            "FF 00 00 00 03 D4 52 00": "D5 53 00 00 90 00",
        ])
        try await chip.deselect()
        try await chip.release(1)
        try await chip.select(1)
        #expect(
            await failure { try await chip.select(2) }
                == "other, PN532 27 command not acceptable in the present context")
        #expect(await failure { try await chip.release() } == "malformedAnswer")
    }

    /// UM0701-02, 7.1: every code has a name, and one that has none prints.
    @Test func errorNames() async throws {
        let listed: [UInt8] = [
            0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0A, 0x0B, 0x0D, 0x0E, 0x10, 0x12, 0x13, 0x14, 0x18, 0x23,
            0x25, 0x26, 0x27, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E,
        ]
        for code in 0x01...0x3F as ClosedRange<UInt8> {
            let error = PN532Error(rawValue: code)
            #expect((error.name != nil) == listed.contains(code), "\(error)")
            let reader = ScriptedReader(always: [0xD5, 0x43, code, 0x90, 0x00])
            do {
                _ = try await ACR122U(over: reader).chip.communicateThrough([0x60])
                Issue.record("\(error) is no error")
            } catch {
                #expect((error as? CardError)?.cause as? PN532Error == PN532Error(rawValue: code))
            }
        }
        #expect("\(PN532Error.authentication)" == "PN532 14 MIFARE authentication error")
        #expect("\(PN532Error(rawValue: 0x3E))" == "PN532 3E")
        #expect(PN532Error.cardDisappeared.rawValue == 0x2B && PN532Error.nadMissing.rawValue == 0x2E)
    }

    // MARK: The software reader

    /// An EMV directory is the same through the chip and through the reader.
    @Test func channelToATarget() async throws {
        let reader = virtualReader(VirtualCards.named("visa"))
        let select = CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8))
        let expected = try await reader.connect().transmit(select)
        let chip = ACR122U(over: reader).chip
        let target = try #require(try await chip.listTargets(.typeA).first)
        #expect(target.speaksISODEP)
        let response = try await chip.channel(to: target).transmit(select)
        #expect(response == expected && response.status == .success)
        try await chip.deselect()
        #expect(await failure { try await chip.channel(to: target).transmit(select) } == "noAnswer")
        try await chip.select(target.number)
        #expect(try await chip.channel(to: target).transmit(select) == expected)
        try await chip.cycleField()
        #expect(
            await failure { try await chip.channel(to: target).transmit(select) }
                == "other, PN532 27 command not acceptable in the present context")
        #expect(try await chip.generalStatus().lastError == .wrongContext)
    }
}
