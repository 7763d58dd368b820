/// The statements of `card mifare-classic-1k`, `card ntag213`, `card ndef-type4` and `card felica`.
extension CardFileReader {
    private static func uid(
        _ radio: VirtualCardRadio, _ counts: [Int], _ card: Statement
    ) throws(CardFileError) -> (uid: [UInt8], atqa: [UInt8], sak: UInt8) {
        guard case .typeA(let uid, let atqa, let sak, nil) = radio, counts.contains(uid.count) else {
            let bytes = counts.map(String.init).joined(separator: " or ")
            throw card.error("this kind of card is of type A without ATS, its UID of \(bytes) bytes")
        }
        return (uid, atqa, sak)
    }

    static func mifareClassic(
        _ body: inout Section, _ radio: VirtualCardRadio
    ) throws(CardFileError) -> MIFAREClassicMemory {
        let (uid, atqa, sak) = try uid(radio, [4, 7], body.head)
        // The manufacturer block of real chips: UID, a check byte for a UID of four bytes, SAK, ATQA in transmission order.
        let check = uid.count == 4 ? [uid.reduce(0, ^)] : []
        var memory = MIFAREClassicMemory(manufacturer: uid + check + [sak] + atqa.reversed())
        var seen: Set<Int> = []
        for statement in body.all("sector") {
            try statement.arguments(count: 1...1, "sector NUMBER { … }")
            let sector = Int(try statement.number(0, "a sector", 0...15))
            guard seen.insert(sector).inserted else { throw statement.error("the sector occurs twice") }
            try read(statement, sector, &memory)
        }
        return memory
    }

    private static func read(
        _ statement: Statement, _ sector: Int, _ memory: inout MIFAREClassicMemory
    ) throws(CardFileError) {
        var section = try Section(statement, ["key-a", "access", "key-b", "block", "value"])
        var trailer = memory[sector * 4 + 3]
        if let key = try section.one("key-a") { trailer.replaceSubrange(0..<6, with: try key.bytes(6...6)) }
        if let access = try section.one("access") { trailer.replaceSubrange(6..<10, with: try access.bytes(4...4)) }
        if let key = try section.one("key-b") { trailer.replaceSubrange(10..<16, with: try key.bytes(6...6)) }
        memory[sector * 4 + 3] = trailer

        var seen: Set<Int> = []
        func block(_ statement: Statement) throws(CardFileError) -> Int {
            let index = Int(try statement.number(0, "a block of the sector", 0...2))
            guard seen.insert(index).inserted else { throw statement.error("the block occurs twice") }
            return sector * 4 + index
        }
        for statement in section.all("block") {
            memory[try block(statement)] = try statement.bytes(from: 1, 16...16)
        }
        for statement in section.all("value") {
            try statement.withoutBlock()
            try statement.arguments(count: 2...3, "value BLOCK NUMBER [ADDRESS]")
            let number = try block(statement)
            guard !statement.arguments[1].isQuoted, let value = Int32(statement.arguments[1].text) else {
                throw statement.error("a value is a number of 32 bits with sign")
            }
            let address =
                statement.arguments.count > 2 ? try statement.number(2, "an address", 0...255) : UInt64(number)
            memory[number] = MIFAREClassicMemory.valueBlock(value, address: UInt8(truncatingIfNeeded: address))
        }
    }

    static func ntag213(_ body: inout Section, _ radio: VirtualCardRadio) throws(CardFileError) -> NTAG213Memory {
        let (uid, _, _) = try uid(radio, [7], body.head)
        var memory = NTAG213Memory(uid: uid)
        var seen: Set<Int> = []

        /// Puts bytes from a page on; the last page is filled up with zeros.
        func put(_ bytes: [UInt8], at first: Int, _ statement: Statement) throws(CardFileError) {
            for start in stride(from: 0, to: bytes.count, by: 4) {
                let page = first + start / 4
                guard page < NTAG213Memory.pageCount else { throw statement.error("the tag ends with page 44 (2C)") }
                guard seen.insert(page).inserted else { throw statement.error("page \(page) is described twice") }
                let content = Array(bytes[start..<min(start + 4, bytes.count)])
                memory[page] = content + [UInt8](repeating: 0, count: 4 - content.count)
            }
        }

        if let ndef = try body.one("ndef") {
            // The NDEF message TLV and the terminator (NFC Forum Type 2 Tag, 2.3).
            let message = try ndef.content()
            guard message.count <= NTAG213Memory.userSize - 3, message.count < 0xFF else {
                throw ndef.error("an NDEF message on this tag has up to \(NTAG213Memory.userSize - 3) bytes")
            }
            try put(
                [0x03, UInt8(truncatingIfNeeded: message.count)] + message + [0xFE], at: NTAG213Memory.userPage, ndef)
        }
        for statement in body.all("page") {
            let page = Int(try statement.number(0, "a page", 3...44))
            let bytes = try statement.content(from: 1)
            guard !bytes.isEmpty else { throw statement.error("“page” is written: page NUMBER bytes") }
            try put(bytes, at: page, statement)
        }
        if let lock = try body.one("lock") { memory.setStaticLocks(try lock.bytes(2...2)[...]) }
        return memory
    }

