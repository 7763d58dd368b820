import SmartCard

/// An object identifier of ASN.1 (X.690, 8.19).
public struct OID: Hashable, Sendable, CustomStringConvertible {
    /// The bytes of its encoding, without tag and length.
    let content: [UInt8]

    private static let maximumLength = 64

    /// - Returns: nil for bytes that are not an identifier.
    init?(content: some Collection<UInt8>) {
        let content = Array(content)
        guard let last = content.last, last < 0x80, content.count <= Self.maximumLength else { return nil }
        self.content = content
    }

    /// Creates an identifier of a table from its numbers, two at least, with dots between them.
    init(_ text: StaticString) {
        let arcs = text.description.split(separator: ".").compactMap { UInt64($0) }
        precondition(arcs.count >= 2 && arcs[0] < 3, "not an object identifier")
        content = ([arcs[0] * 40 + arcs[1]] + arcs[2...]).flatMap(Self.bytes)
    }

    /// Seven bits a byte; each byte but the last has the eighth.
    private static func bytes(of arc: UInt64) -> [UInt8] {
        var bytes = [UInt8(arc & 0x7F)]
        var rest = arc >> 7
        while rest > 0 {
            bytes.insert(UInt8(rest & 0x7F) | 0x80, at: 0)
            rest >>= 7
        }
        return bytes
    }

    /// The numbers, with dots between them: `2.23.136.1.1.1`.
    public var description: String {
        var arcs: [UInt64] = []
        var arc: UInt64 = 0
        for byte in content {
            guard arc < 1 << 56 else { return content.hex }
            arc = arc << 7 | UInt64(byte & 0x7F)
            if byte < 0x80 {
                arcs.append(arc)
                arc = 0
            }
        }
        let first = min(arcs[0] / 40, 2)
        return ([first, arcs[0] - first * 40] + arcs.dropFirst()).map(String.init).joined(separator: ".")
    }
}
