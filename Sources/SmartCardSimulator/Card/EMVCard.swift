import SmartCard
import Synchronization

/// An EMV card on the contactless interface (EMV Books 1 and 3; EMV Contactless Book B, 3.3).
///
/// It answers with all it has whatever Le says, as a card over ISO/IEC 14443-4 does, and knows one transaction after
/// each SELECT.
final class EMVCard: VirtualCard {
    let radio: VirtualCardRadio
    private let personality: EMVPersonality
    private let state: Mutex<State>

    private struct State {
        /// What is selected: the directory, or an application by its place.
        var selected: Selection?
        var stage = Stage.selected
        /// Application Transaction Counter of each application.  It outlives the field.
        var counters: [UInt16]
        /// What the terminal has told since SELECT, by tag.
        var terminal: [TLVTag: [UInt8]] = [:]
    }

    private enum Selection: Equatable {
        case directory
        case application(Int)
    }

    /// How far the transaction of the selected application is.
    private enum Stage {
        case selected, initiated, done
    }

    init(radio: VirtualCardRadio, personality: EMVPersonality) {
        self.radio = radio
        self.personality = personality
        state = Mutex(State(counters: personality.applications.map(\.atc)))
    }

    func reset() {
        state.withLock {
            $0.selected = nil
            $0.stage = .selected
            $0.terminal = [:]
        }
    }

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        guard let command = try? CommandAPDU(command), command.lengthCoding == .short else {
            return ResponseAPDU(status: 0x6700).bytes
        }
        return state.withLock { respond(to: command, &$0) }.bytes
    }

    private func respond(to command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        // The command as EMV Book 3, 6.5 and Book 1, 11.3 have it, each in its class.
        switch (command.cla, command.ins) {
        case (0x00, 0xA4): select(command, &state)
        case (0x00, 0xB2): readRecord(command, state)
        case (0x80, 0xA8): getProcessingOptions(command, &state)
        case (0x80, 0xAE): generateAC(command, &state)
        case (0x80, 0xCA): getData(command, state)
        case (0x00, 0xA8), (0x00, 0xAE), (0x00, 0xCA), (0x80, 0xA4), (0x80, 0xB2): ResponseAPDU(status: 0x6E00)
        case (0x00, _), (0x80, _): ResponseAPDU(status: 0x6D00)
        default: ResponseAPDU(status: 0x6E00)
        }
    }

    private func application(_ state: State) -> (index: Int, EMVApplication)? {
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
        names += personality.applications.enumerated().map { (.application($0.offset), $0.element.aid.bytes) }
        if command.p2 == 0x02 {
            // The next occurrence comes after what is selected now.
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
            status = personality.applications[index].statuses[.select] ?? .success
        }
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        state.selected = found
        state.stage = .selected
        state.terminal = [:]
        return ResponseAPDU(data: fci, status: status)
    }

    /// Data come with success and with warnings, 62xx and 63xx (ISO/IEC 7816-4, 5.1.3).
    private static func carriesData(_ status: StatusWord) -> Bool {
        switch status {
        case .success, .warning, .warningChanged: true
        default: false
        }
    }

    // MARK: GET PROCESSING OPTIONS (EMV Book 3, 6.5.8)

    private func getProcessingOptions(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard command.p1 == 0, command.p2 == 0 else { return ResponseAPDU(status: 0x6A86) }
        guard let (index, application) = application(state), state.stage == .selected else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        // Template 83 around the values that the PDOL asks for; without PDOL `83 00`.
        guard !command.data.isEmpty else { return ResponseAPDU(status: 0x6700) }
        guard command.data[0] == 0x83 else { return ResponseAPDU(status: 0x6A80) }
        guard let list = try? TLVList(command.data, padding: []), list.count == 1, let template = list.first,
            let values = application.pdol.values(in: template.value)
        else { return ResponseAPDU(status: 0x6700) }
        let status = application.statuses[.gpo] ?? .success
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        // A counter at its end makes no more transactions (EMV Book 2, 8.1.1 asks for a new ATC each time).
        guard state.counters[index] < .max else { return ResponseAPDU(status: .conditionsNotSatisfied) }

        state.counters[index] += 1
        state.terminal = values
        state.stage = .initiated
        // Visa's reader asks for a cryptogram here: TTQ byte 2, bit 8 says that it wants one to send online (EMV
        // Contactless Book C-3, Annex A).
        let qualifiers = values[0x9F66] ?? []
        let wantsOnline = qualifiers.count > 1 && qualifiers[1] & 0x80 != 0
        let kind = decide(application, asked: wantsOnline ? .arqc : .tc, values)
        return answer(application.processingOptions, kind, application, index, status, state)
    }

    // MARK: GENERATE AC (EMV Book 3, 6.5.5)

    private func generateAC(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard let response = application.generateAC else { return ResponseAPDU(status: 0x6D00) }
        // Bits 8 and 7 say which cryptogram; this card signs none, so bit 5 (CDA) is not for it.
        guard let asked = Cryptogram(rawValue: command.p1), command.p2 == 0 else {
            return ResponseAPDU(status: 0x6A86)
        }
        guard state.stage == .initiated else { return ResponseAPDU(status: .conditionsNotSatisfied) }
        guard let values = application.cdol1.values(in: command.data[...]) else {
            return ResponseAPDU(status: 0x6700)
        }
        let status = application.statuses[.generateAC] ?? .success
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        state.stage = .done
        // What GENERATE AC brings counts more than what GET PROCESSING OPTIONS brought.
        state.terminal.merge(values) { $1 }
        let kind = decide(application, asked: asked, state.terminal)
        return answer(response, kind, application, index, status, state)
    }

    /// Cryptogram Information Data, bits 8 and 7 (EMV Book 3, 6.5.5.4).
    private enum Cryptogram: UInt8 {
        case aac = 0x00
        case tc = 0x40
        case arqc = 0x80
    }

    /// The card gives what is asked or less: TC, ARQC, AAC in this order (EMV Book 3, 6.5.5.1).
    private func decide(
        _ application: EMVApplication, asked: Cryptogram, _ terminal: [TLVTag: [UInt8]]
    ) -> Cryptogram {
        switch (asked, application.decision) {
        case (.aac, _), (_, .decline): return .aac
        case (.arqc, _), (.tc, .online): return .arqc
        case (.tc, .approve(let limit)):
            guard let amount = terminal[0x9F02].flatMap(Self.number), amount <= limit else { return .arqc }
            return .tc
        }
    }

    /// A number in binary coded decimal; nil if a digit is not one, or there are more than 12.
    private static func number(_ digits: [UInt8]) -> UInt64? {
        guard digits.count <= 6 else { return nil }
        var number: UInt64 = 0
        for byte in digits {
            guard byte >> 4 < 10, byte & 0x0F < 10 else { return nil }
            number = number * 100 + UInt64(byte >> 4) * 10 + UInt64(byte & 0x0F)
        }
        return number
    }

    private func answer(
        _ response: EMVApplication.Response, _ kind: Cryptogram, _ application: EMVApplication, _ index: Int,
        _ status: StatusWord, _ state: State
    ) -> ResponseAPDU {
        var live: [LiveValue: [UInt8]] = [
            .afl: application.afl,
            .atc: Self.bytes(state.counters[index]),
            .cid: [kind.rawValue],
            // CVR: bits 8 and 7 = 10, no second GENERATE AC; bits 6 and 5 the cryptogram as in the CID (VIS, Annex A;
            // M/Chip, CVR byte 1).
            .acType: [0x80 | kind.rawValue >> 2],
        ]
        if response.objects.uses(.cryptogram), let cryptogram = application.cryptogram {
            let value = cryptogram { application.value(of: $0, in: response, live, terminal: state.terminal) }
            guard let value else { return ResponseAPDU(status: 0x6F00) }
            live[.cryptogram] = value
        }
        return ResponseAPDU(data: response.encoded(live), status: status)
    }

    private static func bytes(_ counter: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: counter >> 8), UInt8(truncatingIfNeeded: counter)]
    }

    // MARK: READ RECORD (EMV Book 3, 6.5.11)

    private func readRecord(_ command: CommandAPDU, _ state: State) -> ResponseAPDU {
        let sfi = command.p2 >> 3
        // P2, bits 3 to 1 = 100: P1 is a record number.
        guard command.p2 & 0x07 == 0x04, command.p1 > 0, (1...30).contains(sfi) else {
            return ResponseAPDU(status: 0x6A86)
        }
        guard command.data.isEmpty else { return ResponseAPDU(status: 0x6700) }
        guard let (_, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard sfi > 10 || application.recordsReadableAtOnce || state.stage != .selected else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let status = application.statuses[.readRecord] ?? .success
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        guard application.records.keys.contains(where: { $0.sfi == sfi }) else {
            return ResponseAPDU(status: .fileNotFound)
        }
        guard let record = application.records[.init(sfi: sfi, number: command.p1)] else {
            return ResponseAPDU(status: .recordNotFound)
        }
        return ResponseAPDU(data: record, status: status)
    }

    // MARK: GET DATA (EMV Book 3, 6.5.7)

    private func getData(_ command: CommandAPDU, _ state: State) -> ResponseAPDU {
        guard command.data.isEmpty else { return ResponseAPDU(status: 0x6700) }
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let status = application.statuses[.getData] ?? .success
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        let tag = TLVTag(rawValue: UInt32(command.p1) << 8 | UInt32(command.p2))
        guard let value = application.data[tag] else { return ResponseAPDU(status: 0x6A88) }
        return ResponseAPDU(
            data: tag.encode(tag == 0x9F36 ? Self.bytes(state.counters[index]) : value), status: status)
    }
}

extension EMVApplication {
    /// The value of a data object in a transaction: the terminal's, else the one in the response that is being made,
    /// else the one that GET PROCESSING OPTIONS gave.
    func value(
        of tag: TLVTag, in response: Response, _ live: [LiveValue: [UInt8]], terminal: [TLVTag: [UInt8]]
    ) -> [UInt8]? {
        if tag == 0x9F36 { return live[.atc] }
        return terminal[tag] ?? response.objects.value(of: tag, live)
            ?? processingOptions.objects.value(of: tag, live)
    }
}
