import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import Synchronization
import TestSupport
import Testing

@testable import SmartCardPN532

/// A software board on a pseudo-terminal, and whoever puts cards on it.
private struct Desk {
    let board: SoftwarePN532Board
    let host: PseudoTerminalHost

    init(_ cards: String..., faults: [PN532BoardFault] = []) throws {
        board = SoftwarePN532Board(faults: faults)
        for name in cards { board.insert(try #require(VirtualCards.named(name))) }
        host = try PseudoTerminalHost(board)
    }

    /// Impatient, so that tests of what never comes end.
    static let limits = HSUExchange.Limits(
        acknowledgment: .milliseconds(600), response: .milliseconds(900), frame: .milliseconds(200))

    func open(_ rate: SerialRate = .baud115200, limits: HSUExchange.Limits = .init()) async throws -> PN532Reader {
        try await PN532Reader.open(host.path, rate: rate, limits: limits)
    }

    func close(_ reader: PN532Reader? = nil) async {
        await reader?.close()
        host.close()
    }
}

/// The kind of the `CardError` that `body` throws; nil if it throws none.
private func kind<R: Sendable>(_ body: () async throws -> R) async throws -> CardError.Kind? {
    do {
        _ = try await body()
        return nil
    } catch let error as CardError {
        #expect(!error.hint.isEmpty)
        return error.kind
    }
}

private let selectPPSE = CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8))

