import Foundation
import Glibc
import KioskKit
import Synchronization
import TestSupport
import Testing
import Waiting

/// What a disk that fails leaves in the journal.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct JournalDiskTests {
    /// A counter that a closure may change.
    private final class Calls: Sendable {
        private let count = Mutex(0)
        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test("of a line that the disk did not confirm, nothing stays behind the shorter one that takes its place")
    func unconfirmed() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let calls = Calls()
        var disk = PaymentJournal.Disk()
        disk.write = { [write = disk.write] in
            let failure = write($0, $1, $2)
            return calls.next() == 2 ? EIO : failure
        }
        do {
            let open = try await PaymentJournal(folder: folder, disk: disk).begin(
                UnsettledPayment(id: "payment-1", kind: .payment, amount: 1, currency: "EUR"))
            await #expect(throws: PaymentJournal.Failure.self) {
                try await open.decide(PaymentResult(id: "payment-1", status: .approved))
            }
            try await open.willReverse()
        }
        let left = try await Self.leftovers(in: folder)
        #expect(left.map(\.payment.id) == ["payment-1"] && left.map(\.state) == [.reversal])
    }

    @Test("whoever asks how far a payment has come does not wait for the disk that takes its decision")
    func readersDoNotWait() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let (calls, goOn) = (Calls(), DispatchSemaphore(value: 0))
        let writing = Mutex(false)
        var disk = PaymentJournal.Disk()
        disk.write = { [write = disk.write] in
            if calls.next() == 2 {
                writing.withLock { $0 = true }
                goOn.wait()
            }
            return write($0, $1, $2)
        }
        let open = try await PaymentJournal(folder: folder, disk: disk).begin(Self.payment)
        let deciding = Task { try await open.decide(Self.approved) }
        let seen = Mutex<[String]>([])
        do {
            defer { goOn.signal() }
            try await wait(for: "write") { writing.withLock { $0 } }
            // A thread that may wait.
            Thread.detachNewThread {
                let stand = ["\(open.state)", "\(open.isReversal)", "\(open.isUnwritten)"]
                seen.withLock { $0 = stand }
            }
            try await wait(for: "answer") { !seen.withLock { $0.isEmpty } }
        }
        try await deciding.value
        #expect(seen.withLock { $0 } == ["asked", "false", "false"] && open.state == .decided(Self.approved))
    }

    @Test(
        "an entry that there is under the same key stays, whatever becomes of the one that is begun",
        arguments: [false, true])
    func onlyItsOwn(_ isFull: Bool) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var open: OpenPayment? = try await PaymentJournal(folder: folder).begin(Self.payment)
        var disk = PaymentJournal.Disk()
        if isFull { disk.write = { _, _, _ in ENOSPC } }
        await #expect(throws: PaymentJournal.Failure.self) {
            _ = try await PaymentJournal(folder: folder, disk: disk).begin(Self.payment)
        }
        try await open?.decide(Self.approved)
        open = nil
        let left = try await Self.leftovers(in: folder)
        #expect(left.map(\.state) == [.decided(Self.approved)])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
    }

    @Test("a settled entry that could not be removed makes room for another of its key")
    func settledMakesRoom() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let calls = Calls()
        var disk = PaymentJournal.Disk()
        disk.remove = { [remove = disk.remove] in calls.next() == 1 ? EBUSY : remove($0) }
        let journal = PaymentJournal(folder: folder, disk: disk)
        let first = try await journal.begin(Self.payment)
        await first.settle()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
        _ = try await journal.begin(Self.payment)
        let left = try await Self.leftovers(in: folder)
        #expect(left.map(\.state) == [.asked] && first.state == .settled)
    }

    @Test("what a program that was ended has left without its name is no payment, and is gone at the next start")
    func withoutItsName() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        _ = try await PaymentJournal(folder: folder).begin(Self.payment)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        let name = try #require(names.first)
        let half = folder.appending(path: "other.new")
        try FileManager.default.copyItem(at: folder.appending(path: name), to: half)
        #expect(try await Self.leftovers(in: folder).map(\.payment.id) == ["payment-1"])
        #expect(names.count == 1 && !FileManager.default.fileExists(atPath: half.path))
    }

    /// What another run of the program finds, as soon as the journal's thread has let go of what is over.
    private static func leftovers(in folder: URL) async throws -> [OpenPayment] {
        let end = Time.now + .seconds(30)
        while true {
            let left = await PaymentJournal(folder: folder).leftovers()
            guard left.isEmpty, Time.now < end else { return left }
            try await Time.sleep(for: .milliseconds(10))
        }
    }

    private static let payment = UnsettledPayment(id: "payment-1", kind: .payment, amount: 1, currency: "EUR")
    private static let approved = PaymentResult(id: "payment-1", status: .approved)
}
