import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

@testable import ProximityReader

/// What Apple has deprecated, called without a warning.
private protocol Preparing {
    associatedtype Update
    func prepare(
        using token: PaymentCardReader.Token, updateHandler: ((Update) -> Void)?
    ) async throws -> PaymentCardReaderSession
}

extension PaymentCardReader: Preparing {}

@Suite(.timeLimit(.minutes(1))) struct UpdateHandlerTests {
    /// Tells when nobody holds it any more.
    private final class Held: Sendable {
        let updates = Mutex<[String]>([])
        private let end: AsyncStream<Void>.Continuation
        init(_ end: AsyncStream<Void>.Continuation) { self.end = end }
        deinit { end.finish() }
    }

    private func prepare(
        _ reader: some Preparing, _ token: PaymentCardReader.Token, _ held: Held
    ) async throws -> PaymentCardReaderSession {
        try await reader.prepare(using: token) { update in held.updates.withLock { $0.append("\(update)") } }
    }

    @Test("the handler is told of progress, then of a reader that is not ready, and is let go with the session")
    func handler() async throws {
        let bench = try await Bench()
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        weak var held: Held?
        do {
            let handled = Held(end)
            held = handled
            let log = await EventLog(bench.reader)
            let session = try await prepare(bench.reader, bench.token(), handled)
            #expect(handled.updates.withLock { $0.first == "progress(0)" && $0.last == "progress(100)" })
            bench.device.unplug()
            try await log.wait(for: "notReady")
            while handled.updates.withLock({ $0.last }) != "notReady" { await Task.yield() }
            withExtendedLifetime(session) {}
        }
        for await _ in ended {}
        #expect(held == nil)
    }
}

// Also for the turn at libpcsclite, which other tests have for long.
@Suite(.timeLimit(.minutes(10))) struct IsSupportedTests {
    @Test("a reader that was given is there")
    func given() { #expect(ReaderLook.findsReader(.reader(VirtualReader(SoftwareACR122U())))) }

    // libpcsclite keeps the socket of its first call for as long as the process lives, so a test that comes to it says which.
    @Test("nothing is supported where no reader can be enumerated, nor the one that is wanted", .pcscExclusive)
    func nothing() {
        PCSCSocket.pointNowhere()
        #expect(!ReaderLook.findsReader(.pcsc))
        #expect(!ReaderLook.findsReader(.serialNumber("nobody's")))
    }
}

@Suite struct LoggedErrorTests {
    @Test("of another's error the log has the type, of a reader's the text")
    func logged() {
        struct Foreign: Error { let text = "whatever it says" }
        #expect(loggable(Foreign()) == "Foreign")
        #expect(loggable(CardError(.readerGone)) == CardError(.readerGone).description)
    }
}
