import Foundation
import Glibc
import KioskKit
import Synchronization
import Testing

/// What a disk that fails leaves in the journal.
struct JournalDiskTests {
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
        let left = try await PaymentJournal(folder: folder).leftovers()
        #expect(left.map(\.payment.id) == ["payment-1"] && left.map(\.state) == [.reversal])
    }
}
