import SmartCard

/// The statements of `card emv`.
extension CardFileReader {
    /// The longest response data field: the most that one byte of Le can request.
    private static let maximumResponse = 256

    /// The statements of an application.
    private static let keywords = [
        "hidden", "label", "priority", "kernel", "directory-entry", "fci", "processing-options",
        "internal-authenticate", "generate-ac", "afl", "record", "records-readable-at-once", "data", "status",
        "offline", "cryptogram", "authentication", "issuer-update", "extended-selection",
        "exchange-relay-resistance-data", "compute-cryptographic-checksum", "checksum-key", "data-storage",
    ]

    static func emv(_ body: inout Section) throws(CardFileError) -> EMVPersonality {
        let statements = body.all("application")
        guard statements.count <= 32 else { throw statements[32].error("a card holds up to 32 applications") }
        var entries: [[UInt8]] = []
        var applications: [EMVApplication] = []
        for statement in statements {
            let (application, entry) = try application(statement)
            guard !applications.contains(where: { $0.name == application.name }) else {
                throw statement.error("the card has two applications \(application.name.hex)")
            }
            applications.append(application)
            if let entry { entries.append(entry) }
        }
        var personality = EMVPersonality(directory: directory(entries), applications: applications)
        if let statement = try body.one("ppse") { try read(statement, into: &personality) }
        if let directory = personality.directory { try check(directory, "the PPSE", body.head) }
        for delay in body.all("delay") {
            let command = try command(delay, among: personality.delays.keys)
            try delay.arguments(count: 2...2, "delay COMMAND MILLISECONDS")
            let time = try delay.number(1, "milliseconds", 0...600_000)
            personality.delays[command] = .milliseconds(time)
        }
        for truncation in body.all("truncate") {
            let command = try command(truncation, among: personality.truncations.keys)
            try truncation.arguments(count: 2...2, "truncate COMMAND BYTES")
            personality.truncations[command] = Int(try truncation.number(1, "bytes", 0...256))
        }
        if let torn = try body.one("torn") { personality.tear = try tear(torn) }
        return personality
    }

    /// `torn COMMAND [unheard]`, or `torn never`.
    private static func tear(_ statement: Statement) throws(CardFileError) -> EMVPersonality.Tear? {
        if statement.arguments.map(\.text) == ["never"] {
            try statement.withoutBlock()
            return nil
        }
        let command = try command(statement, among: [])
        let isUnheard = statement.arguments.last?.text == "unheard"
        try statement.arguments(count: isUnheard ? 2...2 : 1...1, "torn COMMAND [unheard], or torn never")
        return EMVPersonality.Tear(command: command, isHeard: !isUnheard)
    }

    private static func read(_ ppse: Statement, into personality: inout EMVPersonality) throws(CardFileError) {
        if ppse.block == nil {
            guard ppse.arguments.map(\.text) == ["none"] else {
                throw ppse.error("“ppse” is written: ppse none, or ppse { 6F { … } }")
            }
            personality.directory = nil
            return
        }
        var section = try Section(ppse, ["6F", "bytes", "status"])
        if let status = try section.bytes("status", 2...2) {
            personality.directoryStatus = StatusWord(status[0], status[1])
        }
        let objects = try (section.all("6F") + section.all("bytes")).objects(admitting: [])
        if !objects.isEmpty { personality.directory = objects.encoded() }
    }

    /// FCI of the PPSE (EMV Contactless Book B, table 3-2).
    private static func directory(_ entries: [[UInt8]]) -> [UInt8] {
        let list = TLVTag(0xBF0C).encode(entries.joined())
        return TLVTag(0x6F).encode(TLVTag(0x84).encode(EMVPersonality.directoryName) + TLVTag(0xA5).encode(list))
    }

    static func check(_ response: [UInt8], _ what: String, _ at: Statement) throws(CardFileError) {
        guard response.count <= maximumResponse else {
            throw at.error("\(what) has \(response.count) bytes, and a response holds \(maximumResponse)")
        }
    }

