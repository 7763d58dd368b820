import SmartCard

/// The raiser of a PN532's exchanges with a card.
///
/// It handles `FF 00 00 00 Lc D4 …` of an ACR122U (ACS API v2.04, 5.1) and frames of the chip itself (PN532 user
/// manual, 7.3).  Commands that carry nothing to an ISO/IEC 14443-4 card stay unchanged.
struct PN532Raiser: Sendable {
    /// The treatment of the next answer.
    private enum Pending: Sendable {
        /// The answer stays unchanged.
        case kept
        /// The answer lists cards of this modulation (BrTy), or, if that is nil, of the modulations that it names.
        case listing(modulation: UInt8?)
        /// The answer contains a card's answer.
        case exchange
        /// The card is to be told more, before it answers.
        case chained
        /// The answer contains a frame.
        case frame
        /// The answer reports that the card was released.
        case release
        /// The answer to a command that is understood, and has this many bytes if that succeeded.
        case setting(Int)
    }

    private var pending = Pending.kept
    private var exchange = RaisedExchange()
    private var command = PartedMessage()
    private var response = PartedMessage()
    /// The card to talk to, if it is of ISO/IEC 14443-4; nil while none has been listed.
    private var target: (number: UInt8, isISODEP: Bool)?
    /// True if RATS has been sent as a frame.
    private var isFraming = false

    mutating func raise(_ event: TraceEvent, into found: inout RaisedEvents) {
        switch event.what {
        case .sent(.pn532, let bytes):
            guard let command = Self.unframed(bytes) else { return found.omit("acknowledgments of the PN532") }
            sent(command, event, into: &found)
        case .received(.pn532, let bytes):
            guard let answer = Self.unframed(bytes) else { return found.omit("acknowledgments of the PN532") }
            received(answer, event, into: &found)
        case .sent(.escape, let bytes), .sent(.apdu, let bytes):
            if bytes.starts(with: [0xFF, 0xC0, 0x00, 0x00]), case .exchange = pending { return }
            sent(Self.direct(bytes) ?? [], event, into: &found)
        case .received(.escape, let bytes), .received(.apdu, let bytes):
            // The answer is to be fetched with GET RESPONSE.
            if bytes.count == 2, bytes.first == 0x61, case .exchange = pending { return }
            received(
                bytes.first == 0xD5 && bytes.suffix(2) == [0x90, 0x00] ? bytes.dropLast(2) : bytes[...], event,
                into: &found)
        case .failed(.exchange(let layer), let failure) where [.pn532, .escape, .apdu].contains(layer):
            defer { pending = .kept }
            switch pending {
            case .exchange: end(failure, at: event.time, into: &found)
            case .frame: found.add(.failed(.exchange(.rfPayload), failure), at: event.time)
            default: keep(event, into: &found)
            }
        case .disconnected, .connected, .reset:
            (target, isFraming, pending) = (nil, false, .kept)
            found.add(event.what, at: event.time)
        default: found.add(event.what, at: event.time)
        }
    }

    var isWithinExchange: Bool {
        if exchange.layer != nil || command.start != nil || response.start != nil { return true }
        if case .kept = pending { return false }
        return true
    }

    // MARK: Commands

