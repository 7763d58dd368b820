import SmartCard

/// Raises CCID messages (USB CCID 1.10, 6) to APDUs and escapes.
struct CCIDRaiser: Sendable {
    /// bMessageType of commands.
    private enum Command {
        static let powerOn: UInt8 = 0x62
        static let powerOff: UInt8 = 0x63
        static let xfrBlock: UInt8 = 0x6F
        static let secure: UInt8 = 0x69
        static let escape: UInt8 = 0x6B
    }

    /// wLevelParameter and bChainParameter.
    private enum Part {
        static let whole: UInt8 = 0x00
        static let begins: UInt8 = 0x01
        static let ends: UInt8 = 0x02
        static let continues: UInt8 = 0x03
        static let goOn: UInt8 = 0x10
    }

    private static let headerSize = 10

    /// The command that the reader has not answered.
    private var pending: (type: UInt8, sequence: UInt8, count: Int)?
    private var slot: UInt8?
    private var exchange = RaisedExchange()
    private var command = PartedMessage()
    private var response = PartedMessage()
    /// The ATR of the card that is powered.
    private var atr: ATR?
    /// True if a card has been reported since the last one was powered.
    private var cardHasCome = false
    /// The interpretation of T=1 blocks, for a reader of TPDU level.
    private var t1: T1Raiser?
    private var hasExchanged = false

    mutating func raise(_ event: TraceEvent, into found: inout RaisedEvents) {
        switch event.what {
        case .sent(.ccid, let bytes): sent(bytes, at: event.time, into: &found)
        case .received(.ccid, let bytes): received(bytes, at: event.time, into: &found)
        case .failed(.exchange(.ccid), let failure): fail(failure, at: event.time, into: &found)
        default: found.add(event.what, at: event.time)
        }
    }

    var isWithinExchange: Bool {
        exchange.layer != nil || command.start != nil || response.start != nil || t1?.isWithinExchange == true
    }

    func finish(into found: inout RaisedEvents) {
        if command.start != nil || response.start != nil || t1?.isWithinChain == true {
            found.omit("chains without end")
        }
    }

    // MARK: Commands

    private mutating func sent(_ bytes: [UInt8], at time: Duration, into found: inout RaisedEvents) {
        guard let message = Message(bytes) else { return found.omit("CCID messages that are none") }
        // Some programs do not wait for a card that is slow to answer.
        pending = (message.type, message.sequence, bytes.count)
        slot = message.slot
        switch message.type {
        case Command.xfrBlock: sentBlock(message, at: time, into: &found)
        case Command.escape:
            let whole = PartedMessage(message.data, of: found, at: time)
            exchange.begin(.escape, whole, at: time, into: &found)
        case Command.powerOn, Command.powerOff: fail(.init(nil), at: time, into: &found, keepingPending: true)
        case Command.secure: found.omit("PINs entered at the reader")
        default: found.omit("CCID messages that are neither of a card nor vendor commands")
        }
    }

    private mutating func sentBlock(_ message: Message, at time: Duration, into found: inout RaisedEvents) {
        if !hasExchanged {
            hasExchanged = true
            t1 = T1Raiser(firstBlock: message.data)
        }
        if t1 != nil {
            t1?.sent(message.data, at: time, into: &found)
            return
        }
        switch message.parameters.1 {
        case Part.goOn where message.data.isEmpty: return
        case Part.whole, Part.begins:
            command = PartedMessage()
            response = PartedMessage()
        default: break
        }
        guard command.add(message.data, of: found, at: time) else { return found.omit("commands without end") }
        guard message.parameters.1 == Part.whole || message.parameters.1 == Part.ends else { return }
        let whole = command.take()
        exchange.begin(Self.layer(whole.bytes), whole, at: time, into: &found)
    }

