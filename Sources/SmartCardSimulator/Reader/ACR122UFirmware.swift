/// The firmware between the reader's USB interface and its PN532: CCID commands and the pseudo-APDUs of the ACS
/// ACR122U API v2.04.
struct ACR122UFirmware {
    /// Data bytes of a CCID message: dwMaxCCIDMessageLength less the header.
    static let maximumData = 261
    private static let initialParameters: [UInt8] = [0x11, 0x10, 0x00, 0x4D, 0x00, 0x20, 0x00]

    let profile: ACR122UProfile
    /// The longest response APDU that reaches the host.
    var maximumResponse = maximumData
    var chip: SoftwarePN532
    var faults = SoftwareReaderFaults()
    /// The PICC operating parameter (ACS API v2.04, 6.5).
    var operatingParameter: UInt8

    /// bError of every answer: the firmware keeps the last error across commands.
    private var lastError: UInt8 = 0x81
    /// The card that IccPowerOn selected, until IccPowerOff.
    private var poweredCard: (any VirtualCard)?
    private var keys: [[UInt8]?] = [nil, nil]
    private var lights: UInt8 = 0x01
    private var parameters = initialParameters

    init(profile: ACR122UProfile) {
        self.profile = profile
        operatingParameter = profile.operatingParameter
        chip = SoftwarePN532(revision: profile.chipRevision)
    }

    // MARK: Presence

    /// True if bit 7 of the operating parameter makes the firmware look for cards by itself.
    var pollsByItself: Bool { operatingParameter & 0x80 != 0 }

    /// True if a card of a type that the operating parameter admits lies on the reader, and answers it.
    var seesCard: Bool {
        chip.cards.contains { card in card.answersAnyReader && requests.contains { $0.answer(of: card.radio) != nil } }
    }

    /// The time until a card is noticed.
    var detectionDelay: Duration {
        profile.detectionDelay ?? .milliseconds(operatingParameter & 0x20 != 0 ? 250 : 500)
    }

    /// The requests that the operating parameter selects: FeliCa of every system.  The number of time slots is unknown;
    /// this reader uses four.
    private var requests: [SoftwarePN532.Request] {
        let polling: [UInt8] = [0x00, 0xFF, 0xFF, 0x00, 0x03]
        let all: [(bit: UInt8, request: SoftwarePN532.Request)] = [
            (0x01, .typeA()), (0x02, .typeB), (0x08, .felica(rate: 0x01, polling: polling)),
            (0x10, .felica(rate: 0x02, polling: polling)),
        ]
        return all.filter { operatingParameter & $0.bit != 0 }.map(\.request)
    }

    /// The state of the slot, in truth.
    var cardStatus: CCIDAnswer.CardStatus {
        if let poweredCard, chip.lies(poweredCard) { return .active }
        return pollsByItself && seesCard ? .inactive : .absent
    }

    /// Takes the cards that lie on the reader from now on.
    mutating func setCards(_ cards: [any VirtualCard]) {
        chip.cards = cards
        if let card = poweredCard, !chip.lies(card) { poweredCard = nil }
    }

    // MARK: CCID

    /// Returns the reader's answer and the time that it takes.
    mutating func answer(_ command: CCIDCommand) -> (answer: CCIDAnswer, delay: Duration) {
        guard command.slot == 0 else {
            let answer =
                command.slot < profile.slotCount && [.getSlotStatus, .iccPowerOff].contains(command.kind)
                ? success(command, status: .absent)
                : failure(
                    command, command.slot < profile.slotCount ? CCIDError.mute : CCIDError.badSlot, status: .absent)
            return (answer, .zero)
        }
        switch command.kind {
        case .iccPowerOn, .iccPowerOff, .getSlotStatus, .getParameters, .resetParameters:
            guard command.data.isEmpty else { return (failure(command, CCIDError.badLength), .zero) }
        default:
            guard command.data.count <= Self.maximumData else { return (failure(command, CCIDError.badLength), .zero) }
        }

        switch command.kind {
        case .iccPowerOn:
            return (powerOn(command), .zero)
        case .iccPowerOff:
            chip.halt()
            poweredCard = nil
            return (success(command, status: cardStatus), .zero)
        case .getSlotStatus:
            return (success(command, status: cardStatus), .zero)
        case .xfrBlock:
            let (data, delay) = apdu(command.data)
            return (success(command, data, status: exchangeStatus), delay)
        case .escape where profile.hasEscape:
            let (data, delay) = apdu(command.data)
            return (success(command, data, status: exchangeStatus), delay)
        case .escape:
            return (failure(command, CCIDError.badSlot, status: .inactive), .zero)
        case .getParameters, .resetParameters, .setParameters:
            return (parameters(command), .zero)
        default:
            return (failure(command, CCIDError.commandNotSupported), .zero)
        }
    }

