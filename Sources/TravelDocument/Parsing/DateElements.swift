import SmartCard

/// Dates of eight digits, as DG11, DG12 and DG16 contain them: in ASCII, or packed (ICAO 9303-10, 4.7.12).
extension Template {
    /// Reads a date: year of four digits, month and day of two; zeros for an unknown part (ICAO 9303-10, 4.7.11.1).
    ///
    /// - Returns: nil for an object without a value.
    func date(_ object: TLV) throws(TravelDocumentFormatError) -> DocumentDate? {
        guard !object.value.isEmpty else { return nil }
        guard let digits = Self.digits(object.value, count: 8), let date = Self.date(digits) else {
            throw error(.element(.date), at: object.value.startIndex)
        }
        return date
    }

    /// Reads a date and hours, minutes and seconds, of two digits each.
    ///
    /// - Returns: nil for an object without a value.
    func time(_ object: TLV) throws(TravelDocumentFormatError) -> DocumentTime? {
        guard !object.value.isEmpty else { return nil }
        guard let digits = Self.digits(object.value, count: 14), let date = Self.date(digits),
            let time = DocumentTime(
                date: date, hour: Self.number(digits[8..<10]), minute: Self.number(digits[10..<12]),
                second: Self.number(digits[12..<14]))
        else { throw error(.element(.time), at: object.value.startIndex) }
        return time
    }

    private static func date(_ digits: [UInt8]) -> DocumentDate? {
        func part(_ range: Range<Int>) -> Int? { number(digits[range]) == 0 ? nil : number(digits[range]) }
        return DocumentDate(year: part(0..<4), month: part(4..<6), day: part(6..<8))
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int { digits.reduce(0) { $0 * 10 + Int($1) } }

    /// Returns digits, each 0 to 9, of `count` characters or half as many bytes; nil if the value is neither.
    private static func digits(_ value: ArraySlice<UInt8>, count: Int) -> [UInt8]? {
        let digits: [UInt8]
        switch value.count {
        case count:
            guard value.allSatisfy({ $0 >= UInt8(ascii: "0") }) else { return nil }
            digits = value.map { $0 - UInt8(ascii: "0") }
        case count / 2: digits = value.flatMap { [$0 >> 4, $0 & 0x0F] }
        default: return nil
        }
        return digits.allSatisfy { $0 < 10 } ? digits : nil
    }
}
