import Waiting

/// A PN532 (NXP UM0701-02), inside a reader, whose host sees it through `FF 00 00 00`, or on a board: `D4` command in, `D5`
/// response out, without the framing of the chip's own interfaces.
///
/// Cards of type A, type B and FeliCa.  The chip speaks ISO-DEP itself; a response longer than one frame is handed out in
/// parts, with the MI bit.
struct SoftwarePN532 {
    /// The error in the status byte of an exchange (UM0701-02, 7.1).
    struct Failure: RawRepresentable, Error, Hashable {
        let rawValue: UInt8

        static let timeout = Failure(rawValue: 0x01)
        static let bufferOverflow = Failure(rawValue: 0x07)
        static let authentication = Failure(rawValue: 0x14)
        static let wrongContext = Failure(rawValue: 0x27)
    }

    /// A card that InListPassiveTarget found.  Its number, Tg, is its place in the list, from 1.
    struct Target {
        let card: any VirtualCard
        let radio: VirtualCardRadio
        /// Bit rate and modulation type in GetGeneralStatus.
        let rate: UInt8
        let modulation: UInt8
        /// The target data that InListPassiveTarget returns after the target number.
        let description: [UInt8]
        /// True if the exchange uses ISO-DEP: type B, or RATS has been answered.
        var speaksISODEP: Bool
        var isHalted = false
        /// The rest of the card's last response, for empty InDataExchange commands to fetch.
        var pending: ArraySlice<UInt8> = []
        /// The parts so far of a command that comes with MI.
        var gathered: [UInt8] = []
        /// The block number of the card (ISO/IEC 14443-4, 7.5.3), which only raw exchanges show.
        var blockNumber: UInt8 = 1

        var isFeliCa: Bool { if case .felica = radio { true } else { false } }

        /// Selects the card again: it has lost its volatile state.
        mutating func wakeUp() {
            card.reset()
            (isHalted, pending, gathered, blockNumber) = (false, [], [], 1)
        }
    }

    /// Response data in one frame.  The chip has room for 262 bytes; a CCID message of an ACR122U for 256 after
    /// `D5 41`, the status byte and before `90 00`.
    private let maximumPart: Int
    /// The chip's buffer: the longest command that may come in parts.
    static let maximumCommand = 4096

    let revision: UInt8
    /// A host calls on any thread.
    let time = Time.current
    /// The cards on the reader, in the order in which they are found.  A card that was removed has to be selected again
    /// when it returns.
    var cards: [any VirtualCard] = [] {
        didSet {
            if isFieldOn {
                for card in cards where !oldValue.contains(where: { $0 === card }) { _ = card.notice(.fieldOn) }
                for card in oldValue where !lies(card) { _ = card.notice(.fieldOff) }
            }
            for index in targets.indices where !lies(targets[index].card) { targets[index].isHalted = true }
        }
    }
    /// SetParameters: bit 4 is automatic RATS, bit 2 automatic ATR_RES.
    var parameters: UInt8 = 0x14
    private(set) var isFieldOn = true
    var targets: [Target] = []
    /// The transmissions to all cards since this was last emptied.
    var records: [RadioRecord] = []
    /// The total time that the cards have taken since this was last set to zero.
    var cardTime: Duration = .zero
    private var lastError: UInt8 = 0x00
    var registers: [UInt16: UInt8] = [Register.transmitAuto: 0x40]
    private var ports: (UInt8, UInt8) = (0xFF, 0xFF)

    /// MxRtyPassiveActivation of RFConfiguration: the number of retries of InListPassiveTarget, `FF` for no limit.
    private(set) var passiveRetries: UInt8 = 0xFF
    /// fRetryTimeout of RFConfiguration: how long InCommunicateThru waits.
    private(set) var communicationTimeout: UInt8 = 0x0A
    /// The requests of a search without a limit.  A card answers the first, a phone the fourth at the latest.
    static let longSearch = 4

    init(revision: UInt8, maximumPart: Int = 256) { (self.revision, self.maximumPart) = (revision, maximumPart) }

    static let automaticRATS: UInt8 = 0x10

