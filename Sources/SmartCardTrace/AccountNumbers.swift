import SmartCard

/// Account numbers in bytes, in every form in which they are written.
enum AccountNumbers {
    /// How digits stand in bytes.
    enum Form {
        /// Two characters each, the hexadecimal code of the character: `34` for 4.  From an even or an odd place on.
        case evenHexText, oddHexText
        /// A character each.
        case text
        /// The same in groups, as people write it: a space, a hyphen, a full stop or a colon may stand between two
        /// characters.  Nothing longer may: bytes written `0x34, 0x37` are no digits here.
        case evenGroupedHexText, oddGroupedHexText, groupedText
        /// Two digits a byte; a number may begin in the middle of one.
        case packed
        /// The same with the digits of each byte in the other order, as SIM cards have them (GSM 11.11, 10.1.1).  Only
        /// numbers that are known are looked for so.
        case swapped

        /// Those in which numbers are guessed.
        static let all: [Form] = texts + [.packed]
        static let texts: [Form] = [
            .evenHexText, .oddHexText, .text, .evenGroupedHexText, .oddGroupedHexText, .groupedText,
        ]

        /// Digits that follow each other.
        struct Run {
            fileprivate(set) var digits: [UInt8] = []
            /// Where each stands: the number of a byte, or of half a byte if they are packed.
            fileprivate(set) var places: [Int] = []
        }

        /// What stands in `bytes` in this form, where so many digits follow each other as a number has.
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

        /// Whether what stands there stands alone between two digits, and parts them.
        private static func isBetweenDigits(_ index: Int, _ bytes: [UInt8]) -> Bool {
            guard index > 0, index + 1 < bytes.count, (0x20...0x3A).contains(bytes[index]),
                separators.contains(bytes[index])
            else { return false }
            return digit(bytes[index - 1]) != nil && digit(bytes[index + 1]) != nil
        }

        /// What stands behind digits: a character, or half a byte if they are packed.
        struct Unit {
            let value: UInt8
            /// As in a ``Run``.
            let place: Int
            /// Where it begins.
            fileprivate let start: Int
        }

        /// What stands behind a place of a ``Run``; nil at the end, and for what is none in this form.
        ///
        /// Nothing is told of what stands behind digits in the other order.
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
        /// Where each digit stands, as in ``Form/Run``.
        let places: ArraySlice<Int>
        let isReplacement: Bool
        /// What of a track stands behind it.
        var track = Track()
    }

    /// What tracks have behind the number (ISO/IEC 7813).
    struct Track {
        /// Between two `^`, the second one included.
        fileprivate(set) var name: [Form.Unit] = []
        /// The digits behind that, or behind `=` or D: four of the expiry, three of the service code, and more.
        fileprivate(set) var digits: [Form.Unit] = []

        fileprivate init() {}

        /// - Parameter place: that of the last digit of the number.
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

    /// What is looked for.
    struct Search {
        /// Of shorter numbers there would be some in everything.
        static let lengths = 10...19

        /// Numbers that are known from the data objects that hold them, and the lengths of these, the longest first.
        private(set) var known: Set<[UInt8]> = []
        private var knownLengths: [Int] = []
        /// Whether a known number begins with these four digits: most places need no closer look.
        private var isKnownStart = [Bool](repeating: false, count: 10_000)
        /// Whether there may be replacements, which are left alone.
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

        /// The account numbers in `bytes`: those that are known in every form, then, where none of them is, replacements,
        /// and last, if `isGuessing`, what is told by the first digits of issuers and the check digit.  Of what is left,
        /// each is in the first form in which it is found: the others have its digits by chance; and digits of a track are
        /// no number of their own.
        ///
        /// - Parameter isGuessing: not for a message of which some is understood: nothing tells there where a track ends.
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

        /// Whether there are enough digits for the shortest number: as text, and packed, which has four bytes of digits in a
        /// row at least.
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

        /// Account numbers in `bytes` of which each is all the digits that follow each other there.
        ///
        /// - Parameters:
        ///   - offset: where in what the findings are of `bytes` begin.
        ///   - isOne: whether a finding is looked for.
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

        /// Whether `digits` are the code of what covers a name, `XXXX XXX`, and no number.
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

        /// As account numbers have them (ISO/IEC 7812-1), the longest first.
        private static let guessedLengths = Array((13...19).reversed())

        /// Where in `digits` numbers of `lengths` stand; of those that overlap nobody knows which is one, so they are
        /// taken together.
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

    /// What stands in an account number's place when it has been taken out: its first digits, which tell scheme and range
    /// of issuers; digits that depend on the number and a key; digits that follow from those before them, so that a
    /// replacement is known again; and the check digit (ISO/IEC 7812-1, Annex B).
    ///
    /// Of 16 digits or more six are kept: no scheme's ranges are told apart by more, and some are by all six (Discover in
    /// 62, Maestro, Elo, Verve, RuPay).  Of fewer, as American Express, Diners Club and the shorter Maestro have them, four
    /// are.
    enum Replacement {
        /// How many digits of each part a number of `count` digits has: kept, keyed, following.
        private static func parts(_ count: Int) -> (kept: Int, keyed: Int, following: Int) {
            let kept = count >= 16 ? 6 : 4
            let free = max(0, count - kept - 1)
            let following = min(4, free / 2)
            return (kept, free - following, following)
        }

        /// - Parameter digits: 8 to 19.  Of more, those behind become zeros.
        static func digits(for digits: [UInt8], key: SipHash) -> [UInt8] {
            guard digits.count >= 8 else { return digits.map { _ in 0 } }
            guard digits.count <= 19 else {
                return self.digits(for: Array(digits.prefix(19)), key: key) + digits.dropFirst(19).map { _ in 0 }
            }
            let parts = parts(digits.count)
            return whole(
                Array(digits.prefix(parts.kept)) + decimal(key.hash(digits), parts.keyed), parts.following)
        }

        /// Whether `digits` have the form of one.  Of other account numbers of 13 digits or more, one in ten thousand does.
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
