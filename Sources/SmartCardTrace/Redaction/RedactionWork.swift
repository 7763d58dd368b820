import SmartCard

/// The redaction of one trace: the account numbers found in it, and the items taken out.
struct RedactionWork {
    /// The key of the replacements; nil in a search.
    let key: SipHash?
    let includingCryptograms: Bool
    private(set) var search: AccountNumbers.Search
    var names: CardholderNames
    var values: DocumentValues
    private(set) var logFiles: Set<UInt8>
    private let authenticated: Set<[UInt8]>
    private var places: [TraceEvent.Layer?: DataObjectPlaces]
    /// The layers with a travel document.
    var documents: Set<TraceEvent.Layer?>
    /// The items taken out since the last request.
    var items: Set<TraceEvent.RedactedItem> = []
    private var allItems: Set<TraceEvent.RedactedItem>

    /// Application Label and Preferred Name, Language Preference, DF Name, Issuer URL.
    private static let texts: Set<TLVTag> = [0x50, 0x9F12, 0x5F2D, 0x84, 0x5F50]

    init(key: SipHash?, includingCryptograms: Bool, _ secrets: TraceSecrets) {
        self.key = key
        self.includingCryptograms = includingCryptograms
        (search, names, logFiles) = (secrets.search, secrets.names, secrets.logFiles)
        (authenticated, places, allItems) = (secrets.authenticated, secrets.places, secrets.items)
        (values, documents) = (secrets.values, secrets.documents)
    }

    /// Returns the items taken out since the last call.
    mutating func takeItems() -> Set<TraceEvent.RedactedItem> {
        defer { items = [] }
        if !items.isEmpty { allItems.formUnion(items) }
        return items
    }

    /// Adds the items taken out and the secrets learned to `secrets`.
    func finish(_ secrets: inout TraceSecrets) {
        secrets.items = allItems.union(items)
        (secrets.places, secrets.documents) = (places, documents)
    }

    // MARK: What there is

    mutating func collect(_ message: TraceMessage) {
        collectDocument(message)
        collectPass(message)
        let data = message.bytes[message.data]
        let list = (try? TLVList(Array(data)))?.flattened ?? []
        for object in list where !object.tag.isConstructed { collect(object.value, of: object.tag) }
        switch message.kind {
        case .command(let command?) where command.ins == 0xDA && command.cla != 0xFF,
            .response(let command?, _) where command.ins == 0xCA && command.cla != 0xFF:
            let tag = Self.named(by: command)
            if !tag.isConstructed, !list.contains(where: { $0.tag == tag }) { collect(data, of: tag) }
        default: break
        }
    }

    private mutating func collect(_ value: ArraySlice<UInt8>, of tag: TLVTag) {
        switch tag {
        case 0x5A, 0x57, 0x9F6B: search.learn(Self.leadingDigits(value))
        case 0x56:
            let digits = value.drop { !(0x30...0x39).contains($0) }.prefix { (0x30...0x39).contains($0) }
            search.learn(digits.map { $0 - 0x30 })
            let fields = value.split(separator: UInt8(ascii: "^"), omittingEmptySubsequences: false)
            if fields.count > 1 { names.learn(fields[1]) }
        case _ where SensitiveData.names.contains(tag): names.learn(value)
        case 0x9F4D, 0xDF60: value.first.map { _ = logFiles.insert($0 & 0x1F) }
        default: break
        }
    }

    private static func leadingDigits(_ value: some Collection<UInt8>) -> [UInt8] {
        Array(value.lazy.flatMap { [$0 >> 4, $0 & 0x0F] }.prefix { $0 < 10 })
    }

    // MARK: What is taken out