    /// - Parameter command: the bytes from TFI, D4, on; empty for anything but a command to the chip.
    private mutating func sent(_ command: ArraySlice<UInt8>, _ event: TraceEvent, into found: inout RaisedEvents) {
        pending = .kept
        let data = command.dropFirst(2)
        guard command.first == 0xD4, let code = command.dropFirst().first else { return keep(event, into: &found) }
        switch (code, data.first) {
        case (0x40, let number?) where isForCard(number, data.dropFirst()):
            guard self.command.add(data.dropFirst(), of: found, at: event.time) else {
                return found.omit("commands without end")
            }
            // 40 in Tg announces more data; an empty command requests more of the answer.
            guard number & 0x40 == 0 else {
                pending = .chained
                return
            }
            pending = .exchange
            let whole = self.command.take()
            if whole.bytes.isEmpty, response.start != nil { return found.markControl() }
            response = PartedMessage()
            exchange.begin(.apdu, whole, at: event.time, into: &found)
        case (0x06, _) where PN532Settings.areModes(data, step: 2):
            found.markControl()
            keep(event, .setting(data.count / 2), into: &found)
        case (0x08, _) where PN532Settings.areModes(data, step: 3):
            found.markControl()
            keep(event, .setting(0), into: &found)
        case (0x42, _) where !isFraming && PN532Settings.isPollingFrame(data):
            found.markControl()
            keep(event, .setting(1), into: &found)
        case (0x42, let first?) where isFraming || first == 0xE0 && data.count == 2:
            isFraming = true
            pending = .frame
            found.add(.sent(.rfPayload, Array(data)), found.parts(of: data), at: event.time)
        case (0x4A, _):
            found.markControl()
            keep(event, .listing(modulation: data.dropFirst().first), into: &found)
        case (0x60, _):
            found.markControl()
            keep(event, .listing(modulation: nil), into: &found)
        case (0x44, _), (0x52, _):
            found.markControl()
            keep(event, .release, into: &found)
        default: keep(event, into: &found)
        }
    }

    /// Returns true if an exchange with the target carries APDUs: the card is known to speak ISO/IEC 14443-4, or, if
    /// nothing is known of it, the data allow no other interpretation.
    private func isForCard(_ number: UInt8, _ data: ArraySlice<UInt8>) -> Bool {
        if let target { return target.isISODEP && target.number == number & 0x3F }
        if command.start != nil || response.start != nil { return true }
        // Only to such a card more is to come (PN532 user manual, 7.3.8).
        if number & 0x40 != 0 { return true }
        guard let command = try? CommandAPDU(data) else { return false }
        // INS 6X and 9X are invalid (ISO/IEC 7816-4, 5.4.2).
        return command.cla != 0xFF && command.ins & 0xF0 != 0x60 && command.ins & 0xF0 != 0x90
    }

    // MARK: Answers

    /// - Parameter answer: the bytes from TFI, D5, on; the status word from an ACR122U without such an answer.
    private mutating func received(_ answer: ArraySlice<UInt8>, _ event: TraceEvent, into found: inout RaisedEvents) {
        let pending = self.pending
        self.pending = .kept
        let isAnswer = answer.first == 0xD5
        let data = answer.dropFirst(2)
        switch pending {
        case .kept: keep(event, into: &found)
        case .listing(let modulation):
            keep(event, into: &found)
            found.markControl()
            if isAnswer { listed(data, modulation, at: event.time, into: &found) }
        case .release:
            found.markControl()
            keep(event, into: &found)
            guard isAnswer, data.first == 0, let target else { return }
            self.target = nil
            if target.isISODEP { found.add(.disconnected(.powerOff), at: event.time) }
        case .setting(let count):
            if isAnswer ? data.count == count : answer.count <= 2 { found.markControl() }
            keep(event, into: &found)
        case .chained, .exchange:
            // The status alone.
            if data.count <= 1 { found.markControl() }
            guard isAnswer, let status = data.first, status & 0x3F == 0 else {
                let failure = Self.failure(isAnswer ? data.first ?? 0 : 0x01)
                return end(failure, at: event.time, into: &found)
            }
            guard case .exchange = pending else { return }
            guard response.add(data.dropFirst(), of: found, at: event.time) else {
                return end(.init(.malformedAnswer, "an answer without end"), at: event.time, into: &found)
            }
            // 40: there is more.
            guard status & 0x40 == 0 else { return }
            command = PartedMessage()
            exchange.end(response.take(), at: event.time, into: &found)
        case .frame:
            guard isAnswer, let status = data.first, status & 0x3F == 0 else {
                let failure = Self.failure(isAnswer ? data.first ?? 0 : 0x01)
                return found.add(.failed(.exchange(.rfPayload), failure), at: event.time)
            }
            let frame = data.dropFirst()
            found.add(.received(.rfPayload, Array(frame)), found.parts(of: frame), at: event.time)
        }
    }

    private mutating func end(_ failure: TraceEvent.Failure, at time: Duration, into found: inout RaisedEvents) {
        (command, response) = (PartedMessage(), PartedMessage())
        exchange.end(failure, at: time, into: &found)
    }

