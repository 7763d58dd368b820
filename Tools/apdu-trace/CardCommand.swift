import ArgumentParser
import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import ToolReaders
import ToolSupport

struct CardCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "card", abstract: "Makes a virtual card from the payment card in a trace.",
        discussion: """
            The card file contains the directory, records and data objects of the trace, redacted account numbers, and \
            test keys as long as the card's own. The card answers any amount and random number: reader-probe pay --card \
            FILE. It approves, goes online or declines as in the trace. Data that the trace did not request are missing.
            """)

    @OptionGroup var trace: TraceArgument

    @Option(name: .shortAndLong, help: .init("The card file to write; - for standard output.", valueName: "file"))
    var output: String

    @Flag(help: "Leave account numbers, tracks and names unchanged.")
    var clear = false

    @Option(
        help: .init(
            "The file for the test authorities' public keys, for --ca-keys. Only required for unusual lengths.",
            valueName: "file"))
    var authorities: String?

    @Option(
        help: .init("Certification authority keys that verify the signatures in the trace.", valueName: "file"))
    var caKeys: String?

    @Flag(help: "Replace an existing file.")
    var force = false

    func run() throws {
        for file in [output, authorities].compactMap(\.self) { try NewFile.check(file, replacing: force) }
        let original = try trace.trace()
        let base = clear ? original : TraceRedaction().redacted(original)
        let reissued = Reissue(base, of: original, keys: try PaymentOptions.keys(beside: caKeys))
        let text = try RecordedCard(reissued).text()
        do {
            _ = try CardFile(parsing: text)
        } catch {
            throw ToolError.usage(
                "\(trace.file) has no card that can be described: \(error.reason)",
                "apdu-trace show shows what the card has answered.")
        }
        if let authorities { try NewFile.write(reissued.authorityFile, to: authorities, replacing: force) }
        try NewFile.write(text, to: output, replacing: force)
    }
}

/// The payment card of a trace, as a card file describes it.
private struct RecordedCard {
    private let messages: [TraceMessage]
    private let transactions: [RecordedApplication]
    private let certifications: [[UInt8]: TestCertification]

    init(_ reissued: Reissue) {
        messages = TraceMessage.all(in: reissued.trace)
        transactions = RecordedApplication.all(in: messages)
        certifications = reissued.certifications
    }

    func text() throws -> String {
        var names: [[UInt8]] = []
        for transaction in transactions where transaction.name != RecordedApplication.directoryName {
            let isThere = transaction.select.status.isAnswered || transaction.select.status != .fileNotFound
            if isThere, (5...16).contains(transaction.name.count), !names.contains(transaction.name) {
                names.append(transaction.name)
            }
        }
        guard !names.isEmpty else {
            throw ToolError.usage(
                "no payment application is selected in the trace",
                "A card is made from a recorded payment: apdu-trace pay")
        }
        var lines = [
            "# Made of a trace by apdu-trace card.  The keys are TEST keys.", "", "card emv \"a card of a trace\" {",
            // Nobody's: the identifier of the card is not for others to know.
            "type-a {", "uid 04 11 22 33 44 55 80", "atqa 0044", "sak 20", "ats 05 78 80 70 02", "}",
        ]
        lines += directory()
        for name in names { lines += application(name) }
        return indented(lines + ["}"])
    }

