import Glibc
import Logging

/// Room on the disk that is kept for forwarding: a file of nothing, which becomes smaller where the disk is full.
///
/// What is stored can be forwarded then, and nothing more is stored until the file is whole again.
struct StoreReserve {
    private let path: String
    /// How much of it there is; nil: not known.
    private var size: Int?

    /// What is given up at once.
    private static let piece = 64 << 10
    /// What it takes on the disk to forward a batch of up to ``smallBatch`` payments; of a larger one, for each payment; and
    /// what is remembered of each payment that is stored.
    private static let batch = 1 << 20
    private static let batchedPayment = 4 << 10
    private static let payment = 1 << 10
    static let smallBatch = 64

    init(_ path: String) { self.path = path }

    /// Makes it large enough for so many payments, of which so many are in a batch; on the disk when this returns.
    ///
    /// - Throws: ``StoreFailure``; there is as much of it as before then.
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
                // What there is of it already stays.
                ftruncate(descriptor, off_t(before))
                size = before
                throw failure
            }
        }
        size = max(before, needed)
    }

    /// In large steps, so that it seldom changes.
    private static func needed(_ payments: Int, _ batch: Int) -> Int {
        let bytes = Self.batch + payments * payment + (batch > smallBatch ? batch * batchedPayment : 0)
        let step = Self.batch / 4
        return (bytes + step - 1) / step * step
    }

    /// Makes it whole again where that is possible, and no larger than that.
    mutating func restore(for payments: Int) {
        do { try keep(for: payments) } catch {
            logger.warning("store: no room is kept for forwarding: \(StoreFailure(error))")
        }
        let needed = Self.needed(payments, 0)
        // What a large batch needed.
        guard let size, size > 2 * needed, truncate(path, off_t(needed)) == 0 else { return }
        self.size = needed
    }

    /// Gives a part of it up.
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
        // Until then a file system may not give the room to another file.
        fsync(descriptor)
        size = rest
        return true
    }
}
