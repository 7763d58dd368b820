import Waiting

/// The chip's transmissions to all cards, and their form on the air (PN532/C1 data sheet, 8.6.23).
extension SoftwarePN532 {
    /// The registers of the contactless interface unit that a host changes in order to send frames of its own.
    enum Register {
        /// Bit 7: the chip appends a checksum; bits 6 to 4: the rate; bits 1 and 0: the framing.
        static let transmitMode: UInt16 = 0x6302
        static let receiveMode: UInt16 = 0x6303
        /// Bit 6: the carrier is switched off and on as type A has it, not weakened as type B and FeliCa have it.
        static let transmitAuto: UInt16 = 0x6305
        /// Bit 4: no parity bits.
        static let manualReceive: UInt16 = 0x630D
        static let fifoData: UInt16 = 0x6339
        /// Bits 2 to 0: the number of bits of the last byte that are sent, 0 for all eight.
        static let bitFraming: UInt16 = 0x633D
    }

    /// The most records that are kept.
    private static let maximumRecords = 4096

    mutating func record(_ event: RadioRecord.Event) {
        if records.count == Self.maximumRecords { records.removeFirst(Self.maximumRecords / 2) }
        records.append(RadioRecord(event: event, instant: time.now))
    }

    // MARK: Requests for cards

    /// Sends a request to all cards.
    ///
    /// - Returns: the cards that answer it if it asks for cards of their type.
    mutating func poll(_ request: Request) -> [any VirtualCard] {
        let frame: RadioFrame
        switch request {
        case .typeA: frame = RadioFrame(.typeA, [0x26])
        case .typeB: frame = RadioFrame(.typeB, [0x05, 0x00, 0x00])
        case .felica(_, let polling):
            frame = RadioFrame(.felica, [UInt8(truncatingIfNeeded: polling.count + 1)] + polling)
        case .jewel: return []
        }
        let willing = cards.filter { $0.notice(.frame(frame)) }
        record(
            .frame(
                frame, answeredBy: willing.filter { request.answer(of: $0.radio) != nil }.map(\.radio.identifier)))
        return willing
    }

    /// Leaves the registers as a request leaves them: after REQA without an answer the chip still sends seven bits, without a
    /// checksum.
    mutating func setRegisters(after request: Request, isAnswered: Bool) {
        let (mode, isFullySwitched): (UInt8, Bool) =
            switch request {
            case .typeA: (isAnswered ? 0x80 : 0x00, true)
            case .typeB: (0x83, false)
            case .felica(let rate, _): (rate == 0x01 ? 0x92 : 0xA2, false)
            case .jewel: (0x00, true)
            }
        registers[Register.transmitMode] = mode
        registers[Register.receiveMode] = mode
        registers[Register.transmitAuto] =
            registers[Register.transmitAuto, default: 0] & ~0x40 | (isFullySwitched ? 0x40 : 0)
        registers[Register.manualReceive] = 0x00
        var isRequestA: Bool { if case .typeA = request { true } else { false } }
        registers[Register.bitFraming] = isRequestA && !isAnswered ? 0x07 : 0x00
        // A request without an answer stays in the buffer: nfcpy detects by it that no card was there.
        if isRequestA, !isAnswered { registers[Register.fifoData] = 0x26 }
    }

    // MARK: Frames of the host

    /// Sends a frame of the host to all cards.
    ///
    /// - Returns: the one answer; nil for silence, and for more answers than one.
    mutating func broadcast(_ bytes: [UInt8]) -> [UInt8]? {
        guard isFieldOn else { return nil }
        switch frame(of: bytes) {
        case .failure(let obstacle):
            record(.noFrame(bytes, reason: obstacle.reason))
            return nil
        case .success(let frame):
            let answering = cards.filter { card in
                card.notice(.frame(frame)) && frame.isRequest && card.radio.modulation == frame.modulation
            }
            record(.frame(frame, answeredBy: answering.map(\.radio.identifier)))
            return answering.count == 1 ? answering[0].radio.answerToRequest : nil
        }
    }