    /// `FF 00` and the GET RESPONSE of class FF are commands of ACS to the reader; the others of class FF are for the
    /// storage card (PC/SC part 3, 3.2).
    static func layer(_ command: [UInt8]) -> TraceEvent.Layer {
        command.starts(with: [0xFF, 0x00]) || command.starts(with: [0xFF, 0xC0, 0x00, 0x00]) ? .escape : .apdu
    }

    // MARK: Answers

    private mutating func received(_ bytes: [UInt8], at time: Duration, into found: inout RaisedEvents) {
        switch bytes.first {
        case 0x50: return slotChanged(bytes.dropFirst(), at: time, into: &found)
        case 0x51: return found.omit("hardware errors that the reader reports")
        default: break
        }
        guard let message = Message(bytes) else { return found.omit("CCID messages that are none") }
        guard let pending, message.answers(pending.type),
            message.sequence == pending.sequence
                // Firmware of the ACR122U counts one less after a message of several packets (acsccid, c90e443).
                || pending.count > 64 && message.sequence == pending.sequence &- 1
        else { return found.omit("answers to no command") }
        // bmCommandStatus: 2 is a request for more time.
        guard message.parameters.0 & 0xC0 != 0x80 else { return found.omit("requests for more time") }
        self.pending = nil
        let failure = message.failure
        switch pending.type {
        case Command.powerOn: poweredOn(message, failure, at: time, into: &found)
        case Command.powerOff:
            guard failure == nil else { return found.omit("cards that could not be powered off") }
            if atr != nil { found.add(.disconnected(.powerOff), at: time) }
            forgetCard()
        case Command.xfrBlock: receivedBlock(message, failure, at: time, into: &found)
        case Command.escape:
            if let failure { return exchange.end(failure, at: time, into: &found) }
            exchange.end(PartedMessage(message.data, of: found, at: time), at: time, into: &found)
        default: break
        }
    }

    private mutating func receivedBlock(
        _ message: Message, _ failure: TraceEvent.Failure?, at time: Duration, into found: inout RaisedEvents
    ) {
        if t1 != nil {
            // T=1 handles silence itself.
            if let failure { t1?.fail(failure, at: time, into: &found) }
            if failure == nil { t1?.received(message.data, at: time, into: &found) }
            return
        }
        if let failure { return fail(failure, at: time, into: &found) }
        let part = message.parameters.2
        guard part != Part.goOn else { return }
        guard response.add(message.data, of: found, at: time) else {
            return fail(.init(.malformedAnswer, "an answer without end"), at: time, into: &found)
        }
        guard part != Part.begins, part != Part.continues else { return }
        let whole = response.take()
        // An ACR122U says success, and gives nothing, where the card was silent (libnfc#263).
        guard !whole.bytes.isEmpty else {
            return exchange.end(.init(.noAnswer), at: whole.start ?? time, into: &found)
        }
        exchange.end(whole, at: time, into: &found)
    }

    private mutating func fail(
        _ failure: TraceEvent.Failure, at time: Duration, into found: inout RaisedEvents, keepingPending: Bool = false
    ) {
        if !keepingPending { pending = nil }
        (command, response) = (PartedMessage(), PartedMessage())
        t1?.fail(failure, at: time, into: &found)
        exchange.end(failure, at: time, into: &found)
    }

    // MARK: The card

    private mutating func poweredOn(
        _ message: Message, _ failure: TraceEvent.Failure?, at time: Duration, into found: inout RaisedEvents
    ) {
        let before = atr
        let cardHadCome = cardHasCome
        forgetCard()
        if var failure {
            if message.parameters.0 & 0x03 == 2 {
                failure.kind = .cardAbsent
            } else if failure.kind == .noAnswer {
                failure.kind = .cardMute
                if cardHadCome { found.add(.slot(.muteCard), at: time) }
            }
            return found.add(.failed(.connect, failure), at: time)
        }
        let atr = ATR(message.data)
        guard atr.contactless != .noCard else { return found.add(.failed(.connect, .init(.cardAbsent)), at: time) }
        self.atr = atr
        found.markControl()
        guard atr != before else { return found.add(.reset, at: time) }
        if cardHadCome { found.add(.slot(.card(atr, exclusivelyHeld: false)), at: time) }
        found.add(.connected(atr, atr.usualProtocol), at: time)
    }

