import SmartCard
import Testing

@testable import SmartCardUSB

/// The last value that is allowed and the first that is not; errors in a row and errors that are not.
@Suite struct BoundaryTests {
    private static func block(_ pcb: UInt8, _ data: [UInt8] = []) -> [UInt8] {
        let body = [0x00, pcb, UInt8(data.count)] + data
        return body + [body.reduce(0, ^)]
    }

    // MARK: T=1 (ISO/IEC 7816-3, 11)

    @Test("a response as long as an APDU's may be is taken; a byte more is not", arguments: [0, 1])
    func longestResponse(_ more: Int) {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        var step = t1.start([0x01])
        var (left, number) = (T1Protocol.longestResponse + more, UInt8(0))
        while left > 0, case .send = step {
            let count = min(left, 254)
            left -= count
            step = t1.received(Self.block(number << 6 | (left > 0 ? 0x20 : 0), [UInt8](repeating: 0xAA, count: count)))
            number ^= 1
        }
        #expect(
            more == 0
                ? step == .done([UInt8](repeating: 0xAA, count: 65_538))
                : step == .failed(.malformedAnswer, "a response without end"))
    }

    @Test("a thousand supervisory blocks in an exchange are put up with, and no more; the next exchange counts anew")
    func supervisoryBlocks() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        for number in 0..<2 as Range<UInt8> {
            _ = t1.start([0x01])
            for _ in 0..<1000 {
                #expect(t1.received(Self.block(0xC3, [0x01])) == .send(Self.block(0xE3, [0x01]), waitingTime: 1))
            }
            #expect(t1.received(Self.block(number << 6, [0x90, 0x00])) == .done([0x90, 0x00]))
        }
        _ = t1.start([0x01])
        for _ in 0..<1000 { _ = t1.received(Self.block(0xC3, [0x01])) }
        #expect(t1.received(Self.block(0xC3, [0x01])) == .failed(.noAnswer, "supervisory blocks without end"))
    }

    @Test("two errors before each block of a response are repaired, however many blocks it has")
    func errorsBetweenInformationBlocks() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        var step = t1.start([0x01])
        for index in 0..<10 as Range<UInt8> {
            for _ in 0..<2 {
                step = t1.received([0xFF])
                #expect(step == .send(Self.block(0x81 | (index & 1) << 4)), "R for block \(index)")
            }
            step = t1.received(Self.block((index & 1) << 6 | (index < 9 ? 0x20 : 0), [index]))
        }
        #expect(step == .done(Array(0..<10)))
    }

    @Test("two errors before each acknowledgment of a command's blocks are repaired, however many blocks it has")
    func errorsBetweenReadyBlocks() {
        var t1 = T1Protocol(ifsc: 1, usesCRC: false)
        var step = t1.start(Array(0..<10))
        for index in 0..<9 as Range<UInt8> {
            #expect(step == .send(Self.block((index & 1) << 6 | 0x20, [index])))
            for _ in 0..<2 { step = t1.received([0xFF]) }
            step = t1.received(Self.block(0x80 | ((index + 1) & 1) << 4))
        }
        #expect(step == .send(Self.block(0x40, [9])))
        #expect(t1.received(Self.block(0x00, [0x90, 0x00])) == .done([0x90, 0x00]))
    }

    @Test("errors on both sides of a request for more time are not in a row")
    func errorsAroundAWaitingTimeExtension() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        _ = t1.start([0x01])
        for _ in 0..<5 {
            for _ in 0..<2 { #expect(t1.received([0xFF]) == .send(Self.block(0x81))) }
            #expect(t1.received(Self.block(0xC3, [0x01])) == .send(Self.block(0xE3, [0x01]), waitingTime: 1))
        }
        #expect(t1.received(Self.block(0x00, [0x90, 0x00])) == .done([0x90, 0x00]))
    }

    @Test("errors of one exchange do not count in the next")
    func errorsOfTheExchangeBefore() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        // IFS is refused twice, and agreed upon at the third try: an answer to S-blocks resets nothing by itself.
        _ = t1.announce(ifsd: 254)
        for _ in 0..<2 { #expect(t1.received([0xFF]) == .send(Self.block(0xC1, [0xFE]))) }
        #expect(t1.received(Self.block(0xE1, [0xFE])) == .done([]))
        _ = t1.start([0x01])
        for _ in 0..<2 { #expect(t1.received([0xFF]) == .send(Self.block(0x81))) }
        #expect(t1.received(Self.block(0x00, [0x90, 0x00])) == .done([0x90, 0x00]))
    }

    @Test("field sizes 1 and 254 are taken from the card; 0 and 255 are errors (11.4.2)", arguments: [0, 1, 254, 255])
    func fieldSizes(_ size: UInt8) {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        _ = t1.start([0x01])
        let step = t1.received(Self.block(0xC1, [size]))
        let isValid = (1...254).contains(size)
        #expect(step == .send(isValid ? Self.block(0xE1, [size]) : Self.block(0x82)))
        #expect(t1.ifsc == (isValid ? Int(size) : 32))
    }

    @Test("a card that agrees to another field size than ours has not agreed")
    func anotherFieldSize() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        _ = t1.announce(ifsd: 254)
        #expect(t1.received(Self.block(0xE1, [0x20])) == .send(Self.block(0xC1, [0xFE])))
        #expect(t1.ifsd == 32)
    }

    @Test("a block with the number of the one before is asked for again, not taken twice")
    func repeatedNumber() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        _ = t1.start([0x01])
        #expect(t1.received(Self.block(0x20, [0xA1])) == .send(Self.block(0x90)))
        #expect(t1.received(Self.block(0x20, [0xA1])) == .send(Self.block(0x92)))
        #expect(t1.received(Self.block(0x40, [0xA2])) == .done([0xA1, 0xA2]))
    }

    @Test("LEN 255 is reserved (11.3.2.3)")
    func reservedLength() {
        var t1 = T1Protocol(ifsc: 32, usesCRC: false)
        _ = t1.start([0x01])
        #expect(t1.received(Self.block(0x00, [UInt8](repeating: 0, count: 255))) == .send(Self.block(0x81)))
    }

    // MARK: CCID (USB CCID 1.10, 6.2)

    private static func exchange(_ command: CCIDCommand, maximumAnswer: Int = 271) -> CCIDExchange {
        CCIDExchange(command, sequence: 2, packetSize: 64, maximumAnswer: maximumAnswer)
    }

    @Test("an answer as long as the reader's longest message is taken")
    func longestMessage() {
        var exchange = Self.exchange(.xfrBlock([0]), maximumAnswer: 12)
        guard case .done(let answer) = exchange.received(bytes("80 02 00 00 00 00 02 00 00 00 90 00")) else {
            Issue.record("not taken")
            return
        }
        #expect(answer.data == [0x90, 0x00])
    }

    @Test("an answer of another slot is passed over, though its number is ours")
    func anotherSlot() {
        var exchange = Self.exchange(.xfrBlock([0]))
        #expect(exchange.received(bytes("80 02 00 00 00 01 02 00 00 00 90 00")) == .read)
        guard case .done(let answer) = exchange.received(bytes("80 02 00 00 00 00 02 00 00 00 6A 82")) else {
            Issue.record("not taken")
            return
        }
        #expect(answer.data == [0x6A, 0x82])
    }

    @Test("the reserved command status C0 is a failure")
    func reservedStatus() throws {
        #expect(try #require(CCIDAnswer(bytes("80 02 00 00 00 00 02 C0 FE 00 90 00"))).failure == .mute)
    }

    // MARK: APDUs by parts (6.1.4)

    private static func descriptor(features: UInt32, maximum: UInt32) throws -> CCIDDescriptor {
        var d = DescriptorTests.acr122u
        for i in 0..<4 {
            d[40 + i] = UInt8(truncatingIfNeeded: features >> (8 * UInt32(i)))
            d[44 + i] = UInt8(truncatingIfNeeded: maximum >> (8 * UInt32(i)))
        }
        return try #require(CCIDDescriptor(extra: d))
    }

    private static func answer(_ data: [UInt8], chain: UInt8) throws -> CCIDAnswer {
        let count = [UInt8(data.count & 0xFF), UInt8(data.count >> 8)]
        return try #require(CCIDAnswer([0x80] + count + [0, 0, 0, 1, 0, 0, chain] + data))
    }

    @Test("an APDU that just fits into the reader's message is sent whole; one byte more is refused")
    func shortLevel() throws {
        var exchange = try APDUExchange(Self.descriptor(features: 0x20040, maximum: 64), t1: nil)
        let command = [UInt8](repeating: 0xAA, count: 54)
        #expect(exchange.start(command) == .send(.xfrBlock(command)))
        guard case .failed(let error) = exchange.start(command + [0xAA]) else {
            Issue.record("sent")
            return
        }
        #expect(error.kind == .tooLong)
    }

    @Test("an APDU of just one part is sent whole, and one of just two in two")
    func fullParts() throws {
        var exchange = try APDUExchange(Self.descriptor(features: 0x40040, maximum: 64), t1: nil)
        let part = [UInt8](repeating: 0xAA, count: 54)
        #expect(exchange.start(part) == .send(.xfrBlock(part, level: 0x0000)))
        #expect(exchange.start(part + part) == .send(.xfrBlock(part, level: 0x0001)))
        #expect(try exchange.received(Self.answer([], chain: 0x10)) == .send(.xfrBlock(part, level: 0x0002)))
    }

    @Test("a chained response as long as an APDU's may be is taken; a byte more is not", arguments: [0, 1])
    func longestChain(_ more: Int) throws {
        var exchange = try APDUExchange(Self.descriptor(features: 0x40040, maximum: 271), t1: nil)
        _ = exchange.start([0])
        let part = [UInt8](repeating: 0xAA, count: 65_000)
        _ = try exchange.received(Self.answer(part, chain: 0x01))
        let step = try exchange.received(Self.answer(Array(part.prefix(538 + more)), chain: 0x02))
        guard case .done(let response) = step else {
            #expect(more == 1)
            return
        }
        #expect(more == 0 && response.count == 65_538)
    }

    @Test("ten thousand parts are put up with, and no more", arguments: [0, 1])
    func parts(_ more: Int) throws {
        var exchange = try APDUExchange(Self.descriptor(features: 0x40040, maximum: 271), t1: nil)
        _ = exchange.start([0])
        _ = try exchange.received(Self.answer([], chain: 0x01))
        for _ in 0..<9998 + more { _ = try exchange.received(Self.answer([], chain: 0x03)) }
        guard case .done(let response) = try exchange.received(Self.answer([0x90, 0x00], chain: 0x02)) else {
            #expect(more == 1)
            return
        }
        #expect(more == 0 && response == [0x90, 0x00])
    }
}
