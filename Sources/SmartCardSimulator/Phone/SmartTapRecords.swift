import SmartCard

/// An NDEF record (NFC Forum NDEF 1.0, 3.2) as Smart Tap nests them: its name is its type, or its identifier where the type is
/// one of the NFC Forum's.
struct SmartTapRecord: Hashable, Sendable {
    var tnf: UInt8 = 0x04
    var type: [UInt8]
    var identifier: [UInt8] = []
    var payload: [UInt8]

    init(_ name: String, _ payload: [UInt8]) { (type, self.payload) = (Array(name.utf8), payload) }

    init(_ name: String, _ records: [SmartTapRecord]) { self.init(name, Self.message(records)) }

    /// A text (type `T`), after the byte of its format: unspecified.
    static func text(_ name: String, _ text: [UInt8]) -> SmartTapRecord {
        var record = SmartTapRecord("T", [0x00] + text)
        (record.tnf, record.identifier) = (0x01, Array(name.utf8))
        return record
    }

    /// Bytes, after that of their format: binary.
    static func binary(_ name: String, _ bytes: [UInt8]) -> SmartTapRecord { SmartTapRecord(name, [0x04] + bytes) }

    var name: String { String(decoding: tnf == 0x01 ? identifier : type, as: UTF8.self) }

    static func message(_ records: [SmartTapRecord]) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, record) in records.enumerated() {
            var header = record.tnf
            if index == 0 { header |= 0x80 }  // MB
            if index == records.count - 1 { header |= 0x40 }  // ME
            let count = UInt32(clamping: record.payload.count)
            if count < 0x100 { header |= 0x10 }  // SR
            if !record.identifier.isEmpty { header |= 0x08 }  // IL
            bytes += [header, UInt8(clamping: record.type.count)]
            let lengths = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: count >> UInt32($0)) }
            bytes += count < 0x100 ? [lengths[3]] : lengths
            if !record.identifier.isEmpty { bytes.append(UInt8(clamping: record.identifier.count)) }
            bytes += record.type + record.identifier + record.payload
        }
        return bytes
    }

    /// Reads a message.
    ///
    /// - Returns: nil for bytes that are no whole message.
    static func parse(_ bytes: some Collection<UInt8>) -> [SmartTapRecord]? {
        var rest = Array(bytes)[...]
        func take(_ count: Int) -> [UInt8]? {
            guard count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        var records: [SmartTapRecord] = []
        while let header = rest.popFirst() {
            // MB begins the first record alone; no record comes in chunks.
            guard (header & 0x80 != 0) == records.isEmpty, header & 0x20 == 0, let typeLength = take(1)?[0],
                let length = take(header & 0x10 != 0 ? 1 : 4)?.reduce(0, { $0 << 8 | Int($1) }),
                let identifierLength = header & 0x08 != 0 ? take(1)?[0] : 0, let type = take(Int(typeLength)),
                let identifier = take(Int(identifierLength)), let payload = take(length)
            else { return nil }
            var record = SmartTapRecord("", payload)
            (record.tnf, record.type, record.identifier) = (header & 0x07, type, identifier)
            records.append(record)
            // ME ends the message.
            if header & 0x40 != 0 { return rest.isEmpty ? records : nil }
        }
        return nil
    }
}

extension [SmartTapRecord] {
    /// The payload of the first record with a name.
    subscript(_ name: String) -> [UInt8]? { first { $0.name == name }?.payload }
}

/// A kind of object in Google Wallet.
enum SmartTapKind: String, CaseIterable, Sendable {
    case loyalty, offer
    case giftCard = "gift-card"
    case privateLabelCard = "private-label-card"
    case event, flight, transit, generic
    case privateGeneric = "private-generic"

    /// The name of its record, and the type of service that asks for it.
    var codes: (record: String, service: UInt8) {
        switch self {
        case .loyalty: ("ly", 0x03)
        case .offer: ("of", 0x04)
        case .giftCard: ("gc", 0x05)
        case .privateLabelCard: ("pl", 0x06)
        case .event: ("et", 0x07)
        case .flight: ("fl", 0x08)
        case .transit: ("tr", 0x09)
        case .generic: ("gr", 0x12)
        case .privateGeneric: ("gp", 0x12)
        }
    }
}
