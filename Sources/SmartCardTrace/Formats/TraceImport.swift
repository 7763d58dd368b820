import SmartCard

/// Reads a file of a foreign format event by event, holding a part of it at a time.
///
///     var log = try TraceImport(path: "pcscd.log")
///     while let event = try log.next() { … }
///     for omission in log.omissions.counts { print(omission.what, omission.count) }
///
/// A trace is about one slot.  Of a file that tells of several one is read, and the events of the others are counted
/// among the omissions.  A format that knows no time gives every event the time zero; where it knows times, the first
/// event has the time zero.
public struct TraceImport {
    public let format: ForeignFormat
    /// What the file has that is not in the events given so far.
    public var omissions: Omissions { found.omissions }

    private var importer: any FormatImporter
    private var found: ImportedEvents
    private var first: Duration?
    private var last = Duration.zero

    /// - Parameters:
    ///   - format: of the file; nil to find out by its first bytes.
    ///   - slot: which slot to read, counted from zero in the order in which the file first speaks of them.
    /// - Throws: ``TraceError`` of reason `unknownFormat`; what the source throws.
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

    /// Reads the file at `path`; `-` stands for standard input.
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

    /// The next event; nil at the end.
    ///
    /// - Throws: ``TraceError`` with the line or the offset; what the source throws.
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
    /// Reads the next part of the file, a line or a packet, and adds what it tells; false at the end.
    ///
    /// - Throws: ``TraceError`` with the line or the offset; what the source throws.
    mutating func read(into events: inout ImportedEvents) throws -> Bool
}

/// What importers have found, and nobody has taken yet.
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

    /// - Parameter slot: what tells the slots of the file apart; empty where it speaks of one only.
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

    /// Whether the last command on `layer` has no answer yet; for the slot that is read only.
    mutating func isOpen(_ layer: TraceEvent.Layer, slot: String = "") -> Bool {
        open.contains(layer) && isWanted(slot)
    }

    private mutating func isWanted(_ slot: String) -> Bool {
        let number = slots.firstIndex(of: slot) ?? slots.count
        if number == slots.count, number <= wantedSlot { slots.append(slot) }
        return number == wantedSlot
    }

    /// Adds what is about the file, and not about one of its slots.
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
