import SmartCard

/// A value that a card file names and the card computes.
enum NamedValue: String, CaseIterable, Hashable, Sendable {
    // In a transaction.

    /// Application File Locator, from the records of the application.
    case afl
    /// Application Transaction Counter, 2 bytes.
    case atc
    /// Cryptogram Information Data, 1 byte: `00` AAC, `40` TC, `80` ARQC (EMV Book 3, 6.5.5.4).
    case cid
    /// The byte of Visa's and Mastercard's Card Verification Results that says which cryptogram was given: `80` AAC,
    /// `90` TC, `A0` ARQC, and that there was no second GENERATE AC.
    case acType = "ac-type"
    /// The Application Cryptogram, 8 bytes.
    case cryptogram
    /// The card's unpredictable number, 4 bytes.
    case unpredictableNumber = "unpredictable-number"
    /// The ICC Dynamic Number, 8 bytes.
    case dynamicNumber = "dynamic-number"
    /// Signed Dynamic Application Data, as long as the card's key.
    case signedDynamicData = "signed-dynamic-data"
    /// Device Relay Resistance Entropy, 4 bytes (EMV Contactless Book C-2, as the rest here).
    case relayEntropy = "relay-entropy"
    /// CVC3 of track 1 and of track 2, 2 bytes each.
    case cvc3Track1 = "cvc3-track-1"
    case cvc3Track2 = "cvc3-track-2"
    /// Integrated data storage for a reader that names an operator: DS Summary 1, DS Slot Availability, DS
    /// Unpredictable Number; and of the slot of the operator, if it has one, DS Slot Management Control and DS ODS.
    case storageSummary = "storage-summary"
    case storageAvailability = "storage-availability"
    case storageNumber = "storage-number"
    case storageControl = "storage-control"
    case storageData = "storage-data"

    // From the keys of the application.

    /// Certification Authority Public Key Index, 1 byte.
    case authorityIndex = "authority-index"
    case issuerCertificate = "issuer-certificate"
    case issuerRemainder = "issuer-remainder"
    case issuerExponent = "issuer-exponent"
    case cardCertificate = "card-certificate"
    case cardRemainder = "card-remainder"
    case cardExponent = "card-exponent"
    /// Signed Static Application Data, as long as the issuer's key.
    case signedStaticData = "signed-static-data"

    /// The values that a response to GET PROCESSING OPTIONS may name.
    static let inProcessingOptions: Set = [
        afl, atc, cid, acType, cryptogram, unpredictableNumber, signedDynamicData, storageSummary, storageAvailability,
        storageNumber, storageControl, storageData,
    ]
    /// The values that a response to GENERATE AC may name.
    static let inGenerateAC: Set = [atc, cid, acType, cryptogram, dynamicNumber, signedDynamicData]
    /// The values that a response to INTERNAL AUTHENTICATE may name.
    static let inInternalAuthenticate: Set = [atc, dynamicNumber, signedDynamicData]
    /// The values that a response to EXCHANGE RELAY RESISTANCE DATA may name.
    static let inRelayResistance: Set = [relayEntropy]
    /// The values that a response to COMPUTE CRYPTOGRAPHIC CHECKSUM may name.
    static let inChecksum: Set = [atc, cvc3Track1, cvc3Track2]
    /// The values that may be absent.  An object that consists of one of them alone is then omitted.
    static let optional: Set = [
        issuerRemainder, cardRemainder, storageSummary, storageAvailability, storageNumber, storageControl, storageData,
    ]
    /// The values that are fixed when the card is made.
    static let ofKeys: Set = [
        authorityIndex, issuerCertificate, issuerRemainder, issuerExponent, cardCertificate, cardRemainder,
        cardExponent, signedStaticData,
    ]
    /// The values that a record may name.
    static let inRecord: Set = ofKeys.union([atc, unpredictableNumber, signedDynamicData])
}

/// A value as a card file writes it: bytes, with named values among them.
struct CardFileValue: Hashable, Sendable {
    enum Piece: Hashable, Sendable {
        case bytes([UInt8])
        case named(NamedValue)
    }

    var pieces: [Piece] = []

