import SmartCard

/// The commands of PC/SC part 3, 3.2.2.1, and of ACS API v2.04, 5 and 6.1, which a reader's firmware offers: translated
/// into the commands that a PN532 sends to the card.
struct StorageCommands {
    private let target: PN532Target
    private var keys: [UInt8: [UInt8]] = [:]

    init(_ target: PN532Target) { self.target = target }

    private static let failed = ResponseAPDU(status: 0x6300)
    private static let done = ResponseAPDU(status: .success)

    /// Performs a command of class FF.  A card that refuses it is silent until it is selected anew.
    ///
    /// - Throws: `CardError` of the chip.
    mutating func perform(_ command: CommandAPDU, on chip: PN532) async throws -> ResponseAPDU {
        let (block, data) = (command.p2, command.data)
        switch (command.ins, command.p1, command.p2) {
        // Get Data: the identifier, the ATS.
        case (0xCA, 0x00, 0x00): return ResponseAPDU(data: target.identifier, status: .success)
        case (0xCA, 0x01, 0x00):
            guard case .typeA(_, _, _, let ats?) = target.card else { return ResponseAPDU(status: 0x6A81) }
            return ResponseAPDU(data: ats, status: .success)
        // Direct Transmit: a command of the chip, from D4 on.
        case (0x00, 0x00, 0x00) where data.count >= 2 && data[0] == 0xD4:
            return ResponseAPDU(data: try await chip.transmit(data), status: .success)
        // Load Keys; General Authenticate: 01, block, key type, key number.
        case (0x82, 0x00, 0x00...0x01) where data.count == 6:
            keys[command.p2] = data
            return Self.done
        case (0x86, 0x00, 0x00) where data.count == 5 && data[0] == 0x01 && (0x60...0x61).contains(data[3]):
            guard data[1] == 0x00, let key = keys[data[4]] else { return Self.failed }
            return try await apply([data[3], data[2]] + key + target.identifier.suffix(4), on: chip)
        // Read Binary and Update Binary: 16 bytes are a MIFARE Classic block, 4 bytes a page of a type 2 tag.
        case (0xB0, 0x00, _):
            let count = command.ne ?? 16
            guard count <= 16, let page = try await exchange([0x30, block], on: chip), page.count >= count else {
                return Self.failed
            }
            return ResponseAPDU(data: Array(page.prefix(count)), status: .success)
        case (0xD6, 0x00, _) where data.count == 4: return try await apply([0xA2, block] + data, on: chip)
        case (0xD6, 0x00, _) where data.count == 16: return try await apply([0xA0, block] + data, on: chip)
        // Value blocks: read, store, increment, decrement, copy.
        case (0xB1, 0x00, _):
            guard let value = try await exchange([0x30, block], on: chip).flatMap(Self.value) else {
                return Self.failed
            }
            return ResponseAPDU(data: value, status: .success)
        case (0xD7, 0x00, _) where data.count == 5 && data[0] == 0x00:
            return try await apply([0xA0, block] + Self.valueBlock(Array(data[1...]), block), on: chip)
        case (0xD7, 0x00, _) where data.count == 5 && (0x01...0x02).contains(data[0]):
            let operation: UInt8 = data[0] == 0x01 ? 0xC1 : 0xC0
            return try await apply([operation, block] + data[1...].reversed(), [0xB0, block], on: chip)
        case (0xD7, 0x00, _) where data.count == 2 && data[0] == 0x03:
            return try await apply([0xC2, block, 0x00, 0x00, 0x00, 0x00], [0xB0, data[1]], on: chip)
        default: return ResponseAPDU(status: 0x6D00)
        }
    }

    /// Sends commands that the card only acknowledges.
    private func apply(_ commands: [UInt8]..., on chip: PN532) async throws -> ResponseAPDU {
        for command in commands {
            guard try await exchange(command, on: chip) != nil else { return Self.failed }
        }
        return Self.done
    }

    /// - Returns: nil for a wrong key.
    private func exchange(_ command: [UInt8], on chip: PN532) async throws -> [UInt8]? {
        guard case .typeA = target.card, !target.speaksISODEP else { return nil }
        do {
            return try await chip.exchange(command, with: target.number)
        } catch let error as CardError where error.cause as? PN532Error == .authentication {
            return nil
        }
    }

    /// Encodes the value, its complement and the value, each least significant byte first; then the block number four
    /// times, every second one inverted (MF1S50, 8.6.2.1).
    private static func valueBlock(_ value: [UInt8], _ block: UInt8) -> [UInt8] {
        let bytes = Array(value.reversed())
        return bytes + bytes.map(~) + bytes + [block, ~block, block, ~block]
    }

    private static func value(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count == 16 else { return nil }
        let value = Array(bytes[..<4].reversed())
        return bytes == valueBlock(value, bytes[12]) ? value : nil
    }
}
