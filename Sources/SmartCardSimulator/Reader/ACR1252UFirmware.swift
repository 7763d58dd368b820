/// The firmware of an ACR1252U with its two interfaces (ACS ACR1252U reference manual, “Escape commands”).
///
/// The card interface takes CCID commands at the level of extended APDUs, the SAM interface at the level of short
/// APDUs.  Vendor commands arrive by PC_to_RDR_Escape.  Answers and defaults are those of ACR1252U_V101.0 as its owners
/// report them.
struct ACR1252UFirmware {
    /// Data bytes of a CCID message of each interface: dwMaxCCIDMessageLength less the header.
    static let maximumData = 512
    static let maximumSAMData = 278
    /// The longest APDU that fits the CCID chain: Lc and Le of three and two bytes, 65535 bytes of data.
    private static let maximumAPDU = 65544

    /// The part shared with an ACR122U: cards, presence and storage card commands.
    var picc: ACR122UFirmware
    private let firmwareString: String
    /// True if commands longer than one CCID message fail with bError C3 (acsccid#15, LudovicRousseau/PCSC#54).
    private let refusesLongAPDUs: Bool

    /// The parts received so far of a command in several messages, or the rest of a response.
    private var gathered: [UInt8] = []
    private var pending: ArraySlice<UInt8> = []
    private var lights: UInt8 = 0x00
    /// The kinds of cards to look for; kept when the reader is unplugged.
    private var operatingParameter: UInt8 = 0xFF
    private var automaticPolling: UInt8 = 0x8F
    private var hasField = true

    init(firmwareString: String, refusesLongAPDUs: Bool) {
        self.firmwareString = firmwareString
        self.refusesLongAPDUs = refusesLongAPDUs
        var profile = ACR122UProfile(
            version: "", string: firmwareString, release: 0x0100, controlPacketSize: 64)
        profile.atrStyle = .standard
        profile.idleSlotStatus = .absent
        picc = ACR122UFirmware(profile: profile)
        picc.maximumResponse = Self.maximumAPDU
        applyPolling()
    }

    /// Applies both settings in the form of an ACR122U: bits 0 to 4 the kinds of cards, bit 6 RATS, bit 7 polling.
    private mutating func applyPolling() {
        picc.operatingParameter =
            operatingParameter & 0x1F | 0x40 | (automaticPolling & 0x01 != 0 && hasField ? 0x80 : 0x00)
    }

    // MARK: CCID

    /// Returns the answer of the card interface and the time that it takes.
    mutating func answer(_ command: CCIDCommand) -> (answer: CCIDAnswer, delay: Duration) {
        guard command.slot == 0 else { return (picc.failure(command, CCIDError.badSlot, status: .absent), .zero) }
        switch command.kind {
        case .iccPowerOn:
            (gathered, pending) = ([], [])
            let answer = hasField ? picc.answer(command).answer : picc.failure(command, CCIDError.mute)
            // Without a card it fails, whereas an ACR122U constructs an ATR.
            return (answer.data == [0x3B, 0x00] ? picc.failure(command, CCIDError.mute) : answer, .zero)
        case .xfrBlock: return transfer(command)
        case .escape:
            let (data, delay) = escape(command.data)
            return (data.map { success(command, $0) } ?? picc.failure(command, CCIDError.commandNotSupported), delay)
        default: return picc.answer(command)
        }
    }

    /// Returns the answer of the SAM interface, which holds no SAM.
    func answerOfSAM(_ command: CCIDCommand) -> CCIDAnswer {
        command.kind == .getSlotStatus && command.slot == 0
            ? CCIDAnswer(
                kind: .slotStatus, sequence: command.sequence, status: CCIDAnswer.CardStatus.absent.rawValue, error: 0)
            : picc.failure(command, command.slot == 0 ? CCIDError.mute : CCIDError.badSlot, status: .absent)
    }

