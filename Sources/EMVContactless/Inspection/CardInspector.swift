public import SmartCard
import Synchronization

/// An inspector that reads all freely readable data of an EMV card, and reports errors in it.
///
/// An inspection is not a transaction, and sends commands that no terminal may send: it looks for known AIDs if there
/// is no directory, repeats GET PROCESSING OPTIONS without data, reads objects and logs that no kernel needs, and
/// requests an AAC, so that the card records a decline.  The card counts a transaction in its ATC.
///
/// Cards are hostile: no answer causes a trap or an endless loop.  At most ``maximumApplications`` applications are
/// read, and at most ``maximumRecords`` records of each.
public struct CardInspector: Sendable {
    public static let maximumApplications = 32
    public static let maximumRecords = ApplicationFileLocator.maximumRecords
    /// The maximum number of exchanges in one inspection; the bytes of the answers are limited, too.  A card that
    /// needs more is hostile: the inspection ends with an ``CardInspection/interruption``.
    public static let maximumExchanges = 4096
    public static let maximumAnswers = 1 << 20
    /// In bytes (EMV Book 3, Annex A1).
    private static let maximumAFL = 252

    /// The terminal's data for a card that requests it, by tag; zeros replace missing data.
    public var terminalData: [TLVTag: [UInt8]]

    /// Creates an inspector.
    ///
    /// - Parameters:
    ///   - unpredictableNumber: tag 9F37, 4 bytes.
    ///   - date: tag 9A, `YYMMDD` in 3 bytes.
    public init(unpredictableNumber: [UInt8], date: [UInt8]) {
        terminalData = Self.defaultTerminalData
        terminalData[0x9F37] = unpredictableNumber
        terminalData[0x9A] = date
    }

    /// The data of an online-only test terminal with every CVM, for a purchase of 1.00 EUR.
    public static let defaultTerminalData: [TLVTag: [UInt8]] = [
        0x9F02: [0, 0, 0, 0, 0x01, 0x00],  // amount, authorised
        0x9F03: [0, 0, 0, 0, 0, 0],  // amount, other
        0x9F1A: [0x02, 0x76],  // terminal country code: Germany
        0x5F2A: [0x09, 0x78],  // transaction currency code: EUR
        0x9C: [0x00],  // transaction type: purchase
        0x95: [0, 0, 0, 0, 0],  // TVR
        0x9F35: [0x22],  // terminal type: attended, offline with online capability
        0x9F33: [0xE0, 0xF8, 0xC8],  // terminal capabilities
        0x9F40: [0x60, 0x00, 0xF0, 0xA0, 0x01],  // additional terminal capabilities
        0x9F15: [0x59, 0x99],  // merchant category code
        0x9F21: [0x12, 0x00, 0x00],  // transaction time
        0x9F41: [0, 0, 0, 1],  // transaction sequence counter
        // TTQ: qVSDC, contact chip, online PIN, signature; online cryptogram required; consumer device CVM.
        0x9F66: [0x36, 0x80, 0x40, 0x00],
        0x9F1D: [0x6C, 0, 0, 0, 0, 0, 0, 0],  // terminal risk management data (kernel 2)
        0x9F6D: [0xC0],  // contactless reader capabilities (kernel 4)
        0x9F6E: [0xD8, 0xE0, 0x00, 0x00],  // enhanced contactless reader capabilities (kernel 4)
    ]

    /// Inspects the card behind `channel`, and calls `progress` with the present step, for a person who waits.
    ///
    /// The card's behavior never causes an error: if it leaves or stops answering, ``CardInspection/interruption``
    /// says so.
    ///
    /// - Parameters:
    ///   - channel: the channel to the card.
    ///   - onlyDirectory: true to find the applications without reading them.
    ///   - progress: receives the present step, for a person who waits.
    /// - Throws: `CancellationError`, and errors other than `CardError`.
    public func inspect(
        _ channel: any CardChannel, onlyDirectory: Bool = false, progress: @Sendable (String) -> Void = { _ in }
    ) async throws -> CardInspection {
        let channel = Budget(channel)
        var inspection = CardInspection()
        do {
            try await findApplications(channel, progress, &inspection)
            if onlyDirectory { return inspection }
            for index in inspection.applications.indices {
                progress("reading \(inspection.applications[index].aid)")
                // Read into a copy that is always stored back, so that an interruption loses nothing.
                var application = inspection.applications[index]
                defer { inspection.applications[index] = application }
                try await read(&application, channel)
            }
        } catch let error as CardError {
            inspection.interruption = error
        }
        return inspection
    }
}

