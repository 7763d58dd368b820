extension ForeignFormat {
    /// The library's own traces, so that converters treat them like any other format.
    public static let apdu = ForeignFormat(
        "apdu", "a trace, as apdu-trace records it", fileExtension: "apdu",
        recognizes: { $0.starts(with: "apdu-trace ".utf8) },
        importer: { OwnFormatImporter($0) }, exporter: { OwnFormatExporter($0) })
}

private struct OwnFormatImporter: FormatImporter {
    private var reader: TraceReader

    init(_ source: @escaping TraceSource) { reader = TraceReader(source) }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let event = try reader.next() else {
            if reader.isCutOff { events.omit("last lines that are cut off") }
            return false
        }
        events.add(event.what, at: event.time)
        return true
    }
}

private struct OwnFormatExporter: FormatExporter {
    private let sink: TraceSink
    private var writer: TraceWriter?
    let omissions = Omissions()

    init(_ sink: @escaping TraceSink) { self.sink = sink }

    mutating func write(_ event: TraceEvent) throws {
        try begin()
        try writer?.write(event)
    }

    mutating func finish() throws { try begin() }

    private mutating func begin() throws {
        if writer == nil { writer = try TraceWriter(sink) }
    }
}
