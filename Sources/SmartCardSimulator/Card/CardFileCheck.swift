import SmartCard

/// The checks of an application before it is used: its responses fit, and everything that they name exists.
struct CardFileCheck {
    typealias Statement = CardFileSyntax.Statement

    private let application: EMVApplication
    /// Every available named value, with its final length.
    private let named: [NamedValue: [UInt8]]
    /// Values with the lengths that the terminal will send.
    private let options: [TLVTag: [UInt8]]
    private let both: [TLVTag: [UInt8]]

    init(_ application: EMVApplication) {
        self.application = application
        var named = application.keyValues
        named[.afl] = application.afl
        for (name, count) in [
            (NamedValue.atc, 2), (.cid, 1), (.acType, 1), (.cryptogram, 8), (.unpredictableNumber, 4),
            (.dynamicNumber, 8), (.relayEntropy, 4),
        ] {
            named[name] = [UInt8](repeating: 0, count: count)
        }
        if application.checksum != nil {
            for (name, tag) in [(NamedValue.cvc3Track1, 0x56), (.cvc3Track2, 0x9F6B)] as [(NamedValue, TLVTag)]
            where application.recordObjects.value(of: tag) != nil {
                named[name] = [0, 0]
            }
        }
        if let storage = application.dataStorage {
            let longest = storage.slots.values.map(\.data.count).max() ?? 0
            for (name, count) in [
                (NamedValue.storageSummary, 8), (.storageNumber, 4), (.storageAvailability, 1), (.storageControl, 1),
                (.storageData, max(longest, application.dsdol?.length(of: 0xDF63) ?? 0)),
            ] {
                named[name] = [UInt8](repeating: 0, count: count)
            }
        }
        named[.signedDynamicData] = application.authentication?.card.map {
            [UInt8](repeating: 0, count: $0.key.modulus.count)
        }
        self.named = named
        options = Self.sample(application.pdol)
        both = options.merging(Self.sample(application.cdol1)) { $1 }
    }

    private static func sample(_ dol: DOL) -> [TLVTag: [UInt8]] {
        Dictionary(dol.entries.map { ($0.tag, [UInt8](repeating: 0, count: $0.length)) }) { first, _ in first }
    }

    func record(_ statement: Statement) throws(CardFileError) {
        guard let record = application.records[try CardFileReader.address(statement)] else { return }
        try names(record.objects.names, statement)
        try CardFileReader.check(record.objects.encoded(named), "the record", statement)
    }

    func processingOptions(
        _ response: EMVApplication.Response, _ at: Statement
    ) throws(CardFileError) {
        try check(response, at)
        if response.objects.names.contains(.cryptogram) { try cryptogram(response, [], options, at) }
        let signing = response.objects + application.recordObjects
        guard signing.names.contains(.signedDynamicData) else { return }
        // EMV Contactless Book C-3, Annex C.
        for (tag, length) in [(0x9F37, 4), (0x9F02, 6), (0x5F2A, 2)] as [(TLVTag, Int)]
        where options[tag]?.count != length {
            throw at.error("the signature is over \(tag) of \(length) bytes, which the PDOL does not ask for")
        }
        guard signing.value(of: 0x9F69) != nil else {
            throw at.error("the signature is over 9F69, which is in no response and no record")
        }
    }

    func internalAuthenticate(
        _ response: EMVApplication.Response, _ at: Statement
    ) throws(CardFileError) {
        try check(response, at)
    }

    func generateAC(_ response: EMVApplication.Response, _ at: Statement) throws(CardFileError) {
        try check(response, at)
        let names = response.objects.names
        guard names.contains(.cryptogram) || names.contains(.signedDynamicData) else { return }
        for earlier in application.processingOptions.cases {
            try cryptogram(response, earlier.response.objects, both, at)
        }
        guard names.contains(.signedDynamicData) else { return }
        guard both[0x9F37]?.count == 4 else {
            throw at.error("the signature is over 9F37 of 4 bytes, which neither CDOL1 nor PDOL asks for")
        }
        // EMV Book 2, table 19; EMV Contactless Book C-2: two summaries, and the data of relay resistance.
        let relayData = application.relayResistance.map { 4 + $0.values(named).count } ?? 0
        let dynamicData = 38 + (application.dataStorage == nil ? 0 : 16) + relayData
        guard dynamicData + 25 <= application.authentication?.card?.key.modulus.count ?? 0 else {
            throw at.error("the card's key is too short for the \(dynamicData) bytes that it signs")
        }
    }