    private func indented(_ lines: [String]) -> String {
        var depth = 0
        return lines.flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }.map { line in
            if line.hasSuffix("}") { depth -= 1 }
            defer { if line.hasSuffix("{") { depth += 1 } }
            return String(repeating: "    ", count: max(0, depth)) + line
        }.joined(separator: "\n") + "\n"
    }

    private func directory() -> [String] {
        guard let directory = transactions.first(where: { $0.name == RecordedApplication.directoryName }) else {
            return []
        }
        let status = directory.select.status
        if status == .fileNotFound { return ["ppse none"] }
        guard status.isAnswered else { return ["ppse {", "status \([status.sw1, status.sw2].hex)", "}"] }
        let bytes = messages[directory.select.answer].bytes
        return ["ppse {"] + (bytes.first == 0x6F ? objects(bytes) : ["bytes \(bytes.hex)"]) + ["}"]
    }

    /// Returns `bytes` as data objects; bytes that are not data objects, or are encoded differently from a card file's,
    /// stay bytes.
    private func objects(_ bytes: [UInt8], _ value: (TLVTag, [UInt8]) -> String? = { _, _ in nil }) -> [String] {
        guard let list = try? TLVList(bytes) else { return ["bytes \(bytes.hex)"] }
        func nested(_ list: TLVList, _ place: Range<Int>) -> [String] {
            var lines: [String] = []
            var done = place.lowerBound
            for object in list {
                let encoded = Array(object.encoded)
                let start = object.value.endIndex - encoded.count
                if done < start { lines.append("bytes \(bytes[done..<start].hex)") }
                done = object.value.endIndex
                if object.tag.encode(object.value) != encoded {
                    lines.append("bytes \(encoded.hex)")
                } else if object.tag.isConstructed {
                    let inside = object.value.startIndex..<object.value.endIndex
                    lines += ["\(object.tag) {"] + nested(object.children, inside) + ["}"]
                } else {
                    lines.append("\(object.tag) \(value(object.tag, Array(object.value)) ?? object.value.hex)")
                }
            }
            if done < place.upperBound { lines.append("bytes \(bytes[done..<place.upperBound].hex)") }
            return lines
        }
        return nested(list, bytes.indices)
    }

    private func application(_ name: [UInt8]) -> [String] {
        let all = transactions.filter { $0.name == name }
        guard
            var transaction = all.first(where: { $0.options?.status.isAnswered == true })
                ?? all.first(where: { $0.select.status.isAnswered }) ?? all.first
        else { return [] }
        transaction.records = all.flatMap(\.records)
        transaction.data = all.flatMap(\.data)
        return ApplicationText(transaction, certifications[name], messages, objects).lines
    }
}

/// One application of a card file.
private struct ApplicationText {
    private(set) var lines: [String] = []

    private let card: [TLVTag: [UInt8]]
    private let certification: TestCertification?
    private let hasNumber: Bool
    private let hasDynamicSignature: Bool
    private let isMastercard: Bool

    init(
        _ transaction: RecordedApplication, _ certification: TestCertification?, _ messages: [TraceMessage],
        _ objects: ([UInt8], (TLVTag, [UInt8]) -> String?) -> [String]
    ) {
        card = transaction.objects(messages)
        self.certification = certification
        let name = card[0x84].flatMap { (5...16).contains($0.count) ? $0 : nil } ?? transaction.name
        isMastercard = name.starts(with: [0xA0, 0x00, 0x00, 0x00, 0x04])
        hasNumber =
            (8...19).contains((card[0x5A] ?? card[0x57]).map { PackedNumber.digits($0).count } ?? 0)
            && card[0x5F34]?.count ?? 1 == 1
        hasDynamicSignature = certification != nil && card[0x9F46] != nil
        lines.append("application \(name.hex) {")
        func status(_ command: String, _ exchange: RecordedApplication.Exchange?) {
            guard let status = exchange?.status, status != .success else { return }
            if case .moreData = status { return }
            lines.append("status \(command) \([status.sw1, status.sw2].hex)")
        }
        status("select", transaction.select)
        let fci = messages[transaction.select.answer].bytes
        if fci.first == 0x6F { lines += ["fci {"] + objects(fci) { _, _ in nil } + ["}"] }

        status("gpo", transaction.options)
        let options = transaction.options.flatMap { $0.status.isAnswered ? messages[$0.answer].bytes : nil } ?? []
        lines +=
            response("processing-options", options, transaction, objects) ?? [
                "processing-options 77 {", "82 0000", "}",
            ]
        lines.append("afl \((card[0x94] ?? []).hex)")
        records(transaction, messages, objects)

        if let exchange = transaction.authentications.first {
            status("internal-authenticate", exchange)
            let bytes = messages[exchange.answer].bytes
            if bytes.first == 0x80 {
                let value = hasDynamicSignature ? "signed-dynamic-data" : bytes.dropFirst(2).hex
                lines += ["internal-authenticate 80 {", "9F4B \(value)", "}"]
            } else {
                lines += response("internal-authenticate", bytes, transaction, objects) ?? []
            }
        }
        if let exchange = transaction.cryptograms.first {
            status("generate-ac", exchange)
            generateAC(messages[exchange.answer].bytes, transaction, objects)
        }
        data(transaction, messages)
        lines.append("offline \(decision)")
        cryptogram(transaction, options)
        if let certification { lines.append(certification.cardFileText.trimmedLine) }
        lines.append("}")
    }

