import SmartCard

/// Account numbers in bytes, in every form in which they are written.
enum AccountNumbers {
    /// The representation of digits in bytes.
    enum Form {
        /// Two characters each, the hexadecimal code of the character: `34` for 4.  From an even or an odd place on.
        case evenHexText, oddHexText
        /// A character each.
        case text
        /// Hexadecimal or plain text in groups, as people write it: a space, a hyphen, a period or a colon may stand
        /// between two characters, and nothing longer.  Bytes written as `0x34, 0x37` are not digits here.
        case evenGroupedHexText, oddGroupedHexText, groupedText
        /// Two digits a byte; a number may begin in the middle of one.
        case packed
        /// Packed digits with the digits of each byte in the other order, as on SIM cards (GSM 11.11, 10.1.1).  Only
        /// known numbers are looked for in this form.
        case swapped

        /// The forms in which numbers are guessed.
        static let all: [Form] = texts + [.packed]
        static let texts: [Form] = [
            .evenHexText, .oddHexText, .text, .evenGroupedHexText, .oddGroupedHexText, .groupedText,
        ]

        /// Digits that follow each other.
        struct Run {
            fileprivate(set) var digits: [UInt8] = []
            /// The place of each digit: the number of a byte, or of a half byte for packed digits.
            fileprivate(set) var places: [Int] = []
        }

        /// Returns the runs of digits in `bytes` in this form that are long enough for an account number.
        func runs(in bytes: [UInt8]) -> [Run] {
            var runs: [Run] = []
            var run = Run()
            func end() {
                if run.digits.count >= Search.lengths.lowerBound { runs.append(run) }
                run.digits.removeAll(keepingCapacity: true)
                run.places.removeAll(keepingCapacity: true)
            }
            func add(_ digit: UInt8?, _ place: Int) {
                guard let digit else { return run.digits.isEmpty ? () : end() }
                run.digits.append(digit)
                run.places.append(place)
            }
            switch self {
            case .packed:
                for (index, byte) in bytes.enumerated() {
                    add(byte >> 4 < 10 ? byte >> 4 : nil, 2 * index)
                    add(byte & 0x0F < 10 ? byte & 0x0F : nil, 2 * index + 1)
                }
            case .swapped:
                for (index, byte) in bytes.enumerated() {
                    add(byte & 0x0F < 10 ? byte & 0x0F : nil, 2 * index + 1)
                    // An odd number of digits is filled up with F, which stands before the last one.
                    if byte >> 4 < 10 || byte & 0x0F > 9 { add(byte >> 4 < 10 ? byte >> 4 : nil, 2 * index) }
                }
            default:
                var (isOdd, high) = (self == .oddHexText || self == .oddGroupedHexText, nil as UInt8?)
                for (index, byte) in bytes.enumerated() where !isGrouped || !Self.isBetweenDigits(index, bytes) {
                    if !isHexText {
                        add(Self.digit(byte), index)
                    } else if isOdd {
                        isOdd = false
                    } else if let first = high {
                        add(first == 0x33 ? Self.digit(byte) : nil, index)
                        high = nil
                    } else {
                        high = byte
                    }
                }
            }
            end()
            return runs
        }

        private var isHexText: Bool {
            switch self {
            case .evenHexText, .oddHexText, .evenGroupedHexText, .oddGroupedHexText: true
            case .text, .groupedText, .packed, .swapped: false
            }
        }

        private var isPacked: Bool { self == .packed || self == .swapped }

        private var isGrouped: Bool {
            switch self {
            case .evenGroupedHexText, .oddGroupedHexText, .groupedText: true
            case .evenHexText, .oddHexText, .text, .packed, .swapped: false
            }
        }

        private static func digit(_ character: UInt8) -> UInt8? {
            (0x30...0x39).contains(character) ? character - 0x30 : nil
        }

        private static let separators: Set<UInt8> = [0x20, 0x2D, 0x2E, 0x3A]

        /// Returns true if this character stands alone between two digits and separates them.
        private static func isBetweenDigits(_ index: Int, _ bytes: [UInt8]) -> Bool {
            guard index > 0, index + 1 < bytes.count, (0x20...0x3A).contains(bytes[index]),
                separators.contains(bytes[index])
            else { return false }
            return digit(bytes[index - 1]) != nil && digit(bytes[index + 1]) != nil
        }

