import SmartCard
import TestSupport
import Testing
import Waiting

@testable import SmartCardPN532

/// NXP UM0701-02, 6.2: frames as libnfc and nfcpy show them in their logs, and what comes of each.
@Suite struct HSUExchangeTests {
    private static func bytes(_ hex: String) -> [UInt8] { (try? [UInt8](hex: hex)) ?? [] }

    private static let acknowledgment = "00 00 FF 00 FF 00"
    private static let version = "00 00 FF 06 FA D5 03 32 01 06 07 E8 00"

    private static func frames(_ hex: String) -> [HSUFrame] {
        var reader = HSUFrameReader()
        reader.append(Self.bytes(hex))
        var frames: [HSUFrame] = []
        while let frame = reader.next() { frames.append(frame) }
        return frames
    }

    // MARK: Frames

    /// nfcpy, src/nfc/clf/pn532.py: GetFirmwareVersion, SAMConfiguration.
    @Test(arguments: [
        ("D4 02", "00 00 FF 02 FE D4 02 2A 00"), ("D4 14 01 00", "00 00 FF 04 FC D4 14 01 00 17 00"),
    ])
    func aCommandHasLengthAndChecksum(_ command: String, _ frame: String) {
        #expect(HSUFrame.command(Self.bytes(command)).hex == Self.bytes(frame).hex)
    }

    /// 6.2.1.2: FF FF, LENM, LENL, LCS.
    @Test func aLongCommandIsExtended() {
        let command = [0xD4, 0x40, 0x01] + [UInt8](repeating: 0x00, count: 253)
        let frame = HSUFrame.command(command)
        #expect(frame.prefix(8).map { $0 } == Self.bytes("00 00 FF FF FF 01 00 FF"))
        #expect(frame.count == 8 + 256 + 2 && frame.suffix(2).map { $0 } == [0xEB, 0x00])
        #expect(HSUFrame.command(Array(command.dropLast())).prefix(5).map { $0 } == Self.bytes("00 00 FF FF 01"))
    }

    @Test(arguments: [
        ("00 00 FF 00 FF 00", [HSUFrame.acknowledgment]),
        ("00 00 FF FF 00 00", [.negativeAcknowledgment]),
        ("00 00 FF 01 FF 7F 81 00", [.error]),
        ("00 00 FF 02 FE D5 15 16 00", [.response([0xD5, 0x15])]),
        // No preamble, no postamble, and two at once.
        ("00 FF 00 FF 00 FF 02 FE D5 15 16", [.acknowledgment, .response([0xD5, 0x15])]),
        // Garbage before it, and a start code too many.
        ("AA 00 00 FF 12 34 00 00 00 FF 02 FE D5 15 16 00", [.response([0xD5, 0x15])]),
        // Wrong checksum of the length, of the data.
        ("00 00 FF 02 FD D5 15 16 00", []),
        ("00 00 FF 02 FE D5 15 17 00", [.damaged]),
        // Extended: a whole one; one that says it is longer than any.
        ("00 00 FF FF FF 00 02 FE D5 15 16 00", [.response([0xD5, 0x15])]),
        ("00 00 FF FF FF FF FF 02 D5 15 16 00", []),
        ("00 00 FF 02 FE D5", []),
    ])
    func framesAreFound(_ hex: String, _ expected: [HSUFrame]) {
        #expect(Self.frames(hex) == expected)
    }

    @Test func noBytesAreToTrapOn() {
        var random = SplitMix(state: 5)
        let pieces: [[UInt8]] = [
            [0x00, 0x00, 0xFF], [0x00, 0xFF, 0xFF, 0xFF], [0xD5, 0x41, 0x00], [0xFF], [0x00], Self.bytes(Self.version),
        ]
        for _ in 0..<2000 {
            var reader = HSUFrameReader()
            for _ in 0..<Int.random(in: 1...30, using: &random) {
                reader.append(
                    Bool.random(using: &random)
                        ? pieces.randomElement(using: &random) ?? [] : [UInt8.random(in: 0...255, using: &random)])
                while reader.next() != nil {}
                if Int.random(in: 0...9, using: &random) == 0 { reader.skipFrame() }
            }
        }
    }