    /// The cryptogram type that the card gave: TC 40, ARQC 80, AAC 00, by the Cryptogram Information Data or byte 2 of
    /// Visa's Card Verification Results (VIS, Annex A).
    private var kind: UInt8? {
        card[0x9F27]?.first.map { $0 & 0xC0 }
            ?? card[0x9F10].flatMap { data -> UInt8? in
                !isMastercard && data.count > 4 ? (data[4] & 0x30) << 2 : nil
            }
    }

    private var decision: String {
        switch kind {
        case 0x40: "up-to 999999999999"
        case 0x00: "declines"
        default: "never"
        }
    }

    /// Returns the name of a value that the card computes for each transaction.
    private func named(_ tag: TLVTag, _ value: [UInt8]) -> String? {
        switch tag {
        case 0x9F36 where value.count == 2: return "atc"
        case 0x9F27 where value.count == 1: return "cid"
        case 0x9F26 where hasNumber && value.count == 8: return "cryptogram"
        case 0x9F10:
            let place = isMastercard ? 2 : 4
            guard value.count > place, [0x80, 0x90, 0xA0].contains(value[place]) else { return nil }
            return "\(value[..<place].hex) ac-type \(value[(place + 1)...].hex)"
        default: return nil
        }
    }

    /// fDDA (EMV Contactless Book C-3, Annex C) requires the objects that it covers.
    private func signsFast(_ transaction: RecordedApplication) -> Bool {
        let terminal = transaction.terminalData(card).byTag
        return hasDynamicSignature && card[0x9F69] != nil && terminal[0x9F37]?.count == 4
            && terminal[0x9F02]?.count == 6 && terminal[0x5F2A]?.count == 2
    }

    /// - Returns: nil if `bytes` are no response of format 1 or 2.
    private func response(
        _ keyword: String, _ bytes: [UInt8], _ transaction: RecordedApplication,
        _ objects: ([UInt8], (TLVTag, [UInt8]) -> String?) -> [String], isCase: String = ""
    ) -> [String]? {
        guard let list = try? TLVList(bytes), let template = list.first else { return nil }
        if template.tag == 0x80 {
            return [
                "\(keyword) 80 {", "82 \(template.value.prefix(2).hex)", "94 \(template.value.dropFirst(2).hex)", "}",
            ]
        }
        guard template.tag == 0x77 else { return nil }
        let isSigned = keyword == "processing-options" ? signsFast(transaction) : hasDynamicSignature
        let lines = objects(Array(template.value)) { tag, value in
            if tag == 0x9F4B, isSigned { return "signed-dynamic-data" }
            // INTERNAL AUTHENTICATE has neither cryptogram nor kind.
            return keyword == "internal-authenticate" ? nil : named(tag, value)
        }
        return ["\(keyword) 77\(isCase) {"] + lines + ["}"]
    }

    private mutating func records(
        _ transaction: RecordedApplication, _ messages: [TraceMessage],
        _ objects: ([UInt8], (TLVTag, [UInt8]) -> String?) -> [String]
    ) {
        let names: [TLVTag: String] = [
            0x8F: "authority-index", 0x90: "issuer-certificate", 0x92: "issuer-remainder", 0x9F32: "issuer-exponent",
            0x93: "signed-static-data", 0x9F46: "card-certificate", 0x9F48: "card-remainder", 0x9F47: "card-exponent",
        ]
        let located = transaction.located(card) ?? []
        var done: Set<[UInt8]> = []
        for record in transaction.records where record.status.isAnswered {
            let (sfi, number) = (record.command.p2 >> 3, record.command.p1)
            guard (1...30).contains(sfi), number > 0, done.insert([sfi, number]).inserted else { continue }
            let isSigned = located.contains { $0.sfi == sfi && $0.number == number && $0.isSigned }
            lines.append("record \(sfi) \(number)\(isSigned ? " signed" : "") {")
            lines += objects(messages[record.answer].bytes) { tag, value in
                if isSigned { return nil }
                if tag == 0x9F4B, signsFast(transaction) { return "signed-dynamic-data" }
                return certification == nil ? nil : names[tag]
            }
            lines.append("}")
        }
    }