/// A channel that ends an endless inspection.
private final class Budget: CardChannel {
    private let base: any CardChannel
    private let spent = Mutex((exchanges: 0, answers: 0))

    init(_ base: any CardChannel) { self.base = base }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let response = try await base.transmit(command)
        let isOver = spent.withLock { spent in
            spent.exchanges += 1
            spent.answers += response.data.count
            return spent.exchanges > CardInspector.maximumExchanges || spent.answers > CardInspector.maximumAnswers
        }
        guard !isOver else { throw CardError(.malformedAnswer, "more answers than any card has to give") }
        return response
    }
}

// MARK: - Finding applications

extension CardInspector {
    private func findApplications(
        _ channel: any CardChannel, _ progress: (String) -> Void, _ inspection: inout CardInspection
    ) async throws {
        progress("reading the directory")
        var entries = try await directoryOfPPSE(channel, &inspection.findings)
        inspection.directory = .ppse
        if entries.isEmpty {
            entries = try await directoryOfPSE(channel, &inspection.findings)
            inspection.directory = .pse
        }
        for entry in entries {
            guard let name = entry[0x4F]?.value, let aid = AID(name) else {
                inspection.findings.append("a directory entry without an AID of 5 to 16 bytes")
                continue
            }
            guard !inspection.applications.contains(where: { $0.aid == aid }) else {
                inspection.findings.append("\(aid) stands in the directory more than once")
                continue
            }
            inspection.applications.append(InspectedApplication(aid: aid, directoryEntry: entry))
        }
        if inspection.applications.isEmpty {
            inspection.directory = .aidList
            inspection.applications = try await applicationsByAID(channel, progress)
        }
        if inspection.applications.isEmpty { inspection.directory = nil }
        if inspection.applications.count > Self.maximumApplications {
            inspection.findings.append(
                "\(inspection.applications.count) applications; the first \(Self.maximumApplications) are read")
            inspection.applications.removeLast(inspection.applications.count - Self.maximumApplications)
        }
    }

    /// EMV Contactless Book B, 3.3.2.1: entries 61 in BF0C of the FCI.
    private func directoryOfPPSE(_ channel: any CardChannel, _ findings: inout [String]) async throws -> [TLVList] {
        let response = try await channel.transmit(.select(Array("2PAY.SYS.DDF01".utf8)))
        guard !response.data.isEmpty else { return [] }
        guard let fci = objects(response.data, of: "PPSE", &findings) else { return [] }
        return fci.flattened.filter { $0.tag == 0x61 }.map(\.children)
    }

    /// EMV Book 1, 12.3.2: entries 61 in the records of the file that 88 in the FCI names.
    private func directoryOfPSE(_ channel: any CardChannel, _ findings: inout [String]) async throws -> [TLVList] {
        let response = try await channel.transmit(.select(Array("1PAY.SYS.DDF01".utf8)))
        guard !response.data.isEmpty, let fci = objects(response.data, of: "PSE", &findings),
            let sfi = fci.firstAnywhere(0x88)?.value.first, (1...10).contains(sfi)
        else { return [] }
        var entries: [TLVList] = []
        for number in UInt8(1)...16 {
            let record = try await channel.transmit(.readRecord(number, sfi: sfi))
            guard record.status == .success else { break }
            entries += (objects(record.data, of: "PSE record \(number)", &findings)?.flattened ?? [])
                .filter { $0.tag == 0x61 }.map(\.children)
        }
        return entries
    }

    /// The known payment applications, without those that partial selection of another one finds.
    private static let probedAIDs: [AID] = {
        let aids = KnownApplication.all.map(\.aid).filter { $0.bytes.first == 0xA0 }
        return aids.filter { aid in !aids.contains { $0 != aid && aid.matches(prefix: $0) } }
    }()

