import SmartCard
import TestSupport
import Testing

@testable import SmartCardUSB

/// T=1, in blocks: NAD PCB LEN INF LRC.  The scenarios are those of ISO/IEC 7816-3, Annex A.
@Suite struct T1Tests {
    private static func block(_ pcb: UInt8, _ data: [UInt8] = []) -> [UInt8] {
        let body = [0x00, pcb, UInt8(data.count)] + data
        return body + [body.reduce(0, ^)]
    }

    /// Runs `command` through the protocol; each line of `script` is what is expected to go out and what comes in.
    private func run(
        _ protocol: inout T1Protocol, _ first: T1Protocol.Step, _ script: [(out: [UInt8], in: [UInt8])],
        _ end: T1Protocol.Step
    ) {
        var step = first
        for (index, line) in script.enumerated() {
            guard case .send(let block, _) = step else {
                Issue.record("line \(index): \(step)")
                return
            }
            #expect(block.hex(separator: " ") == line.out.hex(separator: " "), "line \(index)")
            step = line.in.isEmpty ? `protocol`.receivedNothing() : `protocol`.received(line.in)
        }
        #expect(step == end)
    }

    @Test func fieldSizes() {
        // As seen in many a log of libccid
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        run(&t1, t1.announce(ifsd: 254), [(bytes("00 C1 01 FE 3E"), bytes("00 E1 01 FE 1E"))], .done([]))
        #expect(t1.ifsd == 254)
    }

    @Test func informationBlocksAlternate() {
        // Scenario 1
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        run(
            &t1, t1.start(bytes("00 A4 00 0C 02 3F 00")),
            [(bytes("00 00 07 00 A4 00 0C 02 3F 00 92"), bytes("00 00 02 90 00 92"))], .done([0x90, 0x00]))
        run(&t1, t1.start([0x01]), [(bytes("00 40 01 01 40"), bytes("00 40 01 55 14"))], .done([0x55]))
        run(&t1, t1.start([0x02]), [(bytes("00 00 01 02 03"), bytes("00 00 01 66 67"))], .done([0x66]))
    }

    @Test func waitingTimeExtension() {
        // Scenario 2: S(WTX request) and S(WTX response); the waiting time is multiplied once
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        #expect(t1.start([0x01]) == .send(bytes("00 00 01 01 00")))
        #expect(t1.received(bytes("00 C3 01 04 C6")) == .send(bytes("00 E3 01 04 E6"), waitingTime: 4))
        #expect(t1.received(bytes("00 00 01 77 76")) == .done([0x77]))
    }

    @Test func theCardChangesItsFieldSize() {
        // Scenario 3: S(IFS request) of the card in the middle of a chain
        var t1 = T1Protocol(ifsc: 4, usesCRC: false)
        run(
            &t1, t1.start([1, 2, 3, 4, 5, 6, 7]),
            [
                (Self.block(0x20, [1, 2, 3, 4]), Self.block(0xC1, [0x02])),
                (Self.block(0xE1, [0x02]), Self.block(0x90)),  // R(1)
                (Self.block(0x60, [5, 6]), Self.block(0x80)),  // R(0)
                (Self.block(0x00, [7]), Self.block(0x00, [0x90, 0x00])),
            ], .done([0x90, 0x00]))
        #expect(t1.ifsc == 2)
    }

    @Test func chainingBothWays() {
        // Scenarios 5 and 6
        var t1 = T1Protocol(ifsc: 3, usesCRC: false)
        run(
            &t1, t1.start([1, 2, 3, 4, 5, 6, 7]),
            [
                (Self.block(0x20, [1, 2, 3]), Self.block(0x90)),  // I(0,1)  R(1)
                (Self.block(0x60, [4, 5, 6]), Self.block(0x80)),  // I(1,1)  R(0)
                (Self.block(0x00, [7]), Self.block(0x20, [0xA1])),  // I(0,0)  I(0,1)
                (Self.block(0x90), Self.block(0x60, [0xA2])),  // R(1)  I(1,1)
                (Self.block(0x80), Self.block(0x00, [0x90, 0x00])),  // R(0)  I(0,0)
            ], .done([0xA1, 0xA2, 0x90, 0x00]))
    }