    mutating func redacted(_ message: TraceMessage, on layer: TraceEvent.Layer?) -> [UInt8] {
        var bytes = message.bytes
        if Self.isDirect(message) { bytes = frame(.escape, bytes) }
        switch message.kind {
        case .command(let command): redact(command: &bytes, command, message.data, message.parts, layer)
        case .response(let command, _):
            if !redactPass(response: &bytes, message), !redactDocument(response: &bytes, message, layer) {
                redact(response: &bytes, to: command, message.parts)
            }
            if includingCryptograms, let command {
                places[layer, default: DataObjectPlaces()].learn(message.bytes, answering: command)
            }
        }
        coverValues(in: &bytes)
        replaceNumbers(in: &bytes, guessing: .nothing)
        coverNames(in: &bytes)
        return bytes
    }

    /// Returns true for a command to the reader's PN532 that was sent as an APDU and not understood, and for its
    /// answer.
    private static func isDirect(_ message: TraceMessage) -> Bool {
        switch message.kind {
        case .command: LayeredMessages.isDirect(message.bytes)
        case .response(let command?, _): LayeredMessages.isDirect(command.bytes)
        case .response(nil, _): true
        }
    }

    private mutating func redact(
        command bytes: inout [UInt8], _ command: CommandAPDU?, _ data: Range<Int>, _ parts: [TraceMessage.Part],
        _ layer: TraceEvent.Layer?
    ) {
        guard let command else {
            // If Lc is wrong, anything after the header may be the PIN or the key.
            guard bytes.count > 4 else { return }
            if let secret = SecretCommands.item(of: Array(bytes.prefix(4))) {
                return blank(&bytes, 4..<bytes.count, secret)
            }
            switch (bytes[0], bytes[1]) {
            case (0xFF, 0xD6): blank(&bytes, 4..<bytes.count, .key)
            case (0xFF, 0xC2): blank(&bytes, 4..<bytes.count, .track)
            case _ where documents.contains(layer), (0x0C...0x0F, _), (0x1C...0x1F, _):
                blank(&bytes, 4..<bytes.count, .session)
            default: replaceNumbers(in: &bytes, guessing: .everything)
            }
            return
        }
        if let secret = SecretCommands.item(of: command) {
            // Bytes beyond Lc are taken for Le.  A single byte after the header can be nothing else.
            let start = data.isEmpty ? 5 : data.lowerBound
            if start < bytes.count { blank(&bytes, start..<bytes.count, secret) }
            return
        }
        if redactPass(command: &bytes, command, data) { return }
        if redactDocument(command: &bytes, command, data, layer) { return }
        if command.cla == 0xFF, command.ins == 0xD6 { blankKeys(&bytes, from: data.lowerBound, parts) }
        switch (command.cla, command.ins) {
        case (0xFF, 0xC2): blankTransceived(&bytes, data)
        // EXTERNAL AUTHENTICATE (EMV Book 3, 6.5.4).
        case (_, 0x82): if includingCryptograms { blank(&bytes, data, .cryptogram) }
        // What the card asks for may be a cryptogram of the issuer (EMV Book 3, 6.5.5.3).
        case (0x80...0x8F, 0xAE) where includingCryptograms: blankAskedFor(&bytes, data, command, layer)
        // A record of the log (EMV Book 3, Annex D) is written.
        case (0x00...0x8F, 0xDC) where logFiles.contains(command.p2 >> 3),
            (0x00...0x7F, 0xE2) where logFiles.contains(command.p2 >> 3):
            blank(&bytes, data, .log)
        default:
            guard let data = Self.guessed(data, of: command, bytes) else { return }
            var part = Array(bytes[data])
            if command.ins == 0xDA, command.cla != 0xFF {
                redactObjects(&part, of: Self.named(by: command))
            } else if command.ins == 0xDB, command.cla != 0xFF {
                // An extended header list has the parts of a key, as no list of data objects (OpenPGP card 3.4, 4.4.3.12).
                if part.first == 0x4D || !redactObjects(&part) { blank(&part, part.indices, .key) }
            } else if !redactObjects(&part) || command.ins == 0xD6 {
                replaceBareNumbers(in: &part)
            }
            bytes.replaceSubrange(data, with: part)
        }
    }

