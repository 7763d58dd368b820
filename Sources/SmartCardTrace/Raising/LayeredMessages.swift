import SmartCard

/// The commands and responses of a trace, those that its frames carry among them.
///
/// Each layer is raised apart from the others (``LayerRaiser``), so that a trace that has the same exchange on several
/// layers has it as often.  The parts of a message stand among the bytes of the trace's own events.
struct LayeredMessages {
    private(set) var messages: [TraceMessage] = []
    /// The non-APDU bytes that frames carry to or from a card, and their places.
    private(set) var others: [(bytes: [UInt8], parts: [TraceMessage.Part])] = []
    /// Commands to the reader and its answers.
    private(set) var escapes: [(bytes: [UInt8], parts: [TraceMessage.Part])] = []
    /// Repetitions of earlier bytes, in the order of the trace.
    private(set) var repetitions: [(first: TraceMessage.Part, again: TraceMessage.Part)] = []
    /// The range of raised bytes in each event of a lower layer, from the first to the last.
    private(set) var raised: [Int: Range<Int>] = [:]
    /// The events that were understood, and carry nothing of an exchange.
    private(set) var control: Set<Int> = []
    /// The events that were looked at so.
    private(set) var looked: Set<Int> = []

    private static let lanes: [Set<TraceEvent.Layer>] = [[.apdu], [.escape], [.ccid], [.pn532], [.rf, .rfPayload]]

    /// - Parameter open: the commands on the layer `apdu` that wait for an answer when the trace begins.
    init(_ trace: Trace, behind open: [[UInt8]] = []) {
        let layers = Set(trace.events.lazy.compactMap(Self.layer))
        for lane in Self.lanes where !layers.isDisjoint(with: lane) {
            // Raising changes nothing where no program talks to the chip of its reader.
            if lane == [.apdu], !trace.events.contains(where: Self.isDirect) {
                messages += TraceMessage.all(in: trace, behind: open)
            } else {
                raise(trace, lane, behind: lane == [.apdu] ? open : [])
            }
        }
    }

    private mutating func raise(_ trace: Trace, _ lane: Set<TraceEvent.Layer>, behind open: [[UInt8]]) {
        var raiser = LayerRaiser()
        var events: [TraceEvent] = []
        var places: [[TraceMessage.Part]] = []
        for (number, event) in trace.events.enumerated() {
            if let layer = Self.layer(event) {
                guard lane.contains(layer) else { continue }
                looked.insert(number)
            } else if !Self.concerns(lane, event.what) {
                continue
            }
            let found = raiser.raise(event, number: number)
            if found.isControl { control.insert(number) }
            repetitions += found.repetitions
            for raised in found.events {
                events.append(raised.event)
                places.append(raised.parts)
                add(raised)
            }
        }
        for repetition in repetitions { add(repetition.again) }
        for message in TraceMessage.all(in: Trace(events), behind: open) {
            let standing = message.standing(in: places)
            if lane == [.apdu], standing.events.allSatisfy(control.contains) {
                escapes.append((message.bytes, standing.parts))
            } else if lane == [.apdu] || message.isAPDU {
                // A message in the place of an APDU is an APDU, regardless of its content.
                messages.append(standing)
            } else {
                others.append((message.bytes, standing.parts))
            }
        }
        addEscapes(Trace(events), places)
    }

    /// Adds the commands to the reader.  A command for a storage card and its answer are included, wherever they occur.
    private mutating func addEscapes(_ trace: Trace, _ places: [[TraceMessage.Part]]) {
        var forCard: Set<Int> = []
        for exchange in trace.exchanges(on: [.escape])
        where exchange.command.first == 0xFF && CCIDRaiser.layer(exchange.command) == .apdu {
            forCard.formUnion([exchange.commandIndex, exchange.answerIndex ?? exchange.commandIndex])
        }
        var exchanged: [(event: TraceEvent, parts: [TraceMessage.Part])] = []
        for (index, event) in trace.events.enumerated() {
            let what: TraceEvent.What
            switch event.what {
            case .sent(.escape, let bytes) where forCard.contains(index): what = .sent(.apdu, bytes)
            case .received(.escape, let bytes) where forCard.contains(index): what = .received(.apdu, bytes)
            case .failed(.exchange(.escape), let failure) where forCard.contains(index):
                what = .failed(.exchange(.apdu), failure)
            case .sent(.escape, let bytes), .received(.escape, let bytes):
                escapes.append((bytes, places[index]))
                continue
            case .connected, .reset: what = event.what
            default: continue
            }
            exchanged.append((TraceEvent(at: event.time, what), places[index]))
        }
        let parts = exchanged.map(\.parts)
        for message in TraceMessage.all(in: Trace(exchanged.map(\.event))) {
            messages.append(message.standing(in: parts))
        }
    }

