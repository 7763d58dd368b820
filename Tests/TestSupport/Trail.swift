public import Foundation
import Glibc
import Synchronization

/// Where a process is, in a file that is mapped into it: what is written there outlives it, however it is killed.
public final class Trail: Sendable {
    /// What a process that moves money does.  Of those that it is in at once the last of this list is told.
    public enum Phase: Int, CaseIterable, Sendable {
        /// It has begun; in no other phase it is between two of them.
        case between
        /// It settles what is left and makes the reader ready.
        case preparing
        /// It forwards stored payments.
        case forwarding
        /// A card is waited for, and read.
        case reading
        /// As ``reading``, for a payment that is stored.
        case storing
        /// The payment service is asked and has not answered.
        case asking
        /// The application is told.
        case telling
        /// A line is added to an entry of the journal, or the entry made.
        case writing
        /// An entry of the journal is removed.
        case removing
    }

    /// How often each phase was entered and not left; then, how often any was entered.
    private let counts: Mutex<Counts>

    private struct Counts: @unchecked Sendable { let pointer: UnsafeMutablePointer<Int32> }

    /// - Returns: nil if the file cannot be mapped.
    public init?(_ file: URL) {
        let length = (Phase.allCases.count + 1) * MemoryLayout<Int32>.stride
        let descriptor = open(file.path, O_RDWR | O_CREAT, 0o600)
        defer { close(descriptor) }
        guard descriptor >= 0, ftruncate(descriptor, off_t(length)) == 0,
            let pointer = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), pointer != MAP_FAILED
        else { return nil }
        counts = Mutex(Counts(pointer: pointer.assumingMemoryBound(to: Int32.self)))
    }

    public func enter(_ phase: Phase) {
        counts.withLock {
            $0.pointer[phase.rawValue] += 1
            $0.pointer[Phase.allCases.count] += 1
        }
    }
    public func leave(_ phase: Phase) { counts.withLock { $0.pointer[phase.rawValue] -= 1 } }

    /// How far a process has come: how many phases it has entered.
    public static func steps(in file: URL) -> Int {
        let counts = (try? Data(contentsOf: file)) ?? Data()
        return (0..<4).reduce(0) { steps, byte in
            let place = Phase.allCases.count * MemoryLayout<Int32>.stride + byte
            return steps | (place < counts.count ? Int(counts[place]) << (8 * byte) : 0)
        }
    }

    /// The phase that a process was in when it ended; nil if it had not begun.  Forgets it.
    public static func end(in file: URL) -> Phase? {
        let counts = (try? Data(contentsOf: file)) ?? Data()
        try? FileManager.default.removeItem(at: file)
        return Phase.allCases.last { phase in
            let start = phase.rawValue * MemoryLayout<Int32>.stride
            return counts.count >= start + 4 && counts[start..<(start + 4)].contains { $0 != 0 }
        }
    }
}