    static func ndefType4(_ body: inout Section) throws(CardFileError) -> Type4TagCard.Configuration {
        func number(_ keyword: String, _ range: ClosedRange<UInt64>) throws(CardFileError) -> Int? {
            guard let statement = try body.one(keyword) else { return nil }
            try statement.withoutBlock()
            try statement.arguments(count: 1...1, "\(keyword) NUMBER")
            return Int(try statement.number(0, "a number of bytes", range))
        }
        // The bounds of NFC Forum Type 4 Tag Operation 2.0, 5.1; offsets of short commands have 15 bits.
        let size = try number("size", 5...32_767) ?? 2048
        var message: [UInt8] = []
        if let ndef = try body.one("ndef") {
            message = try ndef.content()
            guard message.count <= size - 2 else {
                throw ndef.error("an NDEF message in a file of \(size) bytes has up to \(size - 2)")
            }
        }
        let length = [UInt8(truncatingIfNeeded: message.count >> 8), UInt8(truncatingIfNeeded: message.count)]
        let filling = [UInt8](repeating: 0, count: size - 2 - message.count)
        var configuration = Type4TagCard.Configuration(file: length + message + filling)
        configuration.isWritable = try !body.flag("read-only")
        configuration.mostRead = try number("mle", 15...65_535) ?? configuration.mostRead
        configuration.mostWritten = try number("mlc", 1...65_535) ?? configuration.mostWritten
        return configuration
    }

    /// The systems, whose codes go to the radio.
    static func felica(
        _ body: inout Section, _ radio: inout VirtualCardRadio
    ) throws(CardFileError) -> [FeliCaCard.System] {
        guard case .felica(let idm, let pmm, _) = radio else { throw body.head.error("this kind of card is of type F") }
        var systems: [FeliCaCard.System] = []
        for statement in body.all("system") {
            let code = try codes(statement)
            guard code.count == 1 else { throw statement.error("“system” is written: system CODE { … }") }
            guard !systems.contains(where: { $0.code == code[0] }) else {
                throw statement.error("the system occurs twice")
            }
            guard systems.count < 16 else { throw statement.error("a card has up to 16 systems") }
            systems.append(FeliCaCard.System(code: code[0], services: try services(statement)))
        }
        guard !systems.isEmpty else { throw body.head.error("“felica” lacks “system”") }
        radio = .felica(idm: idm, pmm: pmm, systemCodes: systems.map(\.code))
        return systems
    }

    private static func services(_ system: Statement) throws(CardFileError) -> [FeliCaCard.Service] {
        var section = try Section(system, ["service"])
        var services: [FeliCaCard.Service] = []
        for statement in section.all("service") {
            let codes = try codes(statement)
            guard !codes.isEmpty, codes.allSatisfy({ [0x09, 0x0B].contains($0 & 0x3F) }) else {
                throw statement.error(
                    "“service” takes codes of random services without authentication: their lower six bits are 09 or 0B"
                )
            }
            guard codes.allSatisfy({ code in !services.contains { $0.codes.contains(code) } }) else {
                throw statement.error("the service occurs twice")
            }
            var body = try Section(statement, ["block"])
            var blocks: [[UInt8]] = []
            for block in body.all("block") {
                let number = Int(try block.number(0, "a block", 0...255))
                guard number == blocks.count else { throw block.error("the next block is \(blocks.count)") }
                blocks.append(try block.bytes(from: 1, 16...16))
            }
            services.append(FeliCaCard.Service(codes: codes, blocks: blocks))
        }
        return services
    }

    /// The arguments of a statement as codes of two bytes, most significant byte first.
    private static func codes(_ statement: Statement) throws(CardFileError) -> [UInt16] {
        let bytes = try statement.value().bytes([:])
        guard bytes.count.isMultiple(of: 2) else { throw statement.error("a code has 2 bytes") }
        return stride(from: 0, to: bytes.count, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
    }
}

extension CardFileSyntax.Statement {
    /// Constant bytes after the keyword, or line by line between braces.
    func content(from first: Int = 0) throws(CardFileError) -> [UInt8] {
        guard block != nil else { return try value(from: first).bytes([:]) }
        guard arguments.count == first else { throw error("bytes stand before the brace or inside, not both") }
        return try lines(admitting: []).bytes([:])
    }
}
