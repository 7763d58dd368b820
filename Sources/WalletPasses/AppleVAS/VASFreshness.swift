import Crypto
public import Foundation

/// Remembers cryptograms, so that none is accepted twice: a phone's answer does not depend on anything that the reader chose, and
/// whoever recorded it could play it back.
///
/// It takes a bounded room: what is older than the tolerance is refused by its date, and needs not be remembered.  Where
/// there are more, the oldest are forgotten, and from then on nothing as old as they are is taken.
public struct VASFreshness: Sendable, Codable {
    public enum Verdict: Hashable, Sendable {
        case fresh
        /// Seen before, or as old as something that was forgotten.
        case replayed
        /// The phone's clock and this machine's differ by more than the tolerance: seconds, positive if the phone's is ahead.
        case clockDiffers(seconds: Int)
    }

    private struct Seen: Codable, Hashable {
        let date: Date
        /// SHA-256 of the cryptogram.
        let digest: Data
    }

    /// The greatest difference of the clocks, in seconds.
    public private(set) var tolerance: TimeInterval
    /// The most cryptograms that are remembered.
    public let capacity: Int
    /// Nothing at or before this date is taken.
    private var floor = Date.distantPast
    /// The newest date of those that the tolerance refuses now, and that are no longer remembered.
    private var forgotten = Date.distantPast
    private var seen: [Seen] = []

    /// - Parameters:
    ///   - tolerance: the greatest difference of the clocks, in seconds.
    ///   - capacity: the most cryptograms that are remembered.
    ///   - start: nothing from before this date is taken: what was seen until then is not known.  Nil: nothing was.
    public init(tolerance: TimeInterval = 300, capacity: Int = 10_000, since start: Date? = nil) {
        (self.tolerance, self.capacity, floor) = (max(0, tolerance), max(1, capacity), start ?? .distantPast)
    }

    /// Adds what another value that began with the same has seen since.
    package mutating func add(_ other: VASFreshness) {
        (floor, forgotten) = (max(floor, other.floor), max(forgotten, other.forgotten))
        let known = Set(seen)
        seen += other.seen.filter { !known.contains($0) }
        keepWithinCapacity()
    }

    private mutating func keepWithinCapacity() {
        while seen.count > capacity, let oldest = seen.min(by: { $0.date < $1.date }) {
            floor = max(floor, oldest.date)
            seen.removeAll { $0.date <= floor }
        }
    }

    /// The same with another tolerance.  A wider one does not let in what a narrower one has forgotten.
    func with(tolerance: TimeInterval) -> VASFreshness {
        var other = self
        other.tolerance = max(0, tolerance)
        other.floor = max(floor, forgotten)
        return other
    }

    /// The number of cryptograms that are remembered.
    public var count: Int { seen.count }

    /// Judges a decrypted cryptogram, and remembers a fresh one.
    ///
    /// - Parameters:
    ///   - cryptogram: the pass as the phone sent it.
    ///   - message: its decrypted contents.
    ///   - now: this machine's clock.
    public mutating func judge(
        _ cryptogram: VASCryptogram, _ message: VASCryptogram.Message, at now: Date
    ) -> Verdict {
        let difference = message.date.timeIntervalSince(now)
        guard abs(difference) <= tolerance else { return .clockDiffers(seconds: Int(difference.rounded())) }
        for entry in seen where now.timeIntervalSince(entry.date) > tolerance { forgotten = max(forgotten, entry.date) }
        seen.removeAll { now.timeIntervalSince($0.date) > tolerance }
        let entry = Seen(date: message.date, digest: Data(SHA256.hash(data: cryptogram.ephemeralX + cryptogram.sealed)))
        // A clock that is set back makes the date of what was forgotten valid again.
        guard message.date > max(floor, forgotten), !seen.contains(entry) else { return .replayed }
        seen.append(entry)
        keepWithinCapacity()
        return .fresh
    }
}
