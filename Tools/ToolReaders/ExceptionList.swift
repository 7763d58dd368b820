package import EMVContactless
import SmartCard
import ToolSupport

/// An exception file in text form: each line contains an account number to refuse, in digits, followed by the two
/// digits of a sequence number if only that card is meant.  `#` begins a comment.
package struct ExceptionList: ExceptionFile {
    /// A malformed line.  The error does not quote it, since it may contain an account number.
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
                // An entry for the whole account includes all its cards.
                if entries[pan] != [] { entries[pan, default: []].insert(number) }
            default: throw Malformed(line: index + 1, reason: "more than an account number and its sequence number")
            }
        }
    }

    /// Returns true for a listed card.  A card without a sequence number matches every card of its account.
    package func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool {
        guard let numbers = entries[pan] else { return false }
        guard let sequenceNumber, !numbers.isEmpty else { return true }
        return numbers.contains(sequenceNumber)
    }
}
