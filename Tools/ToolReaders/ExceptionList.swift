package import EMVContactless
import SmartCard
import ToolSupport

/// An exception file as a text: a line for each account number that is to be refused, as digits, and behind it the two
/// digits of its sequence number where only that card is meant.  `#` begins a comment.
package struct ExceptionList: ExceptionFile {
    /// A line that cannot be read.  What stands there may be an account number, and is not said.
    package struct Malformed: Error, Hashable, CustomStringConvertible {
        package let line: Int
        package let reason: String

        package var description: String { "line \(line): \(reason)" }
    }

    /// The sequence numbers of each account number; empty for all of them.
    private var entries: [PAN: Set<UInt8>] = [:]

    package init(parsing text: String) throws(Malformed) {
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            guard let first = words.first else { continue }
            guard let pan = PAN(digits: first) else {
                throw Malformed(line: index + 1, reason: "an account number has 8 to 19 digits")
            }
            switch words.count {
            case 1: entries[pan] = []
            case 2:
                guard words[1].utf8.count == 2, words[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                    let number = UInt8(words[1], radix: 16)
                else { throw Malformed(line: index + 1, reason: "a sequence number has two digits") }
                // The whole account is more than one card of it.
                if entries[pan] != [] { entries[pan, default: []].insert(number) }
            default: throw Malformed(line: index + 1, reason: "more than an account number and its sequence number")
            }
        }
    }

    /// A card without a sequence number is taken for each of its account.
    package func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool {
        guard let numbers = entries[pan] else { return false }
        guard let sequenceNumber, !numbers.isEmpty else { return true }
        return numbers.contains(sequenceNumber)
    }
}
