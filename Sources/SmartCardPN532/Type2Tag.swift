public import SmartCard

/// A MIFARE Ultralight or NTAG, an NFC Forum Type 2 Tag (Type 2 Tag Operation 1.1): memory in pages of 4 bytes.
///
///     let tag = Type2Tag(connection)
///     try await tag.writeNDEF(NDEFMessage([.uri("https://swift.org")].compactMap(\.self)))
///
/// Pages are read and written by the commands of PC/SC part 3, which most readers know.  ``version()`` and
/// ``fastRead(_:)`` need a PN532 behind direct transmit.  A tag that has refused a command is silent until it is
/// selected anew.  This type selects it before it throws the refusal as ``TagError``.
public struct Type2Tag: NDEFTag {
    private let card: StorageCard

    public init(_ connection: any CardConnection) { card = StorageCard(connection: connection) }

    // MARK: Pages

    /// Reads four pages from `page` on, 16 bytes.  Page 0 follows the last page.
    public func readPages(from page: UInt8) async throws -> [UInt8] {
        try await card.read(page, count: 16)
    }

    /// Writes the 4 bytes of a page.  In the lock bytes and the capability container, bits can only be set.
    public func writePage(_ page: UInt8, _ data: [UInt8]) async throws {
        guard data.count == 4 else { throw TagError.wrongLength(data.count, expected: 4) }
        try await card.write(page, data)
    }

    /// Reads bytes 0 to 3 of page 3: `E1`, version, size of the data area in units of 8 bytes, access.
    public func capabilityContainer() async throws -> [UInt8] {
        try await Array(readPages(from: 0)[12..<16])
    }

    // MARK: Commands of the chip

    /// The result of GET_VERSION (NXP NTAG213/215/216, 10.1).
    public struct Version: Hashable, Sendable {
        /// Eight bytes.
        public let bytes: [UInt8]

        /// The chip's name, such as `NTAG213`; nil for an unknown chip.
        public var name: String? {
            Self.names.first { bytes.count == 8 && [bytes[1], bytes[2], bytes[6]] == $0.code }?.name
        }

        /// Vendor 04, NXP; product type; storage size.
        private static let names: [(code: [UInt8], name: String)] = [
            ([0x04, 0x03, 0x0B], "MIFARE Ultralight EV1 MF0UL11"),
            ([0x04, 0x03, 0x0E], "MIFARE Ultralight EV1 MF0UL21"),
            ([0x04, 0x04, 0x0B], "NTAG210"), ([0x04, 0x04, 0x0E], "NTAG212"), ([0x04, 0x04, 0x0F], "NTAG213"),
            ([0x04, 0x04, 0x11], "NTAG215"), ([0x04, 0x04, 0x13], "NTAG216"),
        ]
    }

    /// - Returns: nil from a chip without this command, an Ultralight or Ultralight C, after selecting it anew.
    public func version() async throws -> Version? {
        guard let bytes = try await command([0x60]) else { return nil }
        guard bytes.count == 8 else { throw CardError(.malformedAnswer, "a version of \(bytes.count) bytes") }
        return Version(bytes: bytes)
    }

    /// Reads many pages with few commands: FAST_READ (NXP NTAG213/215/216, 10.3).
    public func fastRead(_ pages: ClosedRange<UInt8>) async throws -> [UInt8] {
        var data: [UInt8] = []
        // The number of pages that fit into one answer of the reader.
        for first in stride(from: Int(pages.lowerBound), through: Int(pages.upperBound), by: 60) {
            let last = min(first + 59, Int(pages.upperBound))
            let frame = [0x3A, UInt8(truncatingIfNeeded: first), UInt8(truncatingIfNeeded: last)]
            guard let part = try await command(frame) else {
                throw TagError.refused("to read pages \(first) to \(last)")
            }
            guard part.count == 4 * (last - first + 1) else {
                throw CardError(.malformedAnswer, "\(part.count) bytes of pages \(first) to \(last)")
            }
            data += part
        }
        return data
    }

    /// - Returns: nil for a refusal, which is silence or an invalid frame.
    private func command(_ frame: [UInt8]) async throws -> [UInt8]? {
        do {
            return try await ACR122U(through: card.connection).chip.communicateThrough(frame)
        } catch let error as CardError where error.kind == .noAnswer || error.cause is PN532Error {
            try await card.connection.reset()
            return nil
        }
    }

    // MARK: NDEF

    public func ndefStatus() async throws -> NDEFStatus {
        let (layout, _) = try await layout()
        return NDEFStatus(
            version: layout.version, capacity: layout.capacity, length: layout.length, isWritable: layout.isWritable)
    }

