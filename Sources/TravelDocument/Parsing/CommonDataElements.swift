import SmartCard

/// EF.COM: the versions of the data structure, and the list of data groups (ICAO 9303-10, 4.6.1).
///
/// Nobody signs this file.  EF.SOD lists the data groups, too, and is signed.
public struct CommonDataElements: Hashable, Sendable {
    /// The parts of a version, two digits each.
    public struct Version: Hashable, Sendable, CustomStringConvertible {
        public let parts: [Int]

        /// The parts with dots between them: `1.7`, `4.0.0`.
        public var description: String { parts.map(String.init).joined(separator: ".") }
    }

    /// The version of the Logical Data Structure, such as 1.7: two parts.
    public let ldsVersion: Version
    /// The version of Unicode, such as 4.0.0: three parts.
    public let unicodeVersion: Version
    /// The data groups present, in the file's order.
    public let dataGroups: [ElementaryFile]
    /// Tags in the list that are of no data group, by their encoded bytes.
    public let otherTags: [[UInt8]]

    /// Parses `60 { 5F01 aabb, 5F36 aabbcc, 5C tags }`; the versions are in ASCII digits.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .com)
        ldsVersion = try content.takeVersion(0x5F01, parts: 2)
        unicodeVersion = try content.takeVersion(0x5F36, parts: 3)
        let tags = try content.takeTagList()
        try content.finish()
        let groups = (1...16).map(ElementaryFile.dataGroup)
        dataGroups = tags.compactMap { tag in groups.first { $0.tag.map(UInt32.init) == tag.rawValue } }
        otherTags = tags.filter { tag in !groups.contains { $0.tag.map(UInt32.init) == tag.rawValue } }.map(\.bytes)
    }
}

extension Template {
    fileprivate mutating func takeVersion(
        _ tag: TLVTag, parts: Int
    ) throws(TravelDocumentFormatError) -> CommonDataElements.Version {
        let object = try take(tag)
        guard object.value.count == 2 * parts else {
            throw error(.length(2 * parts...2 * parts), at: object.value.startIndex)
        }
        if let wrong = object.value.firstIndex(where: { !(0x30...0x39).contains($0) }) {
            throw error(.element(.digits), at: wrong)
        }
        let digits = object.value.map { Int($0 - 0x30) }
        return .init(parts: (0..<parts).map { digits[2 * $0] * 10 + digits[2 * $0 + 1] })
    }
}