    private func success(_ command: CCIDCommand, _ data: [UInt8], chain: UInt8 = 0x00) -> CCIDAnswer {
        CCIDAnswer(
            kind: command.kind.answer, slot: command.slot, sequence: command.sequence, status: picc.cardStatus.rawValue,
            error: 0x00, last: chain, data: data)
    }

    /// Performs XfrBlock with wLevelParameter, and DataBlock with bChainParameter (USB CCID 1.10, 6.1.4 and 6.2.1).
    ///
    /// `0` is a whole APDU, `1` begins one, `3` continues it, `2` ends it, and `10` requests the next part.
    private mutating func transfer(_ command: CCIDCommand) -> (answer: CCIDAnswer, delay: Duration) {
        let level = command.parameters.count == 3 ? command.parameters[1] : 0x00
        switch level {
        case 0x10:
            return (nextPart(command, isFirst: false), .zero)
        case 0x01, 0x03:
            gathered = (level == 0x01 ? [] : gathered) + command.data
            guard gathered.count <= Self.maximumAPDU, !refusesLongAPDUs else {
                gathered = []
                return (picc.failure(command, 0xC3), .zero)
            }
            return (success(command, [], chain: 0x10), .zero)
        default:
            let apdu = (level == 0x02 ? gathered : []) + command.data
            gathered = []
            let (response, delay) = exchange(apdu)
            guard !response.isEmpty else { return (picc.failure(command, CCIDError.mute), delay) }
            pending = response[...]
            return (nextPart(command, isFirst: true), delay)
        }
    }

    private mutating func nextPart(_ command: CCIDCommand, isFirst: Bool) -> CCIDAnswer {
        let part = pending.prefix(Self.maximumData)
        pending = pending.dropFirst(part.count)
        let chain: UInt8 =
            switch (isFirst, pending.isEmpty) {
            case (true, true): 0x00
            case (true, false): 0x01
            case (false, false): 0x03
            case (false, true): 0x02
            }
        return success(command, Array(part), chain: chain)
    }

    private mutating func exchange(_ apdu: [UInt8]) -> (response: [UInt8], delay: Duration) {
        // This reader supports none of the ACR122U's commands FF 00.
        apdu.starts(with: [0xFF, 0x00]) ? ([0x6A, 0x81], .zero) : picc.apdu(apdu)
    }

    // MARK: Escape commands

    /// `E0 00 00`, the command, the length and the data; answered by `E1 00 00 00`, a length and data.
    private mutating func escape(_ bytes: [UInt8]) -> (answer: [UInt8]?, delay: Duration) {
        guard bytes.count >= 5, bytes.starts(with: [0xE0, 0x00, 0x00]), bytes.count == 5 + Int(bytes[4]) else {
            return (nil, .zero)
        }
        let value = bytes.dropFirst(5).first
        var delay = Duration.zero
        let data: [UInt8]
        switch (bytes[3], bytes[4]) {
        case (0x18, 0): data = Array(firmwareString.utf8)
        case (0x20, 0...1):
            operatingParameter = value ?? operatingParameter
            data = [operatingParameter]
        case (0x23, 0...1):
            automaticPolling = value ?? automaticPolling
            data = [automaticPolling]
        case (0x25, 0...1):
            hasField = value.map { $0 != 0 } ?? hasField
            picc.chip.switchField(on: hasField)
            data = [hasField ? 0x01 : 0x00]
        case (0x28, 0...1):
            // The sound lasts a multiple of 10 ms.  It is not known if the answer waits for its end.
            delay = .milliseconds(10 * Int(value ?? 0))
            data = [0x00]
        case (0x29, 0...1):
            lights = value.map { $0 & 0x03 } ?? lights
            data = [lights]
        default: return (nil, .zero)
        }
        applyPolling()
        return ([0xE1, 0x00, 0x00, 0x00, UInt8(truncatingIfNeeded: data.count)] + data, delay)
    }
}