    /// The slot status in answers to APDUs, which is not the truth (``ACR122UProfile/IdleSlotStatus``).
    private var exchangeStatus: CCIDAnswer.CardStatus {
        switch profile.idleSlotStatus {
        case .active: .active
        case .absent, .absentExceptPowerOn: cardStatus == .active ? .active : .absent
        }
    }

    private func success(
        _ command: CCIDCommand, _ data: [UInt8] = [], status: CCIDAnswer.CardStatus, last: UInt8 = 0x00
    ) -> CCIDAnswer {
        CCIDAnswer(
            kind: command.kind.answer, slot: command.slot, sequence: command.sequence, status: status.rawValue,
            error: lastError, last: last, data: data)
    }

    /// A failed command.
    func failure(
        _ command: CCIDCommand, _ error: UInt8, status: CCIDAnswer.CardStatus? = nil
    ) -> CCIDAnswer {
        CCIDAnswer(
            kind: command.kind.answer, slot: command.slot, sequence: command.sequence,
            status: CCIDAnswer.CommandStatus.failed.rawValue | (status ?? cardStatus).rawValue, error: error)
    }

    /// Selects a card and constructs its ATR; `3B 00` without a card.
    private mutating func powerOn(_ command: CCIDCommand) -> CCIDAnswer {
        poweredCard = nil
        chip.switchField(on: true)
        if faults[.muteCard] && seesCard {
            lastError = CCIDError.mute
            return failure(command, CCIDError.mute)
        }
        // It has been asking since the card came.
        chip.activate(
            requests, automaticRATS: operatingParameter & 0x40 != 0, attempts: SoftwarePN532.longSearch, faults)
        guard let target = chip.targets.first else {
            return success(command, [0x3B, 0x00], status: profile.idleSlotStatus == .absent ? .absent : .active)
        }
        poweredCard = target.card
        let atr =
            faults[.brokenATR]
            ? [UInt8](repeating: 0xFF, count: 33)
            : Self.atr(target, style: profile.atrStyle)
        return success(command, atr, status: .active)
    }

    /// T=1 parameters are kept and mean nothing: the link is radio.
    private mutating func parameters(_ command: CCIDCommand) -> CCIDAnswer {
        if command.kind == .setParameters {
            guard command.parameters.first == 0x01 else { return failure(command, CCIDError.badProtocol) }
            guard command.data.count == 7 else { return failure(command, CCIDError.badLength) }
            parameters = command.data
        } else if command.kind == .resetParameters {
            parameters = Self.initialParameters
        }
        return success(command, parameters, status: cardStatus, last: 0x01)
    }

    // MARK: APDUs

    /// An APDU of either kind: class FF is the reader's, everything else goes to the card.
    mutating func apdu(_ bytes: [UInt8]) -> (response: [UInt8], delay: Duration) {
        chip.cardTime = .zero
        guard bytes.first == 0xFF else { return (cardAPDU(bytes), chip.cardTime) }
        let (response, delay) = pseudoAPDU(bytes)
        return (response, delay + chip.cardTime)
    }

    /// Exchanges an APDU with the card.  A card that is silent, gone or neither ISO-DEP nor FeliCa gives an empty
    /// block, and the error that sticks.
    private mutating func cardAPDU(_ bytes: [UInt8]) -> [UInt8] {
        guard let target = chip.targets.first, target.speaksISODEP || target.isFeliCa,
            let response = try? chip.exchangeWithFirst(bytes, faults: &faults), response.count <= maximumResponse
        else {
            lastError = CCIDError.mute
            return []
        }
        // A native response of one byte gets a status word, longer ones stay unchanged (7.2); a FeliCa response gets one
        // (7.3).
        let isShort = response.count == 1 && !faults[.oneByteAnswers]
        return target.isFeliCa || isShort ? response + Status.success : response
    }