    /// Carries out a command, from its code on, without `D4`.
    ///
    /// - Returns: the response from its code on, without `D5`; nil for an error frame, the chip's word for a command
    ///   it does not know or cannot read.
    mutating func execute(_ command: ArraySlice<UInt8>, faults: inout SoftwareReaderFaults) -> [UInt8]? {
        guard let code = command.first else { return nil }
        let input = Array(command.dropFirst())
        return respond(code, input, &faults).map { [code &+ 1] + $0 }
    }

    private mutating func respond(_ code: UInt8, _ input: [UInt8], _ faults: inout SoftwareReaderFaults) -> [UInt8]? {
        switch code {
        case 0x00: diagnose(input)
        case 0x02: [0x32, 0x01, revision, 0x07]
        case 0x04: generalStatus
        case 0x06: readRegisters(input)
        case 0x08: writeRegisters(input)
        case 0x0C: [ports.0, ports.1, 0x00]
        case 0x0E: writePorts(input)
        case 0x12: setParameters(input)
        case 0x14: (1...3).contains(input.count) ? [] : nil
        case 0x16: (1...2).contains(input.count) ? [0x00] : nil
        case 0x32: configureField(input)
        case 0x40 where !input.isEmpty: reporting { chip throws(Failure) in try chip.dataExchange(input, &faults) }
        case 0x42:
            reporting { chip throws(Failure) in try chip.communicateThrough(input, &faults) }
        case 0x44 where input.count == 1: reporting { chip throws(Failure) in try chip.deselect(input[0]) }
        case 0x4A: listPassiveTargets(input, &faults)
        case 0x4E where input.count == 3: reporting { chip throws(Failure) in try chip.negotiate(input[0]) }
        case 0x52 where input.count == 1: reporting { chip throws(Failure) in try chip.release(input[0]) }
        case 0x54 where input.count == 1: reporting { chip throws(Failure) in try chip.select(input[0]) }
        case 0x60: autoPoll(input, &faults)
        default: nil
        }
    }

    // MARK: The chip itself

    /// Diagnose (7.2.1): communication line, ROM, RAM, polling, attention request, antenna.
    private func diagnose(_ input: [UInt8]) -> [UInt8]? {
        switch input.first {
        case 0x00: input
        case 0x01, 0x02, 0x07: [0x00]
        case 0x04: [0x80]
        case 0x06: [targets.contains { $0.speaksISODEP && isPresent($0) } ? 0x00 : Failure.timeout.rawValue]
        default: nil
        }
    }

    /// The response data of GetGeneralStatus (7.2.3): the last error, the presence of an external field, the number,
    /// bit rates and modulation type of each target, and the state of the SAM.
    private var generalStatus: [UInt8] {
        [lastError, 0x00, UInt8(truncatingIfNeeded: targets.count)]
            + targets.enumerated().flatMap {
                [UInt8(truncatingIfNeeded: $0 + 1), $1.rate, $1.rate, $1.modulation]
            } + [0x80]
    }