    /// An application, and its entry in the PPSE (EMV Contactless Book B, table 3-3) unless it is hidden there.
    private static func application(
        _ statement: Statement
    ) throws(CardFileError) -> (EMVApplication, entry: [UInt8]?) {
        guard let aid = AID(try statement.value().bytes([:])) else {
            throw statement.error("“application” takes an AID of 5 to 16 bytes")
        }
        var section = try Section(statement, keywords)
        let label = try section.bytes("label", 1...16).map { TLVTag(0x50).encode($0) } ?? []
        let priority = try section.bytes("priority", 1...1).map { TLVTag(0x87).encode($0) } ?? []
        let kernel = try section.bytes("kernel", 1...8).map { TLVTag(0x9F2A).encode($0) } ?? []
        let extensionStatement = try section.one("extended-selection")
        let extended = try extensionStatement?.bytes(1...11) ?? []
        if let extensionStatement, aid.bytes.count + extended.count > 16 {
            throw extensionStatement.error("AID and extended selection have up to 16 bytes together")
        }
        let more = try section.objects("directory-entry").encoded()
        let entry = TLVTag(0x61).encode(
            TLVTag(0x4F).encode(aid.bytes) + label + priority + kernel
                + (extended.isEmpty ? [] : TLVTag(0x9F29).encode(extended)) + more)
        let hidden = try section.flag("hidden")

        let fci = try section.objects("fci")
        var application = EMVApplication(
            aid: aid, extendedSelection: extended,
            fci: selectResponse(aid.bytes + extended, label: label, priority: priority, fci))
        try check(application.fci, "the FCI", statement)
        let options = section.all("processing-options")
        guard !options.isEmpty else { throw statement.error("“application” lacks “processing-options”") }
        application.processingOptions = try responses(options, admitting: NamedValue.inProcessingOptions)
        let generateAC = section.all("generate-ac")
        application.generateAC = try responses(generateAC, admitting: NamedValue.inGenerateAC)
        let internalAuthenticate = try section.one("internal-authenticate")
        if let internalAuthenticate {
            application.internalAuthenticate = try response(
                internalAuthenticate, admitting: NamedValue.inInternalAuthenticate)
        }
        let relayResistance = try section.one("exchange-relay-resistance-data")
        if let relayResistance {
            application.relayResistance = try response(relayResistance, admitting: NamedValue.inRelayResistance)
        }
        let checksums = section.all("compute-cryptographic-checksum")
        application.cryptographicChecksum = try responses(checksums, admitting: NamedValue.inChecksum)
        let records = section.all("record")
        application.records = try Self.records(records)
        application.afl = try section.bytes("afl", 0...252) ?? locator(application.records)
        application.recordsReadableAtOnce = try section.flag("records-readable-at-once")
        let objects = application.recordObjects
        application.pdol = try dol(0x9F38, in: fci, statement) ?? DOL()
        application.ddol = try dol(0x9F49, in: objects, statement) ?? DOL.defaultDDOL
        application.cdol1 = try dol(0x8C, in: objects, statement) ?? DOL()
        if !checksums.isEmpty { application.udol = try dol(0x9F69, in: objects, statement) ?? DOL.defaultUDOL }
        // Cards of other schemes have other things in 9F51.
        if aid.bytes.starts(with: mastercard) { application.drdol = try dol(0x9F51, in: objects, statement) }
        if let data = try section.one("data") { try read(data, into: &application) }
        for status in section.all("status") { try read(status: status, into: &application) }
        if let decision = try section.one("offline") { application.decision = try Self.decision(decision) }
        let account = objects + application.processingOptions.objects
        if let cryptogram = try section.one("cryptogram") {
            application.cryptogram = try Self.cryptogram(cryptogram, account)
        }
        if let key = try section.one("checksum-key") {
            application.checksum = try checksum(key, objects)
        }
        if let storage = try section.one("data-storage") {
            application.dataStorage = try dataStorage(storage, fci)
            application.dsdol = try dol(0x9F5B, in: objects, statement)
        }
        if let statement = try section.one("issuer-update") {
            application.issuerUpdate = try issuerUpdate(statement, application.cryptogram)
        }
        if let statement = try section.one("authentication") {
            try add(authentication(statement, aid, accountNumber(account)), statement, &application)
        }

        let check = CardFileCheck(application)
        for record in records { try check.record(record) }
        for (statement, one) in zip(options, application.processingOptions.cases) {
            try check.processingOptions(one.response, statement)
        }
        for (statement, one) in zip(generateAC, application.generateAC.cases) {
            try check.generateAC(one.response, statement)
        }
        if let statement = internalAuthenticate, let response = application.internalAuthenticate {
            try check.internalAuthenticate(response, statement)
        }
        if let statement = relayResistance, let response = application.relayResistance {
            try check.response(response, statement)
        }
        for (statement, one) in zip(checksums, application.cryptographicChecksum.cases) {
            try check.cryptographicChecksum(one.response, statement)
        }
        try check.lists(statement)
        return (application, hidden ? nil : entry)
    }

