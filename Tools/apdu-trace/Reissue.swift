import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import ToolReaders
import ToolSupport

/// Puts certificates and signatures of a test authority, of the same lengths, in the place of those that redaction has
/// taken out or made wrong, so that offline data authentication of a redacted trace succeeds as it did before
/// (EMV Book 2, 5 and 6; EMV Contactless Book C-3, Annex C).
struct Reissue {
    /// The trace with the new signatures, and a note for each application.
    private(set) var trace: Trace
    /// The authority whose keys a terminal must know to authenticate them.
    private(set) var authorities: [CertificationAuthorityKey] = []
    /// The keys of each application whose signatures have been replaced, by its DF name in SELECT.
    private(set) var certifications: [[UInt8]: TestCertification] = [:]

    private let original: [TraceMessage]
    private let messages: [TraceMessage]
    private var bytes: [[UInt8]]
    private let hidesCryptograms: Bool

    /// Why an application stays as it is.
    private struct Obstacle: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// - Parameters:
    ///   - redacted: the result of redacting `original`.
    ///   - keys: the keys that determine if authentication succeeded before.
    ///   - hidesCryptograms: true if no signature may contain the application cryptogram of the original.
    init(_ redacted: Trace, of original: Trace, keys: CAPublicKeys, hidesCryptograms: Bool = false) {
        trace = redacted
        self.hidesCryptograms = hidesCryptograms
        self.original = TraceMessage.all(in: original)
        messages = TraceMessage.all(in: redacted)
        bytes = messages.map(\.bytes)
        guard messages.count == self.original.count else { return }
        var notes: [String] = []
        for transaction in RecordedApplication.all(in: messages) {
            let saved = bytes
            do throws(Obstacle) {
                guard let certification = try reissue(transaction, keys) else { continue }
                certifications[transaction.name] = certification
                let authority = certification.authority
                if !authorities.contains(authority) { authorities.append(authority) }
                notes.append(
                    "certificates reissued under the test authority \(authority.rid.hex) \([authority.index].hex)")
            } catch {
                bytes = saved
                notes.append("certificates not reissued: \(error.reason)")
            }
        }
        for (message, bytes) in zip(messages, bytes) { message.put(bytes, into: &trace.events) }
        let time = trace.events.last?.time ?? .zero
        for (index, note) in notes.enumerated() where !notes[..<index].contains(note) {
            trace.events.append(TraceEvent(at: time, .note(note)))
        }
    }

    /// Returns the lengths of the card's keys, from the lengths of what they signed; nil if it has none.
    static func lengths(_ card: [TLVTag: [UInt8]]) -> TestCertification.Lengths? {
        guard let first = card[0x90], let exponent = card[0x9F32] else { return nil }
        let second = card[0x9F46]
        guard let issuer = second?.count ?? card[0x93]?.count else { return nil }
        var length: Int?
        if second != nil {
            // EMV Book 2, table 14: the part that does not fit into the certificate is the remainder.
            length = card[0x9F48].flatMap { $0.isEmpty ? nil : issuer - 42 + $0.count } ?? card[0x9F4B]?.count
        }
        return TestCertification.Lengths(
            authority: first.count, issuer: issuer, issuerExponent: exponent.count, card: length,
            cardExponent: card[0x9F47]?.count ?? 1)
    }

    private mutating func reissue(
        _ transaction: RecordedApplication, _ keys: CAPublicKeys
    ) throws(Obstacle) -> TestCertification? {
        let card = transaction.objects(messages)
        guard card[0x8F] != nil, let lengths = Self.lengths(card) else { return nil }
        guard let number = (card[0x5A] ?? card[0x57]).map({ PackedNumber.digits($0) }), (8...19).contains(number.count)
        else { throw Obstacle("there is no account number") }
        var before = try Signed(transaction, original, keys)
        if hidesCryptograms { before.cryptogram = [UInt8](repeating: 0, count: 8) }
        let name = card[0x84] ?? transaction.name
        guard
            let certification = TestCertification(
                rid: Array(name.prefix(5)), accountNumber: number, lengths: lengths,
                staticDataFormat: before.staticDataFormat, dataAuthenticationCode: before.dataAuthenticationCode)
        else { throw Obstacle("EMV has no keys of such lengths") }
        let staticData = try Self.staticData(transaction, card, messages)
        guard let objects = certification.objects(staticData: staticData) else { throw Obstacle("libcrypto refuses") }
        for exchange in [transaction.options].compactMap(\.self) + transaction.records {
            try put(objects, into: exchange.answer)
        }
        try sign(transaction, card, certification, before)
        return certification
    }

