import SmartCard

/// The answer of a phone's wallet to a terminal that reads passes: what of it may stay.
///
/// All that is not known to tell nothing of the customer goes: what a pass contains, sealed or not, as a sealed one could be
/// played back, and the identifiers of the customer.
struct PassAnswer {
    /// The places of the bytes that stay: tags, lengths, names of records, and values that are the terminal's or nobody's.
    private(set) var kept = Set<Int>()
    /// The values of passes that are there in the clear.
    private(set) var values: [[UInt8]] = []

    /// - Parameter bytes: without status word, the parts of a long answer joined.
    init(_ bytes: [UInt8], to command: WalletCommand) {
        switch command {
        case .getVASData: keepObjects(bytes)
        case .getSmartTapData: keepRecords(bytes)
        default: break
        }
    }

    /// The wallet's answer that `bytes` look like, where the command is not there; nil for others.
    static func command(answeredBy bytes: [UInt8]) -> WalletCommand? {
        if WalletCommand.recordName(of: bytes) == "srs" { return .getSmartTapData }
        let template = (try? TLVList(bytes))?[0x70]?.children
        return template?[0x9F27].map { $0.value.count >= leastCryptogram } == true ? .getVASData : nil
    }

    // MARK: Apple

    /// Key identifier, coordinate, time and tag (kormax, `apple-vas`).
    private static let leastCryptogram = 4 + 32 + 4 + 16

    private mutating func keepObjects(_ bytes: [UInt8]) {
        guard let list = try? TLVList(bytes) else { return }
        var kept = Set(bytes.indices)
        for object in list.flattened where !object.tag.isConstructed {
            let value = object.value
            // The identifier of the merchant's key.
            let start = object.tag == 0x9F27 && value.count >= Self.leastCryptogram ? 4 : 0
            kept.subtract(value.startIndex + start..<value.endIndex)
            if object.tag == 0x9F2A { values.append(Array(value)) }
        }
        self.kept = kept
    }

    // MARK: Google

    private struct Record {
        let name: String
        let isText: Bool
        /// As far as it is there.
        let payload: Range<Int>
    }

    /// Keeps the heads of `srs`, of `ses` and `reb` in it, the session, and the flags of the bundle.
    private mutating func keepRecords(_ bytes: [UInt8]) {
        for outer in records(bytes, bytes.indices) where outer.name == "srs" {
            for record in records(bytes, outer.payload) {
                switch record.name {
                case "ses": kept.formUnion(record.payload.prefix(10))
                case "reb":
                    guard let flags = record.payload.first else { continue }
                    kept.insert(flags)
                    // b0 encrypted, b1 compressed.
                    if bytes[flags] & 0x03 == 0 { learn(bytes, record.payload.dropFirst(), depth: 0) }
                default: learn(bytes, record.payload, depth: 0)
                }
            }
        }
    }

    /// Collects the values of records, which nest.
    private mutating func learn(_ bytes: [UInt8], _ place: Range<Int>, depth: Int) {
        guard depth < 4 else { return }
        let heads = kept
        let nested = records(bytes, place)
        // Inside a bundle no head stays.
        kept = heads
        for record in nested {
            // The first byte is a format, or the length of a language.
            values.append(Array(bytes[record.payload].dropFirst()))
            if !record.isText { learn(bytes, record.payload, depth: depth + 1) }
        }
    }

    /// The records at `place`, and keeps their heads; up to the end, or to where they are none (NDEF 1.0, 3.2).
    private mutating func records(_ bytes: [UInt8], _ place: Range<Int>) -> [Record] {
        var records: [Record] = []
        var start = place.lowerBound
        while start + 3 <= place.upperBound, records.count < 64 {
            let flags = bytes[start]
            let isShort = flags & 0x10 != 0
            var next = start + 2
            guard next + (isShort ? 1 : 4) <= place.upperBound else { break }
            let length = bytes[next..<next + (isShort ? 1 : 4)].reduce(0) { $0 << 8 | Int($1) }
            next += isShort ? 1 : 4
            var identifierLength = 0
            if flags & 0x08 != 0 {
                guard next < place.upperBound else { break }
                (identifierLength, next) = (Int(bytes[next]), next + 1)
            }
            let typeEnd = next + Int(bytes[start + 1])
            let payload = typeEnd + identifierLength
            guard payload <= place.upperBound else { break }
            let isText = flags & 0x07 == 0x01
            let name = String(decoding: isText ? bytes[typeEnd..<payload] : bytes[next..<typeEnd], as: UTF8.self)
            let end = length > place.upperBound - payload ? place.upperBound : payload + length
            // The names are Smart Tap's own; others could be anything.
            if Self.names.contains(name) { kept.formUnion(start..<payload) }
            records.append(Record(name: name, isText: isText, payload: payload..<end))
            start = end
        }
        return records
    }

    private static let names: Set<String> = ["srs", "ses", "reb"]
}
