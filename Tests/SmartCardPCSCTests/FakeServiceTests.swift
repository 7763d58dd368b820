import Dispatch
import Glibc
import SmartCard
import Synchronization
import TestSupport
import Testing
import Waiting

@testable import SmartCardPCSC

/// libpcsclite keeps one socket path for the process, so all tests that talk to a daemon take turns.
@Suite(.serialized, .pcscExclusive, .timeLimit(.minutes(5)))
struct PCSCTests {}

/// An ACR122U with an ISO-DEP card, as pcsc-tools' smartcard_list.txt has it (DESFire).
let desfireATR: [UInt8] = [0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]
/// NTAG or Ultralight (PC/SC part 3 storage card).
let ultralightATR: [UInt8] = [
    0x3B, 0x8F, 0x80, 0x01, 0x80, 0x4F, 0x0C, 0xA0, 0x00, 0x00, 0x03, 0x06, 0x03, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00,
    0x68,
]
let acr122u = FakePCSCD.Reader("ACS ACR122U PICC Interface 00 00")
/// A reader of TPDU level, whose driver refuses SCARD_PCI_RAW.
let refusesRaw = FakePCSCD.Reader("ACS ACR122 00 00")

/// A fake pcscd at the path where libpcsclite looks.
func fakeService(
    _ readers: [FakePCSCD.Reader] = [], _ change: (inout FakePCSCD.Behavior) -> Void = { _ in }
) throws -> FakePCSCD {
    var behavior = FakePCSCD.Behavior()
    change(&behavior)
    let daemon = try FakePCSCD(path: PCSCSocket.folder + "/fake.comm", readers: readers, behavior: behavior)
    PCSCSocket.point(to: daemon.path)
    return daemon
}

/// The error that `body` throws, which must be a CardError.
func cardError(_ body: () async throws -> Void) async -> CardError? {
    do {
        try await body()
        Issue.record("no error")
    } catch let error as CardError {
        return error
    } catch {
        Issue.record("\(error) is no CardError")
    }
    return nil
}

/// Waits for something that happens elsewhere.
func eventually(_ condition: () -> Bool) async throws -> Bool {
    try await wait(for: "what happens elsewhere", until: condition)
    return true
}

/// A service whose threads take their time.
struct Delay: Sendable {
    private let time = Time.current

    /// Keeps the thread.
    func pass(_ duration: Duration) {
        let isOver = DispatchSemaphore(value: 0)
        _ = time.deadline(after: duration) { isOver.signal() }
        isOver.wait()
    }
}

extension PCSCTests {
    @Suite(.simulatedTime) struct FakeService {
        /// A thread that reads the environment, and had begun to before the first context: neither what it goes through
        /// nor where that stands changes under it.
        @Test func theEnvironmentIsNotMovedUnderOthers() throws {
            typealias Environment = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
            let environ = try #require(dlsym(nil, "environ")).assumingMemoryBound(to: Environment.self)
            func entries(_ environment: Environment) -> [UnsafeMutablePointer<CChar>] {
                Array((0...).lazy.map { environment[$0] }.prefix { $0 != nil }.compactMap(\.self))
            }
            let before = environ.pointee
            let others = entries(before)
            for _ in 0..<3 {
                let value = withVariable("SWIFT_CONTACTLESS_TEST") {
                    #expect(entries(before) == others)
                    #expect(environ.pointee != before)
                    return getenv("SWIFT_CONTACTLESS_TEST").map { String(cString: $0) }
                }
                #expect(value == "1")
                #expect(environ.pointee == before && entries(before) == others)
                #expect(getenv("SWIFT_CONTACTLESS_TEST") == nil)
            }
        }

        @Test func listsReaders() async throws {
            let daemon = try fakeService([acr122u, FakePCSCD.Reader("Virtual PCD 00 01")])
            defer { daemon.stop() }
            #expect(
                try await PCSCService().readers().map(\.name) == [
                    "ACS ACR122U PICC Interface 00 00", "Virtual PCD 00 01",
                ])
            #expect(try await eventually { daemon.clientCount == 0 }, "the context is released")
        }

        @Test func noReadersIsNoError() async throws {
            let daemon = try fakeService()
            defer { daemon.stop() }
            #expect(try await PCSCService().readers() == [])
        }

        // MARK: No service

