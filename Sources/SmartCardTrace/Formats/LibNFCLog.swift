import SmartCard

extension ForeignFormat {
    /// The log of libnfc with LIBNFC_LOG_LEVEL=3 (libnfc, libnfc/log.c and log.h).
    static let libnfc = ForeignFormat(
        "libnfc", "a log of libnfc", recognizes: LibNFCLogImporter.recognizes, importer: { LibNFCLogImporter($0) })
}

/// Each line is a level, a group and words, with tabulators between them, which mail and web pages make spaces.
private struct LibNFCLogImporter: FormatImporter {
    private var lines: LogReader
    /// The device that was opened last, as libnfc calls it: `acr122_usb:001:041`.
    private var device = ""
    private var reader: String?
    private var layer: TraceEvent.Layer?
    private var stream = PN532Stream()

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        LogReader.lines(start).contains { line in
            guard let (group, _) = parts(line) else { return false }
            return ["general", "config", "chip", "driver", "bus"].contains { group.hasPrefix($0) }
        }
    }

    /// Splits a line into its group, such as `driver.acr122_usb`, and its message.
    private static func parts(_ line: TextLine) -> (group: String, text: TextLine)? {
        guard let (group, text) = line.after("libnfc.")?.word, group.bytes.count <= 32,
            let level = line.before("libnfc.")?.trimmed.afterLastSpace,
            ["debug", "info", "error", "unknown", "unkown", "trace", "none"].contains(level.text)
        else { return nil }
        return (group.text, text.trimmed)
    }

    /// The layers of `TX:` and `RX:` in each group.
    private static let layers: [String: TraceEvent.Layer] = [
        "driver.acr122_usb": .ccid, "driver.acr122_pcsc": .apdu, "driver.pcsc": .apdu, "driver.pn53x_usb": .pn532,
        "bus.i2c": .pn532, "bus.spi": .pn532, "bus.uart": .pn532, "driver.pn532_uart": .pn532,
        "driver.pn532_i2c": .pn532, "driver.pn532_spi": .pn532,
    ]

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let line = try lines.next() else {
            stream.finish(into: &events)
            return false
        }
        guard let (group, text) = Self.parts(line) else {
            if !line.isEmpty { events.omit("lines that are not of libnfc") }
            return true
        }
        let isCommand = text.starts(with: "TX:")
        if isCommand || text.starts(with: "RX:") {
            guard let bytes = try lines.bytes(TextLine(text.bytes.dropFirst(3)), &events) else { return true }
            guard let layer = Self.layers[group] else {
                events.omit("frames of drivers that are not known")
                return true
            }
            add(bytes, isCommand, layer, &events)
        } else if let name = text.after("device found: ")?.after(" Name ") {
            reader = name.text
        } else if let device = text.after("element(s) have been decoded from \"")?.before("\"") {
            self.device = device.text
            if let reader {
                events.add(.reader(ReaderIdentity(name: reader, backend: .usb)), at: .zero, slot: self.device)
            }
        } else if line.starts(with: "error"), let layer, events.isOpen(layer, slot: device) {
            events.add(.failed(.exchange(layer), .init(.other, text.text)), at: .zero, slot: device)
        } else {
            events.omit("lines without frames")
        }
        return true
    }

    private mutating func add(
        _ bytes: [UInt8], _ isCommand: Bool, _ layer: TraceEvent.Layer, _ events: inout ImportedEvents
    ) {
        self.layer = layer
        guard layer == .pn532 else {
            return isCommand
                ? events.addNext(layer, bytes, at: .zero, slot: device)
                : events.add(.received(layer, bytes), at: .zero, slot: device)
        }
        if isCommand { stream.finish(into: &events) }
        stream.append(bytes)
        while let frame = stream.next() {
            events.add(frame, isCommand: isCommand, at: .zero, slot: device)
        }
    }
}

extension TextLine {
    /// The text after the last space or tab, or the whole text.
    fileprivate var afterLastSpace: TextLine {
        let word = bytes.reversed().prefix { $0 != 0x20 && $0 != 0x09 }
        return TextLine(bytes.suffix(word.count))
    }
}
