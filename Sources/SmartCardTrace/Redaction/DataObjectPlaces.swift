import SmartCard

/// The places of the card's requested data objects in commands, learned from its own answers (EMV Book 3, 5.4; Book
/// C-2, 5.4).
///
/// The answers contain the lists: PDOL, CDOL1 and CDOL2, DDOL and UDOL.
struct DataObjectPlaces: Sendable {
    private var pdol: [Entry] = []
    private var cdol1: [Entry] = []
    private var cdol2: [Entry] = []
    private var ddol: [Entry] = []
    private var udol: [Entry] = []
    private var hasGeneratedAC = false

    private struct Entry {
        let tag: TLVTag
        let length: Int
    }

    /// The objects that differ between transactions on any card: amounts, date and time, unpredictable number,
    /// transaction counter of the terminal.
    static let varying: Set<TLVTag> = [
        0x81, 0x9F02, 0x9F03, 0x9F04,  // amounts
        0x9A, 0x9F21,  // date and time
        0x9F37,  // unpredictable number
        0x9F6A,  // unpredictable number (numeric) of Book C-2
        0x9F41,  // transaction sequence counter
    ]

    /// Learns the lists in the answer to `command`.
    mutating func learn(_ response: ResponseAPDU, to command: CommandAPDU) {
        learn(response.data, answering: command)
    }

    /// - Parameter data: an answer without its status word.
    mutating func learn(_ data: [UInt8], answering command: CommandAPDU) {
        switch (command.cla, command.ins) {
        case (0x00, 0xA4): self = DataObjectPlaces()
        case (0x80, 0xAE): hasGeneratedAC = true
        default: break
        }
        guard let list = try? TLVList(data) else { return }
        for object in list.flattened where !object.tag.isConstructed {
            let entries = { Self.entries(object.value) }
            switch object.tag {
            case 0x9F38: pdol = entries()
            case 0x8C: cdol1 = entries()
            case 0x8D: cdol2 = entries()
            case 0x9F49: ddol = entries()
            case 0x9F69: udol = entries()
            default: break
            }
        }
    }

    /// Returns the bytes of `command` with zeros for the varying objects.
    func normalized(_ command: CommandAPDU) -> [UInt8] {
        var bytes = command.bytes
        let start = command.lengthCoding == .short ? 5 : 7
        for place in varyingPlaces(in: command) {
            for index in place where start + index < bytes.count { bytes[start + index] = 0 }
        }
        return bytes
    }

    /// Returns the places of varying objects in the data field of `command`; none if the field does not fit the card's
    /// list.
    private func varyingPlaces(in command: CommandAPDU) -> [Range<Int>] {
        switch (command.cla, command.ins) {
        case (0x80, 0xA8):
            // The list's values are in a template 83 (EMV Book 3, 6.5.8.2).
            guard let list = try? TLVList(command.data, padding: []), let template = list[0x83] else { return [] }
            return places(of: pdol, in: template.value.count, from: template.value.startIndex)
        case (0x80, 0xAE): return places(of: hasGeneratedAC ? cdol2 : cdol1, in: command.data.count)
        case (0x00, 0x88): return places(of: ddol, in: command.data.count)
        case (0x80, 0x2A): return places(of: udol, in: command.data.count)
        // EXCHANGE RELAY RESISTANCE DATA is random throughout (Book C-2, 5.3.2).
        case (0x80, 0xEA): return [0..<command.data.count]
        default: return []
        }
    }

    /// Returns the places of the objects `tags` in the data field of GENERATE AC; nil if the card's lists do not tell.
    func places(of tags: Set<TLVTag>, in command: CommandAPDU) -> [Range<Int>]? {
        let entries = hasGeneratedAC ? cdol2 : cdol1
        guard !entries.isEmpty, entries.reduce(0, { $0 + $1.length }) == command.data.count else { return nil }
        return places(of: entries, in: command.data.count, tags: tags)
    }

    private func places(of entries: [Entry], in count: Int, from start: Int = 0, tags: Set<TLVTag> = varying) -> [Range<
        Int
    >] {
        guard entries.reduce(0, { $0 + $1.length }) == count else { return [] }
        var position = start
        var places: [Range<Int>] = []
        for entry in entries {
            if tags.contains(entry.tag) { places.append(position..<position + entry.length) }
            position += entry.length
        }
        return places
    }

    /// The entries of a data object list: tag and length each; none if it is not one.
    private static func entries(_ bytes: some Collection<UInt8>) -> [Entry] {
        var entries: [Entry] = []
        var rest = Array(bytes)[...]
        while let first = rest.popFirst() {
            var tag = UInt32(first)
            var isLast = first & 0x1F != 0x1F
            while !isLast {
                guard tag <= 0xFF_FFFF, let next = rest.popFirst() else { return [] }
                tag = tag << 8 | UInt32(next)
                isLast = next & 0x80 == 0
            }
            guard let length = rest.popFirst() else { return [] }
            entries.append(Entry(tag: TLVTag(rawValue: tag), length: Int(length)))
        }
        return entries
    }
}
