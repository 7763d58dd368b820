import SmartCard
import TestSupport
import Testing

@testable import SmartCardUSB

/// Commands through the bulk endpoints, as bytes on the bus.
@Suite struct ExchangeTests {
    private func exchange(
        _ command: CCIDCommand, sequence: UInt8 = 2, quirks: Set<ReaderQuirk> = []
    ) -> CCIDExchange {
        CCIDExchange(command, sequence: sequence, packetSize: 64, maximumAnswer: 271, quirks: quirks)
    }

    // MARK: Messages, as in captures of real readers

    @Test func messagesOut() {
        // nfcpy#154: get firmware
        #expect(
            CCIDCommand.xfrBlock(bytes("FF 00 48 00 00")).bytes(sequence: 0)
                == bytes("6F 05 00 00 00 00 00 00 00 00 FF 00 48 00 00"))
        #expect(CCIDCommand.powerOn(voltage: 1).bytes(sequence: 7) == bytes("62 00 00 00 00 00 07 01 00 00"))
        // libnfc: PN532 GetFirmwareVersion by Escape
        #expect(
            CCIDCommand(.escape, data: bytes("FF 00 00 00 02 D4 02")).bytes(sequence: 0x0A)
                == bytes("6B 07 00 00 00 00 0A 00 00 00 FF 00 00 00 02 D4 02"))
        // wLevelParameter, least significant byte first
        #expect(
            CCIDCommand.xfrBlock([0xAA], waitingIntegers: 5, level: 0x0010).bytes(sequence: 1)
                == bytes("6F 01 00 00 00 00 01 05 10 00 AA"))
    }

    @Test func theAnswerOfARealReader() throws {
        // nfcpy#154: "ACR122U216"; slot status absent, bError 81 means nothing
        var exchange = exchange(.xfrBlock(bytes("FF 00 48 00 00")), sequence: 0)
        let step = exchange.received(bytes("80 0A 00 00 00 00 00 02 81 00 41 43 52 31 32 32 55 32 31 36"))
        guard case .done(let answer) = step else {
            Issue.record("\(step)")
            return
        }
        #expect(String(decoding: answer.data, as: UTF8.self) == "ACR122U216")
        #expect(answer.commandStatus == .done && answer.failure == nil)
    }

    @Test func aStaleAnswerIsPassedOver() {
        // nfcpy#167: the first answer comes twice, and every later one lags behind
        var exchange = exchange(.powerOn(voltage: 0), sequence: 2)
        #expect(
            exchange.received(bytes("80 0A 00 00 00 00 01 02 81 00 41 43 52 31 32 32 55 32 31 36")) == .read)
        guard case .done(let answer) = exchange.received(bytes("80 02 00 00 00 00 02 00 81 00 3B 00")) else {
            Issue.record("no answer")
            return
        }
        #expect(answer.data == [0x3B, 0x00])
    }

    @Test func strangersWithoutEnd() {
        var exchange = exchange(CCIDCommand(.getSlotStatus), sequence: 2)
        for _ in 1..<CCIDExchange.mostStrangers {
            #expect(exchange.received(bytes("81 00 00 00 00 00 63 00 00 00")) == .read)
        }
        #expect(
            exchange.received(bytes("81 00 00 00 00 00 63 00 00 00"))
                == .failed(.malformedAnswer, "answers to other commands only"))
    }

    @Test func sequenceBehindOnlyAfterALongMessageOfAReaderKnownForIt() {
        let long = CCIDCommand.xfrBlock([UInt8](repeating: 0, count: 55))  // 65 bytes
        let short = CCIDCommand.xfrBlock([UInt8](repeating: 0, count: 54))  // 64
        let behind = bytes("80 02 00 00 00 00 01 00 81 00 90 00")
        func isDone(_ exchange: CCIDExchange) -> Bool {
            var exchange = exchange
            if case .done = exchange.received(behind) { return true }
            return false
        }
        #expect(isDone(exchange(long, quirks: [.sequenceBehindAfterLongMessage])))
        #expect(!isDone(exchange(short, quirks: [.sequenceBehindAfterLongMessage])))
        #expect(!isDone(exchange(long)))
    }

    @Test func timeExtension() {
        // bStatus 80, bError is the multiplier (USB CCID 1.10, 6.2.6)
        var exchange = exchange(.xfrBlock([0]))
        #expect(exchange.received(bytes("80 00 00 00 00 00 02 80 03 00")) == .readAnew(multiplier: 3))
        #expect(exchange.received(bytes("80 00 00 00 00 00 02 80 00 00")) == .readAnew(multiplier: 1))
        for _ in 0..<CCIDExchange.mostExtensions - 2 {
            #expect(exchange.received(bytes("80 00 00 00 00 00 02 80 01 00")) == .readAnew(multiplier: 1))
        }
        #expect(
            exchange.received(bytes("80 00 00 00 00 00 02 80 01 00"))
                == .failed(.readerTimeout, "time extensions without end"))
    }

    @Test(arguments: [
        "80",  // no header
        "80 02 00 00 00 00 02 00 81 00 90",  // cut off
        "80 01 00 00 00 00 02 00 81 00 90 00",  // a byte too many
        "80 FF FF FF FF 00 02 00 81 00 90 00",  // four gigabytes
        "80 FF FF FF 7F 00 02 00 81 00 90 00",
        "80 06 01 00 00 00 02 00 81 00 90 00",  // one byte more than a message may have
        "82 00 00 00 00 00 02 00 81 00",  // of another type
        "50 03 00 00 00 00 02 00 81 00 00 00 00",
    ])
    func malformedAnswers(_ text: String) {
        var exchange = exchange(.xfrBlock([0]))
        guard case .failed(.malformedAnswer, _) = exchange.received(bytes(text)) else {
            Issue.record("taken")
            return
        }
    }

    @Test func aRefusalOfAnUnknownCommandMayBeASlotStatus() {
        var exchange = exchange(CCIDCommand(.escape, data: [1]))
        guard case .done(let answer) = exchange.received(bytes("81 00 00 00 00 00 02 41 00 00")) else {
            Issue.record("no answer")
            return
        }
        #expect(answer.failure == .commandNotSupported)
    }

    // MARK: Transfers

    @Test func aMessageInSeveralTransfers() {
        let whole = bytes("80 40 00 00 00 00 02 00 81 00") + [UInt8](repeating: 0xAA, count: 64)
        var assembler = FrameAssembler(packetSize: 64, maximum: 271)
        #expect(assembler.add(Array(whole.prefix(64))) == .incomplete)
        #expect(assembler.add(Array(whole.dropFirst(64))) == .complete(whole))
    }

    @Test func emptyTransfers() {
        let whole = bytes("80 36 00 00 00 00 02 00 81 00") + [UInt8](repeating: 0xAA, count: 54)  // 64 bytes
        var assembler = FrameAssembler(packetSize: 64, maximum: 271)
        #expect(assembler.add([]) == .incomplete)
        #expect(assembler.add(whole) == .complete(whole))
        for _ in 1..<CCIDExchange.mostEmptyTransfers { #expect(assembler.add([]) == .incomplete) }
        #expect(assembler.add([]) == .malformed("empty transfers only"))
    }

    @Test func anEmptyTransferEndsWhatIsIncomplete() {
        var assembler = FrameAssembler(packetSize: 64, maximum: 271)
        #expect(assembler.add(bytes("80 80 00 00 00 00 02 00 81 00") + [UInt8](repeating: 0, count: 54)) == .incomplete)
        #expect(assembler.add([]) == .malformed("cut off after 64 bytes"))
    }

    @Test func randomBytesNeverTrap() {
        var generator = Seed.generator()
        for _ in 0..<5000 {
            var exchange = exchange(.xfrBlock([0]))
            for _ in 0..<4 {
                let count = Int.random(in: 0...128, using: &generator)
                _ = exchange.received((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
            }
        }
    }

    // MARK: Errors

    @Test func errorsAreNamed() {
        #expect(CCIDError.mute.description == "CCID card mute, bError FE")
        #expect(CCIDError(rawValue: 0x07).description == "CCID byte 7 is bad, bError 07")
        #expect(CCIDError(rawValue: 0x95).description == "CCID bError 95")
        #expect(CCIDError.mute.kind == .noAnswer)
        #expect(CCIDError.parity.kind == .notTransacted)
        // libnfc#201: Touchatag refuses Escape with 05 and 07
        #expect(CCIDError(rawValue: 0x05).kind == .unsupported && CCIDError(rawValue: 0x07).kind == .unsupported)
    }
}
