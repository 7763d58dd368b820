import Foundation
import GRDB
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import Waiting

@testable import ProximityReader

/// What Apple has deprecated, called without a warning.
private protocol Preparing {
    associatedtype Update
    func prepare(
        using token: PaymentCardReader.Token, updateHandler: ((Update) -> Void)?
    ) async throws -> PaymentCardReaderSession
}

extension PaymentCardReader: Preparing {}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct UpdateHandlerTests {
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
            try await wait(for: "the last update") { handled.updates.withLock { $0.last } == "notReady" }
            withExtendedLifetime(session) {}
        }
        for await _ in ended {}
        #expect(held == nil)
    }
}

// Also for the turn at libpcsclite, which other tests have for long.
@Suite(.timeLimit(.minutes(10))) struct IsSupportedTests {
    @Test("a reader that was given is there")
    func given() { #expect(ReaderLook().findsReader(.reader(VirtualReader(SoftwareACR122U())))) }

    @Test(
        "a reader that comes and goes is there and not there; who asks again within a second starts no other look",
        .simulatedTime)
    func again() async throws {
        let look = ReaderLook()
        let looks = Mutex(0)
        func isThere(_ isThere: Bool) -> Bool {
            look.findsReader {
                looks.withLock { $0 += 1 }
                return isThere
            }
        }
        #expect(!isThere(false))
        try await Time.sleep(for: .milliseconds(999))
        #expect(!isThere(true) && looks.withLock { $0 } == 1)
        try await Time.sleep(for: .milliseconds(1))
        #expect(isThere(true) && looks.withLock { $0 } == 2)
        try await Time.sleep(for: .seconds(1))
        #expect(!isThere(false))
    }
}

@Suite(.pcscExclusive) struct AbsentReaderTests {
    @Test("nothing is supported where no reader can be enumerated, nor the one that is wanted")
    func nothing() {
        PCSCSocket.pointNowhere()
        #expect(!ReaderLook().findsReader(.pcsc))
        #expect(!ReaderLook().findsReader(.serialNumber("nobody's")))
    }
}

@Suite struct LoggedErrorTests {
    @Test("of another's error the log has the type, of a reader's the text")
    func logged() {
        struct Foreign: Error { let text = "whatever it says" }
        #expect(loggable(Foreign()) == "Foreign")
        #expect(loggable(CardError(.readerGone)) == CardError(.readerGone).description)
    }

    @Test("SQLite's failures are told by their result code, not in its words, which may quote what is stored")
    func database() {
        let failure = StoreFailure(DatabaseError(resultCode: .SQLITE_CORRUPT, message: "4761739001010010"))  // TEST
        #expect("\(failure)".contains("SQLite 11") && !"\(failure)".contains("4761"))
        #expect(StoreFailure(DatabaseError(resultCode: .SQLITE_IOERR, message: "words")) == .system(10, "SQLite 10"))
    }

    /// Errors of others, and what is no type of its own.
    private static var foreign: Regex<(Substring, Substring)> {
        /(NS|Cocoa|POSIX|Database|JWT|Decoding|Encoding|any )Error/
    }

    @Test(
        "no error goes into a text as it is, unless where it is caught says which of our own types it has",
        arguments: ["CardReaderAdapter", "CardReaderCombine", "KioskKit", "ProximityReader", "Waiting"])
    func sources(_ target: String) throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/\(target)")
        let files = try #require(FileManager.default.enumerator(atPath: folder.path)).compactMap { $0 as? String }
        let sources = files.filter { $0.hasSuffix(".swift") }
        #expect(!sources.isEmpty)
        for file in sources {
            let lines = try String(contentsOf: folder.appending(path: file), encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false)
            for (number, line) in lines.enumerated()
            where line.contains(/\\\(error\)|(describing|reflecting): error\b|\\\(error\.localizedDescription\)/) {
                let origin = lines[...number].last { $0.contains("catch") || $0.contains(" case let error") }
                let isOurs = origin.map { $0.contains("let error as ") && !$0.contains(Self.foreign) } ?? false
                #expect(isOurs, "\(target)/\(file):\(number + 1): \(line)")
            }
        }
    }
}