    private struct Obstacle: Error { let reason: String }

    /// The frame that cards receive when the chip sends `bytes` with its registers as they are.
    private func frame(of bytes: [UInt8]) -> Result<RadioFrame, Obstacle> {
        func no(_ reason: String) -> Result<RadioFrame, Obstacle> { .failure(Obstacle(reason: reason)) }
        let mode = registers[Register.transmitMode, default: 0x00]
        let bits = registers[Register.bitFraming, default: 0x00] & 0x07
        let isFullySwitched = registers[Register.transmitAuto, default: 0x00] & 0x40 != 0
        let hasParity = registers[Register.manualReceive, default: 0x00] & 0x10 == 0
        let appendsChecksum = mode & 0x80 != 0
        switch (mode & 0x03, mode & 0x70) {
        case (0x00, 0x00):
            guard isFullySwitched else { return no("type A, and the carrier is only weakened") }
            guard hasParity else { return no("type A without parity") }
            // A short frame (ISO/IEC 14443-3, 6.2.3.1).
            if bytes.count == 1, bits == 7, !appendsChecksum { return .success(RadioFrame(.typeA, [bytes[0] & 0x7F])) }
            guard bits == 0 else { return no("cut to \(bits) bits of its last byte") }
            guard !appendsChecksum else { return .success(RadioFrame(.typeA, bytes)) }
            guard bytes.count > 2, RadioChecksum.a(bytes.dropLast(2)) == Array(bytes.suffix(2)) else {
                return no("without its CRC_A")
            }
            return .success(RadioFrame(.typeA, bytes.dropLast(2)))
        case (0x03, 0x00):
            guard !isFullySwitched else { return no("type B, and the carrier is switched off and on") }
            guard bits == 0 else { return no("cut to \(bits) bits of its last byte") }
            guard !appendsChecksum else { return .success(RadioFrame(.typeB, bytes)) }
            guard bytes.count > 2, RadioChecksum.b(bytes.dropLast(2)) == Array(bytes.suffix(2)) else {
                return no("without its CRC_B")
            }
            return .success(RadioFrame(.typeB, bytes.dropLast(2)))
        case (0x02, 0x10), (0x02, 0x20):
            guard appendsChecksum, !isFullySwitched, bits == 0, Int(bytes[0]) == bytes.count else {
                return no("not as FeliCa has it")
            }
            return .success(RadioFrame(.felica, bytes))
        default:
            return no("CIU_TxMode \(mode)")
        }
    }

    /// Lets the time elapse for which an unanswered InCommunicateThru waits: 100 µs times 2 to the power of n-1 (UM0701-02,
    /// 7.3.1, item 02).
    mutating func waitInVain() {
        guard (1...0x10).contains(communicationTimeout) else { return }
        cardTime += .microseconds(100) * (1 << Int(communicationTimeout - 1))
    }

    /// Sends S(DESELECT) to a card that speaks ISO-DEP and is awake.
    mutating func sendDeselect(to index: Int) {
        let target = targets[index]
        guard target.speaksISODEP, !target.isHalted, isFieldOn, lies(target.card) else { return }
        record(.deselect(target.radio.identifier))
        _ = target.card.notice(.deselect)
    }
}

extension VirtualCardRadio {
    var modulation: RadioFrame.Modulation {
        switch self {
        case .typeA: .typeA
        case .typeB: .typeB
        case .felica: .felica
        }
    }

    /// ATQA, as it is on the air, or ATQB; nil for FeliCa.
    fileprivate var answerToRequest: [UInt8]? {
        switch self {
        case .typeA(_, let atqa, _, _): atqa.reversed()
        case .typeB(let atqb): Array(atqb.prefix(12))
        case .felica: nil
        }
    }
}
