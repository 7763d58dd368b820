import Foundation

extension Locale {
    /// The locale of a language tag (RFC 5646), also with `_` in place of `-`; nil for a text of another form.
    ///
    /// Its language has two or three letters; the whole has at most 35, of letters and digits in parts of at most eight
    /// (sections 2.1 and 4.4.1).
    init?(bcp47 tag: String) {
        let separators = "-_".utf8
        let parts = tag.utf8.split(omittingEmptySubsequences: false) { separators.contains($0) }
        guard tag.utf8.count <= 35, let language = parts.first, 2...3 ~= language.count,
            language.allSatisfy(Self.isLetter),
            parts.allSatisfy({ 1...8 ~= $0.count && $0.allSatisfy { Self.isLetter($0) || 0x30...0x39 ~= $0 } })
        else { return nil }
        self.init(identifier: tag)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
    }
}
