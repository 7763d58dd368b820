/// A source of random bytes, from outside the protocols that need them.
protocol RandomSource: Sendable {
    mutating func bytes(_ count: Int) -> [UInt8]
}

/// The system's random numbers.
struct SystemRandomSource: RandomSource {
    mutating func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