    /// Returns the part of a command's data in which unknown numbers are looked for; nil for the terminal's own data, whose
    /// amounts, dates and random numbers make account numbers by chance.
    private static func guessed(_ data: Range<Int>, of command: CommandAPDU, _ bytes: [UInt8]) -> Range<Int>? {
        guard SensitiveData.showsData(of: command) else { return command.position == nil ? data : nil }
        switch command.ins {
        case 0x88: return data
        // A name begins with an application provider's identifier unless its first digit is that of an issuer's
        // (ISO/IEC 7816-4, 12.2.3).
        case 0xA4: return data.isEmpty || bytes[data.lowerBound] < 0xA0 ? data : data.dropFirst(5)
        default: return nil
        }
    }

    /// Blanks the cryptograms that the card has requested in one of its lists; all of them if the list is unknown.
    private mutating func blankAskedFor(
        _ bytes: inout [UInt8], _ data: Range<Int>, _ command: CommandAPDU, _ layer: TraceEvent.Layer?
    ) {
        guard let asked = places[layer]?.places(of: SensitiveData.cryptograms, in: command) else {
            return blank(&bytes, data, .cryptogram)
        }
        for place in asked {
            let start = data.lowerBound + place.lowerBound
            blank(&bytes, (start..<start + place.count).clamped(to: data), .cryptogram)
        }
    }

    /// The objects that control a transparent session and carry nothing of an exchange: session state, protocol, timer,
    /// ATR, flags and framing, status (PC/SC part 3, supplemental document 2.02).
    private static let sessionObjects: Set<TLVTag> = [
        0x81, 0x82, 0x83, 0x84, 0x8F, 0x90, 0x91, 0x92, 0x94, 0x96, 0xC0, 0x5F46, 0x5F51,
    ]

    /// Blanks the data that a transparent session exchanges with the card: Transmit, Transceive, ICC Response, and
    /// unknown objects.
    private mutating func blankTransceived(_ bytes: inout [UInt8], _ place: Range<Int>) {
        guard let list = try? TLVList(Array(bytes[place])) else { return blank(&bytes, place, .track) }
        for object in list.flattened where !object.tag.isConstructed && !Self.sessionObjects.contains(object.tag) {
            let start = place.lowerBound + object.value.startIndex
            blank(&bytes, start..<start + object.value.count, .track)
        }
    }

    private mutating func redact(
        response bytes: inout [UInt8], to command: CommandAPDU?, _ parts: [TraceMessage.Part]
    ) {
        let isCard = command?.cla != 0xFF
        let isRecord = isCard && (command?.ins == 0xB2 || command?.ins == 0xB3)
        if let command, let secret = SecretCommands.item(ofAnswerTo: command) {
            return blank(&bytes, bytes.indices, secret)
        }
        if isRecord, let command, logFiles.contains(command.p2 >> 3) { return blank(&bytes, bytes.indices, .log) }
        if command?.cla == 0xFF, command?.ins == 0xC2 { return blankTransceived(&bytes, bytes.indices) }
        if command?.cla == 0xFF, command?.ins == 0xB0 { blankKeys(&bytes, from: 0, parts) }
        if let command, command.isFormat1(bytes) {
            let values = command.ins == 0xAE ? 5 : 2
            if includingCryptograms, command.ins != 0xEA, bytes.count > values {
                blank(&bytes, values..<bytes.count, .cryptogram)
            }
            return
        }
        if isCard, let command, command.ins == 0xCA { return redactObjects(&bytes, of: Self.named(by: command)) }
        // Digits that a storage card holds look like data objects by chance.
        guard !redactObjects(&bytes) || command?.ins == 0xB0 || command?.ins == 0xB1 else { return }
        // A record outside data objects belongs to a log or is unknown.  A piece of a payment card's template may
        // contain anything, too.
        if isRecord {
            blank(&bytes, bytes.indices, .log)
        } else if isCard, let ins = command?.ins, [0xA8, 0xAE].contains(ins) {
            blank(&bytes, bytes.indices, .track)
        } else {
            replaceBareNumbers(in: &bytes)
        }
    }