        /// The unit after a digit: a character, or a half byte for packed digits.
        struct Unit {
            let value: UInt8
            /// The place, as in a ``Run``.
            let place: Int
            /// The beginning of the unit.
            fileprivate let start: Int
        }

        /// Returns the unit after a place of a ``Run``; nil at the end, and for bytes that are not a unit in this form.
        ///
        /// Always nil after digits in the other order.
        func unit(behind place: Int, in bytes: [UInt8]) -> Unit? {
            func character(behind index: Int) -> Int? {
                var next = index + 1
                if isGrouped, next < bytes.count, Self.separators.contains(bytes[next]) { next += 1 }
                return next < bytes.count ? next : nil
            }
            if self == .swapped { return nil }
            if self == .packed {
                let next = place + 1
                guard next / 2 < bytes.count else { return nil }
                return Unit(value: bytes[next / 2] >> (next % 2 == 0 ? 4 : 0) & 0x0F, place: next, start: next)
            }
            guard let first = character(behind: place) else { return nil }
            guard isHexText else { return Unit(value: bytes[first], place: first, start: first) }
            guard let second = character(behind: first),
                let value = UInt8(String(decoding: [bytes[first], bytes[second]], as: UTF8.self), radix: 16)
            else { return nil }
            return Unit(value: value, place: second, start: first)
        }

        /// Writes a character whose code has no letters, or half a byte, where another stood.
        func put(_ value: UInt8, at unit: Unit, in bytes: inout [UInt8]) {
            if isPacked {
                put(value, at: unit.place, in: &bytes)
            } else if isHexText {
                bytes[unit.start] = 0x30 + (value >> 4)
                bytes[unit.place] = 0x30 + (value & 0x0F)
            } else {
                bytes[unit.place] = value
            }
        }

        /// The byte in which a place of a ``Run`` is.
        func byte(_ place: Int) -> Int { isPacked ? place / 2 : place }

        /// Writes `digit` at a place of a ``Run``.
        func put(_ digit: UInt8, at place: Int, in bytes: inout [UInt8]) {
            guard isPacked else { return bytes[place] = 0x30 + digit }
            let byte = bytes[place / 2]
            bytes[place / 2] = place % 2 == 0 ? byte & 0x0F | digit << 4 : byte & 0xF0 | digit
        }
    }

    /// A number that was found.
    struct Finding {
        let form: Form
        let digits: ArraySlice<UInt8>
        /// The place of each digit, as in ``Form/Run``.
        let places: ArraySlice<Int>
        let isReplacement: Bool
        /// The parts of a track after the number.
        var track = Track()
    }

    /// The parts of a track after the number (ISO/IEC 7813).
    struct Track {
        /// Between two `^`, the second one included.
        fileprivate(set) var name: [Form.Unit] = []
        /// The digits after it, or after `=` or D: four of the expiry, three of the service code, and more.
        fileprivate(set) var digits: [Form.Unit] = []

        fileprivate init() {}

        /// - Parameter place: the place of the last digit of the number.
        fileprivate init(behind place: Int, _ form: Form, in bytes: [UInt8]) {
            guard let separator = form.unit(behind: place, in: bytes) else { return }
            var last = separator.place
            switch separator.value {
            case 0x0D where form == .packed: break
            case UInt8(ascii: "="), UInt8(ascii: "D"), UInt8(ascii: "d"): break
            case UInt8(ascii: "^"):
                while let unit = form.unit(behind: last, in: bytes), (0x20...0x7E).contains(unit.value) {
                    last = unit.place
                    name.append(unit)
                    if unit.value == UInt8(ascii: "^") { break }
                }
            default: return
            }
            let zero: UInt8 = form == .packed ? 0 : 0x30
            while let unit = form.unit(behind: last, in: bytes), (zero...zero + 9).contains(unit.value) {
                last = unit.place
                digits.append(unit)
            }
        }
    }

    /// A search for account numbers.
    struct Search {
        /// Of shorter numbers there would be some in everything.
        static let lengths = 10...19

        /// Numbers that are known from the data objects that hold them, and the lengths of these, the longest first.
        private(set) var known: Set<[UInt8]> = []
        private var knownLengths: [Int] = []
        /// True if a known number begins with these four digits: most places need no closer look.
        private var isKnownStart = [Bool](repeating: false, count: 10_000)
        /// True if the bytes may contain replacements, which stay unchanged.
        var sparesReplacements = false

