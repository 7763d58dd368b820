extension MachineReadableZone {
    /// The places of the fields, counted over all lines (ICAO 9303-5, -6 and -4, each 4.2.2).  The check digit of a field
    /// is the character after it.
    struct Layout {
        let name: Range<Int>
        let documentNumber: Range<Int>
        let nationality: Range<Int>
        let dateOfBirth: Range<Int>
        let sex: Int
        let dateOfExpiry: Range<Int>
        let optionalData: Range<Int>
        var secondOptionalData: Range<Int>?
        /// Optional data with a check digit.
        var personalNumber: Range<Int>?
        /// True if a document number of more than nine characters continues in the optional data.
        let hasLongNumbers: Bool
        /// The parts that the composite check digit is over.
        let composite: [Range<Int>]
        let compositeDigit: Int

        /// The same in all formats.
        static let (documentCode, issuingState) = (0..<2, 2..<5)

        static func of(_ format: Format) -> Layout {
            switch format {
            case .td1:
                Layout(
                    name: 60..<90, documentNumber: 5..<14, nationality: 45..<48, dateOfBirth: 30..<36, sex: 37,
                    dateOfExpiry: 38..<44, optionalData: 15..<30, secondOptionalData: 48..<59, hasLongNumbers: true,
                    composite: [5..<30, 30..<37, 38..<45, 48..<59], compositeDigit: 59)
            case .td2:
                Layout(
                    name: 5..<36, documentNumber: 36..<45, nationality: 46..<49, dateOfBirth: 49..<55, sex: 56,
                    dateOfExpiry: 57..<63, optionalData: 64..<71, hasLongNumbers: true,
                    composite: [36..<46, 49..<56, 57..<71], compositeDigit: 71)
            case .td3:
                Layout(
                    name: 5..<44, documentNumber: 44..<53, nationality: 54..<57, dateOfBirth: 57..<63, sex: 64,
                    dateOfExpiry: 65..<71, optionalData: 72..<86, personalNumber: 72..<86, hasLongNumbers: false,
                    composite: [44..<54, 57..<64, 65..<87], compositeDigit: 87)
            }
        }
    }

    /// Characters of which each may stand in a zone.
    struct CheckedCharacters {
        private let bytes: [UInt8]

        init?(_ text: String) {
            bytes = Array(text.utf8)
            guard bytes.allSatisfy({ CheckDigit.value(of: $0) != nil }) else { return nil }
        }

        subscript(range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        subscript(index: Int) -> Character { Character(Unicode.Scalar(bytes[index])) }

        /// A field without the fillers at its end.
        func trimmed(_ range: Range<Int>) -> String { Self.trimmed(self[range]) }

        func checkDigit(_ field: MachineReadableZoneError.Field, after range: Range<Int>) -> PrintedCheckDigit {
            PrintedCheckDigit(field, over: self[range], printed: self[range.upperBound])
        }

        private static func trimmed(_ field: String) -> String {
            let count = field.reversed().drop { $0 == "<" }.count
            return String(field.prefix(count))
        }

        /// Returns the document number, the characters that its check digit is over, and the optional data beside it.
        ///
        /// A number of more than nine characters has a filler for its digit.  It continues in the optional data: the rest
        /// of the number, its check digit, and a filler (ICAO 9303-5, 4.2.2, note j; 9303-6, 4.2.2, note j).
        func documentNumber(
            _ layout: Layout
        ) -> (number: String, checked: String, digit: Character, optionalData: String) {
            let first = self[layout.documentNumber]
            let (digit, optionalData) = (self[layout.documentNumber.upperBound], trimmed(layout.optionalData))
            let rest = optionalData.prefix { $0 != "<" }
            guard layout.hasLongNumbers, digit == "<", let last = rest.last else {
                return (Self.trimmed(first), first, digit, optionalData)
            }
            let number = first + rest.dropLast()
            return (number, number, last, String(optionalData.dropFirst(rest.count + 1)))
        }
    }
}
