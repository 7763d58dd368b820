/// The access conditions of a MIFARE Classic sector (NXP MF1S50yyX/V1, 8.7): C1 C2 C3 for each of its four blocks.
///
/// In a sector of sixteen blocks, each of the first three conditions covers five blocks.
public struct MIFAREAccessConditions: Hashable, Sendable {
    /// The codes of data blocks 0, 1, 2 and the trailer: C1 C2 C3 as a number from 0 to 7.
    private var codes: [UInt8]

    /// `FF 07 80`: key A permits everything, and so does key B until it becomes unreadable.
    public static let delivery = MIFAREAccessConditions(codes: [0, 0, 0, 1])

    private init(codes: [UInt8]) { self.codes = codes }

    /// Parses bytes 6, 7 and 8 of a sector trailer.
    ///
    /// - Returns: nil if bits and complements disagree; the card locks such a sector for ever.
    public init?(_ bytes: some Collection<UInt8>) {
        let b = Array(bytes)
        // Byte 6: C2 and C1 inverted.  Byte 7: C1, and C3 inverted.  Byte 8: C3, C2.
        guard b.count == 3, b[0] & 0x0F == ~b[1] >> 4, b[0] >> 4 == ~b[2] & 0x0F, b[1] & 0x0F == ~b[2] >> 4 else {
            return nil
        }
        codes = (0..<4).map { block in
            (b[1] >> (4 + block) & 1) << 2 | (b[2] >> block & 1) << 1 | b[2] >> (4 + block) & 1
        }
    }

    /// Bytes 6, 7 and 8 of the sector trailer.
    public var bytes: [UInt8] {
        func nibble(_ bit: UInt8) -> UInt8 {
            codes.enumerated().reduce(0) { $0 | ($1.element >> bit & 1) << UInt8($1.offset & 3) }
        }
        let (c1, c2, c3) = (nibble(2), nibble(1), nibble(0))
        return [(~c2 & 0x0F) << 4 | ~c1 & 0x0F, c1 << 4 | ~c3 & 0x0F, c3 << 4 | c2]
    }

    /// The keys with a right.
    public struct Keys: OptionSet, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let a = Keys(rawValue: 1)
        public static let b = Keys(rawValue: 2)
        public static let both: Keys = [.a, .b]
        public static let none: Keys = []

        public var description: String { ["never", "key A", "key B", "key A or B"][Int(rawValue & 3)] }
    }

    /// The rights to a data block.
    public struct DataRights: Hashable, Sendable {
        public let read: Keys
        public let write: Keys
        public let increment: Keys
        /// The keys that permit decrement, transfer and restore.
        public let decrement: Keys
    }

    /// The rights to a sector trailer.  Key A can never be read.
    public struct TrailerRights: Hashable, Sendable {
        public let writeKeyA: Keys
        public let readAccessBits: Keys
        public let writeAccessBits: Keys
        public let readKeyB: Keys
        public let writeKeyB: Keys
    }

    /// Returns C1 C2 C3 of the data block `index`, 0 to 2, or of the trailer, 3; nil for others.
    public func code(_ index: Int) -> UInt8? { codes.indices.contains(index) ? codes[index] : nil }

    /// Returns these conditions with a new code for one block.
    ///
    /// - Returns: nil for an index that is not 0 to 3, or a code that is not 0 to 7.
    public func setting(_ index: Int, to code: UInt8) -> MIFAREAccessConditions? {
        guard codes.indices.contains(index), code <= 7 else { return nil }
        var other = self
        other.codes[index] = code
        return other
    }

    /// Returns the rights to the data block `index`, 0 to 2; nil for others.
    ///
    /// A readable key B opens nothing, so it has no rights.
    public func data(_ index: Int) -> DataRights? {
        guard (0..<3).contains(index) else { return nil }
        let rights = Self.dataTable[Int(codes[index] & 7)]
        guard !trailer.readKeyB.isEmpty else { return rights }
        return DataRights(
            read: rights.read.subtracting(.b), write: rights.write.subtracting(.b),
            increment: rights.increment.subtracting(.b), decrement: rights.decrement.subtracting(.b))
    }

    /// The rights to the trailer.
    public var trailer: TrailerRights { Self.trailerTable[Int(codes[3] & 7)] }

    /// MF1S50yyX/V1, table 8, by C1 C2 C3.
    private static let dataTable: [DataRights] = [
        .init(read: .both, write: .both, increment: .both, decrement: .both),  // 000
        .init(read: .both, write: .none, increment: .none, decrement: .both),  // 001
        .init(read: .both, write: .none, increment: .none, decrement: .none),  // 010
        .init(read: .b, write: .b, increment: .none, decrement: .none),  // 011
        .init(read: .both, write: .b, increment: .none, decrement: .none),  // 100
        .init(read: .b, write: .none, increment: .none, decrement: .none),  // 101
        .init(read: .both, write: .b, increment: .b, decrement: .both),  // 110
        .init(read: .none, write: .none, increment: .none, decrement: .none),  // 111
    ]

    /// MF1S50yyX/V1, table 7, by C1 C2 C3: 000, 001, and so on.
    private static let trailerTable: [TrailerRights] = [
        .init(writeKeyA: .a, readAccessBits: .a, writeAccessBits: .none, readKeyB: .a, writeKeyB: .a),
        .init(writeKeyA: .a, readAccessBits: .a, writeAccessBits: .a, readKeyB: .a, writeKeyB: .a),
        .init(writeKeyA: .none, readAccessBits: .a, writeAccessBits: .none, readKeyB: .a, writeKeyB: .none),
        .init(writeKeyA: .b, readAccessBits: .both, writeAccessBits: .b, readKeyB: .none, writeKeyB: .b),
        .init(writeKeyA: .b, readAccessBits: .both, writeAccessBits: .none, readKeyB: .none, writeKeyB: .b),
        .init(writeKeyA: .none, readAccessBits: .both, writeAccessBits: .b, readKeyB: .none, writeKeyB: .none),
        .init(writeKeyA: .none, readAccessBits: .both, writeAccessBits: .none, readKeyB: .none, writeKeyB: .none),
        .init(writeKeyA: .none, readAccessBits: .both, writeAccessBits: .none, readKeyB: .none, writeKeyB: .none),
    ]
}
