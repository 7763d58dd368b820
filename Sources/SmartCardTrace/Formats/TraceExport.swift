/// An export of a trace to a foreign format, event by event.
///
///     guard let format = ForeignFormat(named: "pcscd") else { return }
///     var log = try TraceExport(format) { try file.write($0) }
///     while let event = try trace.next() { try log.write(event) }
///     try log.finish()
///     for omission in log.omissions.counts { print(omission.what, omission.count) }
public struct TraceExport {
    private var exporter: any FormatExporter

    /// The items of the trace so far that the format cannot hold.
    public var omissions: Omissions { exporter.omissions }

    /// - Throws: ``TraceError`` of reason `unknownFormat` for a format that can only be read.
    public init(_ format: ForeignFormat, sink: @escaping TraceSink) throws(TraceError) {
        guard let exporter = format.exporter?(sink) else { throw TraceError(.unknownFormat) }
        self.exporter = exporter
    }

    /// Writes to a new file at `path`, which only its owner can read; `-` is standard output.
    ///
    /// - Parameters:
    ///   - format: the format to write.
    ///   - path: the path of the file, or `-`.
    ///   - replacing: true to permit the replacement of an existing file.
    public init(_ format: ForeignFormat, path: String, replacing: Bool = false) throws(TraceError) {
        guard format.canExport else { throw TraceError(.unknownFormat) }
        let file = try TraceFile(writing: path, replacing: replacing)
        try self.init(format) { try file.write($0) }
    }

    /// Writes `event`, at the latest with the event that completes its group.
    public mutating func write(_ event: TraceEvent) throws {
        var event = event
        event.time = min(max(event.time, .zero), TraceFormat.maximumTime)
        try exporter.write(event)
    }

    /// Writes the remaining events and the end of the file.
    public mutating func finish() throws { try exporter.finish() }
}

/// Writes one format.
protocol FormatExporter {
    var omissions: Omissions { get }
    mutating func write(_ event: TraceEvent) throws
    mutating func finish() throws
}