    /// The tag that P1 and P2 of GET DATA and PUT DATA are (ISO/IEC 7816-4, 11.5.3).
    private static func named(by command: CommandAPDU) -> TLVTag {
        TLVTag(rawValue: UInt32(command.p1) << 8 | UInt32(command.p2))
    }

    /// Redacts data objects, or the value of `tag` alone, which may look like objects by chance.
    private mutating func redactObjects(_ bytes: inout [UInt8], of tag: TLVTag) {
        let objects = (try? TLVList(bytes))?.flattened ?? []
        let areObjects = tag.isConstructed ? !objects.isEmpty : objects.contains { $0.tag == tag }
        if areObjects { _ = redactObjects(&bytes) } else { redact(&bytes, of: tag) }
    }

    /// - Parameter isSpared: true for an object that stays.
    /// - Returns: false if `bytes` are no data objects.
    mutating func redactObjects(_ bytes: inout [UInt8], sparing isSpared: (TLV) -> Bool = { _ in false }) -> Bool {
        guard let list = try? TLVList(bytes), !list.isEmpty else { return false }
        for object in list.flattened where !isSpared(object) {
            let place = object.value.startIndex..<object.value.endIndex
            if SensitiveData.keys.contains(object.tag) { blank(&bytes, place, .key) }
            guard !object.tag.isConstructed else { continue }
            var value = Array(bytes[place])
            redact(&value, of: object.tag)
            bytes.replaceSubrange(place, with: value)
        }
        return true
    }

    private mutating func redact(_ value: inout [UInt8], of tag: TLVTag) {
        switch tag {
        case 0x5A: replaceLeadingNumber(in: &value)
        case 0x57, 0x9F6B:
            replaceLeadingNumber(in: &value)
            // Behind the separator, four digits of the expiry and three of the service code stay (ISO/IEC 7813); behind
            // another than that of the standard, the expiry.
            let nibbles = value.flatMap { [$0 >> 4, $0 & 0x0F] }
            guard let separator = nibbles.firstIndex(where: { $0 > 9 }) else { return }
            let kept = separator + (nibbles[separator] == 0x0D ? 8 : 5)
            for index in nibbles.indices.dropFirst(kept) where (1..<15).contains(nibbles[index]) {
                value.putHalf(0, at: index)
                items.insert(.track)
            }
        case 0x56:
            replaceNumbers(in: &value, guessing: .text)
            let separators = value.indices.filter { value[$0] == UInt8(ascii: "^") }
            guard separators.count == 2 else { return cover(&value, value.indices, .track) }
            cover(&value, separators[0]..<separators[1], .name)
            cover(&value, min(separators[1] + 8, value.count)..<value.count, .track)
        case _ where SensitiveData.packedDigits.contains(tag):
            blank(&value, value.indices, tag == 0x9F25 ? .accountNumber : .track)
        case _ where SensitiveData.tracks.contains(tag):
            cover(&value, value.indices, .track)
        case _ where SensitiveData.names.contains(tag) || SensitiveData.persons.contains(tag):
            cover(&value, value.indices, .name)
        case 0x99: blank(&value, value.indices, .pin)
        // The cardholder's identity document (UnionPay); of two bytes it is CVC3 (Track2) (Book C-2).
        case 0x9F61 where value.count != 2: cover(&value, value.indices, .name)
        case _ where SensitiveData.keys.contains(tag): blank(&value, value.indices, .key)
        case _ where authenticated.contains(value): break
        case _ where SensitiveData.certificates.contains(tag): blank(&value, value.indices, .certificate)
        case _ where SensitiveData.cryptograms.contains(tag):
            if includingCryptograms { blank(&value, value.indices, .cryptogram) }
        case _ where SensitiveData.accountReferences.contains(tag) || SensitiveData.exposures[tag] != nil:
            cover(&value, value.indices, .accountNumber)
        case _ where SensitiveData.isRandom(tag): break
        // Letters taken for packed digits make account numbers by chance: VISA DEBIT is 56 49 53 41 20 44 45 42 49 54.
        // So do digits of text, 3 and a digit each.
        case _ where Self.isText(value) && (Self.texts.contains(tag) || Self.isMostlyDigits(value)):
            replaceNumbers(in: &value, guessing: .text)
        default:
            replaceNumbers(in: &value, guessing: .everything)
            if Self.isText(value) { replaceEncodedNumbers(in: &value) }
        }
    }