    /// Known AIDs, and behind each one the further applications that begin with it (EMV Book 1, 12.3.3).
    private func applicationsByAID(
        _ channel: any CardChannel, _ progress: (String) -> Void
    ) async throws -> [InspectedApplication] {
        var found: [InspectedApplication] = []
        for known in Self.probedAIDs {
            progress("trying \(known)")
            var select = CommandAPDU.select(known.bytes)
            for _ in 0..<8 {
                let response = try await channel.transmit(select)
                guard response.status == .success || response.status == 0x6283,
                    let fci = try? TLVList(response.data), let name = fci.firstAnywhere(0x84)?.value,
                    let aid = AID(name), aid.matches(prefix: known), !found.contains(where: { $0.aid == aid })
                else { break }
                found.append(InspectedApplication(aid: aid))
                select.p2 = 0x02  // next occurrence
            }
        }
        return found
    }
}

// MARK: - Reading one application

extension CardInspector {
    private func read(_ application: inout InspectedApplication, _ channel: any CardChannel) async throws {
        let selected = try await channel.transmit(.select(application.aid.bytes))
        if selected.status == 0x6283 { application.findings.append("the application is blocked (6283)") }
        if !selected.data.isEmpty { application.fci = objects(selected.data, of: "FCI", &application.findings) }
        guard selected.status == .success || application.fci != nil else {
            application.findings.append("SELECT: \(selected.status)")
            return
        }
        if application.fci == nil { application.findings.append("SELECT gave no FCI") }

        try await getProcessingOptions(&application, channel)
        try await readRecords(&application, channel)
        try await getData(&application, channel)
        try await readLog(&application, channel)
        try await generateAC(&application, channel)
        noteDuplicates(&application)
    }

    private func getProcessingOptions(
        _ application: inout InspectedApplication, _ channel: any CardChannel
    ) async throws {
        var options: [UInt8] = []
        if let pdol = application.value(0x9F38) {
            options = dolData(pdol, name: "PDOL", &application) ?? []
        }
        var response = try await channel.transmit(.getProcessingOptions(options))
        if response.status != .success, !options.isEmpty {
            application.findings.append("GPO: \(response.status); tried again without data")
            response = try await channel.transmit(.getProcessingOptions([]))
        }
        guard response.status == .success else {
            application.findings.append("GPO: \(response.status)")
            return
        }
        guard let objects = objects(response.data, of: "GPO", &application.findings) else { return }
        application.processingOptions = objects
        if let format1 = objects[0x80]?.value {
            guard format1.count % 4 == 2, let values = ResponseFormat1.processingOptions.split(format1) else {
                application.findings.append("GPO: template 80 of \(format1.count) bytes")
                return
            }
            application.applicationInterchangeProfile = values.first?.value
            application.applicationFileLocator = values.dropFirst().first?.value
        } else {
            application.applicationInterchangeProfile = objects.firstAnywhere(0x82).map { Array($0.value) }
            application.applicationFileLocator = objects.firstAnywhere(0x94).map { Array($0.value) }
        }
    }

    private func readRecords(_ application: inout InspectedApplication, _ channel: any CardChannel) async throws {
        var afl = application.applicationFileLocator ?? []
        if afl.count > Self.maximumAFL {
            application.findings.append("AFL of \(afl.count) bytes; the first \(Self.maximumAFL) are read")
            afl.removeLast(afl.count - Self.maximumAFL)
        }
        if afl.count % 4 != 0 { application.findings.append("AFL of \(afl.count) bytes, not a multiple of 4") }
        var seen: Set<[UInt8]> = []
        for start in stride(from: 0, to: afl.count - afl.count % 4, by: 4) {
            let group = "AFL entry \(afl[start..<start + 4].hex)"
            var entry: ApplicationFileLocator.Entry?
            do throws(ApplicationFileLocatorError) {
                entry = try ApplicationFileLocator.Entry(afl, at: start)
            } catch {
                application.findings.append("\(group): \(error.reason.rawValue)")
                // Records remain readable even if the number of signed ones is wrong.
                afl[start + 3] = 0
                entry = try? ApplicationFileLocator.Entry(afl, at: start)
            }
            for record in entry?.each ?? [] {
                let name = "record \(record.sfi).\(record.number)"
                guard seen.insert([record.sfi, record.number]).inserted else {
                    application.findings.append("\(group) names \(name) once more")
                    continue
                }
                guard seen.count <= Self.maximumRecords else {
                    application.findings.append("more than \(Self.maximumRecords) records; the rest is not read")
                    return
                }
                let response = try await channel.transmit(.readRecord(record.number, sfi: record.sfi))
                var objects: TLVList?
                if response.status == .success {
                    objects = self.objects(response.data, of: name, &application.findings)
                    if let objects, record.sfi <= 10, objects.map(\.tag) != [0x70] {
                        application.findings.append("\(name) is not one template 70")
                    }
                } else {
                    application.findings.append("\(name): \(response.status)")
                }
                application.records.append(
                    .init(sfi: record.sfi, number: record.number, isSigned: record.isSigned, objects: objects))
            }
        }
    }

