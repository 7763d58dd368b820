import SmartCard

/// Raises the blocks of ISO/IEC 14443-4, on the air or as a reader exchanges them, to APDUs.
struct ISODEPRaiser: Sendable {
    /// The card's progress.
    private enum State: Sendable {
        /// The trace begins here, or the field was off: blocks are interpreted by their form.
        case unknown
        /// Frames are of ISO/IEC 14443-3.
        case selecting
        /// RATS was sent, or ATTRIB.
        case awaitingATS
        case awaitingATTRIB
        /// Frames are blocks of ISO/IEC 14443-4.
        case active
    }

    /// The maximum size of a reader's frame for initialization and anticollision (ISO/IEC 14443-3), in bytes.  Only
    /// ATTRIB with data is longer.
    private static let maximumControlCount = 15

    private var state = State.unknown
    private var atqb: [UInt8]?
    private var blocks = BlockExchange()

    mutating func raise(_ event: TraceEvent, into found: inout RaisedEvents) {
        switch event.what {
        case .sent(.rf, let bytes):
            guard let payload = payload(bytes, into: &found) else { return }
            sent(payload, at: event.time, into: &found)
        case .sent(.rfPayload, let bytes): sent(bytes[...], at: event.time, into: &found)
        case .received(.rf, let bytes):
            guard let payload = payload(bytes, into: &found) else { return }
            received(payload, at: event.time, into: &found)
        case .received(.rfPayload, let bytes): received(bytes[...], at: event.time, into: &found)
        case .failed(.exchange(.rf), let failure), .failed(.exchange(.rfPayload), let failure):
            blocks.fail(failure, at: event.time, into: &found)
        case .field(let isOn):
            if !isOn {
                blocks.fail(.init(nil), at: event.time, into: &found)
                state = .unknown
            }
            found.add(event.what, at: event.time)
        default: found.add(event.what, at: event.time)
        }
    }

    var isWithinExchange: Bool { blocks.isWithinExchange }

    func finish(into found: inout RaisedEvents) {
        if blocks.isWithinChain { found.omit("chains without end") }
    }

    /// `frame` without its checksum.  Short frames and those of anticollision have none (ISO/IEC 14443-3, 6.2.3).
    private func payload(_ frame: [UInt8], into found: inout RaisedEvents) -> ArraySlice<UInt8>? {
        if FrameChecksum.found(in: frame) != nil { return frame.dropLast(2) }
        if case .active = state, frame != [0x26], frame != [0x52] {
            found.omit("frames with a wrong checksum")
            return nil
        }
        return frame[...]
    }

    // MARK: From the reader

    private mutating func sent(_ frame: ArraySlice<UInt8>, at time: Duration, into found: inout RaisedEvents) {
        switch (frame.first, frame.count) {
        case (0xE0, 2):
            found.markControl()
            select(.awaitingATS, at: time, into: &found)
        case (0x1D, 9...):
            if frame.count <= Self.maximumControlCount { found.markControl() }
            select(.awaitingATTRIB, at: time, into: &found)
        case (0x26, 1), (0x52, 1), (0x05, 3), (0x93, _), (0x95, _), (0x97, _), (0x50, 2):
            select(.selecting, at: time, into: &found)
            if frame.count <= Self.maximumControlCount { found.markControl() }
            found.omit("frames of initialization and anticollision")
        default:
            // Protocol and parameter selection (ISO/IEC 14443-4, 5.3): PPSS, PPS0.
            if frame.first.map({ $0 & 0xF0 }) == 0xD0, frame.dropFirst().first.map({ $0 & 0xEF }) == 0x01 {
                if frame.count <= 3 { found.markControl() }
                return found.omit("selections of protocol and parameters")
            }
            switch Block(frame) {
            case .information(let block) where isActive(block.isChained || block.data.count >= 4):
                state = .active
                blocks.sent(block, at: time, into: &found)
            case .ready, .waitingTime, .deselect: found.omitControl("blocks that carry no data")
            default: found.omit("frames that carry no APDU")
            }
        }
    }

    private func isActive(_ looksLikeCommand: Bool) -> Bool {
        switch state {
        case .active: true
        case .unknown: looksLikeCommand
        default: false
        }
    }