    /// Static data to be authenticated (EMV Book 3, 10.3).
    private static func staticData(
        _ transaction: RecordedApplication, _ card: [TLVTag: [UInt8]], _ messages: [TraceMessage]
    ) throws(Obstacle) -> [UInt8] {
        var staticData: [UInt8] = []
        for record in transaction.located(card) ?? [] where record.isSigned {
            guard let answer = record.answer else { throw Obstacle("a signed record was not read") }
            let bytes = messages[answer].bytes
            guard let template = try? TLVList(bytes), template.first?.tag == 0x70, let value = template.first?.value
            else { throw Obstacle("a signed record is no template 70") }
            staticData += record.sfi <= 10 ? bytes[value.startIndex...] : bytes[...]
        }
        if card[0x9F4A] == [0x82] { staticData += card[0x82] ?? [] }
        return staticData
    }

    /// Writes each of `objects` in the place of the one with its tag.
    private mutating func put(_ objects: [TLVTag: [UInt8]], into message: Int) throws(Obstacle) {
        guard let list = try? TLVList(bytes[message]) else { return }
        for object in list.flattened {
            guard let value = objects[object.tag] else { continue }
            guard value.count == object.value.count else { throw Obstacle("\(object.tag) would have another length") }
            bytes[message].replaceSubrange(object.value.startIndex..<object.value.endIndex, with: value)
        }
    }

    // MARK: Dynamic signatures

    private mutating func sign(
        _ transaction: RecordedApplication, _ card: [TLVTag: [UInt8]], _ certification: TestCertification,
        _ before: Signed
    ) throws(Obstacle) {
        let terminal = transaction.terminalData(card)
        func signature(_ format: UInt8, _ dynamicData: [UInt8], _ terminalData: [UInt8]) throws(Obstacle) -> [UInt8] {
            guard
                let signature = certification.signedDynamicData(
                    format: format, dynamicData: dynamicData, terminalData: terminalData)
            else { throw Obstacle("the card's key is too short") }
            return signature
        }
        func counted(_ bytes: [UInt8]) -> [UInt8] { [UInt8(truncatingIfNeeded: bytes.count)] + bytes }
        // fDDA (EMV Contactless Book C-3, Annex C).
        let fast = [transaction.options].compactMap(\.self) + transaction.records
        for exchange in fast where value(of: 0x9F4B, in: exchange.answer) != nil {
            let hashed = ([0x9F37, 0x9F02, 0x5F2A] as [TLVTag]).flatMap { terminal.byTag[$0] ?? [] }
            let number = before.fastNumber ?? card[0x9F36] ?? [0, 0]
            try put(
                [0x9F4B: try signature(before.fastFormat, counted(number), hashed + (card[0x9F69] ?? []))],
                into: exchange.answer)
        }
        // DDA (EMV Book 2, 6.5).
        for exchange in transaction.authentications where exchange.status.isAnswered {
            let signed = try signature(0x05, counted(before.dynamicNumber), exchange.command.data)
            try put([0x9F4B: signed, 0x80: signed], into: exchange.answer)
        }
        // CDA (EMV Book 2, 6.6).
        var sent = terminal.options
        for exchange in transaction.cryptograms {
            sent += exchange.command.data
            guard value(of: 0x9F4B, in: exchange.answer) != nil, let list = try? TLVList(bytes[exchange.answer]),
                let information = list[0x77]?.children[0x9F27]?.value
            else { continue }
            let others = list.first?.children.filter { $0.tag != 0x9F4B }.flatMap(\.encoded) ?? []
            let digest = certification.hash(sent + others)
            try put(
                [
                    0x9F4B: try signature(
                        0x05,
                        counted(before.dynamicNumber) + information + before.cryptogram + digest,
                        terminal.byTag[0x9F37] ?? [])
                ], into: exchange.answer)
        }
    }

    private func value(of tag: TLVTag, in message: Int) -> [UInt8]? {
        (try? TLVList(bytes[message]))?.flattened.first { $0.tag == tag }.map { Array($0.value) }
    }

    /// The contents of the original's signatures that the new ones repeat.
    private struct Signed {
        var staticDataFormat: UInt8 = 0x03
        var dataAuthenticationCode: [UInt8] = [0xDA, 0xC0]
        var fastFormat: UInt8 = 0x05
        var fastNumber: [UInt8]?
        var dynamicNumber: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        var cryptogram = [UInt8](repeating: 0, count: 8)

