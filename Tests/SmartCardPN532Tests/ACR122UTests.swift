import SmartCard
import SmartCardPN532
import SmartCardSimulator
import TestSupport
import Testing

/// Expected bytes: ACS ACR122U API v2.04, sections 5 and 6, and bug reports with traces of real readers.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ACR122UTests {
    /// nfcpy#154.
    @Test func firmwareVersion() async throws {
        let reader = ScriptedReader([
            "FF 00 48 00 00": "41 43 52 31 32 32 55 32 31 36",
            "FF 00 48 00 00": "41 43 52 31 32 32 55 32 31 36 90 00",  // clones that add a status word
        ])
        #expect(try await ACR122U(over: reader).firmwareVersion() == "ACR122U216")
        #expect(try await ACR122U(through: reader).firmwareVersion() == "ACR122U216")
    }

    /// nfcpy#154, and nfcpy#105 for firmware 2.15, which leaves out the 90.
    @Test func operatingParameter() async throws {
        let reader = ScriptedReader([
            "FF 00 50 00 00": "90 FF", "FF 00 51 7F 00": "90 7F", "FF 00 50 00 00": "7F", "FF 00 51 7F 00": "7F",
            "FF 00 50 00 00": "63 00", "FF 00 51 FF 00": "90 7F", "FF 00 50 00 00": "90 FF 00",
        ])
        let acr = ACR122U(over: reader)
        #expect(try await acr.operatingParameter().rawValue == 0xFF)
        let quiet: PICCOperatingParameter = [
            .typeA, .typeB, .topaz, .felica212, .felica424, .fastPolling, .automaticATS,
        ]
        try await acr.setOperatingParameter(quiet)
        #expect(try await acr.operatingParameter() == quiet)
        try await acr.setOperatingParameter(quiet)
        #expect(await failure { try await acr.operatingParameter() } == "notTransacted, 6300 the operation failed")
        #expect(
            await failure { try await acr.setOperatingParameter(PICCOperatingParameter(rawValue: 0xFF)) }
                == "malformedAnswer")
        #expect(await failure { try await acr.operatingParameter() } == "malformedAnswer")
    }

    @Test func buzzerAndTimeout() async throws {
        let reader = ScriptedReader([
            "FF 00 52 00 00": "90 00", "FF 00 52 FF 00": "63 00",  // chrome-nfc#14: old firmware
            "FF 00 41 00 00": "90 00", "FF 00 41 02 00": "90 00", "FF 00 41 FF 00": "90 00",
            "FF 00 41 FE 00": "63 00",
        ])
        let acr = ACR122U(over: reader)
        try await acr.setBuzzerOnDetection(false)
        #expect(await failure { try await acr.setBuzzerOnDetection(true) } == "unsupported, 6300 the operation failed")
        try await acr.setTimeout(.none)
        try await acr.setTimeout(.fiveSeconds(times: 2))
        try await acr.setTimeout(.unlimited)
        #expect(
            await failure { try await acr.setTimeout(.fiveSeconds(times: 4000)) }
                == "notTransacted, 6300 the operation failed")
    }

    /// nfcpy#154 for green; ACS API v2.04, appendix, for red that blinks twice at 1 Hz, the buzzer with it.
    @Test func lights() async throws {
        let reader = ScriptedReader([
            "FF 00 40 0E 04 00 00 00 00": "90 02", "FF 00 40 50 04 05 05 02 01": "90 01",
            "FF 00 40 0D 04 00 00 00 00": "63 00", "FF 00 40 0C 04 00 00 00 00": "02",
        ])
        let acr = ACR122U(over: reader)
        #expect(try await acr.setLights(.steady(green: true)) == .green)
        let blink = Blinking(on: 5, off: 5, times: 2, buzzer: .whileOn)
        #expect(blink.duration == .seconds(2))
        #expect(try await acr.setLights([.startRed, .blinkRed], blinking: blink) == .red)
        #expect(
            await failure { try await acr.setLights(.steady(red: true)) } == "notTransacted, 6300 the operation failed")
        #expect(await failure { try await acr.setLights(.steady()) } == "malformedAnswer")
    }

    /// Five seconds are divided, for drivers that wait three; no blink is lost.
    @Test func longBlinkingIsDivided() async throws {
        let reader = ScriptedReader([
            "FF 00 40 F0 04 05 05 02 00": "90 03", "FF 00 40 F0 04 05 05 02 00": "90 03",
            "FF 00 40 F0 04 05 05 01 00": "90 00",
        ])
        let all: LightControl = [.startRed, .startGreen, .blinkRed, .blinkGreen]
        let blink = Blinking(on: 5, off: 5, times: 5)
        #expect(try await ACR122U(over: reader).setLights(all, blinking: blink) == [])
        #expect(reader.history().count == 3)
        // One blink cannot be divided.  FF times nothing is nothing.
        let slow = ScriptedReader(["FF 00 40 F0 04 FF FF 01 03": "90 00", "FF 00 40 F0 04 00 00 FF 00": "90 00"])
        try await ACR122U(over: slow).setLights(all, blinking: Blinking(on: 255, off: 255, times: 1, buzzer: .always))
        try await ACR122U(over: slow).setLights(all, blinking: Blinking(on: 0, off: 0, times: 255))
        #expect(Blinking(on: 255, off: 255, times: 255).duration == .seconds(13005))
    }

    /// Status words of direct transmit (ACS, ACR122U API, Direct Transmit).
    @Test(arguments: [
        ("63 00", "notTransacted, 6300 the operation failed"),
        ("63 01", "noAnswer, 6301 the PN532 does not respond"),
        ("63 27", "notTransacted, 6327 the checksum of the card's answer is wrong"),
        ("63 7F", "unsupported, 637F the PN532 rejects the command"), ("6F 12", "malformedAnswer, 6F12"),
        ("90 00", "malformedAnswer"), ("", "malformedAnswer"), ("90", "malformedAnswer"),
        ("D5 03 32 01 06 07", "malformedAnswer"), ("D5 03 32 01 06 07 63 00", "malformedAnswer"),
        ("D5 05 32 01 06 07 90 00", "malformedAnswer"), ("D4 03 32 01 06 07 90 00", "malformedAnswer"),
        ("D5 03 32 01 06 90 00", "malformedAnswer"), ("D5 03 32 01 06 07 00 90 00", "malformedAnswer"),
        ("-", "noAnswer"),
    ])
    func directTransmitFailures(answer: String, expected: String) async throws {
        let reader = ScriptedReader(["FF 00 00 00 02 D4 02": answer])
        #expect(await failure { try await ACR122U(over: reader).chip.firmwareVersion() } == expected)
    }

    @Test func directTransmitLengths() async throws {
        let acr = ACR122U(over: ScriptedReader([:]))
        #expect(await failure { try await acr.directTransmit([]) } == "tooLong")
        #expect(await failure { try await acr.directTransmit([UInt8](repeating: 0, count: 256)) } == "tooLong")
    }

    /// The older ACR122 has its answers fetched (libnfc#201), and 63 7F is not 61 7F (libnfc#251).
    @Test func answersThatAreFetched() async throws {
        let reader = ScriptedReader([
            "FF 00 00 00 02 D4 02": "61 08", "FF C0 00 00 08": "D5 03 32 01 04 07 90 00",
            "FF 00 00 00 02 D4 02": "63 7F",
        ])
        let chip = ACR122U(over: reader).chip
        #expect(try await chip.firmwareVersion().revision == 0x04)
        #expect(await failure { try await chip.firmwareVersion() }?.hasPrefix("unsupported, 637F") == true)
    }

    /// Every firmware of the software reader.
    @Test(arguments: ACR122UProfile.all) func softwareReader(profile: ACR122UProfile) async throws {
        let acr = ACR122U(over: virtualReader(profile: profile))
        #expect(try await acr.firmwareVersion() == profile.firmwareString)
        #expect(try await acr.operatingParameter().rawValue == 0xFF)
        try await acr.setOperatingParameter([.typeA])
        #expect(try await acr.operatingParameter() == .typeA)
        #expect(try await acr.setLights(.steady(red: true)) == .red)
        try await acr.setAntenna(false)
        try await acr.setAntenna(true)
        #expect(try await acr.chip.firmwareVersion().chip == 0x32)
    }
}