        func isReplacement(_ digits: ArraySlice<UInt8>) -> Bool { sparesReplacements && Replacement.isOne(digits) }

        /// Looks for `digits` from now on.
        mutating func learn(_ digits: [UInt8]) {
            guard Self.lengths.contains(digits.count), !isReplacement(digits[...]), digits.contains(where: { $0 != 0 })
            else { return }
            known.insert(digits)
            isKnownStart[Self.start(of: digits[...])] = true
            if !knownLengths.contains(digits.count) { knownLengths = (knownLengths + [digits.count]).sorted(by: >) }
        }

        /// Returns the account numbers in `bytes`.
        ///
        /// Known numbers are found first, in every form.  Replacements come next, at places without a known number.  If
        /// `isGuessing`, numbers that the issuer's first digits and the check digit reveal come last.  Each of those is
        /// taken in the first form that finds it: other forms contain its digits by chance.  The digits of a track are
        /// not a separate number.
        ///
        /// - Parameter isGuessing: false for a message that is partly understood: nothing there marks the end of a
        ///   track.
        func findings(in bytes: [UInt8], forms: [Form] = Form.all, isGuessing: Bool) -> [Finding] {
            guard isGuessing || !known.isEmpty else { return [] }
            let (hasText, hasPacked) = Self.mayHold(bytes)
            guard hasText || hasPacked else { return [] }
            let runs = forms.filter { $0 == .packed ? hasPacked : hasText }.flatMap { form in
                form.runs(in: bytes).map { (form: form, run: $0) }
            }
            var findings: [Finding] = []
            var taken: Set<Int> = []
            func look(
                _ lengths: [Int], in runs: [(form: Form, run: Form.Run)], isReplacement: Bool = false,
                _ isOne: (ArraySlice<UInt8>) -> Bool
            ) {
                for (form, run) in runs {
                    let free = run.places.indices.split { taken.contains(form.byte(run.places[$0])) }
                    for span in free.flatMap({ Self.spans(in: run.digits[$0], lengths, isOne) }) {
                        let places = run.places[span]
                        taken.formUnion(places.lazy.map(form.byte))
                        var finding = Finding(
                            form: form, digits: run.digits[span], places: places, isReplacement: isReplacement)
                        if isGuessing, let last = places.last {
                            finding.track = Track(behind: last, form, in: bytes)
                            taken.formUnion(finding.track.digits.lazy.map { form.byte($0.place) })
                        }
                        findings.append(finding)
                    }
                }
            }
            let hasSwapped = hasPacked && forms.contains(.packed) && (!known.isEmpty || sparesReplacements)
            let swapped = hasSwapped ? Form.swapped.runs(in: bytes).map { (form: Form.swapped, run: $0) } : []
            if !known.isEmpty {
                let isKnown = { isKnownStart[Self.start(of: $0)] && known.contains(Array($0)) }
                look(knownLengths, in: runs, isKnown)
                look(knownLengths, in: swapped, isKnown)
            }
            guard !runs.isEmpty else { return findings }
            if sparesReplacements, isGuessing {
                look(Self.guessedLengths, in: runs + swapped, isReplacement: true, Replacement.isOne)
            }
            if isGuessing {
                look(Self.guessedLengths, in: runs) { SensitiveData.isAccountNumber($0) && !Self.isCovered($0) }
            }
            return findings
        }

        /// Returns true for each representation with enough digits for the shortest number: text, and packed, which
        /// contains at least four bytes of digits in a row.
        private static func mayHold(_ bytes: [UInt8]) -> (text: Bool, packed: Bool) {
            var (text, row, longest) = (0, 0, 0)
            for byte in bytes {
                if byte & 0x0F < 10, byte < 0xA0 {
                    row += 1
                    if row > longest { longest = row }
                    if byte >= 0x30, byte < 0x3A { text += 1 }
                } else {
                    row = 0
                }
            }
            return (text >= lengths.lowerBound, longest >= 4)
        }

        /// Returns the account numbers in `bytes` that are the whole of a run of digits.
        ///
        /// - Parameters:
        ///   - offset: the offset of `bytes` in the data that the findings refer to.
        ///   - isOne: returns true for a finding that is looked for.
        func wholeRuns(in bytes: [UInt8], movedBy offset: Int, isOne: (Finding) -> Bool) -> [Finding] {
            for form in Form.all {
                for run in form.runs(in: bytes)
                where SensitiveData.isAccountNumber(run.digits[...]) && !Self.isCovered(run.digits[...]) {
                    let places = run.places.map { $0 + offset * (form == .packed ? 2 : 1) }
                    let finding = Finding(
                        form: form, digits: run.digits[...], places: places[...],
                        isReplacement: isReplacement(run.digits[...]))
                    if isOne(finding) { return [finding] }
                }
            }
            return []
        }

