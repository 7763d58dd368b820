import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

@Suite(.computing) struct ACR122UHostileFrameTests {
    /// Short APDU level: 261 data bytes and no more; bError 01 is the offset of dwLength (USB CCID 1.10, 6.2.6).
    @Test func lengthLimit() {
        let bus = ACR122UBus(.firmware214, card: TableCard.desfire)
        bus.powerOn()
        let data = [UInt8](repeating: 0x00, count: 262)
        bus.reader.transferOut(endpoint: 0x02, bytes("6F 06010000 00 01 00 0000") + data)
        expectEqual(bus.frames(), [bytes("80 00000000 00 01 40 01 00")])
        bus.reader.transferOut(endpoint: 0x02, bytes("6F 05010000 00 02 00 0000") + data.dropLast())
        expectEqual(bus.frames(), [bytes("80 02000000 00 02 00 81 00 90 00")])
    }

    @Test func pieces() {
        let bus = ACR122UBus(.firmware214, card: TableCard.desfire)
        bus.powerOn()
        // 10 + 100 bytes as 64 + 46
        let frame = bytes("6F 64000000 00 01 00 0000") + [UInt8](repeating: 0x00, count: 100)
        bus.reader.transferOut(endpoint: 0x02, Array(frame.prefix(64)))
        #expect(bus.frames().isEmpty)
        bus.reader.transferOut(endpoint: 0x02, Array(frame.dropFirst(64)))
        expectEqual(bus.frames(), [bytes("80 02000000 00 01 00 81 00 90 00")])
        // Exactly 64 bytes, and the empty packet that some hosts send after them
        let exact = bytes("6F 36000000 00 02 00 0000") + [UInt8](repeating: 0x00, count: 54)
        bus.reader.transferOut(endpoint: 0x02, exact)
        bus.reader.transferOut(endpoint: 0x02, [])
        expectEqual(bus.frames(), [bytes("80 02000000 00 02 00 81 00 90 00")])
    }

    @Test func lyingLengths() {
        let bus = ACR122UBus(.firmware214)
        // More announced than comes, in a packet that is the last
        expectEqual(bus.send("6F 06000000 00 01 00 0000 FF 00 48 00 00"), ["80 00 00 00 00 00 01 42 01 00"])
        // Less
        expectEqual(bus.send("6F 04000000 00 02 00 0000 FF 00 48 00 00"), ["80 00 00 00 00 00 02 42 01 00"])
        // Absurd
        expectEqual(bus.send("6F FFFFFFFF 00 03 00 0000 FF 00 48 00 00"), ["80 00 00 00 00 00 03 42 01 00"])
        // Data where none belongs
        expectEqual(bus.send("62 01000000 00 04 00 0000 00"), ["80 00 00 00 00 00 04 42 01 00"])
        // An absurd length over several packets is answered once, and its rest thrown away.
        bus.reader.transferOut(endpoint: 0x02, bytes("6F 00020000 00 05 00 0000") + [UInt8](repeating: 0, count: 54))
        for _ in 0..<7 { bus.reader.transferOut(endpoint: 0x02, [UInt8](repeating: 0x62, count: 64)) }
        bus.reader.transferOut(endpoint: 0x02, [UInt8](repeating: 0x62, count: 10))
        expectEqual(bus.frames(), [bytes("80 00000000 00 05 42 01 00")])
        expectEqual(bus.send("65 00000000 00 06 00 0000"), ["81 00 00 00 00 00 06 02 81 00"])
    }

    @Test func shortHeadersAreNotAnswered() {
        let bus = ACR122UBus()
        expectEqual(bus.send("62 00000000 00 00 00 00"), [])
        expectEqual(bus.send(""), [])
        expectEqual(bus.send("65 00000000 00 06 00 0000"), ["81 00 00 00 00 00 06 02 81 00"])
    }