    /// FCI of the application (EMV Book 1, table 45): label and priority first, unless the file has them where it wants
    /// them, or writes the whole template.
    private static func selectResponse(
        _ name: [UInt8], label: [UInt8], priority: [UInt8], _ objects: [CardFileObject]
    ) -> [UInt8] {
        if case .template(0x6F, _) = objects.first { return objects.encoded() }
        let first = (objects.holds(0x50) ? [] : label) + (objects.holds(0x87) ? [] : priority)
        return TLVTag(0x6F).encode(
            TLVTag(0x84).encode(name) + TLVTag(0xA5).encode(first + objects.encoded()))
    }

    private static func dol(
        _ tag: TLVTag, in objects: [CardFileObject], _ at: Statement
    ) throws(CardFileError) -> DOL? {
        guard let bytes = objects.value(of: tag) else { return nil }
        guard let dol = DOL(bytes) else {
            throw at.error("\(tag) is not a list of tags and lengths for at most \(DOL.maximumLength) bytes")
        }
        return dol
    }

    private static func read(status: Statement, into application: inout EMVApplication) throws(CardFileError) {
        let command = try command(status, among: application.statuses.keys)
        var status = status
        let untilPresentedAgain = status.arguments.last?.text == "until-presented-again"
        if untilPresentedAgain { status.arguments.removeLast() }
        let bytes = try status.bytes(from: 1, 2...2)
        application.statuses[command] = EMVApplication.Status(
            word: StatusWord(bytes[0], bytes[1]), untilPresentedAgain: untilPresentedAgain)
    }

    /// The command that a statement is about, once.
    private static func command(
        _ statement: Statement, among earlier: some Collection<EMVApplication.Command>
    ) throws(CardFileError) -> EMVApplication.Command {
        try statement.withoutBlock()
        guard let first = statement.arguments.first, let command = EMVApplication.Command(rawValue: first.text) else {
            let names = EMVApplication.Command.allCases.map(\.rawValue).joined(separator: ", ")
            throw statement.error("“\(statement.keyword)” begins with COMMAND, one of \(names)")
        }
        guard !earlier.contains(command) else {
            throw statement.error("“\(statement.keyword) \(first.text)” occurs twice")
        }
        return command
    }

    /// `KEYWORD 77 [tc|arqc|aac] [signed] { objects }`, each case once, and none without an answer.
    private static func responses(
        _ statements: [Statement], admitting names: Set<NamedValue>
    ) throws(CardFileError) -> EMVApplication.Responses {
        var responses = EMVApplication.Responses()
        for statement in statements {
            var words = statement.arguments.dropFirst().map(\.text)[...]
            let cryptogram = EMVApplication.Cryptogram.allCases.first { $0.name == words.first }
            if cryptogram != nil { words.removeFirst() }
            // EMV Contactless Book C-2: a card may support CDA over an AAC.
            let isSigned = words.first == "signed" && (cryptogram != .aac || statement.keyword == "generate-ac")
            if isSigned { words.removeFirst() }
            guard words.isEmpty else {
                throw statement.error(
                    "“\(statement.keyword)” is written: \(statement.keyword) 77 [tc|arqc|aac] [signed] { objects }; "
                        + "an aac is not signed but in generate-ac")
            }
            guard !responses.cases.contains(where: { $0.cryptogram == cryptogram && $0.isSigned == isSigned }) else {
                throw statement.error("“\(statement.keyword)” occurs twice for one case")
            }
            responses.cases.append(
                EMVApplication.Responses.Case(
                    cryptogram: cryptogram, isSigned: isSigned, response: try response(statement, admitting: names)))
        }
        if let first = statements.first {
            for kind in EMVApplication.Cryptogram.allCases where responses[kind, signed: false] == nil {
                throw first.error("no “\(first.keyword)” is for \(kind.name) without signature")
            }
        }
        return responses
    }

    private static func response(
        _ statement: Statement, admitting names: Set<NamedValue>
    ) throws(CardFileError) -> EMVApplication.Response {
        guard let format = statement.arguments.first?.text, ["77", "80"].contains(format) else {
            throw statement.error("“\(statement.keyword)” is written: \(statement.keyword) 77 { objects }, or 80")
        }
        return EMVApplication.Response(
            valuesOnly: format == "80", objects: try statement.section().objects(admitting: names))
    }