        /// Returns true if `digits` are the code of a masked name, `XXXX XXX`, and not a number.
        private static func isCovered(_ digits: ArraySlice<UInt8>) -> Bool {
            [0, 1].contains { first in
                stride(from: digits.startIndex + first, to: digits.endIndex - 1, by: 2).allSatisfy {
                    [58, 30, 20].contains(digits[$0] * 10 + digits[$0 + 1])
                }
            }
        }

        private static func start(of digits: ArraySlice<UInt8>) -> Int {
            digits.prefix(4).reduce(0) { ($0 * 10 + Int($1)) % 10_000 }
        }

        /// The lengths of account numbers (ISO/IEC 7812-1), the longest first.
        private static let guessedLengths = Array((13...19).reversed())

        /// Returns the places of numbers of `lengths` in `digits`.  Overlapping candidates are merged, because any of
        /// them may be the number.
        private static func spans(
            in digits: ArraySlice<UInt8>, _ lengths: [Int], _ isOne: (ArraySlice<UInt8>) -> Bool
        ) -> [Range<Int>] {
            var spans: [Range<Int>] = []
            for start in digits.indices {
                let length = lengths.first { $0 <= digits.endIndex - start && isOne(digits[start..<start + $0]) }
                guard let end = length.map({ start + $0 }) else { continue }
                if let last = spans.last, start < last.upperBound {
                    spans[spans.count - 1] = last.lowerBound..<max(last.upperBound, end)
                } else {
                    spans.append(start..<end)
                }
            }
            return spans
        }
    }

    /// The digits that replace an account number in a redacted trace (ISO/IEC 7812-1, Annex B).
    ///
    /// They consist of the number's first digits, which identify the scheme and the issuer range; digits that depend on
    /// the number and a key; digits that follow from those before them, so that a replacement is recognizable; and the
    /// check digit.
    ///
    /// Six first digits are kept of numbers with 16 digits or more.  No scheme's ranges need more, and some need all
    /// six (Discover in 62, Maestro, Elo, Verve, RuPay).  Four are kept of shorter numbers (American Express, Diners
    /// Club and the shorter Maestro).
    enum Replacement {
        /// Returns the number of digits in each part of a number with `count` digits: kept, keyed, following.
        private static func parts(_ count: Int) -> (kept: Int, keyed: Int, following: Int) {
            let kept = count >= 16 ? 6 : 4
            let free = max(0, count - kept - 1)
            let following = min(4, free / 2)
            return (kept, free - following, following)
        }

        /// - Parameter digits: 8 to 19.  Further digits become zeros.
        static func digits(for digits: [UInt8], key: SipHash) -> [UInt8] {
            guard digits.count >= 8 else { return digits.map { _ in 0 } }
            guard digits.count <= 19 else {
                return self.digits(for: Array(digits.prefix(19)), key: key) + digits.dropFirst(19).map { _ in 0 }
            }
            let parts = parts(digits.count)
            return whole(
                Array(digits.prefix(parts.kept)) + decimal(key.hash(digits), parts.keyed), parts.following)
        }

        /// Returns true if `digits` have the form of a replacement.  One in ten thousand other account numbers of 13
        /// digits or more has it, too.
        static func isOne(_ digits: ArraySlice<UInt8>) -> Bool {
            guard digits.count >= 8 else { return false }
            let parts = parts(digits.count)
            return whole(Array(digits.prefix(parts.kept + parts.keyed)), parts.following).elementsEqual(digits)
        }

        /// Nothing secret: it only tells replacements from other numbers.
        private static let mark = SipHash(key: Array("apdu-trace number".utf8))

        private static func whole(_ start: [UInt8], _ following: Int) -> [UInt8] {
            let digits = start + decimal(mark.hash(start), following)
            return digits + [checkDigit(digits)]
        }

        private static func decimal(_ number: UInt64, _ count: Int) -> [UInt8] {
            var number = number
            return (0..<count).map { _ in
                defer { number /= 10 }
                return UInt8(number % 10)
            }
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
