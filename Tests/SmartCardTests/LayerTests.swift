import Logging
import SmartCard
import Synchronization
import TestSupport
import Testing
import Waiting

/// A channel that expects these commands in this order and gives these responses, both as they are on the wire.
private final class ScriptedChannel: CardChannel {
    private let script: Mutex<[(command: String, response: String)]>
    let seen = Mutex<[String]>([])

    init(_ script: [(String, String)]) { self.script = Mutex(script.map { (command: $0.0, response: $0.1) }) }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let sent = command.bytes.hex(separator: " ")
        seen.withLock { $0.append(sent) }
        let next = script.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let next, next.command == sent else { throw CardError(.other, "unexpected \(sent)") }
        return try ResponseAPDU(bytes(next.response))
    }

    var isFinished: Bool { script.withLock { $0.isEmpty } }
}

/// A channel that answers every command alike.
private struct ConstantChannel: CardChannel {
    let response: String
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { try ResponseAPDU(bytes(response)) }
}

/// ISO/IEC 7816-4, 5.3.4: how a card under T=0 gives out more than it may at once.
@Suite struct GetResponseLayerTests {
    @Test func roundsAreJoined() async throws {
        let channel = ScriptedChannel([
            ("00 A4 04 00 05 A0 00 00 00 03 00", "61 03"),
            ("00 C0 00 00 03", "6F 01 84 61 02"),
            ("00 C0 00 00 02", "AA BB 90 00"),
        ])
        let response = try await GetResponseLayer(channel).transmit(.select(bytes("A0 00 00 00 03")))
        #expect(response.bytes.hex(separator: " ") == "6F 01 84 AA BB 90 00")
        #expect(channel.isFinished)
    }

    @Test func zeroStandsFor256AndTheClassFollowsTheChannel() async throws {
        let channel = ScriptedChannel([
            ("02 B2 01 0C 00", "61 00"),
            ("02 C0 00 00 00", "70 00 90 00"),
        ])
        #expect(try await GetResponseLayer(channel).transmit(CommandAPDU(bytes("02 B2 01 0C 00"))).data.hex == "7000")
        // EMV Book 1, 9.3.1.3: GET RESPONSE after a proprietary command has class 00.
        let gpo = ScriptedChannel([("80 A8 00 00 02 83 00 00", "61 01"), ("00 C0 00 00 01", "80 90 00")])
        #expect(
            try await GetResponseLayer(gpo).transmit(CommandAPDU(bytes("80 A8 00 00 02 83 00 00"))).data.hex == "80")
    }

    /// The ACR122U's direct transmit (FF 00) under T=0: 61 LL, then FF C0 00 00 LL.  The card must not see that.
    @Test func whatAReaderHoldsBackIsFetchedFromTheReader() async throws {
        let channel = ScriptedChannel([
            ("FF 00 00 00 02 D4 02", "61 08"),
            ("FF C0 00 00 08", "D5 03 32 01 06 07 90 00"),
        ])
        let response = try await GetResponseLayer(channel).transmit(CommandAPDU(bytes("FF 00 00 00 02 D4 02")))
        #expect(response.data.hex == "D50332010607")
    }

    @Test func aCardThatNeverStopsIsCutOff() async throws {
        await #expect {
            try await GetResponseLayer(ConstantChannel(response: "61 10")).transmit(.readRecord(1, sfi: 1))
        } throws: { ($0 as? CardError)?.kind == .malformedAnswer }
    }
}

/// GET DATA for the ATC.
private var getATC: CommandAPDU { get throws { try CommandAPDU(bytes("80 CA 9F 36 00")) } }

@Suite struct WrongLeLayerTests {
    @Test func theCommandIsSentOnceMoreWithTheRightLength() async throws {
        let channel = ScriptedChannel([
            ("80 CA 9F 36 00", "6C 05"),
            ("80 CA 9F 36 05", "9F 36 02 00 01 90 00"),
        ])
        #expect(try await WrongLeLayer(channel).transmit(getATC).data.hex == "9F36020001")
    }

    /// ISO/IEC 7816-4, 5.1.3: 00 stands for 256 bytes, whatever the command asked for.
    @Test func wrongLengthZeroStandsFor256() async throws {
        let channel = ScriptedChannel([
            ("80 CA 9F 36 05", "6C 00"),
            ("80 CA 9F 36 00", "9F 36 02 00 01 90 00"),
        ])
        let command = try CommandAPDU(bytes("80 CA 9F 36 05"))
        #expect(try await WrongLeLayer(channel).transmit(command).data.hex == "9F36020001")
    }

