import SmartCard

/// Account numbers in bytes, in every form in which they are written.
enum AccountNumbers {
    /// The extent to which unknown numbers are guessed, by the first digits of issuers and the check digit.
    enum Guess {
        case nothing
        /// In text alone.
        case text
        /// In packed and zoned digits, too.
        case everything
    }

    /// A number that was found.
    struct Finding {
        let carrier: DigitCarrier
        /// None if what is found is the rest of a number.
        let digits: ArraySlice<UInt8>
        /// The half byte of each digit in the carrier.
        let halves: ArraySlice<Int>
        let isReplacement: Bool
        /// The parts of a track after the number.
        fileprivate(set) var track = DigitCarrier.Track()

        /// The bytes of the original that the digits are in, first and last in the order of the digits.
        var first: Int { halves.first.map { carrier.byte(ofHalf: $0) } ?? 0 }
        var last: Int { halves.last.map { carrier.byte(ofHalf: $0) } ?? 0 }
        /// All bytes of the original that the digits are in, with the other half of each.
        var places: [Int] { halves.flatMap { [carrier.byte(ofHalf: $0), carrier.byte(ofHalf: $0 ^ 1)] } }

        /// The parts of the track behind it, up to the first half byte that `isFree` denies.
        func foundTrack(_ isFree: (Int) -> Bool) -> DigitCarrier.Track {
            guard let first = halves.first, let last = halves.last else { return DigitCarrier.Track() }
            return carrier.track(behind: last, isPacked: last - first < halves.count, isFree)
        }
    }

    /// A search for account numbers.
    struct Search {
        /// The lengths searched for; shorter numbers match by chance.
        static let lengths = 10...19

        /// Numbers that are known from the data objects that hold them, and the lengths of these, the longest first.
        private(set) var known: Set<[UInt8]> = []
        private var knownLengths: [Int] = []
        /// True if a known number begins with these four digits: most places need no closer look.
        private var isKnownStart = [Bool](repeating: false, count: 10_000)
        private var isKnownFirst = [Bool](repeating: false, count: 10)
        /// True if the bytes may contain replacements, which stay unchanged.
        var sparesReplacements = false

        func isReplacement(_ digits: ArraySlice<UInt8>) -> Bool { sparesReplacements && Replacement.isOne(digits) }

        /// Looks for `digits` from now on.  A replacement is looked for, too, so that it is known in every form.
        mutating func learn(_ digits: [UInt8]) {
            guard Self.lengths.contains(digits.count), digits.contains(where: { $0 != 0 }) else { return }
            known.insert(digits)
            isKnownStart[Self.start(of: digits[...])] = true
            isKnownFirst[Int(digits[0])] = true
            if !knownLengths.contains(digits.count) { knownLengths = (knownLengths + [digits.count]).sorted(by: >) }
        }

        /// Returns the account numbers in `bytes`.
        ///
        /// Known numbers are found first, whatever their form (``DigitCarrier``): at every distance of the digits, in text
        /// with anything between them.  Replacements come next, at places without a known number.  Numbers that are
        /// guessed come last.  Each of those is taken in the first form that finds it: other forms contain its digits by
        /// chance.  The digits of a track are not a separate number.
        ///
        /// - Parameter isText: true if the bytes must remain text.
        func findings(in bytes: [UInt8], guessing guess: Guess, isText: Bool = false) -> [Finding] {
            guard bytes.count >= 5, guess != .nothing || !known.isEmpty else { return [] }
            let carrier = DigitCarrier(bytes, isText: isText)
            let decoded = carrier.decoded
            let carriers = decoded.flatMap { $0.decoded + [$0] } + [carrier]
            var findings: [Finding] = []
            var isTaken = [Bool](repeating: false, count: bytes.count)
            func isFree(_ half: Int, _ carrier: DigitCarrier) -> Bool { !isTaken[carrier.byte(ofHalf: half)] }
            func take(_ digits: ArraySlice<UInt8>, _ halves: ArraySlice<Int>, _ carrier: DigitCarrier) {
                for half in halves { isTaken[carrier.byte(ofHalf: half)] = true }
                findings.append(
                    Finding(carrier: carrier, digits: digits, halves: halves, isReplacement: isReplacement(digits)))
            }
            func takeTracks(from first: Int) {
                guard guess != .nothing else { return }
                for index in findings.indices.dropFirst(first) {
                    let track = findings[index].foundTrack { isFree($0, findings[index].carrier) }
                    findings[index].track = track
                    for half in track.digits { isTaken[findings[index].carrier.byte(ofHalf: half)] = true }
                }
            }
            func look(
                _ lengths: [Int], in runs: [DigitCarrier.Run], _ carrier: DigitCarrier,
                _ isOne: (ArraySlice<UInt8>) -> Bool
            ) {
                for run in runs {
                    let free = run.halves.indices.split { !isFree(run.halves[$0], carrier) }
                    for span in free.flatMap({ Self.spans(in: run.digits[$0], lengths, isOne) }) {
                        take(run.digits[span], run.halves[span], carrier)
                        takeTracks(from: findings.count - 1)
                    }
                }
            }
            for carrier in known.isEmpty ? [] : carriers.reversed() {
                eachKnown(in: carrier) { digits, halves in
                    let free = halves.filter { isFree($0, carrier) }
                    // What is left of a number behind another that shares digits with it is none any more, and goes.
                    guard free.contains(where: { carrier.halves[$0] != 0 }) else { return }
                    take(free.count == halves.count ? digits[...] : [], free[...], carrier)
                }
            }
            takeTracks(from: 0)
            guard guess != .nothing else { return findings }
            let everything = guess == .everything
            let guessed = carriers.flatMap { carrier in
                [carrier.text(.none), carrier.text(.usual), everything ? carrier.zoned : []].map { (carrier, $0) }
            }
            let all = guessed + (everything ? [(carrier, carrier.packed)] : [])
            if sparesReplacements {
                for (carrier, runs) in all { look(Self.guessedLengths, in: runs, carrier, Replacement.isOne) }
            }
            for (carrier, runs) in all {
                look(Self.guessedLengths, in: runs, carrier) {
                    SensitiveData.isAccountNumber($0) && !Self.isCovered($0)
                }
            }
            return findings
        }