    private enum Status {
        static let success: [UInt8] = [0x90, 0x00]
        static let failed: [UInt8] = [0x63, 0x00]
        static let rejected: [UInt8] = [0x63, 0x7F]
        static let unsupported: [UInt8] = [0x6A, 0x81]
    }

    /// The reader's own commands (ACS API v2.04, sections 4 to 6).
    private mutating func pseudoAPDU(_ b: [UInt8]) -> (response: [UInt8], delay: Duration) {
        guard b.count >= 4 else { return (Status.failed, .zero) }
        /// The data field, if its length is right; an Le may follow.
        let lc = b.count > 4 ? Int(b[4]) : 0
        let data = b.dropFirst(5).count == lc || b.dropFirst(5).count == lc + 1 ? Array(b.dropFirst(5).prefix(lc)) : nil
        switch (b[1], b[2], b[3]) {
        case (0x00, 0x00, 0x00):
            return (data.map { directTransmit($0) } ?? Status.failed, .zero)
        case (0x00, 0x40, let p2):
            guard let data, data.count == 4 else { return (Status.failed, .zero) }
            return setLights(p2, data)
        case (0x00, 0x41, _):
            return (Status.success, .zero)
        case (0x00, 0x48, 0x00):
            return (Array(profile.firmwareString.utf8.prefix(10)), .zero)
        case (0x00, 0x50, 0x00):
            return ([0x90, operatingParameter], .zero)
        case (0x00, 0x51, let value):
            operatingParameter = value
            chip.parameters &= ~SoftwarePN532.automaticRATS
            if value & 0x40 != 0 { chip.parameters |= SoftwarePN532.automaticRATS }
            return ((profile.answersParameterAlone ? [] : [0x90]) + [value], .zero)
        case (0x00, 0x52, 0x00), (0x00, 0x52, 0xFF):
            return (profile.hasDetectionBuzzer ? Status.success : Status.failed, .zero)
        case (0xCA, 0x00, 0x00):
            return (identifier(b), .zero)
        case (0xCA, _, _):
            return (b[2] == 0x01 && b[3] == 0x00 ? answerToSelect(b) : Status.unsupported, .zero)
        case (0x82, 0x00, 0x00), (0x82, 0x00, 0x01):
            guard let data, data.count == 6 else { return (Status.failed, .zero) }
            keys[Int(b[3])] = data
            return (Status.success, .zero)
        case (0x86, 0x00, 0x00):
            guard let data, data.count == 5, data[0] == 0x01 else { return (Status.failed, .zero) }
            return (authenticate(block: data[2], keyType: data[3], slot: data[4]), .zero)
        case (0x88, 0x00, let block):
            guard b.count == 6 else { return (Status.failed, .zero) }
            return (authenticate(block: block, keyType: b[4], slot: b[5]), .zero)
        case (0xB0, 0x00, let block):
            guard b.count == 5, lc <= 16, let page = native([0x30, block]), page.count >= lc else {
                return (Status.failed, .zero)
            }
            return (page.prefix(lc == 0 ? 16 : lc) + Status.success, .zero)
        case (0xD6, 0x00, let block):
            guard let data, let write = [16: 0xA0 as UInt8, 4: 0xA2][data.count], native([write, block] + data) != nil
            else { return (Status.failed, .zero) }
            return (Status.success, .zero)
        case (0xD7, 0x00, let block):
            return (data.map { valueOperation(block, $0) } ?? Status.failed, .zero)
        case (0xB1, 0x00, let block):
            guard b.count == 5, lc == 0 || lc == 4, let value = native([0x30, block]).flatMap(Self.value) else {
                return (Status.failed, .zero)
            }
            return (value + Status.success, .zero)
        default:
            return (Status.failed, .zero)
        }
    }