    /// Returns the bytes.  A named value that is missing from `named` contributes none.
    func bytes(_ named: [NamedValue: [UInt8]]) -> [UInt8] {
        var out: [UInt8] = []
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): out += bytes
            case .named(let name): out += named[name] ?? []
            }
        }
        return out
    }

    fileprivate func isLacking(_ named: [NamedValue: [UInt8]]) -> Bool {
        guard pieces.count == 1, case .named(let name) = pieces[0], NamedValue.optional.contains(name) else {
            return false
        }
        return named[name, default: []].isEmpty
    }
}

/// A data object as a card file writes it.
enum CardFileObject: Hashable, Sendable {
    case primitive(TLVTag, CardFileValue)
    case template(TLVTag, [CardFileObject])
    /// Bytes that stand where an object would.
    case raw(CardFileValue)

    /// The object; nothing if all its value is one that the card may lack and does, such as the remainder of a key that has
    /// none, as EMV has no such object then.
    func encoded(_ named: [NamedValue: [UInt8]] = [:]) -> [UInt8] {
        switch self {
        case .primitive(let tag, let value): value.isLacking(named) ? [] : tag.encode(value.bytes(named))
        case .template(let tag, let objects): tag.encode(objects.flatMap { $0.encoded(named) })
        case .raw(let value): value.bytes(named)
        }
    }

    /// The value field of the first primitive object with `tag`, here or below, or among the bytes that stand here.
    func value(of wanted: TLVTag, _ named: [NamedValue: [UInt8]] = [:]) -> [UInt8]? {
        switch self {
        case .primitive(let tag, let value): tag == wanted ? value.bytes(named) : nil
        case .template(_, let objects): objects.value(of: wanted, named)
        case .raw(let value): (try? TLVList(value.bytes(named)))?.firstAnywhere(wanted).map { Array($0.value) }
        }
    }

    /// Every value that is named here or below.
    var names: Set<NamedValue> {
        switch self {
        case .primitive(_, let value), .raw(let value):
            Set(
                value.pieces.compactMap {
                    guard case .named(let name) = $0 else { return nil }
                    return name
                })
        case .template(_, let objects): objects.names
        }
    }
}

extension [CardFileObject] {
    func encoded(_ named: [NamedValue: [UInt8]] = [:]) -> [UInt8] { flatMap { $0.encoded(named) } }

    func value(of tag: TLVTag, _ named: [NamedValue: [UInt8]] = [:]) -> [UInt8]? {
        for object in self {
            if let value = object.value(of: tag, named) { return value }
        }
        return nil
    }

    var names: Set<NamedValue> { reduce(into: []) { $0.formUnion($1.names) } }
}

extension CardFileSyntax.Statement {
    func error(_ reason: String) -> CardFileError { CardFileError(line: line, reason: reason) }

    /// The statements between the braces.
    func section() throws(CardFileError) -> [CardFileSyntax.Statement] {
        guard let block else { throw error("“\(keyword)” takes a block in braces") }
        return block
    }

    func withoutBlock() throws(CardFileError) {
        guard block == nil else { throw error("“\(keyword)” takes no block") }
    }

    /// The arguments from the one numbered `first` on as a value: hexadecimal digits in groups as the writer likes,
    /// quoted text, and those of `names`.
    func value(from first: Int = 0, admitting names: Set<NamedValue> = []) throws(CardFileError) -> CardFileValue {
        try CardFileSyntax.Statement.value(arguments.dropFirst(first), admitting: names, line: line)
    }

    /// Constant bytes, `count` of them.
    func bytes(from first: Int = 0, _ count: ClosedRange<Int>) throws(CardFileError) -> [UInt8] {
        try withoutBlock()
        let bytes = try value(from: first).bytes([:])
        guard count.contains(bytes.count) else {
            let due = count.lowerBound == count.upperBound ? "\(count.lowerBound)" : "\(count)"
            throw error("“\(keyword)” takes \(due) byte\(due == "1" ? "" : "s"), not \(bytes.count)")
        }
        return bytes
    }

    /// The argument numbered `index` as a decimal number.
    func number(_ index: Int, _ name: String, _ range: ClosedRange<UInt64>) throws(CardFileError) -> UInt64 {
        guard index < arguments.count, !arguments[index].isQuoted,
            arguments[index].text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
            let number = UInt64(arguments[index].text), range.contains(number)
        else { throw error("“\(keyword)” takes \(name), a number in \(range)") }
        return number
    }

