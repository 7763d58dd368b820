/// Frames of a PN532 out of bytes that come in pieces (PN532 user manual, 6.2.1).
struct PN532Stream {
    enum Piece: Equatable {
        /// From preamble to postamble.
        case frame([UInt8])
        /// `00 00 FF 00 FF 00`, or with FF 00 that something was not understood: no answer to a command.
        case acknowledgment
        /// Bytes outside a frame, such as `55 55 00 …`, which wakes the chip.
        case noise
    }

    /// A slice, so that taking a piece off its beginning moves nothing.
    private var bytes: ArraySlice<UInt8> = []

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// Counts an incomplete frame, and starts over.
    mutating func finish(into events: inout ImportedEvents) {
        if bytes.contains(where: { $0 != 0 }) { events.omit("frames of a PN532 without their end") }
        bytes = []
    }

    /// The next whole piece; nil until more comes.
    mutating func next() -> Piece? {
        guard !bytes.isEmpty else { return nil }
        guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: [0x00, 0xFF]) }) else {
            // What may be the beginning of one is kept.
            guard bytes.contains(where: { $0 != 0 }) || bytes.count > 16 else { return nil }
            bytes = []
            return .noise
        }
        // The preamble before the start code may be missing where a bus swallows it.
        let beginning = start > bytes.startIndex && bytes[start - 1] == 0 ? start - 1 : start
        let isNoise = bytes[..<beginning].contains { $0 != 0 }
        // From here on the start code is found at once in any continuation.
        bytes = bytes[beginning...]
        if isNoise { return .noise }
        let body = bytes[(start + 2)...]
        guard let length = body.first, let check = body.dropFirst().first else { return nil }
        if (length == 0x00 && check == 0xFF) || (length == 0xFF && check == 0x00) {
            bytes = bytes[min(bytes.endIndex, start + 5)...]
            return .acknowledgment
        }
        var end = start + 2 + 2 + Int(length) + 2
        if length == 0xFF, check == 0xFF {
            guard body.count >= 5 else { return nil }
            end = start + 2 + 5 + (Int(bytes[start + 4]) << 8 | Int(bytes[start + 5])) + 2
        }
        guard bytes.endIndex >= end else { return nil }
        defer { bytes = bytes[end...] }
        return .frame(Array(bytes[..<end]))
    }
}

extension ImportedEvents {
    mutating func add(_ piece: PN532Stream.Piece, isCommand: Bool, at time: Duration, slot: String = "") {
        switch piece {
        case .frame(let frame) where isCommand: addNext(.pn532, frame, at: time, slot: slot)
        case .frame(let frame): add(.received(.pn532, frame), at: time, slot: slot)
        case .acknowledgment: omit("acknowledgments of a PN532")
        case .noise: omit("bytes that are no frame of a PN532")
        }
    }
}
