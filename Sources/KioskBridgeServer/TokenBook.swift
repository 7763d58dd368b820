/// The tokens that pages were given: each admits one connection, from one origin, for a short time.
struct TokenBook {
    private struct Entry {
        let token: [UInt8]
        let origin: String
        let end: Duration
    }

    /// The time for which a token can be used.
    let lifetime: Duration
    private var entries: [Entry] = []
    /// More than so many tokens are not outstanding: the oldest one goes.
    static let capacity = 64

    init(lifetime: Duration = .seconds(30)) { self.lifetime = lifetime }

    /// Makes a token of 128 random bits, in 32 hexadecimal digits.
    mutating func issue(
        to origin: String, at now: Duration, random: inout some RandomNumberGenerator
    ) -> String {
        let digits = Array("0123456789abcdef".utf8)
        let token = (0..<16).flatMap { _ -> [UInt8] in
            let byte = UInt8.random(in: 0...255, using: &random)
            return [digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
        }
        entries.removeAll { $0.end <= now }
        if entries.count >= Self.capacity { entries.removeFirst() }
        entries.append(Entry(token: token, origin: origin, end: now + lifetime))
        return String(decoding: token, as: UTF8.self)
    }

    /// Uses a token up.
    ///
    /// Every outstanding token is compared, each to its end, so that the time tells nothing of them.
    ///
    /// - Returns: true if it was issued to `origin`, is not too old, and was not used before.
    mutating func take(_ token: String, from origin: String, at now: Duration) -> Bool {
        let offered = Array(token.utf8)
        var found: Int?
        for (index, entry) in entries.enumerated() where Self.areEqual(entry.token, offered) { found = index }
        guard let found else { return false }
        let entry = entries.remove(at: found)
        return entry.origin == origin && now < entry.end
    }

    private static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        var difference: UInt8 = a.count == b.count ? 0 : 1
        for index in a.indices { difference |= a[index] ^ (b.indices.contains(index) ? b[index] : ~a[index]) }
        return difference == 0
    }
}
