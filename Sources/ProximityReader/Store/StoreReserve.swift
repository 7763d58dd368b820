import Glibc
import Logging

/// Disk space reserved for forwarding: an empty file, which shrinks when the disk is full.
///
/// Stored payments can then still be forwarded, and no payment is stored until the file has its full size again.
struct StoreReserve {
    private let path: String
    /// The size of the file; nil if unknown.
    private var size: Int?

    /// The amount that is given up at a time.
    private static let piece = 64 << 10
    /// The disk space for forwarding a batch of up to ``smallBatch`` payments; for each payment of a larger batch; and
    /// for the record of each stored payment: some 2 KiB with a service that refuses half of all batches and loses
    /// answers, while there is no room to compact the book.
    private static let batch = 1 << 20
    private static let batchedPayment = 4 << 10
    private static let payment = 3 << 10
    static let smallBatch = 64

    init(_ path: String) { self.path = path }

    /// Extends the file for the given numbers of payments and of batched ones; it is on the disk when this returns.
    ///
    /// - Throws: ``StoreFailure``; the file then keeps its size.
    mutating func keep(for payments: Int, batch: Int = 0) throws {
        let needed = Self.needed(payments, batch)
        if let size, size >= needed { return }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw StoreFailure(errno, path) }
        defer { close(descriptor) }
        let before = Int(lseek(descriptor, 0, SEEK_END))
        guard before >= 0 else { throw StoreFailure(errno, path) }
        if before < needed {
            let code = posix_fallocate(descriptor, off_t(before), off_t(needed - before))
            guard code == 0, fsync(descriptor) == 0 else {
                let failure = StoreFailure(code == 0 ? errno : code, path)
                // The file keeps its earlier size.
                ftruncate(descriptor, off_t(before))
                size = before
                throw failure
            }
        }
        size = max(before, needed)
    }

    /// Returns the required size, in large steps, so that it rarely changes.
    private static func needed(_ payments: Int, _ batch: Int) -> Int {
        let bytes = Self.batch + payments * payment + (batch > smallBatch ? batch * batchedPayment : 0)
        let step = Self.batch / 4
        return (bytes + step - 1) / step * step
    }

    /// Restores the file to its full size if possible, and shrinks it to that.
    mutating func restore(for payments: Int) {
        do { try keep(for: payments) } catch {
            logger.warning("store: no room is kept for forwarding: \(StoreFailure(error))")
        }
        let needed = Self.needed(payments, 0)
        // The space that a large batch needed.
        guard let size, size > 2 * needed, truncate(path, off_t(needed)) == 0 else { return }
        self.size = needed
    }

    /// Gives up a part of the file.
    ///
    /// - Returns: false if nothing is left.
    mutating func giveUp() -> Bool {
        let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let before = Int(lseek(descriptor, 0, SEEK_END))
        guard before > 0 else { return false }
        let rest = max(0, before - Self.piece)
        guard ftruncate(descriptor, off_t(rest)) == 0 else { return false }
        // Before this a file system may not give the space to another file.
        fsync(descriptor)
        size = rest
        return true
    }
}
