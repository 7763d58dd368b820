import SmartCard

extension ForeignFormat {
    /// The frames that libccid logs with LIBCCID_ifdLogLevel=0x0F, in the log of pcscd or alone (CCID, src/ccid_usb.c
    /// and src/debug.h).
    static let libccid = ForeignFormat(
        "libccid", "the frames in a log of libccid", recognizes: LibCCIDLogImporter.recognizes,
        importer: { LibCCIDLogImporter($0) })
}

private struct LibCCIDLogImporter: FormatImporter {
    private var lines: LogReader
    private var clock = PCSCDClock()
    /// The reader that pcscd tried to start last.
    private var reader: String?
    /// The slots that have received commands, and the slot of the last command, to which a failure belongs.
    private var slots: [Slot] = []
    private var last = 0

    private struct Slot {
        let reader: UInt64
        let number: UInt8
        let name: String
    }

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        var hasFrames = false
        for line in LogReader.lines(start) {
            let message = PCSCDLine(line)?.message ?? line
            // With --apdu there is the whole of it without frames.
            if message.contains("Debug options: APDU") || message.starts(with: "APDU: ") { return false }
            hasFrames = hasFrames || frame(message) != nil
        }
        return hasFrames
    }

    /// `-> 000000 62 00 …`: the direction, the number of the reader in six hexadecimal digits, the frame.
    private static func frame(_ message: TextLine) -> (isCommand: Bool, reader: UInt64, digits: TextLine)? {
        let isCommand = message.starts(with: "-> ")
        guard isCommand || message.starts(with: "<- ") else { return nil }
        let (number, digits) = TextLine(message.bytes.dropFirst(3)).word
        guard number.bytes.count >= 6, let reader = number.hexNumber else { return nil }
        return (isCommand, reader, digits)
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let text = try lines.next() else { return false }
        let line = PCSCDLine(text)
        if let line { clock.advance(line) }
        let message = line?.message ?? text
        if let (isCommand, reader, digits) = Self.frame(message) {
            guard let bytes = try lines.bytes(digits, &events) else { return true }
            try add(bytes, isCommand, reader, &events)
        } else if let name = message.after("() Attempting startup of ")?.before(" using ") {
            reader = name.text
        } else if let notice = message.dropping("NotifySlotChange: ") {
            guard let bytes = try lines.bytes(notice, &events) else { return true }
            // 50, then two bits for each slot: the presence of a card, and its change (CCID 1.10, 6.3.1).
            if slots.count == 1, bytes.count > 1, bytes[0] == 0x50, bytes[1] & 0x03 == 0x02 {
                events.add(.slot(.empty), at: clock.time, slot: slots[0].name)
            } else {
                events.omit("notices that a slot has changed")
            }
        } else if slots.indices.contains(last), events.isOpen(.ccid, slot: slots[last].name),
            let reason = message.after(" write failed ") ?? message.after(" read failed ")
        {
            let kind: CardError.Kind =
                reason.contains("NO_DEVICE")
                ? .readerGone : reason.contains("TIMEOUT") ? .readerTimeout : .notTransacted
            let detail = reason.after(": ")?.text
            events.add(.failed(.exchange(.ccid), .init(kind, detail)), at: clock.time, slot: slots[last].name)
        } else if !text.isEmpty {
            events.omit("lines that are no frame")
        }
        return true
    }

    private mutating func add(
        _ frame: [UInt8], _ isCommand: Bool, _ reader: UInt64, _ events: inout ImportedEvents
    ) throws {
        // bSlot (CCID 1.10, 6.1 and 6.2).
        let number = frame.count > 5 ? frame[5] : 0
        if let known = slots.firstIndex(where: { $0.reader == reader && $0.number == number }) {
            last = known
        } else {
            guard slots.count < 256 else { throw lines.malformed("no more than 256 slots were due") }
            let name = "\(reader)/\(number)"
            last = slots.count
            slots.append(Slot(reader: reader, number: number, name: name))
            if let title = self.reader {
                events.add(.reader(ReaderIdentity(name: title, backend: .usb)), at: clock.time, slot: name)
            }
        }
        let slot = slots[last].name
        if isCommand {
            events.addNext(.ccid, frame, at: clock.time, slot: slot)
        } else {
            events.add(.received(.ccid, frame), at: clock.time, slot: slot)
        }
    }
}
