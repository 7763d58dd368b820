/// The memory of a MIFARE Classic 1K and its access rights (NXP MF1S50yyX/V1, 8.6 and 8.7).
///
/// It contains 16 sectors of four blocks of 16 bytes.  The last block of each sector is its trailer with the keys and
/// the access conditions.
struct MIFAREClassicMemory: Sendable {
    static let sectorCount = 16
    static let blockCount = 64
    static let blockSize = 16
    /// Keys and access conditions on delivery (8.7.1): both keys `FF FF FF FF FF FF`, all rights to key A.
    static let transportTrailer: [UInt8] =
        [UInt8](repeating: 0xFF, count: 6) + [0xFF, 0x07, 0x80, 0x69] + [UInt8](repeating: 0xFF, count: 6)

    /// A set of sector keys.
    struct Keys: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let a = Keys(rawValue: 1)
        static let b = Keys(rawValue: 2)
        static let ab: Keys = [.a, .b]
        static let none: Keys = []
    }

    /// The keys that permit each access to a data block (table 8).
    struct DataRights: Sendable {
        var read: Keys
        var write: Keys
        var increment: Keys
        /// Decrement, transfer, restore.
        var decrement: Keys
    }

    /// The keys that permit each access to a sector trailer (table 7).  Key A can never be read.
    struct TrailerRights: Sendable {
        var writeKeyA: Keys
        var readAccess: Keys
        var writeAccess: Keys
        var readKeyB: Keys
        var writeKeyB: Keys
    }

    /// By the access bits C1 C2 C3 as a number.
    private static let dataRights: [DataRights] = [
        DataRights(read: .ab, write: .ab, increment: .ab, decrement: .ab),  // 000
        DataRights(read: .ab, write: .none, increment: .none, decrement: .ab),  // 001
        DataRights(read: .ab, write: .none, increment: .none, decrement: .none),  // 010
        DataRights(read: .b, write: .b, increment: .none, decrement: .none),  // 011
        DataRights(read: .ab, write: .b, increment: .none, decrement: .none),  // 100
        DataRights(read: .b, write: .none, increment: .none, decrement: .none),  // 101
        DataRights(read: .ab, write: .b, increment: .b, decrement: .ab),  // 110
        DataRights(read: .none, write: .none, increment: .none, decrement: .none),  // 111
    ]

    private static let trailerRights: [TrailerRights] = [
        TrailerRights(writeKeyA: .a, readAccess: .a, writeAccess: .none, readKeyB: .a, writeKeyB: .a),  // 000
        TrailerRights(writeKeyA: .a, readAccess: .a, writeAccess: .a, readKeyB: .a, writeKeyB: .a),  // 001
        TrailerRights(writeKeyA: .none, readAccess: .a, writeAccess: .none, readKeyB: .a, writeKeyB: .none),  // 010
        TrailerRights(writeKeyA: .b, readAccess: .ab, writeAccess: .b, readKeyB: .none, writeKeyB: .b),  // 011
        TrailerRights(writeKeyA: .b, readAccess: .ab, writeAccess: .none, readKeyB: .none, writeKeyB: .b),  // 100
        TrailerRights(writeKeyA: .none, readAccess: .ab, writeAccess: .b, readKeyB: .none, writeKeyB: .none),  // 101
        TrailerRights(writeKeyA: .none, readAccess: .ab, writeAccess: .none, readKeyB: .none, writeKeyB: .none),  // 110
        TrailerRights(writeKeyA: .none, readAccess: .ab, writeAccess: .none, readKeyB: .none, writeKeyB: .none),  // 111
    ]

    /// All blocks, one after the other.
    private var bytes: [UInt8]

    /// Delivery state, with a manufacturer block that begins with `manufacturer`.
    init(manufacturer: [UInt8]) {
        bytes = [UInt8](repeating: 0, count: Self.blockCount * Self.blockSize)
        for sector in 0..<Self.sectorCount { self[sector * 4 + 3] = Self.transportTrailer }
        self[0] = manufacturer
    }

    /// The 16 bytes of a block.  Missing bytes are zero, and excess bytes are dropped; blocks outside the card are
    /// empty.
    subscript(block: Int) -> [UInt8] {
        get {
            guard (0..<Self.blockCount).contains(block) else { return [] }
            return Array(bytes[(block * Self.blockSize)..<((block + 1) * Self.blockSize)])
        }
        set {
            guard (0..<Self.blockCount).contains(block) else { return }
            let filling = [UInt8](repeating: 0, count: max(0, Self.blockSize - newValue.count))
            bytes.replaceSubrange(
                (block * Self.blockSize)..<((block + 1) * Self.blockSize),
                with: newValue.prefix(Self.blockSize) + filling)
        }
    }

    /// The key A or B of a sector.
    func key(_ key: Keys, sector: Int) -> [UInt8] {
        let trailer = self[sector * 4 + 3]
        return Array(key == .a ? trailer.prefix(6) : trailer.suffix(6))
    }

    /// C1 C2 C3 of the block `index` in the sector, as a number; nil if the bits and their complements disagree, which
    /// blocks the sector forever (8.7.1).
    private func accessBits(sector: Int, index: Int) -> Int? {
        let trailer = self[sector * 4 + 3]
        guard trailer.count == Self.blockSize, (0..<4).contains(index) else { return nil }
        let (b6, b7, b8) = (trailer[6], trailer[7], trailer[8])
        // Byte 6: not C2, not C1.  Byte 7: C1, not C3.  Byte 8: C3, C2.  The high half first, block 3 leftmost.
        guard b6 & 0x0F == ~b7 >> 4, b6 >> 4 == ~b8 & 0x0F, b7 & 0x0F == ~b8 >> 4 else { return nil }
        func bit(_ nibble: UInt8) -> Int { Int(nibble >> UInt8(truncatingIfNeeded: index)) & 1 }
        return bit(b7 >> 4) << 2 | bit(b8 & 0x0F) << 1 | bit(b8 >> 4)
    }

    func rights(sector: Int, index: Int) -> DataRights? {
        accessBits(sector: sector, index: index).map { Self.dataRights[$0] }
    }

    func trailerRights(sector: Int) -> TrailerRights? {
        accessBits(sector: sector, index: 3).map { Self.trailerRights[$0] }
    }

    /// A value block (8.6.2.1): the value three times, the second inverted, then the address four times, two inverted.
    static func valueBlock(_ value: Int32, address: UInt8) -> [UInt8] {
        let v = UInt32(bitPattern: value)
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: v >> (8 * UInt32($0))) }
        return bytes + bytes.map { ~$0 } + bytes + [address, ~address, address, ~address]
    }

    /// The value and address of a block; nil if it is not a value block.
    static func value(of block: [UInt8]) -> (value: Int32, address: UInt8)? {
        guard block.count == blockSize else { return nil }
        let v = block[..<4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let value = Int32(bitPattern: v)
        return block == valueBlock(value, address: block[12]) ? (value, block[12]) : nil
    }
}