    /// Returns true if all `parts` lie in events outside any exchange.
    func isControl(_ parts: [TraceMessage.Part]) -> Bool { parts.allSatisfy { control.contains($0.event) } }

    private mutating func add(_ raised: Raised.Event) {
        switch raised.event.what {
        case .sent, .received: break
        default: return
        }
        for part in raised.parts { add(part) }
    }

    private mutating func add(_ part: TraceMessage.Part) {
        let place = raised[part.event] ?? part.place
        raised[part.event] =
            min(place.lowerBound, part.place.lowerBound)..<max(place.upperBound, part.place.upperBound)
    }

    private static func layer(_ event: TraceEvent) -> TraceEvent.Layer? {
        switch event.what {
        case .sent(let layer, _), .received(let layer, _), .failed(.exchange(let layer), _): layer
        default: nil
        }
    }

    /// Returns true if such a command is sent as an APDU (ACS API v2.04, 5.1).
    private static func isDirect(_ event: TraceEvent) -> Bool {
        guard case .sent(.apdu, let bytes) = event.what else { return false }
        return isDirect(bytes)
    }

    /// Returns true if `command`, which the reader takes as its own, is a command to the reader's PN532.
    static func isDirect(_ command: [UInt8]) -> Bool {
        command.starts(with: [0xFF, 0x00, 0x00, 0x00]) && command.dropFirst(5).first == 0xD4
    }

    /// Returns true if an event without a layer concerns the lane.  A connection belongs to the program, and may stand
    /// anywhere between the reader's frames.
    private static func concerns(_ lane: Set<TraceEvent.Layer>, _ what: TraceEvent.What) -> Bool {
        switch what {
        case .connected, .reset, .disconnected: lane == [.apdu] || lane == [.escape]
        case .field: lane.contains(.rf)
        default: false
        }
    }
}

extension TraceMessage {
    /// INS 6X and 9X are invalid (ISO/IEC 7816-4, 5.4.2), and a response has a status word.
    fileprivate var isAPDU: Bool {
        switch kind {
        case .command(let command), .response(let command, .some):
            command.map { $0.ins & 0xF0 != 0x60 && $0.ins & 0xF0 != 0x90 } ?? false
        case .response(_, nil): false
        }
    }
}

/// The checksums of frames whose data have changed.
enum FrameSeal {
    /// Returns `new` with a correct checksum if that of `old` was correct: CRC_A or CRC_B on the air, LRC or CRC of a
    /// T=1 block in CCID, the DCS of a PN532.
    ///
    /// - Parameter data: the range that may differ, in both.
    static func sealed(_ new: [UInt8], as old: [UInt8], _ layer: TraceEvent.Layer, data: Range<Int>) -> [UInt8] {
        var new = new
        guard new != old, new.count == old.count else { return new }
        switch layer {
        case .rf:
            guard let checksum = FrameChecksum.found(in: old) else { return new }
            new.replaceSubrange(new.count - 2..<new.count, with: checksum.bytes(of: new.dropLast(2)))
        case .ccid:
            guard old.count > 10, let block = T1Raiser(firstBlock: old[10...]),
                data == 13..<old.count - block.checkSize
            else { return new }
            let check = T1Raiser.check(of: new[10..<data.upperBound], count: block.checkSize)
            new.replaceSubrange(data.upperBound..<new.count, with: check)
        case .pn532:
            // With DCS the sum is zero (PN532 user manual, 6.2.1.1).
            guard data.upperBound < new.count else { return new }
            let difference = old[data].reduce(0, &+) &- new[data].reduce(0, &+)
            new[data.upperBound] &+= difference
        default: break
        }
        return new
    }
}