    func arguments(count: ClosedRange<Int>, _ usage: String) throws(CardFileError) {
        guard count.contains(arguments.count) else { throw error("“\(keyword)” is written: \(usage)") }
    }

    /// The keyword as a tag.
    func tag() throws(CardFileError) -> TLVTag {
        try CardFileSyntax.Statement.tag(keyword, line: line)
    }

    static func tag(_ text: String, line: Int) throws(CardFileError) -> TLVTag {
        // A tag is exactly these bytes: anything after 9F02 would be read as its length.
        guard let bytes = try? [UInt8](hex: text), (1...4).contains(bytes.count), text.utf8.count == 2 * bytes.count,
            bytes[0] != 0x00, bytes[0] != 0xFF || bytes.count > 1,
            bytes.count == 1 || bytes[0] & 0x1F == 0x1F,
            bytes.count > 1 || bytes[0] & 0x1F != 0x1F,
            bytes.dropFirst().dropLast().allSatisfy({ $0 & 0x80 != 0 }),
            bytes.count == 1 || bytes[bytes.count - 1] & 0x80 == 0
        else { throw CardFileError(line: line, reason: "“\(text)” is not a BER-TLV tag of 1 to 4 bytes") }
        return TLVTag(rawValue: bytes.reduce(0) { $0 << 8 | UInt32($1) })
    }

    /// The statement as a data object: `TAG value`, `TAG { objects }` for a constructed tag, `TAG { lines of value }`
    /// for a primitive one, or `bytes value`.
    func object(admitting names: Set<NamedValue>) throws(CardFileError) -> CardFileObject {
        if keyword == "bytes" {
            try withoutBlock()
            return .raw(try value(admitting: names))
        }
        let tag = try tag()
        guard let block else { return .primitive(tag, try value(admitting: names)) }
        guard arguments.isEmpty else { throw error("a value stands before the brace or inside, not both") }
        if tag.isConstructed {
            return .template(tag, try block.objects(admitting: names))
        }
        return .primitive(tag, try lines(admitting: names))
    }

    /// The lines of the block, each bytes, as one value.
    func lines(admitting names: Set<NamedValue>) throws(CardFileError) -> CardFileValue {
        var pieces: [CardFileValue.Piece] = []
        for line in try section() {
            try line.withoutBlock()
            let words = [CardFileSyntax.Word(text: line.keyword)] + line.arguments
            pieces += try CardFileSyntax.Statement.value(words[...], admitting: names, line: line.line).pieces
        }
        return CardFileValue(pieces: pieces)
    }

    private static func value(
        _ words: ArraySlice<CardFileSyntax.Word>, admitting names: Set<NamedValue>, line: Int
    ) throws(CardFileError) -> CardFileValue {
        var value = CardFileValue()
        var digits = ""
        func flush() throws(CardFileError) {
            guard !digits.isEmpty else { return }
            guard let bytes = try? [UInt8](hex: digits) else {
                throw CardFileError(line: line, reason: "an odd number of hexadecimal digits")
            }
            value.pieces.append(.bytes(bytes))
            digits = ""
        }
        for word in words {
            if word.isQuoted {
                try flush()
                value.pieces.append(.bytes(Array(word.text.utf8)))
            } else if let name = NamedValue(rawValue: word.text) {
                guard names.contains(name) else {
                    throw CardFileError(line: line, reason: "“\(word.text)” stands for nothing here; bytes are due")
                }
                try flush()
                value.pieces.append(.named(name))
            } else {
                guard
                    word.text.utf8.allSatisfy({
                        UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
                            || UInt8(ascii: "A")...UInt8(ascii: "F") ~= $0
                            || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0
                    })
                else {
                    throw CardFileError(line: line, reason: "“\(word.text)” is neither hexadecimal nor quoted text")
                }
                digits += word.text
            }
        }
        try flush()
        return value
    }
}

extension [CardFileSyntax.Statement] {
    func objects(admitting names: Set<NamedValue>) throws(CardFileError) -> [CardFileObject] {
        var objects: [CardFileObject] = []
        for statement in self { objects.append(try statement.object(admitting: names)) }
        return objects
    }
}
