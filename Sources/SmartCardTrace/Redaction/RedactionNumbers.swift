/// The replacement of numbers and names in bytes of any kind.
extension RedactionWork {
    /// Replaces the numbers that span two messages; see ``NumberSeams``.  Earlier replacements stay.
    mutating func redact(_ window: NumberSeams.Window, in events: inout [TraceEvent]) {
        let findings = window.findings(search)
        guard !findings.isEmpty else { return }
        var bytes = window.bytes
        for finding in findings where !finding.isReplacement { replace(finding, in: &bytes) }
        // Either side alone may have been taken for another number.
        let known = findings.filter { search.known.contains(Array($0.digits)) }
        let isKnown = Set(known.flatMap(\.places))
        let spans = known.compactMap { finding in finding.places.min().map { $0...(finding.places.max() ?? $0) } }
        func stands(_ now: UInt8, at place: Int) -> Bool {
            guard !isKnown.contains(place), now != window.bytes[place] else { return false }
            return !window.isText || !(0x30...0x39).contains(now) || !spans.contains { $0.contains(place) }
        }
        var start = 0
        for part in window.parts {
            let place = start..<start + part.place.count
            start = place.upperBound
            guard events.indices.contains(part.event), let now = events[part.event].bytes(part.place) else { continue }
            let new = zip(now, place).map { stands($0, at: $1) ? $0 : bytes[$1] }
            guard new != now, now.contains(where: { $0 != 0 }) else { continue }
            [part].put(new, into: &events)
            items.insert(.accountNumber)
        }
    }

    /// Covers the names that are known.
    mutating func coverNames(in bytes: inout [UInt8]) {
        let letters = names.letters(in: bytes)
        guard !letters.isEmpty else { return }
        for letter in letters { letter.cover(in: &bytes) }
        items.insert(.name)
    }

    /// Covers the values of travel documents that are known, before digits in them are taken for account numbers.
    mutating func coverValues(in bytes: inout [UInt8], isText: Bool = false) {
        let characters = values.characters(in: bytes, isText: isText)
        guard !characters.isEmpty else { return }
        for character in characters { character.cover(in: &bytes) }
        items.insert(.document)
    }

    /// Replaces the numbers in the base64 text of `bytes`.
    mutating func replaceEncodedNumbers(in bytes: inout [UInt8]) {
        for text in Base64Text.all(in: bytes) {
            var text = text
            text.read(bytes)
            let old = text.decoded
            var new = old
            coverValues(in: &new, isText: true)
            replaceNumbers(in: &new, guessing: .text)
            coverNames(in: &new)
            guard new != old else { continue }
            text.decoded = new
            text.put(into: &bytes)
        }
    }

    /// Replaces the numbers in bytes outside data objects.
    mutating func replaceBareNumbers(in bytes: inout [UInt8]) {
        // Digits of text, 3 and a digit each, make account numbers by chance where they are taken for packed ones.
        let isDigits = Self.isText(bytes) && Self.isMostlyDigits(bytes)
        replaceNumbers(in: &bytes, guessing: isDigits ? .text : .everything)
    }

    /// - Parameter isText: true if the bytes must remain text.
    mutating func replaceNumbers(in bytes: inout [UInt8], guessing guess: AccountNumbers.Guess, isText: Bool = false) {
        for finding in search.findings(in: bytes, guessing: guess, isText: isText) {
            mask(finding.track, finding.carrier, in: &bytes)
            guard !finding.isReplacement else { continue }
            replace(finding, in: &bytes)
            items.insert(.accountNumber)
        }
    }

    private func replace(_ finding: AccountNumbers.Finding, in bytes: inout [UInt8]) {
        let replacement = AccountNumbers.Replacement.digits(for: Array(finding.digits), key: key)
        for (index, half) in finding.halves.enumerated() {
            finding.carrier.put(index < replacement.count ? replacement[index] : 0, atHalf: half, in: &bytes)
        }
    }

    /// Masks the name, and the digits after expiry and service code.
    private mutating func mask(_ track: DigitCarrier.Track, _ carrier: DigitCarrier, in bytes: inout [UInt8]) {
        for index in track.name {
            guard let masked = Self.masked(carrier.bytes[index]), masked != carrier.bytes[index] else { continue }
            carrier.put(byte: masked, at: index, in: &bytes)
            items.insert(.name)
        }
        for half in track.digits.dropFirst(7) where carrier.halves[half] != 0 {
            carrier.put(0, atHalf: half, in: &bytes)
            items.insert(.track)
        }
    }

    static func isText(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { (0x20...0x7E).contains($0) } }

    static func isMostlyDigits(_ bytes: [UInt8]) -> Bool {
        bytes.count { (0x30...0x39).contains($0) } * 2 >= bytes.count
    }

    mutating func blank(_ bytes: inout [UInt8], _ place: Range<Int>, _ item: TraceEvent.RedactedItem) {
        guard bytes[place].contains(where: { $0 != 0 }) else { return }
        for index in place { bytes[index] = 0 }
        items.insert(item)
    }

    /// Letters become `X`, digits `0`, other characters stay; bytes that are no text become zeros.
    mutating func cover(_ value: inout [UInt8], _ place: Range<Int>, _ item: TraceEvent.RedactedItem) {
        let old = value
        defer { if value != old { items.insert(item) } }
        let isText = Self.isText(value)
        for index in place {
            value[index] = isText ? Self.masked(value[index]) ?? value[index] : 0
        }
    }

    /// Returns the mask of a letter or a digit; nil for other characters.
    private static func masked(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: 0x30
        case 0x41...0x5A, 0x61...0x7A: UInt8(ascii: "X")
        default: nil
        }
    }
}
