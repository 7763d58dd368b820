/// The check digit of a zone (ICAO 9303-3, 4.9).
enum CheckDigit {
    /// Returns the check digit: the sum of the values, weighted 7, 3, 1 in turn, modulo 10.
    ///
    /// - Returns: nil for a character that a zone cannot contain.
    static func of(_ characters: some StringProtocol) -> Character? {
        var sum = 0
        for (index, character) in characters.utf8.enumerated() {
            guard let value = value(of: character) else { return nil }
            sum += value * [7, 3, 1][index % 3]
        }
        return Character("\(sum % 10)")
    }

    /// A digit is itself, A to Z are 10 to 35, and the filler is 0.
    static func value(of character: UInt8) -> Int? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(character - UInt8(ascii: "0"))
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(character - UInt8(ascii: "A")) + 10
        case UInt8(ascii: "<"): 0
        default: nil
        }
    }
}

/// A check digit as a zone has it, beside the one that its field has (ICAO 9303-3, 4.9).
public struct PrintedCheckDigit: Hashable, Sendable, CustomStringConvertible {
    public let field: MachineReadableZoneError.Field
    /// True if the zone has the digit that follows from the field.
    public let isRight: Bool

    /// - Parameters:
    ///   - characters: those that the digit is over.
    ///   - printed: the digit in the zone.
    init(_ field: MachineReadableZoneError.Field, over characters: String, printed: Character) {
        self.field = field
        // A personal number that is absent may have a filler for its digit (ICAO 9303-4, 4.2.2.2).
        let isAbsent = field == .personalNumber && printed == "<" && characters.allSatisfy { $0 == "<" }
        isRight = isAbsent || CheckDigit.of(characters) == printed
    }

    public var description: String { "check digit of the \(field.rawValue), \(isRight ? "right" : "wrong")" }
}