    @Test func garbledAnswersAreAskedForAgain() {
        // Scenarios 8 to 12: an invalid block is answered by R with the number that is expected
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        run(
            &t1, t1.start([0x01]),
            [
                (Self.block(0x00, [0x01]), bytes("00 00 02 90 00 93")),  // wrong LRC
                (Self.block(0x81), Self.block(0x00, [0x90, 0x00])),  // R(0), redundancy code error
            ], .done([0x90, 0x00]))
        // The card asks for ours again.
        run(
            &t1, t1.start([0x02]),
            [
                (Self.block(0x40, [0x02]), Self.block(0x91)),  // R(1): I(1,0) is wanted again
                (Self.block(0x40, [0x02]), Self.block(0x40, [0x90, 0x00])),
            ], .done([0x90, 0x00]))
    }

    @Test func silenceIsBroken() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        run(
            &t1, t1.start([0x01]),
            [
                (Self.block(0x00, [0x01]), []), (Self.block(0x82), Self.block(0x00, [0x90, 0x00])),
            ], .done([0x90, 0x00]))
    }

    @Test func resynchronization() {
        // Scenario 35: after three failures S(RESYNCH request); both begin anew, the command is lost
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        run(&t1, t1.start([0x01]), [(Self.block(0x00, [0x01]), Self.block(0x00, [0x55]))], .done([0x55]))
        run(
            &t1, t1.start([0x02]),
            [
                (Self.block(0x40, [0x02]), []), (Self.block(0x92), []), (Self.block(0x92), []),
                (bytes("00 C0 00 C0"), bytes("00 E0 00 E0")),
            ], .failed(.notTransacted, "T=1 had to resynchronize"))
        run(&t1, t1.start([0x03]), [(Self.block(0x00, [0x03]), Self.block(0x00, [0x66]))], .done([0x66]))
    }

    @Test func aCardThatStaysSilentIsGivenUp() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        var step = t1.start([0x01])
        var sent = 0
        while case .send = step, sent < 100 {
            sent += 1
            step = t1.receivedNothing()
        }
        #expect(step == .failed(.noAnswer, "the card does not resynchronize T=1"))
        #expect(sent == 6)  // I, R, R, three times S(RESYNCH)
    }

    @Test func abortOfAChain() {
        var t1 = T1Protocol(ifsc: 3, usesCRC: false)
        run(
            &t1, t1.start([1, 2, 3, 4]), [(Self.block(0x20, [1, 2, 3]), Self.block(0xC2))],
            .failed(.notTransacted, "the card aborted the chain"))
    }

    @Test func endlessCardsAreCutOff() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        var step = t1.start([0x01])
        var number: UInt8 = 0
        var count = 0
        while case .send = step, count < 2000 {
            step = t1.received(Self.block(number << 6 | 0x20, [UInt8](repeating: 0, count: 254)))
            number ^= 1
            count += 1
        }
        #expect(step == .failed(.malformedAnswer, "a response without end"))
        step = t1.start([0x01])
        count = 0
        while case .send = step, count < 2000 {
            step = t1.received(Self.block(0xC3, [0x01]))
            count += 1
        }
        #expect(step == .failed(.noAnswer, "supervisory blocks without end"))
    }

    @Test func randomBlocksNeverTrapAndAlwaysEnd() {
        var random = Seed.generator()
        for _ in 0..<2000 {
            var t1 = T1Protocol(ifsc: .random(in: 0...255, using: &random), usesCRC: .random(using: &random))
            var step = Bool.random(using: &random) ? t1.announce(ifsd: 254) : t1.start((0..<40).map { UInt8($0) })
            var count = 0
            while case .send = step, count < 5000 {
                count += 1
                let data = (0..<Int.random(in: 0...5, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                step =
                    Bool.random(using: &random)
                    ? t1.received(Self.block(.random(in: 0...255, using: &random), data)) : t1.received(data)
            }
            #expect(count < 5000)
        }
    }
}

@Suite struct APDUExchangeTests {
    private func descriptor(features: UInt32, maximum: UInt32 = 271, protocols: UInt8 = 3) throws -> CCIDDescriptor {
        var d = DescriptorTests.acr122u
        d[6] = protocols
        for i in 0..<4 {
            d[40 + i] = UInt8(truncatingIfNeeded: features >> (8 * UInt32(i)))
            d[44 + i] = UInt8(truncatingIfNeeded: maximum >> (8 * UInt32(i)))
        }
        return try #require(CCIDDescriptor(extra: d))
    }

    private func answer(_ data: [UInt8], chain: UInt8 = 0) throws -> CCIDAnswer {
        let header = [0x80, UInt8(data.count), 0, 0, 0, 0, 1, 0, 0, chain] as [UInt8]
        return try #require(CCIDAnswer(header + data))
    }

    @Test func shortAPDULevel() throws {
        var exchange = try APDUExchange(descriptor(features: 0x20040), t1: nil)
        #expect(exchange.start(bytes("00 A4 04 00")) == .send(.xfrBlock(bytes("00 A4 04 00"))))
        #expect(exchange.received(try answer([0x90, 0x00])) == .done([0x90, 0x00]))
        guard case .failed(let error) = exchange.start([UInt8](repeating: 0, count: 262)) else {
            Issue.record("sent")
            return
        }
        #expect(error.kind == .tooLong)
    }

    @Test func t0TPDUs() throws {
        // ISO/IEC 7816-3, 12.2: case 1 gets P3 = 00, case 4 loses its Le
        var exchange = try APDUExchange(descriptor(features: 0x10030), t1: nil)
        let cases = [
            ("00 A4 00 00", "00 A4 00 00 00"), ("00 C0 00 00 10", "00 C0 00 00 10"),
            ("00 A4 00 00 02 3F 00", "00 A4 00 00 02 3F 00"), ("00 A4 00 00 02 3F 00 00", "00 A4 00 00 02 3F 00"),
        ]
        for (apdu, tpdu) in cases {
            #expect(exchange.start(bytes(apdu)) == .send(.xfrBlock(bytes(tpdu))), "\(apdu)")
        }
        #expect(exchange.received(try answer([0x61, 0x10])) == .done([0x61, 0x10]))
        guard case .failed(let error) = exchange.start(bytes("00 B0 00 00 00 01 00")) else {
            Issue.record("sent")
            return
        }
        #expect(error.kind == .tooLong)
    }

    @Test func extendedAPDUsInParts() throws {
        // USB CCID 1.10, 6.1.4: begins 0001, goes on 0003, ends 0002; the reader invites with 10
        var exchange = try APDUExchange(descriptor(features: 0x40040, maximum: 64), t1: nil)
        let command = [UInt8](repeating: 0xAA, count: 130)  // 54 + 54 + 22
        #expect(exchange.start(command) == .send(.xfrBlock(Array(command.prefix(54)), level: 0x0001)))
        #expect(
            exchange.received(try answer([], chain: 0x10))
                == .send(.xfrBlock(Array(command.prefix(54)), level: 0x0003)))
        #expect(
            exchange.received(try answer([], chain: 0x10))
                == .send(.xfrBlock(Array(command.prefix(22)), level: 0x0002)))
        // The response: 01 begins, 03 goes on, 02 ends; the host invites with 0010
        #expect(exchange.received(try answer([1], chain: 0x01)) == .send(.xfrBlock([], level: 0x0010)))
        #expect(exchange.received(try answer([2], chain: 0x03)) == .send(.xfrBlock([], level: 0x0010)))
        #expect(exchange.received(try answer([0x90, 0x00], chain: 0x02)) == .done([1, 2, 0x90, 0x00]))
    }

    @Test func chainsThatMakeNoSense() throws {
        var exchange = try APDUExchange(descriptor(features: 0x40040), t1: nil)
        _ = exchange.start([0])
        guard case .failed = exchange.received(try answer([1], chain: 0x02)) else {
            Issue.record("an end without a beginning was taken")
            return
        }
        _ = exchange.start([0])
        var step = exchange.received(try answer([1], chain: 0x01))
        var count = 0
        while case .send = step, count < 20_000 {
            step = exchange.received(try answer([], chain: 0x03))
            count += 1
        }
        #expect(count < 20_000)
    }

    @Test func characterLevelIsNotSupported() throws {
        let descriptor = try descriptor(features: 0x32)
        #expect(throws: CardError.self) { try APDUExchange(descriptor, t1: nil) }
    }

    // MARK: Protocol and parameters

    @Test func theACR122UIsLeftAlone() throws {
        // DESFire's ATR in the ACR122U's manner; the reader has T=1 only and settles everything by itself
        let choice = try ProtocolChoice(
            ATR(bytes("3B 86 80 01 06 75 77 81 02 80 00")), descriptor(features: 0x20040, protocols: 2))
        #expect(choice.parameters.transmissionProtocol == .t1)
        #expect(!choice.setsParameters && choice.pps == nil)
    }

    @Test func parametersAreThoseOfTheATR() throws {
        // A card with T=0 alone and its defaults: 3B 02 14 50
        let plain = try ProtocolChoice(ATR(bytes("3B 02 14 50")), descriptor(features: 0x10030))
        #expect(plain.parameters.bytes == bytes("11 00 00 0A 00"))
        #expect(plain.pps == nil && plain.setsParameters)
        // T=1 first: TA1 95, TD1 81, TA3 FE, TB3 75 (IFSC 254, BWI 7, CWI 5)
        let t1 = try ProtocolChoice(ATR(bytes("3B 90 95 81 B1 FE 75 1F 03 D5")), descriptor(features: 0x10030))
        #expect(t1.parameters.transmissionProtocol == .t1)
    }

    @Test func ppsIsSentWhereTheReaderDoesNot() throws {
        // TA1 18: F 372, D 12; at 4 MHz 129032 bit/s, within 250000
        var d = try descriptor(features: 0x10030)
        let fast = ATR(bytes("3B 10 18"))
        #expect(try ProtocolChoice(fast, d).pps == bytes("FF 10 18 F7"))
        #expect(try ProtocolChoice(fast, d).parameters.fd == 0x18)
        d = try descriptor(features: 0x100B0)  // automatic PPS
        #expect(try ProtocolChoice(fast, d).pps == nil)
        // TA2: specific mode, nothing to choose
        let specific = ATR(bytes("3B 90 18 10 00"))
        d = try descriptor(features: 0x10030)
        #expect(try ProtocolChoice(specific, d).pps == nil)
        #expect(try ProtocolChoice(specific, d).parameters.fd == 0x18)
        // TA1 96: D 32 at F 512, 250000 bit/s; 97, D 64, is too fast: the card is left at its first speed
        #expect(try ProtocolChoice(ATR(bytes("3B 10 97")), d).parameters.fd == 0x11)
        #expect(try ProtocolChoice(ATR(bytes("3B 10 97")), d).pps == nil)
    }

    /// An ACR1281U (T=0 and T=1, extended APDU level) with a DESFire: its ATR names T=0 first, as PC/SC part 3 has it.
    @Test func contactlessCardsGetT1() throws {
        let both = try descriptor(features: 0x404BA, protocols: 3)
        let desfire = ATR(bytes("3B 81 80 01 80 80"))
        #expect(try ProtocolChoice(desfire, both).parameters.transmissionProtocol == .t1)
        #expect(
            try ProtocolChoice(desfire, descriptor(features: 0x404BA, protocols: 1)).parameters.transmissionProtocol
                == .t0)
        // A contact card that offers both gets its first.
        let contact = ATR(bytes("3B 82 80 31 00 00 33"))
        #expect(try ProtocolChoice(contact, both).parameters.transmissionProtocol == .t0)
    }

    /// BWI 9: 512 times 960 times 372 clocks of 4 MHz are 45.7 s (ISO/IEC 7816-3, 11.4.3); libccid adds a second, too.
    @Test func aBlockIsWaitedForAsLongAsTheCardMayTake() throws {
        func time(_ atr: String) throws -> Duration {
            try ProtocolChoice(ATR(bytes(atr)), descriptor(features: 0x10030)).parameters
                .timeForABlock(kilohertz: 4000)
        }
        let slow = try time("3B 80 81 31 FE 95 5B")
        #expect(slow > .milliseconds(45_711 + 1000) && slow < .milliseconds(45_711 + 1500), "\(slow)")
        // BWI 4, the default: 1.43 s
        let usual = try time("3B 80 81 01 00")
        #expect(usual > .milliseconds(1428 + 1000) && usual < .seconds(4), "\(usual)")
    }

    @Test func protocolsThatDoNotMatch() throws {
        let t1Only = try descriptor(features: 0x10030, protocols: 2)
        #expect(throws: CardError.self) { try ProtocolChoice(ATR(bytes("3B 02 14 50")), t1Only) }
        // The second protocol of the card, by PPS
        let both = ATR(bytes("3B 80 80 01 01"))
        #expect(try ProtocolChoice(both, t1Only).pps == bytes("FF 01 FE"))
        #expect(try ProtocolChoice(both, t1Only).parameters.transmissionProtocol == .t1)
    }
}