    /// Replaces the packed number at the beginning of `value`, regardless of its digits; bytes that cannot be a number
    /// become zeros.
    private mutating func replaceLeadingNumber(in value: inout [UInt8]) {
        let digits = Self.leadingDigits(value)
        guard (8...19).contains(digits.count) else { return blank(&value, value.indices, .accountNumber) }
        guard !search.isReplacement(digits[...]), digits.contains(where: { $0 != 0 }) else { return }
        for (place, digit) in AccountNumbers.Replacement.digits(for: digits, key: key).enumerated() {
            value.putHalf(digit, at: place)
        }
        items.insert(.accountNumber)
    }

    /// Returns true if `block` is a sector trailer of a MIFARE Classic, which contains its access conditions twice,
    /// once inverted (NXP MF1S50yyX, 8.7.1).
    private static func isSectorTrailer(_ block: ArraySlice<UInt8>) -> Bool {
        guard block.count == 16 else { return false }
        let (a, b, c) = (block[block.startIndex + 6], block[block.startIndex + 7], block[block.startIndex + 8])
        return a & 0x0F == ~(b >> 4) & 0x0F && a >> 4 == ~c & 0x0F && b & 0x0F == ~(c >> 4) & 0x0F
    }

    /// Blanks the keys in the blocks of a storage card that stand in `bytes`: one behind the other, from where each part
    /// of the message begins.
    private mutating func blankKeys(_ bytes: inout [UInt8], from first: Int, _ parts: [TraceMessage.Part]) {
        var start = 0
        for part in parts {
            let end = start + part.place.count
            for block in stride(from: max(start, first), to: min(end, bytes.count), by: 16)
            where Self.isSectorTrailer(bytes[block...].prefix(16)) {
                blank(&bytes, block..<block + 6, .key)
                blank(&bytes, block + 10..<block + 16, .key)
            }
            start = end
        }
    }

    // MARK: What is left

    func hasAccountNumber(_ message: TraceMessage, on layer: TraceEvent.Layer?) -> Bool {
        var left = self
        left.items = []
        _ = left.redacted(message, on: layer)
        return left.items.contains(.accountNumber)
    }

    func hasAccountNumber(_ window: NumberSeams.Window) -> Bool {
        window.findings(search).contains { !$0.isReplacement }
    }

    func hasAccountNumber(escape bytes: [UInt8], isGuessing: Bool) -> Bool {
        var left = self
        left.items = []
        var bytes = bytes
        left.replaceNumbers(in: &bytes, guessing: isGuessing ? .everything : .nothing)
        return left.items.contains(.accountNumber)
    }

    func hasAccountNumber(rest what: TraceEvent.What) -> Bool {
        switch what {
        case .sent(let layer, let bytes) where layer != .apdu, .received(let layer, let bytes) where layer != .apdu:
            // Frames of lower layers are random throughout: only numbers that are known count.
            return search.findings(in: bytes, guessing: .nothing).contains { !$0.isReplacement }
        case .received(.apdu, _), .note, .meta, .failed, .reader, .slot, .connected:
            var left = self
            left.items = []
            _ = left.redacted(rest: what)
            return left.items.contains(.accountNumber)
        default: return false
        }
    }
}