    public func readNDEF() async throws -> NDEFMessage {
        var (layout, memory) = try await layout()
        var data: [UInt8] = []
        for address in layout.addresses.dropFirst(layout.headerLength).prefix(layout.length) {
            data.append(try await memory.byte(at: address))
        }
        return try NDEFMessage(data)
    }

    /// NDEF Write Procedure (Type 2 Tag Operation 1.1, 6.4.3): a length of zero, the message and the terminator, its
    /// length.  A page that already has its new content is not written.
    public func writeNDEF(_ message: NDEFMessage) async throws {
        var (layout, memory) = try await layout()
        guard layout.isWritable else { throw TagError.readOnly }
        let data = message.bytes
        guard data.count <= layout.capacity else { throw TagError.tooLong(data.count, capacity: layout.capacity) }
        let count = UInt16(truncatingIfNeeded: data.count)
        let length = data.count < 0xFF ? [UInt8(truncatingIfNeeded: count)] : [0xFF] + count.bigEndianBytes
        let lengthAddress = layout.addresses[1]

        // The final content of every page.
        var pages: [Int: [UInt8]] = [:]
        for (address, byte) in zip(layout.addresses, [0x03] + length + data + [0xFE]) {
            var page = pages[address / 4] ?? []
            if page.isEmpty { page = try await memory.page(address / 4) }
            page[address % 4] = byte
            pages[address / 4] = page
        }
        var changed: [Int] = []
        for (page, content) in pages where try await memory.page(page) != content { changed.append(page) }
        guard !changed.isEmpty else { return }
        for page in Set(changed + [lengthAddress / 4]).sorted() where try await layout.isLocked(page, &memory) {
            throw TagError.locked(page: page)
        }

        var opened = try await memory.page(lengthAddress / 4)
        opened[lengthAddress % 4] = 0x00
        try await memory.write(lengthAddress / 4, opened)
        for (page, content) in pages.sorted(by: { $0.key < $1.key }) {
            var content = content
            if page == lengthAddress / 4 { content[lengthAddress % 4] = 0x00 }
            try await memory.write(page, content)
        }
        if let final = pages[lengthAddress / 4] { try await memory.write(lengthAddress / 4, final) }
    }

    /// NDEF Detection Procedure (6.4.1), up to the NDEF message.
    private func layout() async throws -> (Type2Layout, Type2Memory) {
        var memory = Type2Memory(card: card)
        let layout = try await Type2Layout(reading: &memory)
        return (layout, memory)
    }
}

/// The bytes read from a tag so far.
private struct Type2Memory {
    let card: StorageCard
    private var pages: [Int: [UInt8]] = [:]

    init(card: StorageCard) { self.card = card }

    mutating func page(_ page: Int) async throws -> [UInt8] {
        if let known = pages[page] { return known }
        guard let number = UInt8(exactly: page) else { throw TagError.refused("to read page \(page)") }
        let data = try await card.read(number, count: 16)
        // Page 0 follows the last page; nobody asks for pages after it.
        for i in 0..<4 where pages[page + i] == nil { pages[page + i] = Array(data[(4 * i)..<(4 * i + 4)]) }
        return Array(data[..<4])
    }

    mutating func byte(at address: Int) async throws -> UInt8 { try await page(address / 4)[address % 4] }

    /// Writes a page unless it already has that content.
    mutating func write(_ page: Int, _ content: [UInt8]) async throws {
        guard try await self.page(page) != content else { return }
        guard let number = UInt8(exactly: page) else { throw TagError.refused("to write page \(page)") }
        try await card.write(number, content)
        pages[page] = content
    }
}

/// The layout of a tag's data area (Type 2 Tag Operation 1.1, sections 2 and 6).
private struct Type2Layout {
    /// Lock bits outside page 2: their address, their number, and the number of bytes that each locks, from byte 64 on.
    private struct LockArea {
        var address: Int
        var count: Int
        var bytesLocked: Int
    }

    /// The first byte of the data area.
    private static let dataStart = 16
    private static let dynamicStart = 64
    /// Page numbers have one byte; memory beyond needs SECTOR SELECT.
    private static let maximumEnd = 1024

    let version: NDEFStatus.Version
    let isWritable: Bool
    /// The addresses of the NDEF message TLV and of the space it may grow into, beginning with its tag, without
    /// reserved bytes.
    let addresses: [Int]
    /// The number of bytes in tag and length.
    let headerLength: Int
    let length: Int
    private var locks: [LockArea] = []

