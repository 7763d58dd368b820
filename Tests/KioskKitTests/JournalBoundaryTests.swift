import Foundation
import Glibc
import KioskKit
import Synchronization
import TestSupport
import Testing

/// The payment journal's limits, and the places of its lines.
@Suite(.simulatedTime, .timeLimit(.minutes(2))) struct JournalBoundaryTests {
    private final class Folder: Sendable {
        let url = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)")
        deinit { try? FileManager.default.removeItem(at: url) }
    }

    private let folder = Folder()

    private static func payment(_ id: String, _ time: TimeInterval = 0) -> UnsettledPayment {
        UnsettledPayment(
            id: id, kind: .payment, amount: 1, currency: "EUR", time: Date(timeIntervalSince1970: 1_000_000 + time))
    }

    private static let approved = PaymentResult(id: "payment-1", status: .approved)

    private func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.url.path) }

    @Test("an entry has up to 65,536 bytes; one that is longer is told as an alarm", arguments: [0, 1])
    func longestEntry(_ more: Int) async throws {
        do { _ = try await PaymentJournal(folder: folder.url).begin(Self.payment("payment-1")) }
        let file = folder.url.appending(path: try #require(try files().first))
        let text = try Data(contentsOf: file)
        // A line without its end was never written.
        try (text + Data(repeating: 0x20, count: 65_536 + more - text.count)).write(to: file)
        let journal = PaymentJournal(folder: folder.url)
        #expect(await journal.leftovers().count == 1 - more)
        #expect(journal.alarms.count == more)
    }

    @Test("a line takes the place of one that was never finished, and each follows the one before")
    func places() async throws {
        do { _ = try await PaymentJournal(folder: folder.url).begin(Self.payment("payment-1")) }
        let file = folder.url.appending(path: try #require(try files().first))
        let whole = try Data(contentsOf: file)
        try (whole + Data(#"{"decided":"#.utf8)).write(to: file)
        let places = Mutex<[Int]>([])
        var disk = PaymentJournal.Disk()
        disk.write = { [write = disk.write] descriptor, bytes, offset in
            places.withLock { $0 += [offset, offset + bytes.count] }
            return write(descriptor, bytes, offset)
        }
        do {
            let left = await PaymentJournal(folder: folder.url, disk: disk).leftovers()
            let open = try #require(left.first)
            try await open.decide(Self.approved)
            try await open.willReverse()
        }
        let seen = places.withLock { $0 }
        #expect(seen.count == 4 && seen.first == whole.count && seen[1] == seen[2])
        #expect(try String(contentsOf: file, encoding: .utf8).split(separator: "\n").count == 4)
        let last = await PaymentJournal(folder: folder.url).leftovers()
        #expect(last.map(\.state) == [.reversal])
    }

    @Test("a payment that is settled is not taken back, and leaves no entry, whoever asks for it")
    func settled() async throws {
        let open = try await PaymentJournal(folder: folder.url).begin(Self.payment("payment-1"))
        await open.settle()
        try await open.willReverse()
        #expect(open.state == .settled && !open.isReversal)
        #expect(try files() == [])
    }

    @Test("a reversal that the service has not taken is none any more, and may be one again")
    func kept() async throws {
        let open = try await PaymentJournal(folder: folder.url).begin(Self.payment("payment-1"))
        try await open.willReverse()
        #expect(open.isReversal && !open.isUnwritten)
        try await open.keep()
        #expect(open.state == .asked && !open.isReversal)
        try await open.decide(Self.approved)
        #expect(open.state == .decided(Self.approved))
        try await open.willReverse()
        #expect(open.isReversal && !open.isUnwritten)
    }

    @Test("what earlier runs have left is taken over in the order of its time")
    func order() async throws {
        for (index, time) in [5.0, 1, 9, 3, 7].enumerated() {
            _ = try await PaymentJournal(folder: folder.url).begin(Self.payment("payment-\(index)", time))
        }
        let left = await PaymentJournal(folder: folder.url).leftovers()
        #expect(left.map(\.payment.id) == [1, 3, 0, 4, 2].map { "payment-\($0)" })
    }

    @Test("an entry under the name of another payment is told as an alarm")
    func otherName() async throws {
        do { _ = try await PaymentJournal(folder: folder.url).begin(Self.payment("payment-1")) }
        let file = folder.url.appending(path: try #require(try files().first))
        let other = folder.url.appending(path: String(repeating: "0", count: 64) + ".payment")
        try FileManager.default.moveItem(at: file, to: other)
        let journal = PaymentJournal(folder: folder.url)
        #expect(await journal.leftovers().isEmpty && journal.alarms.count == 1)
    }
}
