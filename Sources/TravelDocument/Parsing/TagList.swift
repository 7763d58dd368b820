import SmartCard

extension Template {
    /// Takes object 5C: tags, one after the other (ISO/IEC 7816-4, 8.5.2).
    mutating func takeTagList() throws(TravelDocumentFormatError) -> [TLVTag] {
        let object = try take(0x5C)
        var tags: [TLVTag] = []
        var rest = object.value
        while let first = rest.first {
            // A tag of more than one byte: bit 8 of each byte but the last is set.
            let following = rest.dropFirst().prefix(3)
            let count =
                first & 0x1F == 0x1F ? (following.firstIndex { $0 & 0x80 == 0 }.map { $0 - rest.startIndex + 1 }) : 1
            guard let count else { throw error(.element(.tagList), at: rest.startIndex) }
            tags.append(TLVTag(rawValue: rest.prefix(count).reduce(0) { $0 << 8 | UInt32($1) }))
            rest = rest.dropFirst(count)
        }
        return tags
    }
}