    /// ATC, PIN try counter, last online ATC, log format (EMV Book 3, 6.5.7.2).
    private static let dataTags: [TLVTag] = [0x9F36, 0x9F17, 0x9F13, 0x9F4F]

    private func getData(_ application: inout InspectedApplication, _ channel: any CardChannel) async throws {
        for tag in Self.dataTags {
            let response = try await channel.transmit(.getData(tag))
            guard response.status == .success else { continue }
            guard let objects = objects(response.data, of: "GET DATA \(tag)", &application.findings) else { continue }
            guard objects[tag] != nil else {
                application.findings.append("GET DATA \(tag) gave another object")
                continue
            }
            application.data.append(objects)
        }
    }

    /// EMV Book 3, Annex D: 9F4D in the FCI names the file and how many records it may hold.
    private func readLog(_ application: inout InspectedApplication, _ channel: any CardChannel) async throws {
        guard let entry = application.value(0x9F4D) ?? application.value(0xDF60), entry.count == 2 else { return }
        guard (11...30).contains(entry[0]) else {
            application.findings.append("log entry names the file \(entry[0])")
            return
        }
        for number in 1...max(1, min(entry[1], 100)) {
            let response = try await channel.transmit(.readRecord(number, sfi: entry[0]))
            guard response.status == .success, !response.data.isEmpty else { return }
            application.log.append(response.data)
        }
    }

    /// EMV Book 3, 6.5.5, requesting an AAC.  A card that returned a cryptogram with GPO is not asked for another.
    private func generateAC(_ application: inout InspectedApplication, _ channel: any CardChannel) async throws {
        guard application.value(0x9F26) == nil, let cdol1 = application.value(0x8C),
            let data = dolData(cdol1, name: "CDOL1", &application)
        else { return }
        let response = try await channel.transmit(.generateAC(referenceControl: 0x00, data: data))
        guard response.status == .success else {
            application.findings.append("GENERATE AC: \(response.status)")
            return
        }
        guard let objects = objects(response.data, of: "GENERATE AC", &application.findings) else { return }
        application.cryptogramResponse = objects
        if let format1 = objects[0x80]?.value {
            guard let values = ResponseFormat1.applicationCryptogram.split(format1) else {
                application.findings.append("GENERATE AC: template 80 of \(format1.count) bytes")
                return
            }
            application.cryptogramResponse = try? TLVList(
                TLVTag(0x77).encode(values.flatMap { $0.tag.encode($0.value) }))
        }
    }

    /// EMV Book 3, 10.2: an object that occurs twice in the records is an error of the card.
    private func noteDuplicates(_ application: inout InspectedApplication) {
        var origins: [TLVTag: InspectedApplication.Element.Origin] = [:]
        for element in application.elements {
            guard case .record = element.origin else { continue }
            if let first = origins.updateValue(element.origin, forKey: element.object.tag) {
                application.findings.append("\(element.object.tag) stands in \(first) and in \(element.origin)")
            }
        }
    }

    /// Returns the values for `list` from the terminal's data; nil if it is not a list, which is recorded.
    private func dolData(
        _ list: [UInt8], name: String, _ application: inout InspectedApplication
    ) -> [UInt8]? {
        do {
            return try DataObjectList(list).value(scope: application.scope) { terminalData[$0] }
        } catch {
            application.findings.append("\(name): \(error)")
            return nil
        }
    }

    private func objects(_ data: [UInt8], of name: String, _ findings: inout [String]) -> TLVList? {
        do {
            guard !data.isEmpty else {
                findings.append("\(name): an empty answer")
                return nil
            }
            return try TLVList(data)
        } catch {
            findings.append("\(name): \(error)")
            return nil
        }
    }
}