    private static func records(
        _ statements: [Statement]
    ) throws(CardFileError) -> [EMVApplication.RecordAddress: EMVApplication.Record] {
        var records: [EMVApplication.RecordAddress: EMVApplication.Record] = [:]
        for statement in statements {
            let address = try address(statement)
            let isSigned = statement.arguments.count == 3
            guard records[address] == nil else { throw statement.error("the record occurs twice") }
            records[address] = EMVApplication.Record(
                objects: try statement.section().objects(admitting: isSigned ? [] : NamedValue.inRecord),
                isSigned: isSigned)
        }
        return records
    }

    static func address(_ statement: Statement) throws(CardFileError) -> EMVApplication.RecordAddress {
        let usage = "record SFI NUMBER [signed] { objects }"
        try statement.arguments(count: 2...3, usage)
        guard statement.arguments.count == 2 || statement.arguments[2].text == "signed" else {
            throw statement.error("“record” is written: \(usage)")
        }
        let sfi = try statement.number(0, "a short file identifier", 1...30)
        let number = try statement.number(1, "a record number", 1...255)
        return EMVApplication.RecordAddress(
            sfi: UInt8(truncatingIfNeeded: sfi), number: UInt8(truncatingIfNeeded: number))
    }

    /// The AFL for the records of files 1 to 10 and those that are signed, as many in one entry as follow each other, the
    /// signed ones first (EMV Book 3, 10.2).
    private static func locator(_ records: [EMVApplication.RecordAddress: EMVApplication.Record]) -> [UInt8] {
        var entries: [(sfi: UInt8, first: UInt8, last: UInt8, signed: UInt8)] = []
        for (address, record) in records.sorted(by: { $0.key < $1.key }) where address.sfi <= 10 || record.isSigned {
            let signed: UInt8 = record.isSigned ? 1 : 0
            if let entry = entries.last, entry.sfi == address.sfi, entry.last < 255, entry.last + 1 == address.number,
                !record.isSigned || entry.signed == entry.last - entry.first + 1
            {
                entries[entries.count - 1].last = address.number
                entries[entries.count - 1].signed += signed
            } else {
                entries.append((address.sfi, address.number, address.number, signed))
            }
        }
        return entries.flatMap { [$0.sfi << 3, $0.first, $0.last, $0.signed] }
    }

    private static func read(_ data: Statement, into application: inout EMVApplication) throws(CardFileError) {
        for statement in try data.section() {
            let object = try statement.object(admitting: [])
            let tag = try statement.tag()
            guard tag.length <= 2 else { throw statement.error("GET DATA names objects by tags of 1 or 2 bytes") }
            guard application.data[tag] == nil else { throw statement.error("the object occurs twice") }
            let value: [UInt8]
            switch object {
            case .primitive(_, let bytes): value = bytes.bytes([:])
            case .template(_, let objects): value = objects.encoded()
            case .raw: value = []
            }
            try check(tag.encode(value), "the object", statement)
            if tag == 0x9F36 {
                guard value.count == 2 else { throw statement.error("the ATC (9F36) has 2 bytes") }
                application.atc = UInt16(value[0]) << 8 | UInt16(value[1])
            }
            if tag == 0x9F50, value.count != 6 || EMVCard.number(value) == nil {
                throw statement.error("the Offline Accumulator Balance (9F50) has 12 digits in 6 bytes")
            }
            application.data[tag] = value
        }
    }

    private static func decision(_ statement: Statement) throws(CardFileError) -> EMVApplication.Decision {
        let usage =
            "“offline” is written: offline never, offline up-to AMOUNT, or offline declines [until-presented-again]"
        try statement.withoutBlock()
        switch statement.arguments.map(\.text) {
        case ["never"]: return .online
        case ["declines"]: return .decline
        case ["declines", "until-presented-again"]: return .declineUntilPresentedAgain
        case let words where words.count == 2 && words[0] == "up-to":
            return .approve(upTo: try statement.number(1, "an amount", 0...999_999_999_999))
        default: throw statement.error(usage)
        }
    }

