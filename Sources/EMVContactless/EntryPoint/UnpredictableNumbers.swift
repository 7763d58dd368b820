import Synchronization

/// A source of unpredictable numbers for one transaction.  No number leaves it twice: copies of an activation and of Entry Point
/// share the source.
///
/// A number that one card has received is no secret from the next: a kernel draws a new one each time it needs one.
public final class UnpredictableNumbers: Sendable {
    private struct State {
        var given: ArraySlice<[UInt8]>
        var drawn: [[UInt8]] = []
        var generator: any RandomNumberGenerator & Sendable
    }
    private let state: Mutex<State>

    /// Creates a source.
    ///
    /// - Parameters:
    ///   - given: the first numbers, in order; one that does not have 4 bytes is replaced by a random one.
    ///   - generator: the source of the numbers after those.  A predictable generator is for tests.
    public init(
        _ given: [[UInt8]] = [], then generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        state = Mutex(State(given: given[...], generator: generator))
    }

    /// Draws the next number: 4 bytes, for tags 9F37 or 9F6A, or for the relay resistance protocol.
    public func next() -> [UInt8] {
        state.withLock { state in
            let random = UInt32(truncatingIfNeeded: state.generator.next() >> 32)
            let given = state.given.popFirst().flatMap { $0.count == 4 ? $0 : nil }
            let number = given ?? withUnsafeBytes(of: random.bigEndian) { Array($0) }
            state.drawn.append(number)
            return number
        }
    }

    /// The numbers drawn so far, in order.
    public var drawn: [[UInt8]] { state.withLock { $0.drawn } }

    /// The generator as it is after the numbers drawn so far.
    var generator: any RandomNumberGenerator & Sendable { state.withLock { $0.generator } }
}
