import SmartCard
import Synchronization

/// An EMV card on the contactless interface (EMV Books 1 and 3; EMV Contactless Book B, 3.3).
///
/// It returns its whole answer regardless of Le, as a card over ISO/IEC 14443-4 does, and performs one transaction
/// after each SELECT.
final class EMVCard: VirtualCard {
    let radio: VirtualCardRadio
    let personality: EMVPersonality
    private let state: Mutex<State>

    struct State {
        /// The current selection: the directory, or an application by its index.
        var selected: Selection?
        /// The transaction of the selected application, from GET PROCESSING OPTIONS on.
        var transaction: Transaction?
        /// Application Transaction Counter of each application.  It outlives the field.
        var counters: [UInt16]
        /// Commands that were refused until the card is presented again, and those of them since when it has been.
        var refused: Set<Refusal> = []
        var granted: Set<Refusal> = []
        /// The pending online request of each application.  It outlives the field.
        var requests: [Int: IssuerUpdate.Request] = [:]
        /// The values that the issuer has changed in each application, and the applications that it has blocked.
        var written: [Int: [TLVTag: [UInt8]]] = [:]
        var blocked: Set<Int> = []
        /// True if the issuer has authenticated itself since SELECT; nil if it has not tried.
        var issuerIsAuthentic: Bool?
        /// The cardholder's confirmation on the card, for each application that has asked since the card entered the
        /// field.
        var confirmed: [Int: Bool] = [:]
        /// True after the card has been torn from the field, until it returns.
        var isTorn = false
        var isSilent = false
        /// The RECOVER AC data of each application.  Like the properties below, they outlive the field.
        var recoverable: [Int: Recoverable] = [:]
        /// Offline Accumulator Balance (9F50) of each application that has one, in the smallest unit of the currency.
        var balances: [Int: UInt64] = [:]
        var storages: [Int: DataStorage] = [:]
    }

    struct Refusal: Hashable {
        var application: Int
        /// The refused command; nil for the approval of a transaction.
        var command: EMVApplication.Command?
    }

    enum Selection: Equatable {
        case directory
        case application(Int)
    }

    /// A cryptogram that the terminal may not have received.
    struct Recoverable {
        /// The data that the terminal supplied with it.
        let terminal: [TLVTag: [UInt8]]
        let response: [UInt8]
    }

    init(radio: VirtualCardRadio, personality: EMVPersonality) {
        self.radio = radio
        self.personality = personality
        var state = State(counters: personality.applications.map(\.atc))
        for (index, application) in personality.applications.enumerated() {
            state.balances[index] = application.data[0x9F50].flatMap(Self.number)
            state.storages[index] = application.dataStorage
        }
        self.state = Mutex(state)
    }