    @Test func wrongSlot() {
        expectEqual(ACR122UBus().send("65 00000000 01 06 00 0000"), ["81 00 00 00 00 01 06 42 05 00"])
        expectEqual(ACR122UBus().send("6F 00000000 FF 06 00 0000"), ["80 00 00 00 00 FF 06 42 05 00"])
    }

    /// Command not supported, with the message that CCID assigns.
    @Test(arguments: [("69", "80"), ("6E", "81"), ("6A", "81"), ("71", "81"), ("72", "81"), ("73", "84"), ("00", "81")])
    func unknownCommands(command: String, answer: String) {
        expectEqual(
            ACR122UBus().send("\(command) 00000000 00 06 00 0000"), ["\(answer) 00 00 00 00 00 06 42 00 00"])
    }

    @Test func parameters() {
        let bus = ACR122UBus()
        expectEqual(bus.send("6C 00000000 00 01 00 0000"), ["82 07 00 00 00 00 01 02 81 01 11 10 00 4D 00 20 00"])
        expectEqual(
            bus.send("61 07000000 00 02 01 0000 18 10 00 45 00 FE 00"),
            ["82 07 00 00 00 00 02 02 81 01 18 10 00 45 00 FE 00"])
        expectEqual(bus.send("6D 00000000 00 03 00 0000"), ["82 07 00 00 00 00 03 02 81 01 11 10 00 4D 00 20 00"])
        expectEqual(bus.send("61 05000000 00 04 00 0000 11 00 00 0A 00"), ["82 00 00 00 00 00 04 42 07 00"], "T=0")
    }

    /// Whatever comes, the reader neither traps nor speaks out of turn: each answer is one message, to a message that
    /// had a header, and repeats its slot and sequence number.
    @Test func noise() {
        var random = SplitMix(state: 0xACB122)
        let seeds = [
            "62 00000000 00 00 00 0000", "63 00000000 00 00 00 0000", "65 00000000 00 00 00 0000",
            "6F 05000000 00 00 00 0000 FF CA 00 00 00", "6F 05000000 00 00 00 0000 FF 00 51 7F 00",
            "6F 09000000 00 00 00 0000 FF 00 40 0E 04 00 00 00 00",
            "6F 0A000000 00 00 00 0000 FF 86 00 00 05 01 00 04 60 00",
            "6F 0B000000 00 00 00 0000 FF 82 00 00 06 FF FF FF FF FF FF",
            "6F 0A000000 00 00 00 0000 FF D7 00 05 05 00 00 00 00 01",
            "6F 05000000 00 00 00 0000 FF B0 00 04 10", "6F 05000000 00 00 00 0000 FF B1 00 04 04",
            "6F 09000000 00 00 00 0000 FF 00 00 00 04 D4 4A 02 00",
            "6F 09000000 00 00 00 0000 FF 00 00 00 04 D4 40 01 30",
            "6F 09000000 00 00 00 0000 FF 00 00 00 04 D4 42 02 00",
            "6F 08000000 00 00 00 0000 FF 00 00 00 03 D4 52 01", "6F 08000000 00 00 00 0000 FF 00 00 00 03 D4 54 02",
            "6F 0A000000 00 00 00 0000 FF 00 00 00 05 D4 06 63 05 63",
            "61 07000000 00 00 01 0000 11 10 00 4D 00 20 00", "6B 05000000 00 00 00 0000 FF 00 48 00 00",
            "6F 05000000 00 00 00 0000 00 B0 00 00 00",
        ].map(bytes)
        let bus = ACR122UBus(card: TableCard.desfire)
        let other = TableCard.typeA(sak: 0x08, native: ["30 04": "00"])
        var answered = 0
        let rounds = Tier.rounds(2_000, thorough: 50_000)
        for round in 0..<rounds {
            var frame = seeds[random.below(seeds.count)]
            if random.below(8) == 0 { frame = (0..<random.below(90)).map { _ in random.byte() } }
            for _ in 0..<random.below(4) where !frame.isEmpty {
                switch random.below(4) {
                case 0: frame.remove(at: random.below(frame.count))
                case 1: frame.insert(random.byte(), at: random.below(frame.count))
                default: frame[random.below(frame.count)] = random.byte()
                }
            }
            if frame.count >= 5, random.below(2) == 0 { frame[1...4] = littleEndian(frame.count - 10)[...] }
            if random.below(64) == 0 { bus.reader.remove() }
            if random.below(64) == 0 { bus.reader.insert(other) }
            // A multiple of 64 would leave the message open.
            if frame.count.isMultiple(of: 64) { frame.append(0x00) }
            bus.reader.transferOut(endpoint: 0x02, frame)
            let frames = bus.frames()
            guard frame.count >= 10 else {
                #expect(frames.isEmpty, "round \(round)")
                continue
            }
            guard frames.count == 1, let answer = CCIDAnswer(frames[0]) else {
                Issue.record("round \(round): \(frame.hex(separator: " ")) gets \(frames)")
                break
            }
            answered += 1
            if answer.slot != frame[5] || answer.sequence != frame[6] || frames[0].count > 271
                || answer.kind != CCIDCommand.Kind(rawValue: frame[0]).answer
            {
                Issue.record("round \(round): \(frame.hex(separator: " ")) gets \(frames[0].hex(separator: " "))")
                break
            }
        }
        #expect(answered > rounds / 5 * 4)
    }
}