    private mutating func generateAC(
        _ bytes: [UInt8], _ transaction: RecordedApplication,
        _ objects: ([UInt8], (TLVTag, [UInt8]) -> String?) -> [String]
    ) {
        if bytes.first == 0x80, let list = try? TLVList(bytes), let values = list.first?.value, values.count >= 11 {
            let rest = Array(values.dropFirst(11))
            lines += ["generate-ac 80 {", "9F27 cid", "9F36 atc"]
            lines.append("9F26 \(hasNumber ? "cryptogram" : values.dropFirst(3).prefix(8).hex)")
            if !rest.isEmpty { lines.append("9F10 \(named(0x9F10, rest) ?? rest.hex)") }
            lines.append("}")
            return
        }
        guard let list = try? TLVList(bytes), list.first?.tag == 0x77 else { return }
        let isSigned = list.flattened.contains { $0.tag == 0x9F4B } && hasDynamicSignature
        lines += response("generate-ac", bytes, transaction, objects, isCase: isSigned ? " signed" : "") ?? []
        guard isSigned else { return }
        // What the same card gives a reader that wants no signature, and with every AAC.
        lines += ["generate-ac 77 {", "9F27 cid", "9F36 atc"]
        if hasNumber { lines.append("9F26 cryptogram") }
        if let data = card[0x9F10] { lines.append("9F10 \(named(0x9F10, data) ?? data.hex)") }
        lines.append("}")
    }

    private mutating func data(_ transaction: RecordedApplication, _ messages: [TraceMessage]) {
        var objects: [TLVTag: [UInt8]] = [:]
        for exchange in transaction.data where exchange.status.isAnswered {
            let tag = TLVTag(rawValue: UInt32(exchange.command.p1) << 8 | UInt32(exchange.command.p2))
            guard let object = (try? TLVList(messages[exchange.answer].bytes))?.first, object.tag == tag,
                !tag.isConstructed, tag != 0x9F36
            else { continue }
            objects[tag] = Array(object.value)
        }
        if let counter = card[0x9F36], counter.count == 2 {
            // The first transaction has the number of the recorded one.
            let before = (UInt16(counter[0]) << 8 | UInt16(counter[1])) &- 1
            objects[0x9F36] = [UInt8(before >> 8), UInt8(before & 0xFF)]
        }
        guard !objects.isEmpty else { return }
        lines += ["data {"] + objects.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.hex)" } + ["}"]
    }

    /// Adds a cryptogram over as many of EMV's recommended objects (Book 2, 8.1.1) as there are.
    private mutating func cryptogram(_ transaction: RecordedApplication, _ options: [UInt8]) {
        guard hasNumber else { return }
        func tags(_ list: TLVTag) -> Set<TLVTag> {
            Set((card[list].flatMap { try? DataObjectList($0) }?.entries ?? []).filter { $0.length > 0 }.map(\.tag))
        }
        let asked = tags(0x9F38)
        let isGiven = Set(((try? TLVList(options)).map { $0.flattened.map(\.tag) }) ?? [])
        // The cryptogram may be due with GET PROCESSING OPTIONS, when nothing of CDOL1 is known yet.
        let known = isGiven.contains(0x9F26) ? asked : asked.union(tags(0x8C))
        var answered: Set<TLVTag> = [0x9F36]
        if isGiven.contains(0x82) { answered.insert(0x82) }
        if isGiven.contains(0x9F10) { answered.insert(0x9F10) }
        let all: [TLVTag] = [0x9F02, 0x9F03, 0x9F1A, 0x95, 0x5F2A, 0x9A, 0x9C, 0x9F37, 0x82, 0x9F36, 0x9F10]
        let data = all.filter { known.union(answered).contains($0) }.map(\.description).joined(separator: " ")
        lines += [
            "cryptogram {", "issuer-key 0123456789ABCDEFFEDCBA9876543210", "session-key common", "padding 80",
            "data \(data)", "}",
        ]
    }
}

extension String {
    /// Without the line feed at its end.
    fileprivate var trimmedLine: String { hasSuffix("\n") ? String(dropLast()) : self }
}