@Suite(.timeLimit(.minutes(5))) struct PN532ReaderTests {
    @Test func aBoardTellsItsFirmware() async throws {
        let desk = try Desk()
        let reader = try await desk.open()
        #expect((reader.firmware.chip, reader.firmware.version, reader.firmware.revision) == (0x32, 1, 6))
        #expect(reader.identity.name == "NXP PN532 v1.6 on \(desk.host.path)" && reader.identity.backend == .serial)
        #expect(try await reader.transmitToReader([0xD4, 0x02]).hex == "D50332010607")
        #expect(try await kind { try await reader.transmitToReader([0xFF, 0x00, 0x48, 0x00, 0x00]) } == .unsupported)
        await desk.close(reader)
    }

    /// EMV Contactless Book B, 3.2.1.4, over the board's field.
    @Test func aPaymentIsMadeAndACollisionSeen() async throws {
        let desk = try Desk("visa", "mastercard")
        let reader = try await desk.open()
        let day = try #require(CalendarDate(year: 2026, month: 5, day: 4))
        let time = try #require(TerminalTime(day))
        let euro = try #require(Currency["EUR"])
        let transaction = try #require(
            Transaction(.purchase, amount: 12_34, currency: euro, time: time, unpredictableNumber: [1, 2, 3, 4]))
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self])))
        let mastercard = desk.board.cards[1]
        let report = try await reader.withChip { chip in
            try await terminal.perform(transaction, in: PN532Field(chip)) { request in
                if request.message == .presentOneCardOnly { desk.board.remove(mastercard) }
            }
        }
        #expect(report.outcome.kind == .onlineRequest && report.exchanges.count == 4)
        await desk.close(reader)
    }

    /// More than a frame in both directions: the chip chains.
    @Test func extendedAPDUsGetThrough() async throws {
        let desk = try Desk("ndef-type4")
        let reader = try await desk.open()
        let connection = try await reader.connect()
        #expect(try await Type4Tag(connection).readNDEF().records.count == 1)
        let bare = try #require(VirtualCards.named("ndef-type4"))
        bare.reset()
        let command = try CommandAPDU(
            cla: 0x00, ins: 0xA4, p1: 4, p2: 0, data: [UInt8](repeating: 0xA0, count: 700), ne: 65_536)
        let response = try await connection.transmit(command)
        #expect(response.bytes.hex == bare.exchange(command.bytes)?.hex)
        await desk.close(reader)
    }

    @Test func tagsAreRead() async throws {
        let desk = try Desk("mifare-classic-1k")
        let reader = try await desk.open()
        let tag = MIFAREClassic(try await reader.connect())
        let data = try await tag.readSector(0, with: .a([UInt8](repeating: 0xFF, count: 6)))  // TEST
        #expect(data.count == 48)
        await #expect(throws: TagError.self) { try await tag.readSector(1, with: .a([1, 2, 3, 4, 5, 6])) }  // TEST
        await desk.close(reader)
    }

    // MARK: The line

    @Test(arguments: [SerialRate.baud9600, .baud460800, .baud921600])
    func theRateIsChangedAndPutBack(_ rate: SerialRate) async throws {
        let desk = try Desk("visa")
        let reader = try await desk.open(rate)
        #expect(try await reader.connect().transmit(selectPPSE).status == .success)
        await reader.close()
        let again = try await desk.open()
        #expect(try await again.connect().transmit(selectPPSE).status == .success)
        await desk.close(again)
    }

    /// As after a program that was killed.
    @Test func aBoardLeftAtAnotherRateIsFound() async throws {
        let desk = try Desk("visa")
        var reader: PN532Reader? = try await desk.open(.baud921600)
        #expect(reader != nil)
        reader = nil
        let again = try await retryingWhileBusy { try await desk.open(limits: Desk.limits) }
        #expect(try await again.connect().transmit(selectPPSE).status == .success)
        await desk.close(again)
    }

    /// The thread of the reader that was dropped lets go of the line a moment later.
    private func retryingWhileBusy(_ open: () async throws -> PN532Reader) async throws -> PN532Reader {
        var reader: PN532Reader?
        try await wait(for: "end of the other") {
            do {
                reader = try await open()
            } catch let error as CardError where error.kind == .readerBusy {}
            return reader != nil
        }
        return try #require(reader)
    }

    @Test func aLineIsOnePrograms() async throws {
        let desk = try Desk()
        let reader = try await desk.open()
        #expect(try await kind { try await desk.open() } == .readerBusy)
        await desk.close(reader)
    }

    @Test(arguments: [("/dev/no-such-device", CardError.Kind.noReader), ("/dev/null", .unsupported)])
    func whatIsNoBoardIsTold(_ path: String, _ expected: CardError.Kind) async throws {
        #expect(try await kind { try await PN532Reader.open(path) } == expected)
    }

    @Test func aCancelledExchangeEndsAtOnceAndTheNextOneWorks() async throws {
        let desk = try Desk("visa")
        let reader = try await desk.open()
        let card = try await reader.connect()
        desk.board.faults = [PN532BoardFault(.endlessExtension)]
        let before = desk.board.commandCount
        let exchange = Task { try await card.transmit(selectPPSE) }
        try await wait(for: "command") { desk.board.commandCount > before }
        exchange.cancel()
        await #expect(throws: CancellationError.self) { try await exchange.value }
        desk.board.faults = []
        #expect(try await reader.connect().transmit(selectPPSE).status == .success)
        await desk.close(reader)
    }

    @Test func aClosedReaderSaysSo() async throws {
        let desk = try Desk("visa")
        let reader = try await desk.open()
        let card = try await reader.connect()
        await reader.close()
        #expect(try await kind { try await card.transmit(selectPPSE) } == .disconnected)
        for try await _ in reader.slotStates() { Issue.record("a closed reader has no slot") }
        await desk.close()
    }

    // MARK: Hostile boards

    /// Typed errors, and no hang, whatever comes; and the board works again when the fault is gone.
    @Test(arguments: [
        ("mute", [CardError.Kind.readerTimeout]), ("no-acknowledgment", [.readerTimeout]),
        ("error-frames", [.unsupported]), ("wrong-checksum", [.malformedAnswer]),
        ("truncated-frames=100", [.readerTimeout]),
        ("oversized-length", [.readerTimeout, .malformedAnswer]),
        ("only-garbage=600", [.readerTimeout, .malformedAnswer]),
        ("only-garbage=100000", [.readerTimeout, .malformedAnswer]), ("endless-extension", [.readerTimeout]),
        ("mute-card", [.noAnswer]), ("empty-answers", [.noAnswer]), ("one-byte-answers", [.malformedAnswer]),
        ("field-loss=0", [.cardRemoved]), ("unplug=1", [.readerGone]),
    ])
    func faults(_ name: String, _ expected: [CardError.Kind]) async throws {
        let desk = try Desk("visa")
        let reader = try await desk.open(limits: Desk.limits)
        let card = try await reader.connect()
        desk.board.faults = [try #require(PN532BoardFault(name))]
        let found = try await kind { try await card.transmit(selectPPSE) }
        #expect(found.map(expected.contains) == true, "\(name): \(String(describing: found))")
        desk.board.faults = []
        if !name.hasPrefix("unplug") {
            let visa = try #require(VirtualCards.named("visa"))
            if desk.board.cards.isEmpty { desk.board.insert(visa) }
            #expect(try await reader.connect().transmit(selectPPSE).status == .success)
        }
        await desk.close(reader)
    }

    @Test(arguments: ["wrong-checksum=2", "truncated-frames=3", "garbage=30", "slow=300"]) func faultsThatAreLivedWith(
        _ name: String
    )
        async throws
    {
        let desk = try Desk("visa", faults: [])
        let reader = try await desk.open(limits: Desk.limits)
        let card = try await reader.connect()
        desk.board.faults = [try #require(PN532BoardFault(name))]
        #expect(try await card.transmit(selectPPSE).status == .success)
        await desk.close(reader)
    }

    @Test(arguments: ["mute", "no-acknowledgment", "error-frames", "wrong-checksum", "only-garbage=600", "unplug=1"])
    func aBoardThatCannotBeOpened(_ name: String) async throws {
        let desk = try Desk("visa", faults: [try #require(PN532BoardFault(name))])
        #expect(try await kind { try await desk.open(limits: Desk.limits) } != nil)
        await desk.close()
    }
}

/// The software board itself: what its line carries.
@Suite struct SoftwarePN532BoardTests {
    /// What comes back for `hex`, in all.
    private func answers(_ board: SoftwarePN532Board, _ lines: String...) -> [String] {
        let seen = Seen()
        board.observe { event in if case .ready(let bytes, _) = event { seen.add(bytes.hex) } }
        for line in lines { board.receive((try? [UInt8](hex: line)) ?? []) }
        return seen.all
    }

    /// UM0701-02, 7.2.11: what wakes it is lost; nfcpy wakes it by ten zeros, libnfc by 55 55 and zeros.
    @Test(arguments: ["00 00 00 00 00 00 00 00 00 00", "55 55 00 00 00 00 00 00 00 00 00 00 00 00 00 00"])
    func itSleepsUntilItIsWoken(_ preamble: String) {
        let version = "00 00 FF 02 FE D4 02 2A 00"
        #expect(answers(SoftwarePN532Board(), version).isEmpty)
        #expect(
            answers(SoftwarePN532Board(), preamble + " " + version)
                == ["0000FF00FF00", "0000FF06FAD50332010607E800"])
    }

    /// 6.2.1.4: NACK asks for the last response again; a wrong checksum is answered by nothing.
    @Test func itRepeatsAResponseAndIgnoresADamagedCommand() {
        let board = SoftwarePN532Board()
        _ = answers(board, "55 55 00 00 00")
        #expect(answers(board, "00 00 FF 02 FE D4 02 2B 00").isEmpty)
        #expect(
            answers(board, "00 00 FF 02 FE D4 02 2A 00", "00 00 FF FF 00 00").suffix(2).map { $0.count } == [26, 26])
    }
}

private final class Seen: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
}
