public import SmartCard

/// A MIFARE Classic (NXP MF1S50, MF1S70) on a reader that performs its cipher, such as the ACR122U (PC/SC part 3,
/// 3.2.2.1; value blocks: ACS API v2.04, 5.5).
///
///     let card = MIFAREClassic(connection)
///     try await card.authenticate(block: 8, with: .a(key))
///     print(try await card.readBlock(8))
///
/// One sector is open at a time.  A card that has refused a command is silent until it is selected anew.  This type
/// selects it before it throws the refusal as ``TagError``; no sector is open afterwards.
public struct MIFAREClassic: Sendable {
    private let card: StorageCard

    public init(_ connection: any CardConnection) { card = StorageCard(connection: connection) }

    /// A sector key.  It never prints its bytes.
    public enum Key: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
        /// Six bytes.
        case a([UInt8])
        case b([UInt8])

        /// `FF FF FF FF FF FF`, the key on delivery.
        public static let delivery = Key.a([UInt8](repeating: 0xFF, count: 6))

        public var description: String {
            switch self {
            case .a: "key A"
            case .b: "key B"
            }
        }

        public var customMirror: Mirror { Mirror(self, children: [(String?, Any)]()) }

        var bytes: [UInt8] {
            switch self {
            case .a(let bytes), .b(let bytes): bytes
            }
        }

        var type: UInt8 {
            switch self {
            case .a: 0x60
            case .b: 0x61
            }
        }
    }

    /// Opens the sector of `block`.  The key is loaded into the reader's volatile slot 0.
    ///
    /// - Throws: ``TagError/authenticationFailed(block:)``
    public func authenticate(block: UInt8, with key: Key) async throws {
        guard key.bytes.count == 6 else { throw TagError.wrongLength(key.bytes.count, expected: 6) }
        guard try await card.send((0xFF, 0x82, 0x00, 0x00), data: key.bytes) != nil else {
            throw CardError(.unsupported, "the reader takes no key")
        }
        // Version 1, block, key type, key number.
        guard try await card.send((0xFF, 0x86, 0x00, 0x00), data: [0x01, 0x00, block, key.type, 0x00]) != nil else {
            throw TagError.authenticationFailed(block: block)
        }
    }

    /// Reads the 16 bytes of a block.  Unreadable keys in a sector trailer read as zeros.
    public func readBlock(_ block: UInt8) async throws -> [UInt8] {
        try await card.read(block, count: 16)
    }

    /// Writes the 16 bytes of a block.
    ///
    /// - Throws: ``TagError/invalidAccessBits`` before writing a sector trailer that would lock its sector for ever.
    public func writeBlock(_ block: UInt8, _ data: [UInt8]) async throws {
        guard data.count == 16 else { throw TagError.wrongLength(data.count, expected: 16) }
        if Self.trailer(of: Self.sector(of: block)) == block {
            guard MIFAREAccessConditions(data[6..<9]) != nil else { throw TagError.invalidAccessBits }
        }
        try await card.write(block, data)
    }

    // MARK: Values

    /// Reads the value of a value block.
    ///
    /// - Throws: ``TagError/notAValue(block:)``; the ACR122U reports an unreadable block in the same way.
    public func readValue(_ block: UInt8) async throws -> Int32 {
        guard let data = try await card.send((0xFF, 0xB1, 0x00, block), ne: 4) else {
            throw TagError.notAValue(block: block)
        }
        guard data.count == 4 else { throw CardError(.malformedAnswer, "a value of \(data.count) bytes") }
        return Int32(bitPattern: data.reduce(0) { $0 << 8 | UInt32($1) })
    }

    /// Makes a block a value block.
    public func storeValue(_ value: Int32, in block: UInt8) async throws { try await apply(0x00, block, value) }
    /// Adds to the value of a block.
    public func increment(_ block: UInt8, by amount: Int32) async throws { try await apply(0x01, block, amount) }
    /// Subtracts from the value of a block.
    public func decrement(_ block: UInt8, by amount: Int32) async throws { try await apply(0x02, block, amount) }

    /// Copies a value block to another of the same sector.
    public func copyValue(from source: UInt8, to destination: UInt8) async throws {
        guard try await card.send((0xFF, 0xD7, 0x00, source), data: [0x03, destination]) != nil else {
            throw TagError.refused("to copy the value of \(source) to \(destination)")
        }
    }

    private func apply(_ operation: UInt8, _ block: UInt8, _ value: Int32) async throws {
        let bytes = UInt32(bitPattern: value)
        let data = [operation] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: bytes >> $0) }
        guard try await card.send((0xFF, 0xD7, 0x00, block), data: data) != nil else {
            throw TagError.refused("the operation on the value of \(block)")
        }
    }

    // MARK: Sectors

    /// Returns the sector of a block: 32 sectors of four blocks, then 8 of sixteen (MF1S70, 8.6).
    public static func sector(of block: UInt8) -> Int {
        block < 128 ? Int(block) / 4 : 32 + (Int(block) - 128) / 16
    }

    /// Returns the blocks of a sector, the trailer last; nil for sectors from 40 on, which no card has.
    public static func blocks(of sector: Int) -> ClosedRange<UInt8>? {
        switch sector {
        case 0..<32: UInt8(sector * 4)...UInt8(sector * 4 + 3)
        case 32..<40: UInt8(128 + (sector - 32) * 16)...UInt8(128 + (sector - 32) * 16 + 15)
        default: nil
        }
    }

    /// The block with the keys and access bits of a sector.
    public static func trailer(of sector: Int) -> UInt8? { blocks(of: sector)?.upperBound }

    /// Opens a sector and reads its data blocks in order.
    public func readSector(_ sector: Int, with key: Key) async throws -> [UInt8] {
        guard let blocks = Self.blocks(of: sector) else { throw TagError.refused("sector \(sector)") }
        try await authenticate(block: blocks.lowerBound, with: key)
        var data: [UInt8] = []
        for block in blocks.dropLast() { data += try await readBlock(block) }
        return data
    }

    /// Opens a sector and reads the access conditions of its blocks.
    public func accessConditions(of sector: Int, with key: Key) async throws -> MIFAREAccessConditions {
        guard let trailer = Self.trailer(of: sector) else { throw TagError.refused("sector \(sector)") }
        try await authenticate(block: trailer, with: key)
        guard let conditions = MIFAREAccessConditions(try await readBlock(trailer)[6..<9]) else {
            throw TagError.invalidAccessBits
        }
        return conditions
    }

    /// Writes the trailer of an open sector: both keys and the access conditions.
    ///
    /// - Parameters:
    ///   - sector: the number of the sector, from 0.
    ///   - keyA: 6 bytes.
    ///   - keyB: 6 bytes.
    ///   - conditions: the access conditions of the sector's blocks.
    ///   - userByte: byte 9, `69` on delivery.
    public func writeTrailer(
        of sector: Int, keyA: [UInt8], keyB: [UInt8], conditions: MIFAREAccessConditions, userByte: UInt8 = 0x69
    ) async throws {
        guard let trailer = Self.trailer(of: sector) else { throw TagError.refused("sector \(sector)") }
        for key in [keyA, keyB] where key.count != 6 { throw TagError.wrongLength(key.count, expected: 6) }
        try await writeBlock(trailer, keyA + conditions.bytes + [userByte] + keyB)
    }
}