    @Test func aCardThatInsistsIsBelieved() async throws {
        let response = try await WrongLeLayer(ConstantChannel(response: "6C 05")).transmit(getATC)
        #expect(response.status == 0x6C05)
    }
}

@Suite(.simulatedTime) struct TimeLimitLayerTests {
    private struct SilentChannel: CardChannel {
        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            try await Time.sleep(for: .seconds(3600))
            return ResponseAPDU(status: .success)
        }
    }

    @Test func anExchangeWithoutEndIsGivenUp() async {
        let start = Time.now
        await #expect {
            try await TimeLimitLayer(SilentChannel(), limit: .seconds(20)).transmit(getATC)
        } throws: { ($0 as? CardError)?.kind == .readerTimeout }
        #expect(Time.now - start == .seconds(20))
    }

    @Test func anAnswerInTimeIsPassedOn() async throws {
        let channel = TimeLimitLayer(ConstantChannel(response: "01 90 00"), limit: .seconds(60))
        #expect(try await channel.transmit(getATC).data == [0x01])
    }
}

@Suite struct RecorderTests {
    @Test func failuresAreRecordedToo() async {
        let recorded = Mutex(0)
        let layered = RecorderLayer(ScriptedChannel([])) { event in
            if case .failure = event { recorded.withLock { $0 += 1 } }
        }
        _ = try? await layered.transmit(.readRecord(1, sfi: 1))
        #expect(recorded.withLock { $0 } == 1)
    }
}

/// Test values: 4761739001010010 is Visa's published test account number.
@Suite struct TrafficLogTests {
    private func log(_ exchanges: [(String, String)]) async throws -> [String] {
        let lines = LogLines()
        var logger = Logger(label: "test") { _ in lines }
        logger.logLevel = .trace
        let channel = TrafficLogLayer(ScriptedChannel(exchanges), logger: logger)
        for (command, _) in exchanges { _ = try await channel.transmit(CommandAPDU(bytes(command))) }
        return lines.all
    }

    @Test func cardDataIsMasked() async throws {
        let lines = try await log([
            (
                "00 B2 01 0C 00",
                "70 2A 57 13 47 61 73 90 01 01 00 10 D2 21 22 01 11 43 80 44 00 00 0F "
                    + "5A 08 47 61 73 90 01 01 00 10 5F 20 05 44 4F 45 2F 4A 9F 36 00 90 00"
            )
        ])
        #expect(lines.first == "-> 00 B2 01 0C, Ne 256")
        let response = try #require(lines.last)
        #expect(response.contains("5A:476173******0010"))
        #expect(response.contains("57:476173******0010D*********************"))
        #expect(!response.contains("4761739001010010"))
        #expect(!response.contains("444F452F4A"))
        #expect(response.hasSuffix("9000 normal processing"))
    }

    @Test func whatIsNotTLVIsNotShown() async throws {
        // A log record has no tags; a truncated record could be anything; a PIN and a MIFARE key are secrets.
        let lines = try await log([
            ("00 B2 01 5C 00", "47 61 73 90 01 01 00 10 90 00"),
            ("00 B2 01 0C 00", "70 30 5A 08 47 61 73 90 01 01 00 10 90 00"),
            ("00 20 00 80 08 24 12 34 FF FF FF FF FF", "90 00"),
            ("FF 82 00 00 06 A0 A1 A2 A3 A4 A5", "90 00"),
        ])
        let text = lines.joined(separator: "\n")
        for secret in ["47617390", "241234", "A0A1A2"] { #expect(!text.contains(secret)) }
        #expect(lines.contains("-> 00 20 00 80, 8 bytes"))
        #expect(lines.contains("<- 8 bytes, 9000 normal processing"))
    }

    @Test func terminalDataIsShown() async throws {
        let lines = try await log([("80 A8 00 00 06 83 04 36 00 40 00 00", "69 85")])
        #expect(lines == ["-> 80 A8 00 00, 830436004000, Ne 256", "<- 6985 conditions of use not satisfied"])
    }
}

private final class LogLines: LogHandler, Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }

    func log(event: LogEvent) { lines.withLock { $0.append("\(event.message)") } }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
}
