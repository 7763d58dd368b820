/// The replacement of numbers and names in bytes of any kind.
extension RedactionWork {
    /// Replaces the numbers that span two messages; see ``NumberSeams``.  Earlier replacements stay.
    mutating func redact(_ window: NumberSeams.Window, in events: inout [TraceEvent]) {
        let findings = window.findings(search).filter { !$0.isReplacement }
        guard !findings.isEmpty else { return }
        var bytes = window.bytes
        for finding in findings {
            let replacement = AccountNumbers.Replacement.digits(for: Array(finding.digits), key: key)
            for (place, digit) in zip(finding.places, replacement) { finding.form.put(digit, at: place, in: &bytes) }
        }
        var start = 0
        for part in window.parts {
            let place = start..<start + part.place.count
            start = place.upperBound
            guard events.indices.contains(part.event), let now = events[part.event].bytes(part.place) else { continue }
            let new = zip(now, place).map { $0 == window.bytes[$1] ? bytes[$1] : $0 }
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

    /// Replaces the numbers in the base64 text of `bytes`.
    mutating func replaceEncodedNumbers(in bytes: inout [UInt8]) {
        for text in Base64Text.all(in: bytes) {
            var text = text
            text.read(bytes)
            let old = text.decoded
            var new = old
            replaceNumbers(in: &new, isGuessing: false)
            replaceNumbers(in: &new, forms: AccountNumbers.Form.texts, isGuessing: true)
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
        replaceNumbers(
            in: &bytes, forms: isDigits ? AccountNumbers.Form.texts : AccountNumbers.Form.all, isGuessing: true)
    }

    mutating func replaceNumbers(
        in bytes: inout [UInt8], forms: [AccountNumbers.Form] = AccountNumbers.Form.all, isGuessing: Bool
    ) {
        for finding in search.findings(in: bytes, forms: forms, isGuessing: isGuessing) {
            mask(finding.track, finding.form, in: &bytes)
            guard !finding.isReplacement else { continue }
            let replacement = AccountNumbers.Replacement.digits(for: Array(finding.digits), key: key)
            for (place, digit) in zip(finding.places, replacement) { finding.form.put(digit, at: place, in: &bytes) }
            items.insert(.accountNumber)
        }
    }

    /// Masks the name, and the digits after expiry and service code.
    private mutating func mask(
        _ track: AccountNumbers.Track, _ form: AccountNumbers.Form, in bytes: inout [UInt8]
    ) {
        for unit in track.name {
            guard let masked = Self.masked(unit.value), masked != unit.value else { continue }
            form.put(masked, at: unit, in: &bytes)
            items.insert(.name)
        }
        let zero: UInt8 = form == .packed ? 0 : 0x30
        for unit in track.digits.dropFirst(7) where unit.value != zero {
            form.put(zero, at: unit, in: &bytes)
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

extension TraceEvent {
    /// Returns the event's bytes at `place`; nil for an event without bytes.
    fileprivate func bytes(_ place: Range<Int>) -> [UInt8]? {
        switch what {
        case .sent(_, let bytes), .received(_, let bytes): Array(bytes[place])
        default: nil
        }
    }
}
