import SmartCard

/// An import of a file in a foreign format, event by event, with only a part of the file in memory.
///
///     var log = try TraceImport(path: "pcscd.log")
///     while let event = try log.next() { … }
///     for omission in log.omissions.counts { print(omission.what, omission.count) }
///
/// A trace covers one slot.  If a file covers several slots, the import reads one and counts the events of the others
/// among the omissions.  A format without times gives every event the time zero.  Otherwise the first event has the
/// time zero.
public struct TraceImport {
    public let format: ForeignFormat
    /// The items of the file that the events so far do not contain.
    public var omissions: Omissions { found.omissions }

    private var importer: any FormatImporter
    private var found: ImportedEvents
    private var first: Duration?
    private var last = Duration.zero

    /// - Parameters:
    ///   - format: the format of the file; nil to detect it by its first bytes.
    ///   - slot: the slot to read, counted from zero in the order in which the file first mentions them.
    ///   - source: supplies the bytes of the file, piece by piece.
    /// - Throws: ``TraceError`` of reason `unknownFormat`; errors of the source.
    public init(_ format: ForeignFormat? = nil, slot: Int = 0, source: @escaping TraceSource) throws {
        var start: [UInt8] = []
        var isAtEnd = false
        func more() throws -> [UInt8] {
            guard !isAtEnd else { return [] }
            let bytes = try source()
            isAtEnd = bytes.isEmpty
            return bytes
        }
        while format == nil, start.count < ForeignFormat.recognizedCount {
            let bytes = try more()
            guard !bytes.isEmpty else { break }
            start += bytes
        }
        let recognized = format ?? ForeignFormat.all.first { $0.canImport && $0.recognizes(start) }
        guard let recognized, let importer = recognized.importer else { throw TraceError(.unknownFormat) }
        self.format = recognized
        self.importer = importer {
            guard !start.isEmpty else { return try more() }
            defer { start = [] }
            return start
        }
        found = ImportedEvents(wantedSlot: slot)
    }

    /// Reads the file at `path`; `-` is standard input.
    public init(_ format: ForeignFormat? = nil, slot: Int = 0, path: String) throws {
        let file = try TraceFile(reading: path)
        try self.init(format, slot: slot) { try file.read() }
    }

    /// Reads `bytes`.
    public init(_ format: ForeignFormat? = nil, slot: Int = 0, bytes: some Sequence<UInt8>) throws {
        var bytes = Array(bytes)
        try self.init(format, slot: slot) {
            defer { bytes = [] }
            return bytes
        }
    }

    /// Returns the next event; nil at the end.
    ///
    /// - Throws: ``TraceError`` with the line or the offset; errors of the source.
    public mutating func next() throws -> TraceEvent? {
        while true {
            if var event = found.popFirst() {
                let start = first ?? event.time
                first = start
                event.time = min(max(event.time - start, last), TraceFormat.maximumTime)
                last = event.time
                return event
            }
            // The end may tell something, too.
            guard try importer.read(into: &found) || !found.isEmpty else { return nil }
        }
    }
}

/// Reads one format.
protocol FormatImporter {
    /// Reads the next part of the file, a line or a packet, and adds its events; false at the end.
    ///
    /// - Throws: ``TraceError`` with the line or the offset; errors of the source.
    mutating func read(into events: inout ImportedEvents) throws -> Bool
}

/// The events that importers have found and no caller has taken yet.
struct ImportedEvents {
    private(set) var omissions = Omissions()
    private var events: [TraceEvent] = []
    private var taken = 0
    /// The slots that the file has spoken of, up to the wanted one.
    private var slots: [String] = []
    private let wantedSlot: Int
    /// The layers of the wanted slot on which the last command has no answer yet.
    private var open: [TraceEvent.Layer] = []

    init(wantedSlot: Int) { self.wantedSlot = wantedSlot }

    /// - Parameter slot: a name that distinguishes the slots of the file; empty in a file with one slot.
    mutating func add(_ what: TraceEvent.What, at time: Duration, slot: String = "") {
        guard isWanted(slot) else { return omit("events of other slots") }
        switch what {
        case .sent(let layer, _): if !open.contains(layer) { open.append(layer) }
        case .received(let layer, _), .failed(.exchange(let layer), _): open.removeAll { $0 == layer }
        default: break
        }
        events.append(TraceEvent(at: time, what))
    }

    /// Adds a command of a file that writes down one exchange after the other: where the command before has no answer,
    /// none comes.
    mutating func addNext(_ layer: TraceEvent.Layer, _ command: [UInt8], at time: Duration, slot: String = "") {
        if isOpen(layer, slot: slot) {
            add(.failed(.exchange(layer), .init(.noAnswer, "the file has no answer")), at: time, slot: slot)
        }
        add(.sent(layer, command), at: time, slot: slot)
    }

    /// Returns true if the last command on `layer` has no answer yet; only for the slot that is read.
    mutating func isOpen(_ layer: TraceEvent.Layer, slot: String = "") -> Bool {
        open.contains(layer) && isWanted(slot)
    }

    private mutating func isWanted(_ slot: String) -> Bool {
        let number = slots.firstIndex(of: slot) ?? slots.count
        if number == slots.count, number <= wantedSlot { slots.append(slot) }
        return number == wantedSlot
    }

    /// Adds an event about the file rather than one of its slots.
    mutating func addToEverySlot(_ what: TraceEvent.What, at time: Duration) {
        events.append(TraceEvent(at: time, what))
    }

    mutating func omit(_ what: StaticString) { omissions.add(what) }

    fileprivate var isEmpty: Bool { taken == events.count }

    fileprivate mutating func popFirst() -> TraceEvent? {
        guard taken < events.count else {
            events.removeAll(keepingCapacity: true)
            taken = 0
            return nil
        }
        defer { taken += 1 }
        return events[taken]
    }
}

extension Trace {
    /// Reads all of a foreign file.
    ///
    /// - Throws: ``TraceError`` with the line or the offset.
    public init(reading file: consuming TraceImport) throws {
        var file = file
        self.init()
        while let event = try file.next() { events.append(event) }
    }
}