    private mutating func forgetCard() {
        (atr, t1, hasExchanged, cardHasCome) = (nil, nil, false, false)
    }

    /// NotifySlotChange (6.3.1): two bits for each slot, that a card is there, and that this has changed.
    private mutating func slotChanged(_ bits: ArraySlice<UInt8>, at time: Duration, into found: inout RaisedEvents) {
        let slot = Int(self.slot ?? 0)
        guard let byte = bits.dropFirst(slot / 4).first else { return found.omit("changes of other slots") }
        let state = byte >> (slot % 4 * 2) & 0x03
        switch state {
        case 0b11: cardHasCome = true
        case 0b10:
            fail(.init(.cardRemoved), at: time, into: &found)
            forgetCard()
            found.add(.slot(.empty), at: time)
        default: found.omit("reports that nothing has changed")
        }
    }

    /// A message on a bulk endpoint, its header of ten bytes taken apart.
    private struct Message {
        let type: UInt8
        let slot: UInt8
        let sequence: UInt8
        /// bStatus, bError and the byte that means something else in each message; for commands those of 7 to 9.
        let parameters: (UInt8, UInt8, UInt8)
        let data: ArraySlice<UInt8>

        /// - Returns: nil unless dwLength counts the data.
        init?(_ bytes: [UInt8]) {
            guard bytes.count >= CCIDRaiser.headerSize,
                bytes[1...4].reversed().reduce(0, { $0 << 8 | Int($1) }) == bytes.count - CCIDRaiser.headerSize
            else { return nil }
            (type, slot, sequence, parameters) = (bytes[0], bytes[5], bytes[6], (bytes[7], bytes[8], bytes[9]))
            data = bytes[CCIDRaiser.headerSize...]
        }

        /// Returns true if a message of this type answers `command` (6.2).
        func answers(_ command: UInt8) -> Bool {
            let expected: UInt8 =
                switch command {
                case Command.powerOn, Command.xfrBlock, Command.secure: 0x80
                case 0x61, 0x6C, 0x6D: 0x82
                case Command.escape: 0x83
                case 0x73: 0x84
                default: 0x81
                }
            return type == expected
        }

        /// Why a command failed; nil if it did not.  bError means something only then.
        var failure: TraceEvent.Failure? {
            guard parameters.0 & 0xC0 != 0 else { return nil }
            let kind: CardError.Kind =
                switch parameters.1 {
                case 0xFE, 0xAB: .noAnswer
                case 0xE0, 0xF2: .readerBusy
                case 0xF5, 0xF6: .protocolMismatch
                case 0xB0: .tooLong
                case 0..<0x80: .unsupported
                default: .notTransacted
                }
            return .init(kind, "CCID bError \([parameters.1].hex)")
        }
    }
}

extension ATR {
    /// The protocol that a driver chooses: T=1 for contactless cards, for others the first that is offered.
    var usualProtocol: TransmissionProtocol { contactless != nil || protocols.first == 1 ? .t1 : .t0 }
}

/// Raises the blocks of T=1 (ISO/IEC 7816-3, 11) that readers of TPDU level exchange.
struct T1Raiser: Sendable {
    let checkSize: Int
    private var blocks = BlockExchange()

    var isWithinChain: Bool { blocks.isWithinChain }
    var isWithinExchange: Bool { blocks.isWithinExchange }

    /// - Returns: nil unless the first bytes for the card are such a block, including its check bytes.
    init?(firstBlock bytes: ArraySlice<UInt8>) {
        guard let checkSize = [1, 2].first(where: { Self.isBlock(bytes, checkSize: $0) }) else { return nil }
        self.checkSize = checkSize
    }