    func response(_ response: EMVApplication.Response, _ at: Statement) throws(CardFileError) {
        try check(response, at)
    }

    func cryptographicChecksum(_ response: EMVApplication.Response, _ at: Statement) throws(CardFileError) {
        try check(response, at)
        guard
            response.objects.names.isDisjoint(with: [.cvc3Track1, .cvc3Track2])
                || options.merging(Self.sample(application.udol), uniquingKeysWith: { $1 })[0x9F6A]?.count == 4
        else { throw at.error("CVC3 needs the unpredictable number, 9F6A of 4 bytes, which UDOL does not ask for") }
    }

    /// Checks that the application's lists ask the terminal for everything it needs.
    func lists(_ at: Statement) throws(CardFileError) {
        for entry in application.drdol?.entries ?? [] where both[entry.tag]?.count != entry.length {
            throw at.error("DRDOL (9F51) asks for \(entry.tag), which is not the same in PDOL or CDOL1")
        }
        guard application.dataStorage != nil else { return }
        guard options[0x9F5C]?.count == 8 else {
            throw at.error("data storage needs the operator, 9F5C of 8 bytes, which the PDOL does not ask for")
        }
        for entry in application.dsdol?.entries ?? []
        where ![0xDF60, 0xDF61, 0xDF62, 0xDF63].contains(entry.tag.rawValue) {
            throw at.error("DSDOL (9F5B) asks for \(entry.tag), which the card has no use for")
        }
    }

    private func check(
        _ response: EMVApplication.Response, _ at: Statement
    ) throws(CardFileError) {
        try names(response.objects.names, at)
        try CardFileReader.check(response.encoded(named), "the response", at)
    }

    /// Everything that is named is there.
    private func names(_ names: Set<NamedValue>, _ at: Statement) throws(CardFileError) {
        for name in NamedValue.allCases where names.contains(name) && named[name] == nil {
            let lack =
                switch name {
                case .cvc3Track1: "“checksum-key” or the track, 56"
                case .cvc3Track2: "“checksum-key” or the track, 9F6B"
                case .storageSummary, .storageAvailability, .storageNumber, .storageControl, .storageData:
                    "the block “data-storage”"
                default:
                    application.authentication == nil ? "the block “authentication”" : "“card” in “authentication”"
                }
            throw at.error("“\(name.rawValue)” stands here, and the application lacks \(lack)")
        }
    }

    private func cryptogram(
        _ response: EMVApplication.Response, _ earlier: [CardFileObject], _ terminal: [TLVTag: [UInt8]],
        _ at: Statement
    ) throws(CardFileError) {
        guard let cryptogram = application.cryptogram else {
            throw at.error("“cryptogram” stands here, and the application lacks the block “cryptogram”")
        }
        let value = { (tag: TLVTag) in
            tag == 0x9F36
                ? named[.atc]
                : terminal[tag] ?? response.objects.value(of: tag, named) ?? earlier.value(of: tag, named)
        }
        for datum in cryptogram.data {
            guard let bytes = value(datum.tag) else {
                throw at.error("\(datum.tag), which the cryptogram is over, is in no DOL and no response")
            }
            if let part = datum.bytes, part.upperBound > bytes.count {
                throw at.error(
                    "\(datum.tag) has \(bytes.count) bytes, and the cryptogram is over byte \(part.upperBound)")
            }
        }
        if cryptogram.sessionKey == .mastercard, value(0x9F37)?.count != 4 {
            throw at.error("the session key needs the unpredictable number, 9F37 of 4 bytes, in the PDOL or CDOL1")
        }
    }
}
