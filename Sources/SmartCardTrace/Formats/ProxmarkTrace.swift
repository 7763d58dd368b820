import SmartCard

extension ForeignFormat {
    /// The file that the Proxmark client writes with `trace save` (include/pm3_cmd.h, tracelog_hdr_t).
    static let proxmark = ForeignFormat(
        "proxmark", "the .trace file of a Proxmark", isText: false, recognizes: ProxmarkImporter.recognizes,
        importer: { ProxmarkImporter($0) })
}

/// An importer of Proxmark records, which follow each other without a file header.
///
/// A record contains the time of the first bit in four bytes and its duration in two, both in periods of the 13.56 MHz
/// carrier; two bytes with the count of the data and, in the high bit, the direction, set if the card sent them; the
/// data; and one parity bit for each byte.  Numbers are little-endian.
private struct ProxmarkImporter: FormatImporter {
    private static let headerCount = 8
    /// Frames are no longer (ISO/IEC 14443-4, 7.1, with amendment 1); a record may have 32,767 bytes.
    private static let likelyCount = 4096

    private var bytes: ByteReader
    /// The time of the last record, and the number of clock overflows.
    private var last: UInt32 = 0
    private var rounds = 0
    private var hasRecord = false

    init(_ source: @escaping TraceSource) { bytes = ByteReader(source) }

    /// Recognizes a file by consecutive valid records with rising times, because the format has no signature.
    static func recognizes(_ start: [UInt8]) -> Bool {
        var rest = start[...]
        var count = 0
        var hasData = false
        var last: UInt32 = 0
        while rest.count >= headerCount {
            let record = Record(rest)
            guard record.count <= likelyCount, count == 0 || record.time >= last else { return false }
            guard record.wholeCount <= rest.count else {
                return start.count >= ForeignFormat.recognizedCount && count > 1 && hasData
            }
            rest = rest.dropFirst(record.wholeCount)
            last = record.time
            count += 1
            hasData = hasData || record.count > 0
        }
        return count > 1 && hasData && (rest.isEmpty || start.count >= ForeignFormat.recognizedCount)
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let header = try bytes.peek(Self.headerCount) else {
            if bytes.hasRemainder { try cutOff(&events) }
            return false
        }
        let record = Record(header)
        guard let data = try bytes.next(record.wholeCount)?.dropFirst(Self.headerCount) else {
            try cutOff(&events)
            return false
        }
        hasRecord = true
        // The clock has 32 bits, some 317 s.
        if record.time < last, last - record.time > UInt32.max / 2 { rounds += 1 }
        last = record.time
        guard record.count > 0 else {
            events.omit("records without data")
            return true
        }
        let frame = Array(data.prefix(record.count))
        let time = Self.duration(Int64(record.time)) + Self.duration(1 << 32) * rounds
        events.add(record.isResponse ? .received(.rf, frame) : .sent(.rf, frame), at: time)
        events.omit("parity bits and durations of frames")
        return true
    }

    /// The file ends within a record; one that has no other is no trace.
    private func cutOff(_ events: inout ImportedEvents) throws {
        guard hasRecord else {
            throw TraceError(
                .malformed("a record of a Proxmark was due; the file ends within it"), at: .offset(bytes.offset))
        }
        events.omit("records that the end of the file cuts off")
    }

    /// A period has 1000 / 13.56 nanoseconds.
    private static func duration(_ periods: Int64) -> Duration { .nanoseconds((periods * 25_000 + 169) / 339) }

    private struct Record {
        let time: UInt32
        let count: Int
        let isResponse: Bool

        /// - Parameter header: at least eight bytes.
        init(_ header: ArraySlice<UInt8>) {
            time = ByteOrder.littleEndian.integer(header, at: 0)
            let length: UInt16 = ByteOrder.littleEndian.integer(header, at: 6)
            count = Int(length & 0x7FFF)
            isResponse = length & 0x8000 != 0
        }

        /// Without data there is a byte of parity, too: the client counts them as `(data_len - 1) / 8 + 1` in C.
        var wholeCount: Int { headerCount + count + (count == 0 ? 1 : (count + 7) / 8) }
    }
}