extension SplitMix {
    fileprivate mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }
    fileprivate mutating func byte() -> UInt8 { UInt8(truncatingIfNeeded: next()) }
}

@Suite struct SoftwareReaderFaultTests {
    func powered(_ fault: SoftwareReaderFault.Kind, _ argument: Int? = nil) -> ACR122UBus {
        let bus = ACR122UBus(.firmware214, card: TableCard.desfire)
        bus.powerOn()
        bus.reader.faults = [SoftwareReaderFault(fault, argument)]
        return bus
    }

    let readBinary = "6F 05000000 00 07 00 0000 00 B0 00 00 00"

    @Test func names() throws {
        for kind in SoftwareReaderFault.Kind.allCases {
            let fault = try SoftwareReaderFault(kind.rawValue)
            expectEqual(fault, SoftwareReaderFault(kind))
            try expectEqual(SoftwareReaderFault(fault.description), fault)
            #expect(!kind.summary.isEmpty)
        }
        try expectEqual(SoftwareReaderFault("slow=250"), SoftwareReaderFault(.slow, 250))
        #expect(throws: SoftwareReaderFaultError.unknownName("fast")) { try SoftwareReaderFault("fast=1") }
        #expect(throws: SoftwareReaderFaultError.unexpectedArgument(.muteCard)) {
            try SoftwareReaderFault("mute-card=1")
        }
        #expect(throws: SoftwareReaderFaultError.badArgument(.slow, "-1")) { try SoftwareReaderFault("slow=-1") }
        #expect(throws: SoftwareReaderFaultError.badArgument(.slow, "")) { try SoftwareReaderFault("slow=") }
    }

    @Test func none() {
        expectEqual(powered(.garbage).reader.faults, [SoftwareReaderFault(.garbage)])
        let bus = powered(.garbage)
        bus.reader.faults = []
        expectEqual(bus.send(readBinary), ["80 02 00 00 00 00 07 00 81 00 90 00"])
    }

    @Test func muteCard() {
        let bus = powered(.muteCard)
        expectEqual(bus.send(readBinary), ["80 00 00 00 00 00 07 00 FE 00"])
        expectEqual(bus.send("62 00000000 00 08 00 0000"), ["80 00 00 00 00 00 08 41 FE 00"])
        // Without a card there is none to be mute.
        bus.reader.remove()
        expectEqual(bus.powerOn(), "3B 00")
    }

    @Test func distortedAnswers() {
        expectEqual(powered(.emptyAnswers).send(readBinary), ["80 00 00 00 00 00 07 00 FE 00"])
        expectEqual(powered(.oneByteAnswers).send(readBinary), ["80 01 00 00 00 00 07 00 81 00 90"])
        expectEqual(powered(.truncatedAnswers).send(readBinary), ["80 02 00 00 00 00 07 00 81 00 90"])
        expectEqual(powered(.truncatedAnswers, 5).send(readBinary), ["80 02 00 00 00 00 07"])
        expectEqual(powered(.truncatedAnswers, 99).send(readBinary), [""])
        expectEqual(powered(.oversizedLength).send(readBinary), ["80 FF FF FF 7F 00 07 00 81 00 90 00"])
        expectEqual(powered(.oversizedLength, 300).send(readBinary), ["80 2C 01 00 00 00 07 00 81 00 90 00"])
        let garbage = powered(.garbage, 7).send(readBinary)
        expectEqual(garbage, powered(.garbage, 7).send(readBinary))
        #expect(garbage != powered(.garbage, 8).send(readBinary))
    }

    @Test func statusOnlyAnswers() {
        let card = TableCard(
            .typeA(uid: bytes("01 02 03 04"), atqa: [0x00, 0x04], sak: 0x20, ats: bytes("02 00")),
            otherwise: "01 02 03 90 00")
        let bus = ACR122UBus(.firmware214, card: card, faults: [SoftwareReaderFault(.statusOnlyAnswers)])
        bus.powerOn()
        expectEqual(bus.apdu("00 B0 00 00 00"), "90 00")
    }

    @Test func brokenATR() {
        let bus = powered(.brokenATR)
        expectEqual(bus.powerOn(), [String](repeating: "FF", count: 33).joined(separator: " "))
    }

    @Test func fieldLoss() {
        let bus = powered(.fieldLoss, 2)
        expectEqual(bus.apdu("00 B0 00 00 00"), "90 00")
        expectEqual(bus.apdu("FF CA 00 00 00"), "04 1C 2B 3A 49 58 67 90 00", "the reader's own do not count")
        expectEqual(bus.apdu("00 B0 00 00 00"), "90 00")
        bus.reader.transferOut(endpoint: 0x02, bytes(readBinary))
        expectEqual(
            bus.events(),
            [
                .ready(endpoint: 0x82, bytes: bytes("80 00000000 00 07 00 FE 00"), delay: .zero),
                .ready(endpoint: 0x81, bytes: [0x50, 0x02], delay: .milliseconds(250)),
            ])
        #expect(bus.reader.cards.isEmpty)
        expectEqual(bus.send("65 00000000 00 00 00 0000"), ["81 00 00 00 00 00 00 02 FE 00"])
    }

    @Test func sequenceNumbers() {
        // acsccid, commit c90e443: only after a message of more than 64 bytes
        let bus = powered(.sequenceBehind)
        let long = "00 D6 00 00 32 " + String(repeating: "AA ", count: 50)  // 10 + 55 bytes
        expectEqual(bus.send("6F 37000000 00 07 00 0000 " + long), ["80 02 00 00 00 00 06 00 81 00 90 00"])
        expectEqual(bus.send(readBinary), ["80 02 00 00 00 00 07 00 81 00 90 00"])
        let exact = "00 D6 00 00 31 " + String(repeating: "AA ", count: 49)  // 10 + 54 bytes
        expectEqual(bus.send("6F 36000000 00 07 00 0000 " + exact), ["80 02 00 00 00 00 07 00 81 00 90 00"])

        expectEqual(powered(.wrongSequence).send("65 00000000 00 07 00 0000"), ["81 00 00 00 00 00 6B 00 81 00"])
    }

    @Test func slow() {
        let bus = powered(.slow, 250)
        bus.reader.transferOut(endpoint: 0x02, bytes(readBinary))
        expectEqual(
            bus.events(),
            [
                .ready(endpoint: 0x82, bytes: bytes("80 02000000 00 07 00 81 00 90 00"), delay: .milliseconds(250))
            ])
    }

    /// USB CCID 1.10, 6.2.6: bmCommandStatus 2, bError the multiplier, the same bSeq.
    @Test func timeExtension() {
        let bus = powered(.timeExtension, 2)
        bus.reader.transferOut(endpoint: 0x02, bytes(readBinary))
        let request = bytes("80 00000000 00 07 80 01 00")
        expectEqual(
            bus.events(),
            [
                .ready(endpoint: 0x82, bytes: request, delay: .milliseconds(100)),
                .ready(endpoint: 0x82, bytes: request, delay: .milliseconds(200)),
                .ready(endpoint: 0x82, bytes: bytes("80 02000000 00 07 00 81 00 90 00"), delay: .milliseconds(300)),
            ])
    }

    @Test func unplugAtTransfer() {
        let bus = powered(.unplug, 3)
        expectEqual(bus.send(readBinary).count, 1)
        bus.reader.willTransferIn(endpoint: 0x82)
        #expect(bus.events().isEmpty)
        bus.reader.transferOut(endpoint: 0x02, bytes(readBinary))
        expectEqual(bus.events(), [.unplugged])
        #expect(!bus.reader.isPluggedIn)
        bus.reader.transferOut(endpoint: 0x02, bytes(readBinary))
        bus.reader.insert(TableCard.typeA(sak: 0x08))
        bus.reader.unplug()
        #expect(bus.events().isEmpty)
        expectEqual(bus.reader.control(setup: bytes("80 08 00 00 00 00 01 00"), data: []), nil)
    }

    // MARK: Presence

    /// USB CCID 1.10, 6.3.1: bit 0 present, bit 1 changed; after one polling interval.
    @Test func slotChanges() {
        let bus = ACR122UBus(.firmware214)
        let card = TableCard.desfire
        bus.reader.insert(card)
        bus.reader.insert(card)
        bus.reader.insert(TableCard.typeA(sak: 0x08))
        bus.reader.remove(card)
        bus.reader.remove()
        expectEqual(
            bus.events(),
            [
                .ready(endpoint: 0x81, bytes: [0x50, 0x03], delay: .milliseconds(250)),
                .ready(endpoint: 0x81, bytes: [0x50, 0x02], delay: .milliseconds(250)),
            ])
        // Interval 500 ms without bit 5; no report at all without bit 7.
        _ = bus.apdu("FF 00 51 DF 00")
        bus.reader.insert(card)
        expectEqual(bus.events(), [.ready(endpoint: 0x81, bytes: [0x50, 0x03], delay: .milliseconds(500))])
        _ = bus.apdu("FF 00 51 7F 00")
        bus.reader.remove()
        #expect(bus.events().isEmpty)
    }

    @Test func slotStatus() {
        let bus = ACR122UBus(.firmware216)
        let status = "65 00000000 00 07 00 0000"
        expectEqual(bus.send(status), ["81 00 00 00 00 00 07 02 81 00"])
        let card = TableCard.desfire
        bus.reader.insert(card)
        expectEqual(bus.send(status), ["81 00 00 00 00 00 07 01 81 00"])
        bus.powerOn()
        expectEqual(bus.send(status), ["81 00 00 00 00 00 07 00 81 00"])
        expectEqual(bus.send("63 00000000 00 07 00 0000"), ["81 00 00 00 00 00 07 01 81 00"])
        bus.powerOn()
        // Taken away and put back: present, but no longer powered.
        bus.reader.remove()
        expectEqual(bus.send(status), ["81 00 00 00 00 00 07 02 81 00"])
        bus.reader.insert(card)
        expectEqual(bus.send(status), ["81 00 00 00 00 00 07 01 81 00"])
    }

    /// A card on a reader that is plugged in is reported to the new bus.
    @Test func presenceIsReportedToEachObserver() {
        let reader = SoftwareACR122U()
        reader.insert(TableCard.desfire)
        for _ in 0..<2 {
            let bus = ACR122UBus(reader)
            expectEqual(bus.frames(from: 0x81), [[0x50, 0x03]])
        }
    }
}