    /// Direct transmit: `D4` and a command of the PN532.
    private mutating func directTransmit(_ data: [UInt8]) -> [UInt8] {
        guard data.first == 0xD4, let response = chip.execute(data.dropFirst(), faults: &faults) else {
            return Status.rejected
        }
        // An exchange in which the card is silent outlasts the firmware's patience (libnfc#263).
        if response == [0x41, SoftwarePN532.Failure.timeout.rawValue] {
            lastError = CCIDError.mute
            return []
        }
        return [0xD5] + response + Status.success
    }

    /// `FF 00 40`: lights and buzzer.  The command is answered when the blinking is over.
    private mutating func setLights(_ control: UInt8, _ data: [UInt8]) -> (response: [UInt8], delay: Duration) {
        for light in [0x01, 0x02] as [UInt8] where control & light << 2 != 0 {
            lights = lights & ~light | control & light
        }
        let tenths = Int(data[2]) * (Int(data[0]) + Int(data[1]))
        return ([0x90, lights], .milliseconds(100 * tenths))
    }

    /// Get Data: UID, PUPI or IDm, whole.
    private func identifier(_ b: [UInt8]) -> [UInt8] {
        guard b.count <= 5, let target = chip.targets.first, cardStatus == .active else { return Status.failed }
        return answer(target.radio.identifier, le: b.count > 4 ? b[4] : 0)
    }

    private func answerToSelect(_ b: [UInt8]) -> [UInt8] {
        guard b.count <= 5, let target = chip.targets.first, cardStatus == .active else { return Status.failed }
        guard case .typeA(_, _, _, let ats?) = target.radio, target.speaksISODEP else { return Status.unsupported }
        return answer(ats, le: b.count > 4 ? b[4] : 0)
    }

    private func answer(_ data: [UInt8], le: UInt8) -> [UInt8] {
        le == 0 || Int(le) >= data.count ? data + Status.success : Status.failed
    }

    // MARK: Storage cards

    /// A command below ISO-DEP to the card of type A that is selected.
    private mutating func native(_ command: [UInt8]) -> [UInt8]? {
        guard let target = chip.targets.first, !target.speaksISODEP, !target.isFeliCa else { return nil }
        return try? chip.exchangeWithFirst(command, faults: &faults)
    }

    private mutating func authenticate(block: UInt8, keyType: UInt8, slot: UInt8) -> [UInt8] {
        guard keyType == 0x60 || keyType == 0x61, slot <= 1, let key = keys[Int(slot)],
            case .typeA(let uid, _, _, _)? = chip.targets.first?.radio,
            native([keyType, block] + key + uid.suffix(4)) != nil
        else { return Status.failed }
        return Status.success
    }

    /// `FF D7`: store, increment and decrement by a value, most significant byte first; or copy to another block of
    /// the sector.
    private mutating func valueOperation(_ block: UInt8, _ data: [UInt8]) -> [UInt8] {
        let value = Array(data.dropFirst().reversed())
        let done =
            switch (data.first, data.count) {
            case (0x00, 5):
                native([0xA0, block] + value + value.map(~) + value + [block, ~block, block, ~block])
            case (0x01, 5):
                native([0xC1, block] + value).flatMap { _ in native([0xB0, block]) }
            case (0x02, 5):
                native([0xC0, block] + value).flatMap { _ in native([0xB0, block]) }
            case (0x03, 2) where Self.sector(block) == Self.sector(data[1]):
                native([0xC2, block, 0x00, 0x00, 0x00, 0x00]).flatMap { _ in native([0xB0, data[1]]) }
            default: nil as [UInt8]?
            }
        return done == nil ? Status.failed : Status.success
    }

    /// Returns the number in a value block, most significant byte first; nil if the block is not a value block.
    ///
    /// A value block contains the value, its complement, the value again, then the address four times, every other one
    /// inverted.
    private static func value(_ block: [UInt8]) -> [UInt8]? {
        guard block.count == 16 else { return nil }
        let value = block[0..<4]
        guard block[4..<8].elementsEqual(value.map(~)), block[8..<12].elementsEqual(value),
            block[13] == ~block[12], block[14] == block[12], block[15] == block[13]
        else { return nil }
        return value.reversed()
    }

    /// Four blocks to a sector, sixteen from block 128 on.
    private static func sector(_ block: UInt8) -> UInt8 { block < 128 ? block / 4 : 32 + (block - 128) / 16 }
}