    private static func cryptogram(
        _ statement: Statement, _ objects: [CardFileObject]
    ) throws(CardFileError) -> ApplicationCryptogram {
        var section = try Section(statement, ["issuer-key", "session-key", "padding", "data"])
        let keyStatement = try section.required("issuer-key")
        guard let key = TripleDES(try keyStatement.bytes(16...16)) else {
            throw keyStatement.error("a key has 16 bytes")
        }
        let session = try choice(section.required("session-key"), ApplicationCryptogram.SessionKey.self)
        let padding = try choice(section.required("padding"), TripleDES.Padding.self)
        let dataStatement = try section.required("data")
        var data: [ApplicationCryptogram.Datum] = []
        for word in dataStatement.arguments { data.append(try datum(word.text, dataStatement)) }
        guard !data.isEmpty else { throw dataStatement.error("“data” takes tags: 9F02 9F37 9F10[4-7]") }
        try dataStatement.withoutBlock()

        let (digits, sequence) = try account(statement, objects)
        return ApplicationCryptogram(
            issuerKey: key, pan: digits, sequence: sequence, sessionKey: session, padding: padding, data: data)
    }

    /// Returns the account number and its sequence number, which derive the card's keys from the issuer's.
    static func account(
        _ statement: Statement, _ objects: [CardFileObject]
    ) throws(CardFileError) -> (digits: [UInt8], sequence: UInt8) {
        guard let digits = accountNumber(objects) else {
            throw statement.error("the card's key needs the account number, 5A or 57, which the application lacks")
        }
        let sequence = objects.value(of: 0x5F34) ?? [0]
        guard sequence.count == 1 else { throw statement.error("the PAN sequence number (5F34) has 1 byte") }
        return (digits, sequence[0])
    }

    private static func issuerUpdate(
        _ statement: Statement, _ cryptogram: ApplicationCryptogram?
    ) throws(CardFileError) -> IssuerUpdate {
        var section = try Section(statement, ["response-cryptogram", "script-key"])
        let method = try choice(section.required("response-cryptogram"), IssuerUpdate.Method.self)
        let keyStatement = try section.required("script-key")
        guard let key = TripleDES(try keyStatement.bytes(16...16)) else {
            throw keyStatement.error("a key has 16 bytes")
        }
        guard let cryptogram else {
            throw statement.error("the issuer answers a cryptogram, and the application lacks the block “cryptogram”")
        }
        return IssuerUpdate(method: method, cryptogram: cryptogram, scriptKey: key)
    }

    private static func choice<T: RawRepresentable & CaseIterable>(
        _ statement: Statement, _: T.Type
    ) throws(CardFileError) -> T where T.RawValue == String {
        try statement.withoutBlock()
        guard statement.arguments.count == 1, let value = T(rawValue: statement.arguments[0].text) else {
            let all = T.allCases.map(\.rawValue).joined(separator: ", ")
            throw statement.error("“\(statement.keyword)” takes one of: \(all)")
        }
        return value
    }

    /// `9F02`, or with bytes counted from 1 `9F10[4-7]`, `9F10[5]`.
    private static func datum(
        _ text: String, _ statement: Statement
    ) throws(CardFileError) -> ApplicationCryptogram.Datum {
        guard let bracket = text.firstIndex(of: "[") else {
            return .init(tag: try Statement.tag(text, line: statement.line), bytes: nil)
        }
        let tag = try Statement.tag(String(text[..<bracket]), line: statement.line)
        let inside = text[text.index(after: bracket)...]
        let bounds = inside.dropLast().split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard inside.last == "]", (1...2).contains(bounds.count), let first = bounds[0],
            let last = bounds[bounds.count - 1], 1 <= first, first <= last, last <= 255
        else { throw statement.error("“\(text)” is not of the form 9F10[4-7] or 9F10[5]") }
        return .init(tag: tag, bytes: first...last)
    }

    /// The digits of 5A, else those of 57 or else 9F6B before the separator D.
    static func accountNumber(_ objects: [CardFileObject]) -> [UInt8]? {
        guard let value = objects.value(of: 0x5A) ?? objects.value(of: 0x57) ?? objects.value(of: 0x9F6B) else {
            return nil
        }
        let digits = Array(value.flatMap { [$0 >> 4, $0 & 0x0F] }.prefix { $0 < 10 })
        return (8...19).contains(digits.count) ? digits : nil
    }
}

extension [CardFileObject] {
    /// True if a primitive object with `tag` is among these objects themselves, not nested in them.
    func holds(_ tag: TLVTag) -> Bool {
        contains {
            guard case .primitive(tag, _) = $0 else { return false }
            return true
        }
    }
}