    /// Returns the failure in the first byte of a PN532 answer (PN532 user manual, 7.1).
    private static func failure(_ status: UInt8) -> TraceEvent.Failure {
        let kind: CardError.Kind =
            switch status & 0x3F {
            case 0x01, 0x0A: .noAnswer
            case 0x29, 0x2B: .cardRemoved
            case 0x10, 0x26, 0x27: .unsupported
            default: .notTransacted
            }
        return .init(kind, "PN532 error \([status & 0x3F].hex)")
    }

    /// Keeps `event` unchanged, and notes the treatment of its answer.
    private mutating func keep(_ event: TraceEvent, _ next: Pending = .kept, into found: inout RaisedEvents) {
        if case .sent = event.what { end(.init(nil), at: event.time, into: &found) }
        pending = next
        switch event.what {
        case .sent(.pn532, _), .received(.pn532, _), .failed(.exchange(.pn532), _):
            found.omit("frames of the PN532 that carry no APDU")
        default: found.add(event.what, at: event.time)
        }
    }

    // MARK: Cards

    /// The answer of InListPassiveTarget, or of InAutoPoll, which names the type of each card and the count of its
    /// bytes (PN532 user manual, 7.3.5 and 7.3.13).
    private mutating func listed(
        _ data: ArraySlice<UInt8>, _ modulation: UInt8?, at time: Duration, into found: inout RaisedEvents
    ) {
        (target, isFraming) = (nil, false)
        guard let count = data.first, count > 0 else { return }
        if count > 1 { found.omit("cards beside the first") }
        var rest = data.dropFirst()
        var modulation = modulation
        if modulation == nil {
            // Types 10 and 20 are of type A, 03 and 23 of type B.
            switch rest.first.map({ $0 & 0xF7 }) {
            case 0x10, 0x20: modulation = 0x00
            case 0x03, 0x23: modulation = 0x03
            default: modulation = nil
            }
            rest = rest.dropFirst(2)
        }
        guard let number = rest.popFirst() else { return }
        target = (number, false)
        let atr: ATR
        switch modulation {
        case 0x00:
            // SENS_RES, SEL_RES, the count of the UID's bytes, the UID; then an ATS, if RATS was sent.
            let fields = rest.prefix(4)
            guard fields.count == 4, let count = fields.last else { return }
            rest = rest.dropFirst(4 + Int(count))
            guard let length = rest.first, let ats = ATS(rest.prefix(Int(length))) else { return }
            atr = ATR(ats)
        case 0x03:
            guard rest.count >= 13, rest.first == 0x50 else { return }
            atr = ATR(atqb: rest.prefix(12), mbli: rest.dropFirst(13).first ?? 0)
        default: return
        }
        target = (number, true)
        found.add(.connected(atr, .t1), at: time)
    }

    // MARK: Frames

    /// The data of the direct transmit of an ACR122U.
    private static func direct(_ command: [UInt8]) -> ArraySlice<UInt8>? {
        guard command.starts(with: [0xFF, 0x00, 0x00, 0x00]), command.count > 5 else { return nil }
        let data = command.dropFirst(5).prefix(Int(command[4]))
        return data.count == command[4] ? data : nil
    }

    /// Returns the bytes between the length and the checksum of a frame, TFI first; nil for acknowledgments and bytes
    /// outside a frame (PN532 user manual, 6.2.1).
    private static func unframed(_ bytes: [UInt8]) -> ArraySlice<UInt8>? {
        let rest = bytes.drop { $0 == 0x00 }
        guard rest.first == 0xFF, rest.count >= 5 else { return nil }
        var body = rest.dropFirst(3)
        var count = Int(rest[rest.startIndex + 1])
        if count == 0xFF, rest[rest.startIndex + 2] == 0xFF {
            guard rest.count >= 8 else { return nil }
            count = Int(rest[rest.startIndex + 3]) << 8 | Int(rest[rest.startIndex + 4])
            body = rest.dropFirst(6)
        }
        guard count > 0, body.count > count else { return nil }
        let data = body.prefix(count + 1)
        guard data.reduce(0, &+) == 0 else { return nil }
        return data.dropLast()
    }
}