    mutating func sent(_ bytes: ArraySlice<UInt8>, at time: Duration, into found: inout RaisedEvents) {
        guard let block = information(bytes, at: time, into: &found) else { return }
        blocks.sent(block, at: time, into: &found)
    }

    mutating func received(_ bytes: ArraySlice<UInt8>, at time: Duration, into found: inout RaisedEvents) {
        guard let block = information(bytes, at: time, into: &found) else { return }
        blocks.received(block, at: time, into: &found)
    }

    mutating func fail(_ failure: TraceEvent.Failure, at time: Duration, into found: inout RaisedEvents) {
        blocks.fail(failure, at: time, into: &found)
    }

    /// The I-block that `bytes` are, if they are one.
    private mutating func information(
        _ bytes: ArraySlice<UInt8>, at time: Duration, into found: inout RaisedEvents
    ) -> BlockExchange.Block? {
        guard Self.isBlock(bytes, checkSize: checkSize) else {
            found.omit("blocks of T=1 that are none")
            return nil
        }
        let pcb = bytes[bytes.startIndex + 1]
        // RESYNCH and ABORT end the current exchange (11.6.3).
        if pcb == 0xC0 || pcb == 0xC2 { blocks.fail(.init(.notTransacted, "T=1 gave up"), at: time, into: &found) }
        guard pcb & 0x80 == 0 else {
            // An S-block has one byte at the most (11.3.2.2).
            if bytes.count <= 4 + checkSize { found.markControl() }
            found.omit("blocks of T=1 that carry no data")
            return nil
        }
        return .init(
            number: pcb >> 6 & 1, isChained: pcb & 0x20 != 0, data: bytes.dropFirst(3).dropLast(checkSize))
    }

    /// NAD, PCB, LEN, the data, and one byte of LRC or two of CRC.
    private static func isBlock(_ bytes: ArraySlice<UInt8>, checkSize: Int) -> Bool {
        guard bytes.count >= 3 + checkSize else { return false }
        let pcb = bytes[bytes.startIndex + 1]
        let isKnown = pcb & 0x9F == 0 || pcb & 0xEC == 0x80 || pcb & 0xD8 == 0xC0
        guard isKnown, bytes.count == 3 + Int(bytes[bytes.startIndex + 2]) + checkSize else { return false }
        return bytes.suffix(checkSize).elementsEqual(check(of: bytes.dropLast(checkSize), count: checkSize))
    }

    /// The LRC, or the two bytes of CRC, after `body`.
    static func check(of body: ArraySlice<UInt8>, count: Int) -> [UInt8] {
        guard count == 2 else { return [body.reduce(0, ^)] }
        // Most significant byte first, and not inverted.
        let crc = FrameChecksum.remainder(of: body, from: 0xFFFF)
        return [UInt8(crc >> 8), UInt8(crc & 0xFF)]
    }
}

/// The checksums of frames, with the polynomial of ISO/IEC 13239 reflected: 8408.
enum FrameChecksum {
    /// CRC_A, and CRC_B (ISO/IEC 14443-3, annex B).
    case a, b

    static func remainder(of bytes: some Sequence<UInt8>, from start: UInt16) -> UInt16 {
        bytes.reduce(start) { crc, byte in
            (0..<8).reduce(crc ^ UInt16(byte)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0x8408 : crc >> 1 }
        }
    }

    /// The two bytes after `bytes`, least significant byte first.
    func bytes(of bytes: some Sequence<UInt8>) -> [UInt8] {
        let crc =
            switch self {
            case .a: Self.remainder(of: bytes, from: 0x6363)
            case .b: ~Self.remainder(of: bytes, from: 0xFFFF)
            }
        return [UInt8(crc & 0xFF), UInt8(crc >> 8)]
    }

    /// The checksum at the end of `frame`; nil if there is none.
    static func found(in frame: [UInt8]) -> FrameChecksum? {
        guard frame.count >= 3 else { return nil }
        return [.a, .b].first { $0.bytes(of: frame.dropLast(2)).elementsEqual(frame.suffix(2)) }
    }
}
