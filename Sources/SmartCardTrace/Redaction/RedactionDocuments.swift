import SmartCard

/// The redaction of travel documents: of their files read in the clear, and of the sessions that protect them (ICAO
/// 9303-10 and 9303-11).
extension RedactionWork {
    /// The registered application provider of ICAO, with which the names of all its applications begin (ICAO 9303-10,
    /// 3.5.1).
    private static let application: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47]
    /// The protocols of travel documents, 0.4.0.127.0.7.2.2, and among them PACE, 4 (ICAO 9303-11, 9.2).
    private static let protocols: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02]
    private static let pace = protocols + [0x04]
    /// The cryptogram of Basic Access Control and its checksum, in either direction (ICAO 9303-11, 4.3.1).
    private static let mutualAuthentication = 40
    /// The objects of secure messaging that are no secret: Le and status word (ICAO 9303-11, 9.8.4).
    private static let openObjects: Set<TLVTag> = [0x97, 0x99]

    /// Notes whether a travel document is on `layer`: one whose application has been selected, that is opened by PACE or
    /// Basic Access Control, or of which the protocols or the machine readable zone are read.
    mutating func follow(_ message: TraceMessage, on layer: TraceEvent.Layer?) {
        let data = message.bytes[message.data]
        switch message.kind {
        case .command(let command?) where command.cla == 0x00 && command.ins == 0xA4 && command.p1 == 0x04:
            if data.starts(with: Self.application) { documents.insert(layer) } else { documents.remove(layer) }
        // MSE:Set AT (ICAO 9303-11, 4.4.4.1).
        case .command(let command?) where command.ins == 0x22 && data.dropFirst(2).starts(with: Self.pace),
            .command(let command?) where Self.authenticates(command):
            documents.insert(layer)
        case .response(let command?, _) where Self.reads(command) && Self.tellsDocument(message):
            documents.insert(layer)
        default: break
        }
    }

    /// Learns what a file of a travel document tells.
    mutating func collectDocument(_ message: TraceMessage) {
        guard case .response(let command?, _) = message.kind, Self.reads(command) else { return }
        let bytes = Array(message.bytes.prefix(message.contiguousCount))
        for name in values.learn(DocumentFile(bytes), bytes) { names.learn(name) }
    }

    /// - Returns: false if the command is none that a travel document has for itself.
    mutating func redactDocument(
        command bytes: inout [UInt8], _ command: CommandAPDU, _ data: Range<Int>, _ layer: TraceEvent.Layer?
    ) -> Bool {
        let isDocument = documents.contains(layer) && command.cla != 0xFF
        switch command.ins {
        case _ where command.isProtected: blankProtected(&bytes, data)
        case 0x82 where isDocument || Self.authenticates(command): blank(&bytes, data, .session)
        case 0x86 where isDocument: blankAuthentication(&bytes, data)
        // UPDATE BINARY.
        case 0xD6 where isDocument, 0xD7 where isDocument: blank(&bytes, data, .document)
        default: return false
        }
        return true
    }

    /// - Returns: false if the answer is none that a travel document gives.
    mutating func redactDocument(
        response bytes: inout [UInt8], _ message: TraceMessage, _ layer: TraceEvent.Layer?
    ) -> Bool {
        guard case .response(let command?, _) = message.kind else {
            guard documents.contains(layer) else { return false }
            blank(&bytes, bytes.indices, .document)
            return true
        }
        // A command to the reader is none to the document.
        let isDocument = documents.contains(layer) && command.cla != 0xFF
        let protected = message.answers.filter(\.command.isProtected)
        guard protected.isEmpty else {
            for answer in message.answers {
                if answer.command.isProtected {
                    blankProtected(&bytes, answer.place)
                } else {
                    blank(&bytes, answer.place, .document)
                }
            }
            return true
        }
        switch command.ins {
        case 0x82 where isDocument || Self.authenticates(command): blank(&bytes, bytes.indices, .session)
        case 0x84 where isDocument: blank(&bytes, bytes.indices, .session)
        case 0x86 where isDocument: blankAuthentication(&bytes, bytes.indices)
        // From an ECDSA signature, or with the key of RSA, the document can be told.
        case 0x88 where isDocument: blank(&bytes, bytes.indices, .document)
        case _ where isDocument && Self.reads(command): redactFile(&bytes, message.contiguousCount)
        default: return false
        }
        return true
    }

    /// Redacts a file of which the first `count` bytes are there in a row, and the rest from somewhere.
    private mutating func redactFile(_ bytes: inout [UInt8], _ count: Int) {
        let file = DocumentFile(Array(bytes.prefix(count)))
        for object in file.objects {
            let value = file.replacement(of: object)
            guard !bytes[object.place].elementsEqual(value) else { continue }
            bytes.replaceSubrange(object.place, with: value)
            if case .zeros(let item) = object.treatment { items.insert(item) } else { items.insert(.document) }
        }
        blank(&bytes, count..<bytes.count, .document)
    }

    /// Blanks cryptograms and checksums, after the indicator of the padding.
    private mutating func blankProtected(_ bytes: inout [UInt8], _ place: Range<Int>) {
        guard let list = try? TLVList(bytes[place], padding: []) else { return blank(&bytes, place, .session) }
        for object in list where !Self.openObjects.contains(object.tag) {
            let value = object.value.dropFirst(object.tag == 0x87 ? 1 : 0)
            blank(&bytes, place.lowerBound + value.startIndex..<place.lowerBound + value.endIndex, .session)
        }
    }

    /// Blanks the nonce, the keys and the tokens of GENERAL AUTHENTICATE (ICAO 9303-11, 4.4.4.2).
    private mutating func blankAuthentication(_ bytes: inout [UInt8], _ place: Range<Int>) {
        guard let list = try? TLVList(bytes[place], padding: []) else { return blank(&bytes, place, .session) }
        for object in list.flattened where !object.tag.isConstructed {
            let start = place.lowerBound + object.value.startIndex
            blank(&bytes, start..<start + object.value.count, .session)
        }
    }

    /// EXTERNAL AUTHENTICATE of Basic Access Control.
    private static func authenticates(_ command: CommandAPDU) -> Bool {
        command.cla == 0x00 && command.ins == 0x82 && command.data.count == mutualAuthentication
    }

    /// READ BINARY with any offset.
    private static func reads(_ command: CommandAPDU) -> Bool {
        command.cla == 0x00 && (command.ins == 0xB0 || command.ins == 0xB1)
    }

    /// EF.CardAccess, or DG1.
    private static func tellsDocument(_ message: TraceMessage) -> Bool {
        let bytes = Array(message.bytes.prefix(message.contiguousCount))
        if let infos = (try? TLVList(bytes))?[0x31] {
            return infos.children.contains { $0.children[0x06]?.value.starts(with: protocols) ?? false }
        }
        return DocumentFile(bytes).objects.contains { $0.file == 0x61 && $0.tag == 0x5F1F }
    }
}

extension CommandAPDU {
    /// True for secure messaging with a header that is authenticated (ISO/IEC 7816-4, 5.4.1).
    var isProtected: Bool { cla & 0xEC == 0x0C }
}