    private func readRegisters(_ input: [UInt8]) -> [UInt8]? {
        guard !input.isEmpty, input.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: input.count, by: 2).map {
            registers[UInt16(input[$0]) << 8 | UInt16(input[$0 + 1])] ?? 0x00
        }
    }

    private mutating func writeRegisters(_ input: [UInt8]) -> [UInt8]? {
        guard !input.isEmpty, input.count.isMultiple(of: 3) else { return nil }
        for i in stride(from: 0, to: input.count, by: 3) {
            registers[UInt16(input[i]) << 8 | UInt16(input[i + 1])] = input[i + 2]
        }
        return []
    }

    /// WriteGPIO (7.2.7): a port is changed where bit 7 validates its byte.
    private mutating func writePorts(_ input: [UInt8]) -> [UInt8]? {
        guard input.count == 2 else { return nil }
        if input[0] & 0x80 != 0 { ports.0 = input[0] & 0x3F }
        if input[1] & 0x80 != 0 { ports.1 = input[1] & 0x06 }
        return []
    }

    private mutating func setParameters(_ input: [UInt8]) -> [UInt8]? {
        guard input.count == 1 else { return nil }
        parameters = input[0]
        return []
    }

    /// RFConfiguration (7.3.1): the field, and settings that nothing here depends on.
    private mutating func configureField(_ input: [UInt8]) -> [UInt8]? {
        let lengths: [UInt8: Int] = [
            0x01: 1, 0x02: 3, 0x04: 1, 0x05: 3, 0x0A: 11, 0x0B: 8, 0x0C: 3, 0x0D: 9,
        ]
        guard let item = input.first, lengths[item] == input.count - 1 else { return nil }
        if item == 0x01 { switchField(on: input[1] & 0x01 != 0) }
        if item == 0x02 { communicationTimeout = input[3] }
        if item == 0x05 { passiveRetries = input[3] }
        return []
    }

    /// Switches the field.  Without it every card loses its volatile state, and none can be reached until it returns.
    mutating func switchField(on: Bool) {
        guard on != isFieldOn else { return }
        isFieldOn = on
        targets = []
        record(.field(isOn: on))
        for card in cards {
            _ = card.notice(on ? .fieldOn : .fieldOff)
            card.reset()
        }
    }

    // MARK: Finding cards

    /// A request for cards: BrTy of InListPassiveTarget, with the initiator data.
    enum Request {
        /// `00`: all of type A, or the one with this UID, its cascade tags included.
        case typeA(uid: [UInt8] = [])
        /// `03`: type B.  The AFI selects a family of cards; these answer to all.
        case typeB
        /// `01` and `02`: FeliCa at a bit rate, 01 for 212 and 02 for 424 kbit/s, by a Polling command without its length:
        /// `00`, system code, request code, time slots.
        case felica(rate: UInt8, polling: [UInt8])
        /// `04`: Jewel, which no card here is.
        case jewel

        /// Reads the data of InListPassiveTarget; nil for a request that the chip rejects.
        init?(_ modulation: UInt8, _ initiatorData: [UInt8]) {
            switch (modulation, initiatorData.count) {
            case (0x00, _): self = .typeA(uid: initiatorData)
            case (0x01, 5), (0x02, 5):
                guard initiatorData[0] == 0x00 else { return nil }
                self = .felica(rate: modulation, polling: initiatorData)
            case (0x03, 1), (0x03, 2): self = .typeB
            case (0x04, _): self = .jewel
            default: return nil
            }
        }

        /// Returns a card's answer in the form of InListPassiveTarget; nil for silence.
        func answer(of radio: VirtualCardRadio) -> [UInt8]? {
            switch (self, radio) {
            case (.typeA(let wanted), .typeA(let uid, let atqa, let sak, _)):
                // SENS_RES SEL_RES NFCIDLength NFCID
                guard wanted.isEmpty || wanted == (uid.count > 4 ? [0x88] : []) + uid.cascaded else { return nil }
                return atqa.prefix(2) + [sak, UInt8(truncatingIfNeeded: uid.count)] + uid
            case (.typeB, .typeB(let atqb)):
                // ATQB, then the answer to ATTRIB with its length: MBLI and CID zero.
                return atqb.prefix(12) + [0x01, 0x00]
            case (.felica(_, let polling), .felica): return radio.response(toPolling: polling)
            default: return nil
            }
        }
    }

    /// InListPassiveTarget (7.3.5): `MaxTg BrTy [initiator data]`.
    private mutating func listPassiveTargets(_ input: [UInt8], _ faults: inout SoftwareReaderFaults) -> [UInt8]? {
        guard input.count >= 2, (1...2).contains(input[0]), let request = Request(input[1], Array(input.dropFirst(2)))
        else { return nil }
        // It switches the field on itself, as nfcpy counts on.
        switchField(on: true)
        activate(
            [request], automaticRATS: parameters & Self.automaticRATS != 0, most: Int(input[0]),
            attempts: min(Int(passiveRetries) + 1, Self.longSearch), faults)
        return [UInt8(truncatingIfNeeded: targets.count)]
            + targets.enumerated().flatMap { [UInt8(truncatingIfNeeded: $0 + 1)] + $1.description }
    }

    /// Performs InAutoPoll (7.3.13): `PollNr Period Type…`, once for each type.
    ///
    /// The response is `NbTg`, then for each target its type, and with its length the target data of
    /// InListPassiveTarget.
    private mutating func autoPoll(_ input: [UInt8], _ faults: inout SoftwareReaderFaults) -> [UInt8]? {
        guard (3...17).contains(input.count), input[0] > 0, (1...15).contains(input[1]) else { return nil }
        switchField(on: true)
        var found: [(type: UInt8, target: Target)] = []
        let rounds = min(Int(input[0]), Self.longSearch)
        for type in (0..<rounds).flatMap({ _ in input.dropFirst(2) }) where found.count < 2 {
            let polling: [UInt8] = [0x00, 0xFF, 0xFF, 0x01, 0x00]
            guard let request = Request(type & 0x0F, [[], polling, polling, [0x00], []][Int(min(type & 0x0F, 4))])
            else {
                return nil
            }
            // Bit 6 is NFC-DEP in passive mode, bit 7 in active mode: no card speaks that.
            guard type & 0xC0 == 0 else { continue }
            activate([request], automaticRATS: parameters & Self.automaticRATS != 0, most: 2, faults)
            found += targets.filter { target in
                // Bit 5 asks for cards of ISO/IEC 14443-4 alone, bit 4 for MIFARE and FeliCa cards.
                let isWanted = type & 0x20 == 0 || target.speaksISODEP
                return isWanted && !found.contains { $0.target.card === target.card }
            }.map { target in
                let kind: UInt8 = target.speaksISODEP ? 0x20 : 0x10
                return (kind | type & 0x0F, target)
            }
        }
        targets = found.prefix(2).map(\.target)
        return [UInt8(truncatingIfNeeded: targets.count)]
            + zip(found, 1...2).flatMap { found, number in
                [found.type, UInt8(truncatingIfNeeded: found.target.description.count + 1), number]
                    + found.target.description
            }
    }

    /// Forgets all targets, then asks for cards, one request after the other, and selects up to `most` of them.
    ///
    /// - Parameter attempts: how often it asks until a card answers.
    mutating func activate(
        _ requests: [Request], automaticRATS: Bool, most: Int = 1, attempts: Int = 1, _ faults: SoftwareReaderFaults
    ) {
        targets = []
        guard isFieldOn else { return }
        for _ in 0..<attempts where targets.isEmpty {
            for request in requests where targets.count < most {
                let willing = faults[.muteCard] ? [] : poll(request)
                let count = targets.count
                for (card, answer) in answers(of: willing, to: request) where targets.count < most {
                    guard !targets.contains(where: { $0.card === card }) else { continue }
                    card.reset()
                    targets.append(Self.target(card, request, answer, automaticRATS: automaticRATS))
                }
                setRegisters(after: request, isAnswered: targets.count > count)
            }
        }
    }

    private static func target(
        _ card: any VirtualCard, _ request: Request, _ answer: [UInt8], automaticRATS: Bool
    ) -> Target {
        let radio = card.radio
        var (rate, modulation, ats, speaksISODEP): (UInt8, UInt8, [UInt8], Bool) = (0x00, 0x00, [], false)
        switch (request, radio) {
        case (_, .typeA(_, _, let sak, let answer?)) where automaticRATS && sak & 0x20 != 0:
            (ats, speaksISODEP) = (answer, true)
        case (_, .typeB): speaksISODEP = true
        case (.felica(let bitRate, _), _): (rate, modulation) = (bitRate, 0x10)
        default: break
        }
        return Target(
            card: card, radio: radio, rate: rate, modulation: modulation, description: answer + ats,
            speaksISODEP: speaksISODEP)
    }

    /// Returns the cards that answer a request, and their answers.
    ///
    /// FeliCa cards draw their time slots; here they take them in turn.  Cards that share a slot are not understood.
    private func answers(
        of willing: [any VirtualCard], to request: Request
    ) -> [(card: any VirtualCard, answer: [UInt8])] {
        let all = willing.compactMap { card in request.answer(of: card.radio).map { (card: card, answer: $0) } }
        guard case .felica(_, let polling) = request else { return all }
        let slots = Int(polling[4]) + 1
        let alone = all.indices.filter { i in !all.indices.contains { $0 != i && $0 % slots == i % slots } }
        return alone.map { all[$0] }
    }

    // MARK: Exchanging with cards

    /// Returns true if `card` lies on the reader.
    func lies(_ card: any VirtualCard) -> Bool { cards.contains { $0 === card } }

    private func isPresent(_ target: Target) -> Bool { isFieldOn && lies(target.card) }

    /// - Returns: the index of the target with the number in the low bits of `tg`.
    private func target(_ tg: UInt8) throws(Failure) -> Int {
        let index = Int(tg & 0x07) - 1
        guard targets.indices.contains(index) else { throw .wrongContext }
        return index
    }

    /// Returns the response to a command that may fail: the result of `body`, status byte first, or the failure alone.
    private mutating func reporting(_ body: (inout Self) throws(Failure) -> [UInt8]) -> [UInt8] {
        do throws(Failure) {
            let response = try body(&self)
            lastError = 0x00
            return response
        } catch {
            lastError = error.rawValue
            return [error.rawValue]
        }
    }

    /// InDataExchange (7.3.8): `Tg data`.  Bit 6 of Tg: more of the command follows; of the status: more of the
    /// response is there, fetched by commands without data.
    private mutating func dataExchange(
        _ input: [UInt8], _ faults: inout SoftwareReaderFaults
    ) throws(Failure) -> [UInt8] {
        let tg = input[0]
        let data = input.dropFirst()
        let index = try target(tg)
        if tg & 0x40 != 0 {
            guard targets[index].gathered.count + data.count <= Self.maximumCommand else { throw .bufferOverflow }
            targets[index].gathered += data
            return [0x00]
        }
        if !data.isEmpty || targets[index].pending.isEmpty {
            let command = targets[index].gathered + data
            targets[index].gathered = []
            targets[index].pending = []
            targets[index].pending = try exchange(index, command, &faults)[...]
        }
        let part = targets[index].pending.prefix(maximumPart)
        targets[index].pending = targets[index].pending.dropFirst(part.count)
        return [targets[index].pending.isEmpty ? 0x00 : 0x40] + part
    }

    /// Performs a whole exchange with target 1, of any length.
    mutating func exchangeWithFirst(_ command: [UInt8], faults: inout SoftwareReaderFaults) throws(Failure) -> [UInt8] {
        guard !targets.isEmpty else { throw .wrongContext }
        return try exchange(0, command, &faults)
    }

    /// The one place where cards are spoken to.
    private mutating func exchange(
        _ index: Int, _ command: [UInt8], _ faults: inout SoftwareReaderFaults
    ) throws(Failure) -> [UInt8] {
        let target = targets[index]
        guard !target.isHalted else { throw .timeout }
        if isPresent(target), faults.losesFieldAtThisAPDU() { cards = [] }
        guard isPresent(target), !faults[.muteCard] else { throw .timeout }
        guard target.speaksISODEP else {
            if let answer = target.card.exchangeNative(command) { return answer }
            throw Self.isAuthentication(command) ? .authentication : .timeout
        }
        targets[index].blockNumber ^= 1
        cardTime += target.card.processingTime(of: command)
        guard let response = target.card.exchange(command).flatMap(faults.response) else { throw .timeout }
        return response
    }

    /// MIFARE Classic: key A or B, block, six bytes of key, four of UID (UM0701-02, 7.3.8).
    private static func isAuthentication(_ command: [UInt8]) -> Bool {
        command.count == 12 && (command[0] == 0x60 || command[0] == 0x61)
    }

    /// InCommunicateThru (7.3.9): a frame as it is, to the first target, and to all cards where there is none.
    private mutating func communicateThrough(
        _ input: [UInt8], _ faults: inout SoftwareReaderFaults
    ) throws(Failure) -> [UInt8] {
        // Without data it only listens, for tags that talk first; there are none here.
        guard !input.isEmpty else { throw .timeout }
        guard !targets.isEmpty else {
            if let answer = faults[.muteCard] ? nil : broadcast(input) { return [0x00] + answer }
            waitInVain()
            throw .timeout
        }
        if let answer = try rawBlock(input, &faults) { return [0x00] + answer.prefix(maximumPart) }
        let answer = try exchange(0, input, &faults)
        guard case .typeA = targets[0].radio, registers[Register.receiveMode, default: 0x80] & 0x80 == 0 else {
            return [0x00] + answer.prefix(maximumPart)
        }
        // The host receives exactly what the card sends: four bits for an acknowledgment, the checksum after data.
        return [0x00] + (answer.isEmpty ? [0x0A] : answer + RadioChecksum.a(answer))
    }

    /// Handles the blocks of ISO/IEC 14443-4, 7.1 that a host sends itself: an I-block with a whole APDU, R(NAK) as a
    /// presence check, DESELECT, and RATS.  Nil for any other block, and for a card without ISO-DEP.
    private mutating func rawBlock(_ input: [UInt8], _ faults: inout SoftwareReaderFaults) throws(Failure) -> [UInt8]? {
        if let answer = rawActivation(input, faults) { return answer }
        guard let target = targets.first, !target.isHalted, isPresent(target), !faults[.muteCard] else {
            throw .timeout
        }
        if case .typeA(_, _, let sak, let ats?) = target.radio, !target.speaksISODEP, sak & 0x20 != 0 {
            guard input.count == 2, input[0] == 0xE0 else { return nil }
            targets[0].speaksISODEP = true
            return ats
        }
        guard target.speaksISODEP else { return nil }
        switch input[0] {
        case 0x02, 0x03:
            return try [input[0]] + exchange(0, Array(input.dropFirst()), &faults)
        case 0xB2 | target.blockNumber ^ 1 where input.count == 1:
            return [0xA2 | target.blockNumber]
        // Likewise with the CID that the chip gives cards of type B (libnfc, chips/pn53x.c).
        case 0xBA | target.blockNumber ^ 1 where input.count == 2 && input[1] == 0x01:
            return [0xAA | target.blockNumber, 0x01]
        case 0xC2 where input.count == 1:
            sendDeselect(to: 0)
            targets[0].isHalted = true
            return input
        case 0xCA where input.count == 2 && input[1] == 0x01:
            sendDeselect(to: 0)
            targets[0].isHalted = true
            return input
        default:
            throw .timeout
        }
    }

    /// WUPB and ATTRIB (ISO/IEC 14443-3, 7.7 and 7.10), with which nfcpy activates cards of type B itself.
    private mutating func rawActivation(_ input: [UInt8], _ faults: SoftwareReaderFaults) -> [UInt8]? {
        guard let target = targets.first, isPresent(target), !faults[.muteCard], case .typeB(let atqb) = target.radio
        else { return nil }
        if input.count == 3, input[0] == 0x05, input[2] & 0x08 != 0 {
            targets[0].wakeUp()
            targets[0].speaksISODEP = false
            return Array(atqb.prefix(12))
        }
        guard !target.isHalted, !target.speaksISODEP, input.count >= 9, input[0] == 0x1D,
            input[1..<5].elementsEqual(atqb.dropFirst().prefix(4))
        else { return nil }
        targets[0].speaksISODEP = true
        return [0x00]
    }

    // MARK: Selecting and releasing

    /// InPSL (7.3.7): speeds that make no difference here.
    private func negotiate(_ tg: UInt8) throws(Failure) -> [UInt8] {
        _ = try target(tg)
        return [0x00]
    }

    /// InDeselect (7.3.10): the target, or all for 00, is halted; InSelect wakes it up.
    private mutating func deselect(_ tg: UInt8) throws(Failure) -> [UInt8] {
        if tg == 0x00 { halt() } else { halt(try target(tg)) }
        return [0x00]
    }

    /// Halts every target.
    mutating func halt() {
        for index in targets.indices { halt(index) }
    }

    private mutating func halt(_ index: Int) {
        sendDeselect(to: index)
        targets[index].isHalted = true
    }

    /// InRelease (7.3.11): the target, or all for 00, is halted and forgotten.  The others keep their numbers.
    private mutating func release(_ tg: UInt8) throws(Failure) -> [UInt8] {
        if tg == 0x00 {
            halt()
            targets = []
        } else if case let index = try target(tg), index == targets.count - 1 {
            halt(index)
            targets.removeLast()
        } else {
            halt(try target(tg))
        }
        return [0x00]
    }

    /// InSelect (7.3.12): a halted target is selected again, and has forgotten everything.
    private mutating func select(_ tg: UInt8) throws(Failure) -> [UInt8] {
        let index = try target(tg)
        guard isPresent(targets[index]) else { throw .timeout }
        if targets[index].isHalted { targets[index].wakeUp() }
        return [0x00]
    }
}

extension [UInt8] {
    /// A UID of 10 bytes has a cascade tag after its first three as well (ISO/IEC 14443-3, 6.5.4).
    fileprivate var cascaded: [UInt8] { count == 10 ? prefix(3) + [0x88] + dropFirst(3) : self }
}
