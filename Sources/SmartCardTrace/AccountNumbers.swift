import SmartCard

/// Account numbers in bytes, in every form in which they are written.
enum AccountNumbers {
    /// How digits stand in bytes.
    enum Form: CaseIterable {
        /// Two characters each, the hexadecimal code of the character: `34` for 4.  From an even or an odd place on.
        case evenHexText, oddHexText
        /// A character each.
        case text
        /// Two digits a byte; a number may begin in the middle of one.
        case packed

        /// The digits of `bytes` in this form; nil where there is none.
        func symbols(_ bytes: [UInt8]) -> [UInt8?] {
            switch self {
            case .packed: bytes.flatMap { [$0 >> 4, $0 & 0x0F] }.map { $0 < 10 ? $0 : nil }
            case .text: bytes.map(Self.digit)
            case .evenHexText: Self.hexText(bytes[...])
            case .oddHexText: Self.hexText(bytes.dropFirst())
            }
        }

        private static func digit(_ character: UInt8) -> UInt8? {
            (0x30...0x39).contains(character) ? character - 0x30 : nil
        }

        private static func hexText(_ bytes: ArraySlice<UInt8>) -> [UInt8?] {
            stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { index in
                bytes[index] == 0x33 ? digit(bytes[index + 1]) : nil
            }
        }

        /// Writes `digit` in the place of symbol number `index`.
        func put(_ digit: UInt8, at index: Int, in bytes: inout [UInt8]) {
            switch self {
            case .packed:
                let byte = bytes[index / 2]
                bytes[index / 2] = index % 2 == 0 ? byte & 0x0F | digit << 4 : byte & 0xF0 | digit
            case .text: bytes[index] = 0x30 + digit
            case .evenHexText: bytes[2 * index + 1] = 0x30 + digit
            case .oddHexText: bytes[2 * index + 2] = 0x30 + digit
            }
        }
    }

    /// Where in `symbols` account numbers stand, and whether they are replacements already.
    ///
    /// - Parameter known: numbers that are looked for besides those that check.
    static func places(
        in symbols: [UInt8?], known: Set<[UInt8]>, isGuessing: Bool
    ) -> [(range: Range<Int>, isReplacement: Bool)] {
        var places: [(range: Range<Int>, isReplacement: Bool)] = []
        for run in symbols.split(separator: nil) where run.count >= 8 {
            let digits = run.compactMap(\.self)
            var start = 0
            while start < digits.count {
                let lengths = (8...19).reversed().filter { start + $0 <= digits.count }
                func slice(_ length: Int) -> ArraySlice<UInt8> { digits[start..<start + length] }
                func add(_ length: Int, isReplacement: Bool) {
                    let first = run.startIndex + start
                    places.append((first..<first + length, isReplacement))
                    start += length
                }
                if let length = lengths.first(where: { Replacement.isOne(slice($0)) }) {
                    add(length, isReplacement: true)
                } else if let length = lengths.first(where: {
                    known.contains(Array(slice($0))) || isGuessing && SensitiveData.isAccountNumber(slice($0))
                }) {
                    add(length, isReplacement: false)
                } else {
                    start += 1
                }
            }
        }
        return places
    }

    /// What stands in an account number's place when it has been taken out: its first four digits, which tell the
    /// scheme, zeros, four digits that depend on the number and a key, and the check digit (ISO/IEC 7812-1, Annex B).
    enum Replacement {
        /// - Parameter digits: 8 to 19.
        static func digits(for digits: [UInt8], key: SipHash) -> [UInt8] {
            var result = Array(digits.prefix(min(4, digits.count)))
            let varying = digits.count >= 10 ? 4 : 0
            result += repeatElement(0, count: max(0, digits.count - result.count - varying - 1))
            var number = key.hash(digits)
            for _ in 0..<varying {
                result.append(UInt8(number % 10))
                number /= 10
            }
            guard result.count < digits.count else { return Array(result.prefix(digits.count)) }
            return result + [checkDigit(result)]
        }

        /// Whether `digits` have the form of one.  Of real numbers of 16 digits one in ten million does.
        static func isOne(_ digits: ArraySlice<UInt8>) -> Bool {
            hasForm(digits) && SensitiveData.isAccountNumber(digits)
        }

        /// Whether `digits`, known to be an account number, are one: with fewer than 13 digits this says less.
        static func hasForm(_ digits: ArraySlice<UInt8>) -> Bool {
            digits.count >= 10 && digits.dropFirst(4).dropLast(5).allSatisfy { $0 == 0 }
        }

        private static func checkDigit(_ digits: [UInt8]) -> UInt8 {
            let sum = digits.reversed().enumerated().reduce(0) { sum, next in
                let weighted = Int(next.element) * (2 - next.offset % 2)
                return sum + weighted / 10 + weighted % 10
            }
            return UInt8((10 - sum % 10) % 10)
        }
    }
}