    private mutating func select(_ state: State, at time: Duration, into found: inout RaisedEvents) {
        blocks.fail(.init(nil), at: time, into: &found)
        self.state = state
    }

    // MARK: From the card

    private mutating func received(_ frame: ArraySlice<UInt8>, at time: Duration, into found: inout RaisedEvents) {
        switch state {
        case .awaitingATS:
            guard let ats = ATS(frame) else { return found.omit("answers to RATS that are no ATS") }
            state = .active
            found.markControl()
            found.add(.connected(ATR(ats), .t1), at: time)
        case .awaitingATTRIB:
            guard let first = frame.first else { return found.omit("answers to ATTRIB that are none") }
            state = .active
            if frame.count <= Self.maximumControlCount { found.markControl() }
            guard let atqb else { return found.omit("cards of type B whose ATQB is missing") }
            found.add(.connected(ATR(atqb: atqb, mbli: first), .t1), at: time)
        case .unknown, .selecting:
            let isATQB = frame.first == 0x50 && (12...13).contains(frame.count)
            if isATQB { atqb = Array(frame) }
            // ATQA, SAK, and the part of an identifier with its check byte have five bytes at the most.
            if isATQB || frame.count <= 5 { found.markControl() }
            found.omit("frames of initialization and anticollision")
        case .active:
            switch Block(frame) {
            case .information(let block): blocks.received(block, at: time, into: &found)
            case .deselect:
                blocks.fail(.init(nil), at: time, into: &found)
                state = .selecting
                found.markControl()
                found.add(.disconnected(.powerOff), at: time)
            case .waitingTime: found.omitControl("requests for more time")
            case .ready: found.omitControl("blocks that carry no data")
            case nil:
                found.omit(
                    frame.count == 1 && frame.first.map { $0 & 0xF0 } == 0xD0
                        ? "selections of protocol and parameters" : "frames that carry no APDU")
            }
        }
    }

    /// A block without its checksum (ISO/IEC 14443-4, 7.1).
    private enum Block {
        case information(BlockExchange.Block)
        case ready
        case waitingTime
        case deselect

        /// - Returns: nil for any other frame.
        init?(_ frame: ArraySlice<UInt8>) {
            guard let pcb = frame.first else { return nil }
            // CID, in bit 4, and NAD, in bit 3 of I-blocks, have a byte each.
            let cidCount = Int(pcb >> 3 & 1)
            if pcb & 0xE2 == 0x02 {
                let prologue = 1 + cidCount + Int(pcb >> 2 & 1)
                guard frame.count >= prologue else { return nil }
                self = .information(
                    .init(number: pcb & 1, isChained: pcb & 0x10 != 0, data: frame.dropFirst(prologue)))
            } else if pcb & 0xE6 == 0xA2, frame.count == 1 + cidCount {
                self = .ready
            } else if pcb & 0xF7 == 0xC2, frame.count == 1 + cidCount {
                self = .deselect
            } else if pcb & 0xF7 == 0xF2, frame.count == 2 + cidCount {
                self = .waitingTime
            } else {
                return nil
            }
        }
    }
}

extension ATR {
    /// The ATR that a reader constructs for a card of type A: the historical bytes of its ATS, fifteen at the most (PC/SC
    /// part 3, 3.1.3.2.3.1).
    init(_ ats: ATS) { self.init(contactlessHistory: ats.historicalBytes) }

    /// The ATR that a reader constructs for a card of type B: application data and protocol info of its ATQB, and the
    /// maximum buffer length index of its answer to ATTRIB.
    ///
    /// - Parameter atqb: at least 12 bytes.
    init(atqb: some Collection<UInt8>, mbli: UInt8) {
        self.init(contactlessHistory: atqb.dropFirst(5).prefix(7) + [mbli & 0xF0])
    }

    private init(contactlessHistory history: some Collection<UInt8>) {
        let history = Array(history.prefix(15))
        let checked = [0x80 | UInt8(clamping: history.count), 0x80, 0x01] + history
        self.init([0x3B] + checked + [checked.reduce(0, ^)])
    }
}