    init(reading memory: inout Type2Memory) async throws {
        let cc = try await memory.page(3)
        guard cc[0] == 0xE1 else { throw TagError.notNDEF("no E1 in page 3") }
        version = NDEFStatus.Version(cc[1])
        guard version.major == 1 else { throw TagError.notNDEF("mapping version \(version)") }
        guard cc[3] >> 4 == 0 else { throw TagError.notNDEF("reading takes authentication") }
        isWritable = cc[3] & 0x0F == 0
        let size = 8 * Int(cc[2])
        let end = min(Self.dataStart + size, Self.maximumEnd)

        var reserved: [Range<Int>] = []
        var address = Self.dataStart
        /// Returns the next byte that is not reserved, with its address.
        func next(_ memory: inout Type2Memory) async throws -> (byte: UInt8, address: Int) {
            while let area = reserved.first(where: { $0.contains(address) }) { address = area.upperBound }
            guard address < end else { throw TagError.malformed("the data area ends inside a TLV", offset: end) }
            defer { address += 1 }
            return (try await memory.byte(at: address), address)
        }
        func lengthField(_ memory: inout Type2Memory) async throws -> (value: Int, size: Int) {
            let first = try await next(&memory).byte
            guard first == 0xFF else { return (Int(first), 1) }
            let high = try await next(&memory).byte
            return (Int(high) << 8 | Int(try await next(&memory).byte), 3)
        }

        while true {
            while let area = reserved.first(where: { $0.contains(address) }) { address = area.upperBound }
            guard address < end else { throw TagError.notNDEF("no NDEF message TLV") }
            let (tag, start) = try await next(&memory)
            if tag == 0x00 { continue }
            if tag == 0xFE { throw TagError.notNDEF("no NDEF message TLV") }
            let (count, lengthSize) = try await lengthField(&memory)
            if tag == 0x03 {
                addresses = (start..<end).filter { address in !reserved.contains { $0.contains(address) } }
                headerLength = 1 + lengthSize
                length = count
                guard headerLength + length <= addresses.count else {
                    throw TagError.malformed("an NDEF message of \(count) bytes", offset: start)
                }
                break
            }
            guard tag == 0x01 || tag == 0x02 else {
                // Proprietary, or of a later version: skipped.
                for _ in 0..<count { _ = try await next(&memory) }
                continue
            }
            guard count == 3 else { throw TagError.malformed("a control TLV of \(count) bytes", offset: start) }
            let position = Int(try await next(&memory).byte)
            let amount = Int(try await next(&memory).byte)
            let control = Int(try await next(&memory).byte)
            // Page address, byte offset; 00 means 256; bytes per page as a power of two (2.3.2, 2.3.3).
            let first = ((position >> 4) << (control & 0x0F)) + (position & 0x0F)
            let units = amount == 0 ? 256 : amount
            if tag == 0x01 {
                reserved.append(first..<(first + (units + 7) / 8))
                if control >> 4 != 0 {
                    locks.append(LockArea(address: first, count: units, bytesLocked: 1 << (control >> 4)))
                }
            } else {
                reserved.append(first..<(first + units))
            }
        }
        if locks.isEmpty, size > Self.dynamicStart - Self.dataStart {
            locks = [Self.usualLocks[size] ?? LockArea(address: 16 + size, count: (size - 48) / 8, bytesLocked: 8)]
        }
    }

    /// The lock bits of tags that differ from the specification's defaults (2.2.2) and have no TLV for them, by the
    /// size of the data area: NTAG215 and NTAG216 (NXP NTAG213/215/216, 8.5.3).
    private static let usualLocks: [Int: LockArea] = [
        496: LockArea(address: 0x82 * 4, count: 8, bytesLocked: 64),
        872: LockArea(address: 0xE2 * 4, count: 14, bytesLocked: 64),
    ]

    /// The longest message; a length of one byte covers up to 254 bytes.
    var capacity: Int {
        let room = addresses.count - 2
        return room <= 254 ? max(room, 0) : max(254, room - 2)
    }

    func isLocked(_ page: Int, _ memory: inout Type2Memory) async throws -> Bool {
        if page < Self.dynamicStart / 4 {
            // Bit 3 of the third byte of page 2 is page 3, and so on.
            let bytes = try await memory.page(2)
            return page >= 3 && (UInt16(bytes[3]) << 8 | UInt16(bytes[2])) >> UInt16(truncatingIfNeeded: page) & 1 == 1
        }
        let offset = page * 4 - Self.dynamicStart
        for area in locks {
            // A bit locks several pages, or part of one.
            for bit in offset / area.bytesLocked...(offset + 3) / area.bytesLocked where bit < area.count {
                do {
                    let byte = try await memory.byte(at: area.address + bit / 8)
                    if byte >> UInt8(truncatingIfNeeded: bit % 8) & 1 == 1 { return true }
                } catch TagError.refused {
                    // The bytes do not exist; the tag itself will reveal whether it can be written.
                }
            }
        }
        return false
    }
}
