import SmartCard

extension ForeignFormat {
    /// The APDU logs of Ledger's libraries (ledgerjs, packages/hw-transport; btchip-python, comm.py).
    ///
    /// They contain `=> e0c4000000` and `<= 01…9000`, alone, after `HID`, or in JSON.
    static let ledger = ForeignFormat(
        "ledger", "the => and <= lines of Ledger's libraries", recognizes: LedgerLogImporter.recognizes,
        importer: { LedgerLogImporter($0) })
}

private struct LedgerLogImporter: FormatImporter {
    private var lines: LogReader
    private var midnights = Midnights()

    init(_ source: @escaping TraceSource) { lines = LogReader(source) }

    static func recognizes(_ start: [UInt8]) -> Bool {
        LogReader.lines(start).contains { line in
            line.after("=> ").map { $0.hexPrefix.hex.map { (4...261).contains($0.count) } ?? false } ?? false
        }
    }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let line = try lines.next() else { return false }
        let command = line.after("=> ")
        guard let text = command ?? line.after("<= "), !text.hexPrefix.trimmed.isEmpty else {
            if !line.isEmpty { events.omit("lines without APDU") }
            return true
        }
        // In JSON the words end with a quotation mark, and the time may follow them.
        let end = text.bytes.firstIndex(of: UInt8(ascii: "\"")) ?? text.bytes.endIndex
        guard let bytes = try lines.bytes(TextLine(text.bytes[..<end]), &events) else { return true }
        let time = line.timeOfDay.map { midnights.time($0) } ?? .zero
        if command != nil {
            events.addNext(.apdu, bytes, at: time)
        } else {
            events.add(.received(.apdu, bytes), at: time)
        }
        return true
    }
}