        @Test func noSocket() async throws {
            PCSCSocket.pointNowhere()
            let error = await cardError { _ = try await PCSCService().readers() }
            #expect(error?.kind == .noService)
            #expect(
                error?.description == "the smart card service does not answer (SCARD_E_NO_SERVICE 0x8010001D)")
        }

        @Test func socketWithoutService() async throws {
            let daemon = try fakeService()
            daemon.stop()
            // A crash leaves the socket file behind.
            let left = try FakePCSCD(path: daemon.path)
            PCSCSocket.point(to: left.path)
            left.stopKeepingSocket()
            #expect(await cardError { _ = try await PCSCService().readers() }?.kind == .noService)
        }

        /// How polkit's refusal looks over the socket, which pcscd then closes (pcsc-lite 1.9.9, winscard_svc.c
        /// ContextThread).
        @Test(arguments: [
            (FakePCSCD.Welcome.reset, "SCARD_W_SECURITY_VIOLATION 0x8010006A"),
            (.hangUp, "SCARD_F_COMM_ERROR 0x80100013"),
        ])
        func deniedByPolkit(_ welcome: FakePCSCD.Welcome, _ status: String) async throws {
            let daemon = try fakeService { $0.welcome = welcome }
            defer { daemon.stop() }
            let error = await cardError { _ = try await PCSCService().readers() }
            #expect(error?.kind == .permissionDenied)
            #expect(error?.cause.map { "\($0)" } == status)
            #expect(error?.hint.contains("polkit") == true)
        }

        @Test func versionMismatch() async throws {
            let daemon = try fakeService { $0.version = 0x8010_001E }
            defer { daemon.stop() }
            let error = await cardError { _ = try await PCSCService().readers() }
            #expect(error?.kind == .versionMismatch)
            #expect(error?.cause as? PCSCStatus == .serviceStopped)
        }

        // MARK: Connecting

        @Test(
            arguments: [
                (0x8010_000C, CardError.Kind.cardAbsent),  // SCARD_E_NO_SMARTCARD
                (0x8010_0066, .cardMute),  // SCARD_W_UNRESPONSIVE_CARD
                (0x8010_0067, .cardMute),  // SCARD_W_UNPOWERED_CARD
                (0x8010_0009, .readerGone),  // SCARD_E_UNKNOWN_READER
                (0x8010_0017, .readerGone),  // SCARD_E_READER_UNAVAILABLE
                (0x8010_000F, .protocolMismatch),  // SCARD_E_PROTO_MISMATCH
                (0x8010_000B, .sharing),  // SCARD_E_SHARING_VIOLATION
                (0x8010_006A, .permissionDenied),  // SCARD_W_SECURITY_VIOLATION, from polkit's access_card
                (0x8010_0999, .other),
            ] as [(UInt32, CardError.Kind)])
        func connectFails(_ status: UInt32, _ kind: CardError.Kind) async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) {
                $0.connect = { _, _, _ in .status(status) }
            }
            defer { daemon.stop() }
            let error = await cardError {
                _ = try await PCSCReader(name: acr122u.name).connect(
                    sharing: .shared, sharingTimeout: .milliseconds(80))
            }
            #expect(error?.kind == kind)
            #expect((error?.cause as? PCSCStatus)?.rawValue == status)
        }

        @Test func aStatusWithoutNamePrintsAsNumber() {
            #expect(PCSCStatus(rawValue: 0x8010_0999).description == "0x80100999")
            #expect(PCSCStatus.sharingViolation.description == "SCARD_E_SHARING_VIOLATION 0x8010000B")
            #expect(PCSCStatus(rawValue: 7).description == "0x00000007")
        }

        @Test func connectingAsksForWhatItWasTold() async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR)])
            defer { daemon.stop() }
            let reader = PCSCReader(name: acr122u.name)
            let card = try await reader.connect()
            #expect(card.atr.bytes == desfireATR)
            #expect(card.transmissionProtocol == .t1)
            await card.disconnect(.reset)
            _ = try await reader.connect(sharing: .exclusive, protocols: .t1)
            _ = try await reader.connect(sharing: .direct)
            // CONNECT: context, name 128, share mode, protocols, …
            let terms = daemon.requests.filter { $0.command == 0x04 }.map { [$0.body[132], $0.body[136]] }
            #expect(terms == [[2, 3], [1, 2], [3, 0]], "shared T0|T1, exclusive T1, direct without protocol")
            // DISCONNECT: handle, disposition, rv
            #expect(daemon.requests.first { $0.command == 0x06 }?.body[4] == 1, "reset")
            #expect(await cardError { _ = try await card.transmit(.readRecord(1, sfi: 1)) }?.kind == .disconnected)
        }

        @Test func lettingGoDisconnectsAndLeavesTheCard() async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR)])
            defer { daemon.stop() }
            do { _ = try await PCSCReader(name: acr122u.name).connect(sharing: .shared) }
            #expect(try await eventually { daemon.clientCount == 0 })
            #expect(daemon.requests.filter { $0.command == 0x06 }.map { $0.body[4] } == [0])
            #expect(daemon.requests.last?.command == 0x02, "the context is released after the handle")
        }

        /// A card whose ATR is 33 bytes of FF, and one of which pcscd has none yet (length 34).
        @Test func absurdATRs() async throws {
            let endless = [UInt8](repeating: 0xFF, count: 33)
            let daemon = try fakeService([acr122u.inserting(endless)])
            defer { daemon.stop() }
            let card = try await PCSCReader(name: acr122u.name).connect(sharing: .shared)
            #expect(card.atr.bytes == endless)
            daemon.readers = [acr122u.inserting(endless, atrLength: 34)]
            let status = await cardError { _ = try await card.status() }
            #expect(status == nil || status?.kind == .other)
        }

        @Test func theServiceStopsInAConnect() async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) { $0.connect = { _, _, _ in .silence } }
            async let stopped = cardError { _ = try await PCSCReader(name: acr122u.name).connect(sharing: .shared) }
            #expect(try await eventually { daemon.count(of: 0x04) == 1 })
            daemon.stop()
            #expect(await stopped?.kind == .noService, "and not a denial")
        }

        // MARK: Exchanges

        func card(
            _ transmit: @escaping @Sendable (UInt32, [UInt8]) -> FakePCSCD.Reply
        ) async throws -> (FakePCSCD, PCSCCard) {
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) { $0.transmit = transmit }
            return (
                daemon,
                try await PCSCReader(name: acr122u.name).connect(sharing: .shared, sharingTimeout: .milliseconds(100))
            )
        }

        @Test func transmitsWithTheProtocolInUse() async throws {
            let (daemon, card) = try await card { proto, command in .data([UInt8(proto)] + command + [0x90, 0x00]) }
            defer { daemon.stop() }
            let response = try await card.transmit(CommandAPDU(cla: 0, ins: 0xCA, p1: 0x9F, p2: 0x7F, ne: 256))
            #expect(response.data == [0x02, 0x00, 0xCA, 0x9F, 0x7F, 0x00])
            #expect(response.status == 0x9000)
        }

        /// That of SCardTransmit: the task has seen the answer a second later.
        @Test func theTimeOfAnExchange() async throws {
            let (host, delay, start) = (HeldUpHost(), Delay(), Time.now)
            let (daemon, card) = try await card { _, _ in
                host.holdUp(for: 1000)
                delay.pass(.milliseconds(20))
                return .data([0x90, 0x00])
            }
            defer { daemon.stop() }
            let stopwatch = ExchangeStopwatch()
            try await withTaskExecutorPreference(host) {
                _ = try await stopwatch.time { try await card.transmit(.readRecord(1, sfi: 1)) }
            }
            #expect(Time.now - start == .seconds(1) && stopwatch.elapsed == .milliseconds(20))
        }

        /// By escape: that of SCardControl alone, without the connecting and without what the driver has refused.
        @Test func theTimeOfACommandToTheReader() async throws {
            let delay = Delay()
            let daemon = try fakeService([refusesRaw]) {
                $0.connect = { _, _, _ in
                    delay.pass(.milliseconds(900))
                    return .status(0)
                }
                $0.transmit = { _, _ in
                    delay.pass(.milliseconds(900))
                    return .status(0x8010_0016)
                }
                $0.control = { code, _ in
                    guard code == 0x4200_0001 else { return .status(0x8010_0016) }
                    delay.pass(.milliseconds(20))
                    return .data(Self.firmware)
                }
            }
            defer { daemon.stop() }
            let stopwatch = ExchangeStopwatch()
            _ = try await stopwatch.time {
                try await PCSCReader(name: refusesRaw.name).transmitToReader(Self.getFirmware)
            }
            #expect(stopwatch.elapsed == .milliseconds(20))
        }

        @Test func extendedLengthBothWays() async throws {
            let (daemon, card) = try await card { _, command in
                .data(
                    [UInt8](repeating: 0xA5, count: 65_536) + [UInt8(command.count >> 8), UInt8(command.count & 0xFF)])
            }
            defer { daemon.stop() }
            let command = try CommandAPDU(
                cla: 0, ins: 0xD6, p1: 0, p2: 0, data: [UInt8](repeating: 0x5A, count: 65_000), ne: 65_536)
            let response = try await card.transmit(command)
            #expect(response.data.count == 65_536)
            #expect(response.status == StatusWord(0xFD, 0xF1), "65,009 bytes arrived")
        }

        /// libccid reports a card that stays silent as success without data (pyscard issues 18, 85, 101).
        @Test(arguments: [(0, CardError.Kind.noAnswer), (1, .malformedAnswer)])
        func answersThatAreNone(_ count: Int, _ kind: CardError.Kind) async throws {
            let (daemon, card) = try await card { _, _ in .data([UInt8](repeating: 0x90, count: count)) }
            defer { daemon.stop() }
            #expect(await cardError { _ = try await card.transmit(.readRecord(1, sfi: 1)) }?.kind == kind)
        }

        /// A count beyond the buffer: libpcsclite leaves the bytes in the socket and would take them for the next answer.
        @Test func anOversizedAnswerEndsTheConnection() async throws {
            let (daemon, card) = try await card { _, _ in
                .dataClaiming(70_000, [UInt8](repeating: 0x90, count: 70_000))
            }
            defer { daemon.stop() }
            #expect(await cardError { _ = try await card.transmit(.readRecord(1, sfi: 1)) }?.kind == .malformedAnswer)
            #expect(await cardError { _ = try await card.transmit(.readRecord(1, sfi: 1)) }?.kind == .disconnected)
            #expect(try await eventually { daemon.clientCount == 0 })
        }

        @Test(
            arguments: [
                (0x8010_0069, CardError.Kind.cardRemoved, .presentCard),  // SCARD_W_REMOVED_CARD
                (0x8010_0068, .cardReset, .reconnect),  // SCARD_W_RESET_CARD
                (0x8010_0016, .notTransacted, .reconnect),  // SCARD_E_NOT_TRANSACTED
                (0x8010_000B, .sharing, .retry),  // SCARD_E_SHARING_VIOLATION
                (0x8010_0017, .readerGone, .repairSetup),  // SCARD_E_READER_UNAVAILABLE
                (0x8010_0011, .readerGone, .repairSetup),  // SCARD_E_INVALID_VALUE, of a handle without reader
                (0x8010_0008, .malformedAnswer, .reconnect),  // SCARD_E_INSUFFICIENT_BUFFER
            ] as [(UInt32, CardError.Kind, CardError.Recovery)])
        func transmitFails(_ status: UInt32, _ kind: CardError.Kind, _ recovery: CardError.Recovery) async throws {
            let (daemon, card) = try await card { _, _ in .status(status) }
            defer { daemon.stop() }
            let error = await cardError { _ = try await card.transmit(.readRecord(1, sfi: 1)) }
            #expect(error?.kind == kind)
            #expect(error?.recovery == recovery)
        }

        @Test func theServiceStopsInAnExchange() async throws {
            let (daemon, card) = try await card { _, _ in .silence }
            async let stopped = cardError { _ = try await card.transmit(.readRecord(1, sfi: 1)) }
            #expect(try await eventually { daemon.count(of: 0x09) == 1 })
            daemon.stop()
            #expect(await stopped?.kind == .noService)
            #expect(await cardError { _ = try await card.transmit(.readRecord(1, sfi: 1)) }?.kind == .noService)
        }

        @Test func aCancelledExchangeReturnsAtOnce() async throws {
            let (daemon, card) = try await card { _, _ in .silence }
            let task = Task { try await card.transmit(.readRecord(1, sfi: 1)) }
            #expect(try await eventually { daemon.count(of: 0x09) == 1 })
            let start = Time.now
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(Time.now == start)
            daemon.stop()
        }

        /// A card held by another connection's transaction: the call waits, and goes on when the card is free.
        @Test func waitsForTheCard() async throws {
            let refusals = Mutex(2)
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) {
                $0.transmit = { _, _ in
                    let isHeld = refusals.withLock { left in
                        left -= 1
                        return left >= 0
                    }
                    return isHeld ? .status(0x8010_000B) : .data([0x90, 0x00])
                }
            }
            defer { daemon.stop() }
            let card = try await PCSCReader(name: acr122u.name).connect(sharing: .shared)
            #expect(try await card.transmit(.readRecord(1, sfi: 1)).status == 0x9000)
            #expect(daemon.count(of: 0x09) == 3)
        }

        @Test func cancellingTheWaitForTheCard() async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) {
                $0.connect = { _, _, _ in .status(0x8010_000B) }
            }
            defer { daemon.stop() }
            let task = Task {
                try await PCSCReader(name: acr122u.name).connect(sharing: .shared, sharingTimeout: .seconds(60))
            }
            #expect(try await eventually { daemon.count(of: 0x04) >= 3 })
            let start = Time.now
            task.cancel()
            await #expect(throws: CancellationError.self) { _ = try await task.value }
            #expect(Time.now == start)
        }

        /// pcscd does not answer CONNECT while another connection is inside a transaction.
        @Test func cancellingAConnectThatPcscdHolds() async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) { $0.connect = { _, _, _ in .silence } }
            let task = Task { try await PCSCReader(name: acr122u.name).connect(sharing: .shared) }
            #expect(try await eventually { daemon.count(of: 0x04) == 1 })
            let start = Time.now
            task.cancel()
            await #expect(throws: CancellationError.self) { _ = try await task.value }
            #expect(Time.now == start)
            daemon.stop()
        }

        @Test func resetReconnectsAndReadsTheNewATR() async throws {
            let (daemon, card) = try await card { _, _ in .data([0x90, 0x00]) }
            defer { daemon.stop() }
            daemon.readers = [acr122u.inserting(ultralightATR)]
            try await card.reset()
            // RECONNECT: handle, share mode, protocols, initialization, …
            let request = try #require(daemon.requests.first { $0.command == 0x05 })
            #expect(
                [request.body[4], request.body[8], request.body[12]] == [2, 3, 2], "shared, T0|T1, power off and on")
            #expect(card.atr.bytes == ultralightATR)
        }

        // MARK: Transactions

        @Test func aTransactionEndsOnEveryPath() async throws {
            struct Mishap: Error {}
            let (daemon, card) = try await card { _, _ in .data([0x90, 0x00]) }
            defer { daemon.stop() }
            let value = try await card.withTransaction {
                try await card.transmit(.readRecord(1, sfi: 1)).status
            }
            #expect(value == 0x9000)
            await #expect(throws: Mishap.self) {
                try await card.withTransaction(endingWith: .reset) { throw Mishap() }
            }
            let task = Task {
                try await card.withTransaction { try await waitUntilCanceled() }
            }
            #expect(try await eventually { daemon.count(of: 0x07) == 3 })
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            // Where the cancellation came before the body began, the end follows the error.
            #expect(try await eventually { daemon.count(of: 0x08) == 3 })
            #expect(
                daemon.requests.map(\.command).filter { [0x07, 0x08, 0x09].contains($0) } == [7, 9, 8, 7, 8, 7, 8])
            // END: handle, disposition, rv
            #expect(daemon.requests.filter { $0.command == 0x08 }.map { $0.body[4] } == [0, 1, 0])
        }

        @Test func waitingForATransactionCanBeCancelledAndEnds() async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) {
                $0.attribute = { _ in .status(0x8010_000B) }
                $0.begin = { .status(0x8010_000B) }
            }
            defer { daemon.stop() }
            let card = try await PCSCReader(name: acr122u.name).connect(
                sharing: .shared, sharingTimeout: .milliseconds(60))
            #expect(await cardError { try await card.withTransaction {} }?.kind == .sharing)
            #expect(daemon.count(of: 0x07) == 0, "SCardBeginTransaction would have waited inside the library")
            let task = Task { try await card.withTransaction(timeout: .seconds(60)) {} }
            try await Time.sleep(for: .seconds(50))
            let start = Time.now
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(Time.now == start)
        }

        // MARK: The reader itself

        /// GET FIRMWARE VERSION and the answer of a real ACR122U, without status word (nfcpy issue 154).
        static let getFirmware: [UInt8] = [0xFF, 0x00, 0x48, 0x00, 0x00]
        static let firmware = Array("ACR122U216".utf8)

        @Test func aCommandToTheReaderWithoutACard() async throws {
            let daemon = try fakeService([acr122u]) {
                // Of a card that somebody else has been using.
                $0.activeProtocol = 2
                $0.transmit = { proto, command in
                    guard proto == 4 else { return .status(0x8010_000C) }
                    return .data(command == Self.getFirmware ? Self.firmware : [0x63, 0x00])
                }
            }
            defer { daemon.stop() }
            let (answer, route) = try await PCSCReader(name: acr122u.name).transmitToReaderWithRoute(Self.getFirmware)
            #expect(answer == Self.firmware)
            #expect(route == .directConnection)
            let connect = try #require(daemon.requests.first { $0.command == 0x04 })
            #expect([connect.body[132], connect.body[136]] == [3, 0], "direct; never with protocol RAW")
        }

        @Test func aCommandToTheReaderOverAnOpenCard() async throws {
            let (daemon, card) = try await card { proto, _ in proto == 2 ? .data(Self.firmware) : .status(0x8010_000F) }
            defer { daemon.stop() }
            let (answer, route) = try await card.reader.transmitToReaderWithRoute(Self.getFirmware)
            #expect(answer == Self.firmware)
            #expect(route == .cardConnection)
            #expect(daemon.count(of: 0x04) == 1)
        }

        /// The driver refuses RAW, and lists the escape code.
        @Test func aCommandToTheReaderByEscape() async throws {
            let daemon = try fakeService([refusesRaw]) {
                $0.transmit = { _, _ in .status(0x8010_0016) }
                $0.control = { code, input in
                    switch code {
                    case 0x4200_0D48: .data([0x12, 4, 0x42, 0x33, 0x00, 0x12, 0x13, 4, 0x42, 0x00, 0x00, 0x01])
                    case 0x4200_0001: input == Self.getFirmware ? .data(Self.firmware) : .status(0x8010_0016)
                    default: .status(0x8010_0016)
                    }
                }
            }
            defer { daemon.stop() }
            let (answer, route) = try await PCSCReader(name: refusesRaw.name).transmitToReaderWithRoute(
                Self.getFirmware)
            #expect(answer == Self.firmware)
            #expect(route == .escape)
        }

        @Test func noRouteToTheReader() async throws {
            let daemon = try fakeService([refusesRaw]) { $0.transmit = { _, _ in .status(0x8010_0016) } }
            defer { daemon.stop() }
            let error = await cardError {
                _ = try await PCSCReader(name: refusesRaw.name).transmitToReader(Self.getFirmware)
            }
            #expect(error?.kind == .unsupported)
            #expect(error?.hint.contains("ifdDriverOptions") == true)
        }

        /// A command that the reader has failed may have been done; twice is once too often for one that takes money
        /// off a purse.
        @Test(
            arguments: [(0x8010_0016, CardError.Kind.notTransacted), (0x8010_000A, .readerTimeout)]
                as [(UInt32, CardError.Kind)])
        func aCommandThatFailsIsNotSentAgain(_ status: UInt32, _ kind: CardError.Kind) async throws {
            let increment: [UInt8] = [0xFF, 0xD7, 0x00, 0x04, 0x05, 0x01, 0x00, 0x00, 0x00, 0x01]
            let sent = Mutex(0)
            @Sendable func receive(_ command: [UInt8]) -> FakePCSCD.Reply {
                guard command == increment else { return .data([0x63, 0x00]) }
                sent.withLock { $0 += 1 }
                return .status(status)
            }
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) {
                $0.transmit = { _, command in receive(command) }
                $0.control = { code, input in
                    code == 0x4200_0D48 ? .data([0x13, 4, 0x42, 0x00, 0x00, 0x01]) : receive(input)
                }
            }
            defer { daemon.stop() }
            let reader = PCSCReader(name: acr122u.name)
            #expect(await cardError { _ = try await reader.transmitToReader(increment) }?.kind == kind)
            #expect(sent.withLock { $0 } == 1)
            // And over a card that is connected.
            let card = try await reader.connect()
            #expect(await cardError { _ = try await reader.transmitToReader(increment) }?.kind == kind)
            #expect(sent.withLock { $0 } == 2)
            await card.disconnect(.leave)
        }

        /// The driver refuses RAW and lists the escape code, and the reader fails the command.
        @Test func anEscapeThatFailsIsNoLackOfARoute() async throws {
            let daemon = try fakeService([refusesRaw]) {
                $0.transmit = { _, _ in .status(0x8010_0016) }
                $0.control = { code, _ in
                    code == 0x4200_0D48 ? .data([0x13, 4, 0x42, 0x00, 0x00, 0x01]) : .status(0x8010_0016)
                }
            }
            defer { daemon.stop() }
            let error = await cardError {
                _ = try await PCSCReader(name: refusesRaw.name).transmitToReader(Self.getFirmware)
            }
            #expect(error?.kind == .notTransacted)
            #expect(error?.cause as? PCSCStatus == .notTransacted)
        }

        /// Somebody has reset the card: pcscd has said so and passed nothing on.
        @Test func whatWasNotSentGoesAnotherWay() async throws {
            let (daemon, card) = try await card { proto, _ in
                proto == 4 ? .data(Self.firmware) : .status(0x8010_0068)
            }
            defer { daemon.stop() }
            let (answer, route) = try await card.reader.transmitToReaderWithRoute(Self.getFirmware)
            #expect(answer == Self.firmware)
            #expect(route == .directConnection)
        }

        @Test func featuresPropertiesAndAttributes() async throws {
            let daemon = try fakeService([acr122u]) {
                $0.control = { code, _ in
                    switch code {
                    case 0x4200_0D48: .data([0x12, 4, 0x42, 0x33, 0x00, 0x12, 0x77, 4, 0x01, 0x02, 0x03, 0x04])
                    case 0x4233_0012: .data([0x0B, 2, 0x2F, 0x07, 0x0C, 2, 0x00, 0x22])
                    default: .status(0x8010_0016)
                    }
                }
                $0.attribute = { id in
                    switch id {
                    case 0x0001_0100: .data(Array("ACS\0".utf8))
                    case 0x0001_0102: .data([0x07, 0x00, 0x02, 0x02])
                    case 0x0002_0110: .data([0x05, 0x01, 0x20, 0x00])
                    case 0x0009_0303: .data(desfireATR)
                    default: .status(0x8010_001F)
                    }
                }
            }
            defer { daemon.stop() }
            let direct = try await PCSCReader(name: acr122u.name).connect(sharing: .direct)
            #expect(
                try await direct.features() == [.tlvProperties: 0x4233_0012, PCSCFeature(rawValue: 0x77): 0x0102_0304])
            #expect(try await direct.properties() == [11: [0x2F, 0x07], 12: [0x00, 0x22]])
            #expect(try await direct.attribute(.vendorName) == "ACS")
            #expect(try await direct.attribute(.readerVersion)?.description == "2.2.7")
            #expect(try await direct.attribute(.channelID)?.type == 0x0020)
            #expect(try await direct.attribute(.channelID)?.number == 0x0105)
            #expect(try await direct.attribute(.atr)?.bytes == desfireATR)
            #expect(try await direct.attribute(.serialNumber) == nil)
            let details = try await direct.reader.details()
            #expect(details.vendor == "ACS" && details.serialNumber == nil && details.backend == .pcsc)
        }

        /// Feature lists that are none: half an entry, and an entry of length 5.
        @Test(arguments: [[0x13, 4, 0x42], [0x13, 5, 0x42, 0x00, 0x00, 0x01]] as [[UInt8]])
        func malformedFeatures(_ list: [UInt8]) async throws {
            let daemon = try fakeService([acr122u]) { $0.control = { _, _ in .data(list) } }
            defer { daemon.stop() }
            let direct = try await PCSCReader(name: acr122u.name).connect(sharing: .direct)
            #expect(await cardError { _ = try await direct.features() }?.kind == .malformedAnswer)
        }
    }
}

/// Something that happens once.
final class Flag: Sendable {
    private let value = Mutex(false)
    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
}