    // MARK: Exchanges

    /// What an exchange of GetFirmwareVersion does, event by event: after `hex`, or when its time has come.
    private static func actions(_ events: [String?]) -> [HSUExchange.Action] {
        let limits = HSUExchange.Limits(
            acknowledgment: .seconds(1), response: .seconds(10), frame: .milliseconds(500))
        var now = Time.now
        var exchange = HSUExchange([0xD4, 0x02], limits: limits, now: now)
        var actions = [exchange.next(.started, now: now)]
        for event in events {
            if let event {
                now += .milliseconds(1)
                actions.append(exchange.next(.received(Self.bytes(event)), now: now))
            } else {
                now = exchange.deadline
                actions.append(exchange.next(.timedOut, now: now))
            }
        }
        return Array(actions.dropFirst())
    }

    private static let answer = HSUExchange.Action.finish(.success(bytes("D5 03 32 01 06 07")))
    private static let askedAgain = HSUExchange.Action.send(bytes("00 00 FF FF 00 00"))

    private static func failure(_ failure: HSUFailure) -> HSUExchange.Action {
        .finish(.failure(failure), leaving: Self.bytes(acknowledgment))
    }

    @Test func acknowledgmentAndResponseComeInPieces() {
        #expect(Self.actions([Self.acknowledgment, Self.version]) == [.wait, Self.answer])
        #expect(
            Self.actions(["00 00", "FF 00 FF", "00 00 00 FF 06 FA D5", "03 32 01 06 07 E8"])
                == [.wait, .wait, .wait, Self.answer])
    }

    @Test func whatComesBeforeTheAcknowledgmentIsNoAnswer() {
        #expect(
            Self.actions([Self.version, "AA 55", Self.acknowledgment, "00 00 FF 02 FE D5 15 16 00", Self.version])
                == [.wait, .wait, .wait, .wait, Self.answer])
    }

    @Test func aDamagedResponseIsAskedForAgainAndNoMoreThanTwice() {
        let damaged = "00 00 FF 06 FA D5 03 32 01 06 07 00 00"
        #expect(Self.actions([Self.acknowledgment, damaged, Self.version]) == [.wait, Self.askedAgain, Self.answer])
        #expect(
            Self.actions([Self.acknowledgment, damaged, damaged, damaged])
                == [.wait, Self.askedAgain, Self.askedAgain, Self.failure(.damaged)])
    }

    /// A frame inside a response is what a card has said, and never an answer of the chip.
    @Test func aTruncatedResponseIsAskedForAgain() {
        let truncated = "00 00 FF 20 E0 D5 03 00 00 FF 06 FA D5 03 32 01 06 07 E8 00"
        #expect(
            Self.actions([Self.acknowledgment, truncated, nil, Self.version])
                == [.wait, .wait, Self.askedAgain, Self.answer])
    }

    @Test func anAcknowledgmentIsFoundBehindGarbageThatLooksLikeAFrame() {
        #expect(
            Self.actions(["00 FF 80 80 12 34", Self.acknowledgment, nil, Self.version])
                == [.wait, .wait, .wait, Self.answer])
    }

    @Test func silenceEnds() {
        #expect(Self.actions([nil]) == [Self.failure(.noAcknowledgment)])
        #expect(Self.actions([Self.acknowledgment, nil]) == [.wait, Self.failure(.noResponse)])
    }

    @Test func anErrorFrameIsARejection() {
        #expect(
            Self.actions([Self.acknowledgment, "00 00 FF 01 FF 7F 81 00"]) == [.wait, .finish(.failure(.rejected))])
    }

    @Test func aLineThatNeverFallsSilentIsGivenUp() {
        let babble = [UInt8](repeating: 0xAA, count: 1024).hex
        #expect(
            Self.actions([Self.acknowledgment, babble, babble, babble, babble])
                == [.wait, .wait, .wait, .wait, Self.failure(.damaged)])
    }
}
