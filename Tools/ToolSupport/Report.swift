import Foundation

/// The output of `--json`.  Absent values are null.
package enum Report {
    package static func print(_ report: some Encodable, redactor: Redactor = Redactor()) throws {
        Terminal.print(try text(report, redactor: redactor))
    }

    /// Returns a report as it is printed.
    package static func text(_ report: some Encodable, redactor: Redactor = Redactor()) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return redactor.redacted(String(decoding: try encoder.encode(report), as: UTF8.self))
    }

    /// Prints a report on one line, for streams of objects.
    package static func printLine(_ report: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        Terminal.print(Redactor().redacted(String(decoding: try encoder.encode(report), as: UTF8.self)))
    }
}

/// An optional that encodes as null instead of being left out, so that every key is always present.
@propertyWrapper
package struct OrNull<Value: Encodable>: Encodable {
    package var wrappedValue: Value?

    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
    }
}

extension OrNull: Sendable where Value: Sendable {}

extension String {
    /// `onlineRequest`: `online request`; `emvData`: `EMV data`
    package var words: String {
        var words = ""
        for (character, next) in zip(self, Array(dropFirst()) + ["."]) {
            if character.isUppercase, words.last?.isLowercase == true { words += " " }
            words += next.isLowercase ? character.lowercased() : String(character)
        }
        return words.hasPrefix("emv ") ? "EMV" + words.dropFirst(3) : words
    }
}

/// `1 trace`, `2 traces`
package func plural(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
