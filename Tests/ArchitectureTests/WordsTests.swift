import Foundation
import Testing

/// Summaries of doc comments, as a list of symbols shows them: alone.
@Suite struct WordsTests {
    /// Words that begin a sentence which only makes sense beside the code.
    private static let openings: Set<Substring> = [
        "What", "That", "Those", "Whether", "Who", "Whom", "Whose", "Where", "How", "Which", "Same", "It", "They",
        "Not", "Nil", "Such", "Of",
    ]

    @Test("No summary begins with a word that needs what stands around it", arguments: ["Sources", "Tools"])
    func summaries(folder: String) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../\(folder)")
        let files = try #require(FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil))
        var count = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            let code = try String(contentsOf: file, encoding: .utf8)
            for summary in Self.summaries(in: code) {
                count += 1
                #expect(
                    !Self.openings.contains(summary.prefix { !" ,:".contains($0) }),
                    "\(file.lastPathComponent): \(summary)")
            }
        }
        #expect(count > 100)
    }

    @Test("A summary is the first line of a doc comment")
    func firstLines() {
        let code =
            "    /// One.\n    /// What follows.\n    let one = 1\n/// Two.\n///\n/// Three.\n// Where\n/// Four."
        #expect(Self.summaries(in: code) == ["One.", "Two.", "Four."])
    }

    private static func summaries(in code: String) -> [Substring] {
        var found: [Substring] = []
        var isInside = false
        for line in code.split(separator: "\n", omittingEmptySubsequences: false) {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("/// "), !isInside { found.append(text.dropFirst(4)) }
            isInside = text.hasPrefix("///")
        }
        return found
    }
}
