import Foundation

/// Commands to a running tool: a line each, answered with a line when it is done, `ok` or `error: …`.
package enum ControlLines {
    /// Takes lines from a descriptor until its end.
    ///
    /// - Parameters:
    ///   - answer: takes an answer, and returns false if nobody hears it.
    ///   - perform: carries out a line; what it throws is the answer.
    package static func take(
        from input: Int32, answer: (String) -> Bool, perform: (_ name: String, _ argument: String?) throws -> Void
    ) {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(input, &byte, 1) == 1 {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                guard line.count < 4096 else { return }
                continue
            }
            let words = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 1)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            line = []
            do {
                try perform(words.first ?? "", words.dropFirst().first)
                guard answer("ok") else { return }
            } catch {
                guard answer("error: \(error)") else { return }
            }
        }
    }
}