        /// - Throws: where the original does not stand authentication itself.  A key of an authority that is not known is no
        ///   reason to doubt it.
        init(_ transaction: RecordedApplication, _ messages: [TraceMessage], _ keys: CAPublicKeys) throws(Obstacle) {
            let card = transaction.objects(messages)
            // Byte 2 of Visa's Card Verification Results (VIS, Annex A), if the card does not say it plainly.
            let kind =
                card[0x9F27]?.first.map { $0 & 0xC0 }
                ?? card[0x9F10].flatMap { data -> UInt8? in
                    data.count > 4 ? (data[4] & 0x30) << 2 : nil
                }
            fastFormat = kind == 0x80 ? 0x95 : 0x05
            guard let aid = AID(card[0x84] ?? transaction.name) else { return }
            let records = transaction.signedRecords(card, messages)
            let terminal = transaction.terminalData(card)
            let date = terminal.byTag[0x9A].flatMap { CalendarDate(packed: $0) } ?? TerminalTime.now.date
            for environment in [CAPublicKey.Environment.live, .test] {
                let authentication = OfflineDataAuthentication(
                    keys: keys, environment: environment, aid: aid, date: date)
                switch authentication.issuerKey(data: { card[$0] }) {
                case .failure(let failure) where failure.reason == .unknownKey: continue
                case .failure: throw Obstacle("the certificates were wrong before")
                case .success: break
                }
                if card[0x93] != nil {
                    let purposes: [SignaturePurpose] = [.offlineApproval, .onlineAuthorization]
                    let results = purposes.map { authentication.sda(of: records, for: $0) { card[$0] } }
                    guard let index = results.firstIndex(where: { (try? $0.get()) != nil }),
                        let signed = try? results[index].get()
                    else { throw Obstacle("the signature of static data was wrong before") }
                    staticDataFormat = index == 0 ? 0x03 : 0x93
                    dataAuthenticationCode = signed.dataAuthenticationCode
                }
                guard card[0x9F46] != nil else { return }
                guard let key = try? authentication.iccKey(signing: records, data: { card[$0] }).get() else {
                    throw Obstacle("the certificate of the card was wrong before")
                }
                try read(transaction, messages, card, terminal, key)
                return
            }
        }

        private mutating func read(
            _ transaction: RecordedApplication, _ messages: [TraceMessage], _ card: [TLVTag: [UInt8]],
            _ terminal: (byTag: [TLVTag: [UInt8]], options: [UInt8]), _ key: ICCPublicKey
        ) throws(Obstacle) {
            let wrong = Obstacle("the signature of the card was wrong before")
            if card[0x9F4B] != nil, card[0x9F69] != nil, transaction.cryptograms.isEmpty {
                let purposes: [SignaturePurpose] = [.offlineApproval, .onlineAuthorization]
                let results = purposes.map { key.fdda(for: $0) { card[$0] ?? terminal.byTag[$0] } }
                guard let index = results.firstIndex(where: { (try? $0.get()) != nil }),
                    let signed = try? results[index].get()
                else { throw wrong }
                fastFormat = index == 0 ? 0x05 : 0x95
                fastNumber = signed.iccDynamicNumber
            }
            for exchange in transaction.authentications where exchange.status.isAnswered {
                let list = try? TLVList(messages[exchange.answer].bytes)
                let value = list?.flattened.first { $0.tag == 0x9F4B || $0.tag == 0x80 }?.value
                guard
                    let signed = try? key.dda(value.map { Array($0) } ?? [], terminalData: exchange.command.data).get()
                else { throw wrong }
                dynamicNumber = signed.iccDynamicNumber
            }
            var sent = terminal.options
            for exchange in transaction.cryptograms {
                sent += exchange.command.data
                let response = messages[exchange.answer].bytes
                guard let list = try? TLVList(response), list.flattened.contains(where: { $0.tag == 0x9F4B }) else {
                    continue
                }
                guard
                    let signed = try? key.cda(
                        response: response, transactionData: sent, unpredictableNumber: terminal.byTag[0x9F37] ?? []
                    ).get()
                else { throw wrong }
                dynamicNumber = signed.dynamicData.iccDynamicNumber
                cryptogram = signed.applicationCryptogram
            }
        }
    }
}

/// Packed digits.
enum PackedNumber {
    /// Returns the digits at the beginning of `value`.
    static func digits(_ value: [UInt8]) -> [UInt8] {
        Array(value.flatMap { [$0 >> 4, $0 & 0x0F] }.prefix { $0 < 10 })
    }
}

extension Reissue {
    /// The authorities as a file of CA public keys.
    var authorityFile: String {
        authorities.map { key in
            "key test \(key.rid.hex) \([key.index].hex) expires 2049-12-31 exponent \(key.exponent.hex) "
                + "checksum \(key.checksum.hex)\n    modulus \(key.modulus.hex)\n"
        }.joined()
    }
}