    func reset() {
        state.withLock {
            $0.selected = nil
            $0.transaction = nil
            $0.issuerIsAuthentic = nil
            $0.confirmed = [:]
            $0.isSilent = false
            $0.granted.formUnion($0.refused)
            $0.refused = []
        }
    }

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        guard let command = try? CommandAPDU(command), command.lengthCoding == .short else {
            return ResponseAPDU(status: 0x6700).bytes
        }
        guard let name = EMVApplication.Command(cla: command.cla, ins: command.ins) else {
            let isInstruction = EMVApplication.Command.allCases.contains { $0.code.ins == command.ins }
            let isClass = command.cla == 0x00 || command.cla == 0x80
            return ResponseAPDU(status: isClass && !isInstruction ? 0x6D00 : 0x6E00).bytes
        }
        let response = state.withLock { state -> ResponseAPDU? in
            guard let tear = personality.tear, tear.command == name, !state.isTorn else {
                return state.isSilent ? nil : respond(to: command, name, &state)
            }
            if tear.isHeard { _ = respond(to: command, name, &state) }
            (state.isTorn, state.isSilent) = (true, true)
            return nil
        }
        guard let response else { return nil }
        let limit = personality.truncations[name] ?? response.data.count
        return ResponseAPDU(data: Array(response.data.prefix(limit)), status: response.status).bytes
    }

    func processingTime(of command: [UInt8]) -> Duration {
        guard command.count >= 2, let name = EMVApplication.Command(cla: command[0], ins: command[1]) else {
            return .zero
        }
        return personality.delays[name] ?? .zero
    }

    private func respond(
        to command: CommandAPDU, _ name: EMVApplication.Command, _ state: inout State
    ) -> ResponseAPDU {
        switch name {
        case .select: select(command, &state)
        case .gpo: getProcessingOptions(command, &state)
        case .internalAuthenticate: internalAuthenticate(command, &state)
        case .generateAC: generateAC(command, &state)
        case .readRecord: readRecord(command, &state)
        case .getData: getData(command, &state)
        case .externalAuthenticate: externalAuthenticate(command, &state)
        case .putData, .applicationBlock, .applicationUnblock: script(command, name, &state)
        case .exchangeRelayResistanceData: exchangeRelayResistanceData(command, &state)
        case .computeCryptographicChecksum: computeCryptographicChecksum(command, &state)
        case .recoverAC: recoverAC(command, &state)
        case .putEnvelope: putEnvelope(command, &state)
        }
    }

    /// Returns the status word of the command if nothing else prevents it.
    func status(of command: EMVApplication.Command, _ index: Int, _ state: inout State) -> StatusWord {
        guard let status = personality.applications[index].statuses[command] else { return .success }
        let refusal = Refusal(application: index, command: command)
        guard status.untilPresentedAgain else { return status.word }
        guard state.granted.remove(refusal) == nil else { return .success }
        state.refused.insert(refusal)
        return status.word
    }

    func application(_ state: State) -> (index: Int, EMVApplication)? {
        guard case .application(let index) = state.selected, personality.applications.indices.contains(index) else {
            return nil
        }
        return (index, personality.applications[index])
    }

    // MARK: SELECT (EMV Book 1, 11.3)

    private func select(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard command.p1 == 0x04, command.p2 == 0x00 || command.p2 == 0x02 else { return ResponseAPDU(status: 0x6A86) }
        // A DF name or the beginning of one, 5 to 16 bytes.
        guard (5...16).contains(command.data.count) else { return ResponseAPDU(status: 0x6700) }

        var names: [(Selection, [UInt8])] = []
        if personality.directory != nil || personality.directoryStatus != nil {
            names.append((.directory, EMVPersonality.directoryName))
        }
        names += personality.applications.enumerated().map { (.application($0.offset), $0.element.name) }
        if command.p2 == 0x02 {
            // The next occurrence follows the current selection.
            guard let now = names.firstIndex(where: { $0.0 == state.selected }) else {
                return ResponseAPDU(status: .fileNotFound)
            }
            names.removeSubrange(...now)
        }
        guard let (found, _) = names.first(where: { $0.1.starts(with: command.data) }) else {
            return ResponseAPDU(status: .fileNotFound)
        }

        let fci: [UInt8]
        let status: StatusWord
        switch found {
        case .directory:
            fci = personality.directory ?? []
            status = personality.directoryStatus ?? .success
        case .application(let index):
            fci = personality.applications[index].fci
            // EMV Book 1, 12.3.1
            status = state.blocked.contains(index) ? 0x6283 : self.status(of: .select, index, &state)
        }
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        state.selected = found
        state.transaction = nil
        state.issuerIsAuthentic = nil
        return ResponseAPDU(data: fci, status: status)
    }

    /// Data come with success and with warnings, 62xx and 63xx (ISO/IEC 7816-4, 5.1.3).
    static func carriesData(_ status: StatusWord) -> Bool {
        switch status {
        case .success, .warning, .warningChanged: true
        default: false
        }
    }

    // MARK: GET PROCESSING OPTIONS (EMV Book 3, 6.5.8)

    private func getProcessingOptions(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard command.p1 == 0, command.p2 == 0 else { return ResponseAPDU(status: 0x6A86) }
        guard let (index, application) = application(state), state.transaction == nil, !state.blocked.contains(index)
        else { return ResponseAPDU(status: .conditionsNotSatisfied) }
        // Template 83 around the values that the PDOL asks for; without PDOL `83 00`.
        guard !command.data.isEmpty else { return ResponseAPDU(status: 0x6700) }
        guard command.data[0] == 0x83 else { return ResponseAPDU(status: 0x6A80) }
        guard let list = try? TLVList(command.data, padding: []), list.count == 1, let template = list.first,
            let values = application.pdol.values(in: template.value)
        else { return ResponseAPDU(status: 0x6700) }
        let status = status(of: .gpo, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        // A counter at its end makes no more transactions (EMV Book 2, 8.1.1 asks for a new ATC each time).
        guard state.counters[index] < .max else { return ResponseAPDU(status: .conditionsNotSatisfied) }

        // Visa's reader asks for a cryptogram here: TTQ byte 2, bit 8 says that it wants one to send online, byte 1, bit 1
        // that it then authenticates the card too (EMV Contactless Book C-3, Annex A).
        let qualifiers = values[0x9F66] ?? []
        let wantsOnline = qualifiers.count > 1 && qualifiers[1] & 0x80 != 0
        let takesSignature = qualifiers.first.map { $0 & 0x01 != 0 } ?? false
        let kind = decide(index, asked: wantsOnline ? .arqc : .tc, values, &state)
        guard let response = application.processingOptions[kind, signed: takesSignature] else {
            return ResponseAPDU(status: 0x6F00)
        }
        state.counters[index] += 1
        var transaction = Transaction(
            terminal: values, options: Array(template.value), response: response, named: application.keyValues)
        transaction.named[.afl] = application.afl
        transaction.named[.atc] = Self.bytes(state.counters[index])
        transaction.draw(from: transaction.options)
        transaction.name(kind)
        if let storage = state.storages[index] { Self.read(storage, &transaction) }
        if response.objects.names.contains(.cryptogram) {
            transaction.named[.cryptogram] = transaction.cryptogram(application, in: response)
        }
        if response.objects.names.union(application.recordObjects.names).contains(.signedDynamicData) {
            transaction.named[.signedDynamicData] = transaction.fastSignature(application, kind)
        }
        state.transaction = transaction
        state.requests[index] = transaction.request(kind)
        return ResponseAPDU(data: response.encoded(transaction.named), status: status)
    }

    // MARK: INTERNAL AUTHENTICATE (EMV Book 3, 6.5.9)

    private func internalAuthenticate(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard let response = application.internalAuthenticate else { return ResponseAPDU(status: 0x6D00) }
        guard command.p1 == 0, command.p2 == 0 else { return ResponseAPDU(status: 0x6A86) }
        guard var transaction = state.transaction else { return ResponseAPDU(status: .conditionsNotSatisfied) }
        guard command.data.count == application.ddol.length else { return ResponseAPDU(status: 0x6700) }
        let status = status(of: .internalAuthenticate, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }

        transaction.draw(from: command.data)
        transaction.named[.signedDynamicData] = transaction.dynamicSignature(application, command.data)
        return ResponseAPDU(data: response.encoded(transaction.named), status: status)
    }

    // MARK: GENERATE AC (EMV Book 3, 6.5.5)

    private func generateAC(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard !application.generateAC.cases.isEmpty else { return ResponseAPDU(status: 0x6D00) }
        // Bits 8 and 7 say which cryptogram, bit 5 that it be signed (CDA), for cards that can.
        let wantsSignature = command.p1 & 0x10 != 0
        guard let asked = EMVApplication.Cryptogram(rawValue: command.p1 & ~0x10), command.p2 == 0,
            !wantsSignature || application.generateAC.cases.contains(where: \.isSigned)
        else { return ResponseAPDU(status: 0x6A86) }
        guard var transaction = state.transaction, !transaction.isDone else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        // The bytes after the values for CDOL1 are for DSDOL.
        let head = command.data.prefix(application.cdol1.length)
        let tail = command.data.dropFirst(head.count)
        guard let values = application.cdol1.values(in: head) else { return ResponseAPDU(status: 0x6700) }
        let stored = tail.isEmpty ? nil : application.dsdol?.values(in: tail, lastIsShort: true)
        guard tail.isEmpty || stored != nil && transaction.storageOperator != nil else {
            return ResponseAPDU(status: 0x6700)
        }
        let status = status(of: .generateAC, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }

        transaction.isDone = true
        // Data from GENERATE AC take precedence over data from GET PROCESSING OPTIONS.
        transaction.terminal.merge(values) { $1 }
        var kind = decide(index, asked: asked, transaction.terminal, &state)
        let storage = state.storages[index]
        if let stored, !Self.write(stored, command.p1, transaction, &state.storages[index]) { kind = .aac }
        guard let response = application.generateAC[kind, signed: wantsSignature] else {
            return ResponseAPDU(status: 0x6F00)
        }
        if kind == .tc { state.balances[index]? -= Self.number(transaction.terminal[0x9F02] ?? []) ?? 0 }
        transaction.draw(from: command.data)
        transaction.name(kind)
        transaction.named[.cryptogram] = transaction.cryptogram(application, in: response)
        if response.objects.names.contains(.signedDynamicData) {
            // DS Summary 2 and 3: before and after.
            let summaries = transaction.storageOperator.map { _ in
                (storage?.summary ?? []) + (state.storages[index]?.summary ?? [])
            }
            transaction.named[.signedDynamicData] = transaction.combinedSignature(
                application, of: response, Array(head), (summaries ?? []) + transaction.relayData)
        }
        state.transaction = transaction
        state.requests[index] = transaction.request(kind)
        let data = response.encoded(transaction.named)
        state.recoverable[index] = Recoverable(terminal: transaction.terminal, response: data)
        return ResponseAPDU(data: data, status: status)
    }

    // MARK: EXTERNAL AUTHENTICATE (EMV Book 3, 6.5.4)

    private func externalAuthenticate(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard let update = application.issuerUpdate else { return ResponseAPDU(status: 0x6D00) }
        guard command.p1 == 0, command.p2 == 0 else { return ResponseAPDU(status: 0x6A86) }
        guard (8...16).contains(command.data.count) else { return ResponseAPDU(status: 0x6700) }
        // The Book allows it once in a transaction; here it is once after each SELECT, because the card may leave halfway.
        guard let request = state.requests[index], state.issuerIsAuthentic == nil else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let status = status(of: .externalAuthenticate, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        let isAuthentic = update.authenticates(command.data, request)
        state.issuerIsAuthentic = isAuthentic
        return ResponseAPDU(status: isAuthentic ? status : 0x6300)
    }

    // MARK: Issuer scripts (EMV Book 3, 6.5.1 and 6.5.2; PUT DATA: EMV Card Personalization Specification)

    private func script(
        _ command: CommandAPDU, _ name: EMVApplication.Command, _ state: inout State
    ) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard let update = application.issuerUpdate else { return ResponseAPDU(status: 0x6D00) }
        guard let request = state.requests[index], state.issuerIsAuthentic == true else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let tag = TLVTag(rawValue: UInt32(command.p1) << 8 | UInt32(command.p2))
        let value = name == .putData && !Self.living.contains(tag) ? application.data[tag] : nil
        guard name == .putData ? value != nil : tag == 0 else { return ResponseAPDU(status: 0x6A86) }
        // ISO/IEC 7816-4, 5.1.3: 6988, incorrect secure messaging data objects.
        guard let data = update.open(command, request) else { return ResponseAPDU(status: 0x6988) }
        guard data.count == value?.count ?? 0 else { return ResponseAPDU(status: 0x6700) }
        let status = status(of: name, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        switch name {
        case .putData: state.written[index, default: [:]][tag] = data
        case .applicationBlock: state.blocked.insert(index)
        default: state.blocked.remove(index)
        }
        return ResponseAPDU(status: status)
    }

    /// Returns the cryptogram type that was requested or a lower one: TC, ARQC, AAC in this order (EMV Book 3,
    /// 6.5.5.1).
    func decide(
        _ index: Int, asked: EMVApplication.Cryptogram, _ terminal: [TLVTag: [UInt8]], _ state: inout State
    ) -> EMVApplication.Cryptogram {
        switch (asked, personality.applications[index].decision) {
        case (.aac, _), (_, .decline): return .aac
        case (_, .declineUntilPresentedAgain): return isConfirmed(index, &state) ? .arqc : .aac
        case (.arqc, _), (.tc, .online): return .arqc
        case (.tc, .approve(let limit)):
            guard let amount = terminal[0x9F02].flatMap(Self.number),
                amount <= min(limit, state.balances[index] ?? limit)
            else { return .arqc }
            return .tc
        }
    }

    /// Returns true if the cardholder has confirmed since the card asked.  The cardholder confirms after the card has
    /// been in the field and leaves it; the confirmation holds for its next visit.
    private func isConfirmed(_ index: Int, _ state: inout State) -> Bool {
        if let known = state.confirmed[index] { return known }
        let refusal = Refusal(application: index, command: nil)
        let isConfirmed = state.granted.remove(refusal) != nil
        if !isConfirmed { state.refused.insert(refusal) }
        state.confirmed[index] = isConfirmed
        return isConfirmed
    }

    /// A number in binary coded decimal; nil if a digit is not one, or there are more than 12.
    static func number(_ digits: [UInt8]) -> UInt64? {
        guard digits.count <= 6 else { return nil }
        var number: UInt64 = 0
        for byte in digits {
            guard byte >> 4 < 10, byte & 0x0F < 10 else { return nil }
            number = number * 100 + UInt64(byte >> 4) * 10 + UInt64(byte & 0x0F)
        }
        return number
    }

    private static func bytes(_ counter: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: counter >> 8), UInt8(truncatingIfNeeded: counter)]
    }

    // MARK: READ RECORD (EMV Book 3, 6.5.11)

    private func readRecord(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        let sfi = command.p2 >> 3
        // P2, bits 3 to 1 = 100: P1 is a record number.
        guard command.p2 & 0x07 == 0x04, command.p1 > 0, (1...30).contains(sfi) else {
            return ResponseAPDU(status: 0x6A86)
        }
        guard command.data.isEmpty else { return ResponseAPDU(status: 0x6700) }
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard sfi > 10 || application.recordsReadableAtOnce || state.transaction != nil else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let status = status(of: .readRecord, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        guard application.records.keys.contains(where: { $0.sfi == sfi }) else {
            return ResponseAPDU(status: .fileNotFound)
        }
        guard let record = application.records[.init(sfi: sfi, number: command.p1)] else {
            return ResponseAPDU(status: .recordNotFound)
        }
        // What belongs to a transaction is not there before it.
        guard state.transaction != nil || record.objects.names.isSubset(of: NamedValue.ofKeys) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let named = state.transaction?.named ?? application.keyValues
        return ResponseAPDU(data: record.objects.encoded(named), status: status)
    }

    // MARK: GET DATA (EMV Book 3, 6.5.7)

    private func getData(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard command.data.isEmpty else { return ResponseAPDU(status: 0x6700) }
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let status = status(of: .getData, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        let tag = TLVTag(rawValue: UInt32(command.p1) << 8 | UInt32(command.p2))
        guard let value = state.written[index]?[tag] ?? application.data[tag] else {
            return ResponseAPDU(status: 0x6A88)
        }
        switch tag {
        case 0x9F36: return ResponseAPDU(data: tag.encode(Self.bytes(state.counters[index])), status: status)
        case 0x9F50:
            let balance = state.balances[index].map { Self.digits($0, value.count) }
            return ResponseAPDU(data: tag.encode(balance ?? value), status: status)
        default: return ResponseAPDU(data: tag.encode(value), status: status)
        }
    }

    /// The objects that only the card itself changes: the Application Transaction Counter and the Offline Accumulator
    /// Balance.
    static let living: Set<TLVTag> = [0x9F36, 0x9F50]

    /// `number` in binary coded decimal, its last digits if they are too many.
    private static func digits(_ number: UInt64, _ count: Int) -> [UInt8] {
        var rest = number
        return (0..<count).map { _ in
            defer { rest /= 100 }
            return UInt8(truncatingIfNeeded: (rest / 10 % 10) << 4 | rest % 10)
        }.reversed()
    }
}