        /// The distances between the half bytes of digits: next to each other, and each a byte, up to six characters of
        /// UTF-16.
        private static let steps = [1] + Array(stride(from: 2, through: 24, by: 2))

        /// Calls `body` with each known number whose digits are at the same distance from each other, or packed with the
        /// digits of each byte in the other order, as on SIM cards (GSM 11.11, 10.1.1), or text with anything between.
        private func eachKnown(in carrier: DigitCarrier, _ body: ([UInt8], [Int]) -> Void) {
            let halves = carrier.halves
            let shortest = knownLengths.last ?? Self.lengths.lowerBound
            func find(_ step: Int, isSwapped: Bool) {
                let last = halves.count - (shortest - 1) * step
                guard last > 0 else { return }
                func place(_ start: Int, _ index: Int) -> Int {
                    let half = start + index * step
                    return isSwapped ? half ^ 1 : half
                }
                halves.withUnsafeBufferPointer { halves in
                    var start = 0
                    while start < last {
                        defer { start += 1 }
                        let first = halves[place(start, 0)]
                        guard first < 10, isKnownFirst[Int(first)] else { continue }
                        let (second, third, fourth) = (
                            halves[place(start, 1)], halves[place(start, 2)], halves[place(start, 3)]
                        )
                        guard second < 10, third < 10, fourth < 10,
                            isKnownStart[((Int(first) * 10 + Int(second)) * 10 + Int(third)) * 10 + Int(fourth)]
                        else { continue }
                        for length in knownLengths where start + (length - 1) * step < halves.count {
                            let places = (0..<length).map { place(start, $0) }
                            let digits = places.map { halves[$0] }
                            if known.contains(digits) { body(digits, places) }
                        }
                    }
                }
            }
            for step in Self.steps { find(step, isSwapped: false) }
            find(1, isSwapped: true)
            for run in carrier.text(.any) {
                for start in run.digits.indices where isKnownStart[Self.start(of: run.digits[start...])] {
                    for length in knownLengths where start + length <= run.digits.count {
                        let digits = Array(run.digits[start..<start + length])
                        if known.contains(digits) { body(digits, Array(run.halves[start..<start + length])) }
                    }
                }
            }
        }

        /// Returns the account number in `bytes` that is the whole of a run of digits, from byte `start` on.
        ///
        /// - Parameter isOne: returns true for a finding that is looked for.
        func wholeRuns(in bytes: [UInt8], from start: Int, isText: Bool, isOne: (Finding) -> Bool) -> [Finding] {
            let carrier = DigitCarrier(bytes, isText: isText)
            for carrier in carrier.decoded + [carrier] {
                for run in carrier.text(.none) + carrier.text(.usual) + carrier.zoned + carrier.packed {
                    let first = run.halves.firstIndex { carrier.byte(ofHalf: $0) >= start } ?? run.halves.count
                    let digits = run.digits[first...]
                    guard SensitiveData.isAccountNumber(digits), !Self.isCovered(digits) else { continue }
                    let finding = Finding(
                        carrier: carrier, digits: digits, halves: run.halves[first...],
                        isReplacement: isReplacement(digits))
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

        /// - Parameters:
        ///   - digits: 8 to 19.  Further digits become zeros.
        ///   - key: nil in a search: a keyed digit becomes the next one, so that every event with one of them changes,
        ///     where with a key one digit in ten stays the same.
        static func digits(for digits: [UInt8], key: SipHash?) -> [UInt8] {
            guard digits.count >= 8 else { return digits.map { _ in 0 } }
            guard digits.count <= 19 else {
                return self.digits(for: Array(digits.prefix(19)), key: key) + digits.dropFirst(19).map { _ in 0 }
            }
            let parts = parts(digits.count)
            let keyed =
                key.map { decimal($0.hash(digits), parts.keyed) }
                ?? digits[parts.kept..<parts.kept + parts.keyed].map { ($0 + 1) % 10 }
            return whole(Array(digits.prefix(parts.kept)) + keyed, parts.following)
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
            (0...9).first { SensitiveData.checks(digits + [$0]) } ?? 0
        }
    }
}
