public import SmartCard

/// Reads a trace in pieces that can be understood apart from each other: no exchange, and no response that was fetched in
/// parts, begins in one and ends in another, on any layer.  So a trace of any length is worked on with little memory.
///
///     var pieces = TracePieces(try TraceReader(path: "payment.apdu"))
///     while let piece = try pieces.next() { … }
///
/// A trace that leaves exchanges open for thousands of events is cut nevertheless.
public struct TracePieces {
    public struct Piece: Sendable {
        public let trace: Trace
        /// The line number of each event in the file, from one.
        public let lines: [Int]
        /// The connections that are open when the piece begins, the oldest first; of very many the last.
        public let connections: [(atr: ATR, transmissionProtocol: TransmissionProtocol)]
        /// The commands on the layer `apdu` before it that have no answer yet, the oldest first.
        let open: [[UInt8]]
        /// True if the piece ends at its size limit rather than where it is independent of the next.
        package let isCut: Bool
    }

    /// The number of events after which a piece ends at the next opportunity …
    private static let sufficientEvents = 256
    /// … the number of frame events after which it ends, if no exchange is under way …
    private static let sufficientFrames = 4_096
    private static let sufficientFrameBytes = 2 << 20
    /// … and the number of events, or bytes in them, at which it ends in any case.
    private static let maximumEvents = 8_192
    private static let maximumBytes = 4 << 20
    /// The maximum number of open connections, for a program that never disconnects.
    private static let maximumConnections = 16
    /// The most unanswered commands remembered.
    private static let maximumOpen = 1_024

    private var reader: TraceReader
    private var rest: Int
    private let holdsTransactions: Bool
    private var openCommands: ArraySlice<[UInt8]> = []
    private var nextEvent: (event: TraceEvent, line: Int)?
    private var connections: [(atr: ATR, transmissionProtocol: TransmissionProtocol)] = []

    /// The number of events read.
    public private(set) var eventCount = 0
    /// True if the trace is cut off, as ``TraceReader/isCutOff``; valid after ``next()`` has returned nil.
    public var isCutOff: Bool { reader.isCutOff }

    /// - Parameters:
    ///   - reader: reads the trace from its beginning.
    ///   - limit: the number of events to read, for a file that is read twice while it grows.
    public init(_ reader: TraceReader, limit: Int = .max) {
        self.init(reader, limit: limit, holdingTransactions: false)
    }

    /// - Parameter holdingTransactions: true if a piece ends only where a card is connected or a payment begins with
    ///   SELECT of the directory of applications (EMV Book 1, 12.2.2; EMV Contactless Book B, 3.3.2).
    package init(_ reader: TraceReader, limit: Int = .max, holdingTransactions: Bool) {
        self.reader = reader
        rest = limit
        holdsTransactions = holdingTransactions
    }

    /// The next piece; nil at the end.  No piece is empty.
    ///
    /// - Throws: as ``TraceReader/next()``; the events before the fault have been given by then.
    public mutating func next() throws -> Piece? {
        var events: [TraceEvent] = []
        var lines: [Int] = []
        var bytes = 0
        var open: [TraceEvent.Layer: Int] = [:]
        let first = connections
        let openAtFirst = Array(openCommands)
        var isCut = false
        var raiser = LayerRaiser()
        var hasFrames = false
        // What the next command may continue: of APDUs, and of those in frames, which are not known before they are whole.
        var succession = TraceMessage.Succession()
        var inFrames = TraceMessage.Succession()
        while let (event, line) = try nextEvent ?? read() {
            nextEvent = nil
            let mayEnd =
                events.count >= (hasFrames ? Self.sufficientFrames : Self.sufficientEvents)
                || hasFrames && bytes >= Self.sufficientFrameBytes
            let isQuiet =
                mayEnd && open.isEmpty && !inFrames.mayGoOn && !raiser.isWithinExchange
                && beginsAnew(event.what, behind: succession)
            isCut = events.count >= Self.maximumEvents || bytes >= Self.maximumBytes
            guard !isQuiet, !isCut else {
                nextEvent = (event, line)
                isCut = !isQuiet
                break
            }
            switch event.what {
            case .sent(let layer, let sent):
                // On the air and to the chip not everything is answered, and some twice.
                if [.apdu, .escape, .ccid].contains(layer) { open[layer, default: 0] += 1 }
                bytes += sent.count
            case .received(let layer, let received):
                Self.close(layer, &open)
                bytes += received.count
            case .failed(.exchange(let layer), _): Self.close(layer, &open)
            case .connected(let atr, let transmissionProtocol):
                if connections.count == Self.maximumConnections { connections.removeFirst() }
                connections.append((atr, transmissionProtocol))
                open[.apdu] = nil
            case .disconnected: _ = connections.popLast()
            case .reset: open[.apdu] = nil
            case .note(let text), .meta(_, let text): bytes += text.utf8.count
            default: break
            }
            Self.add(event.what, to: &succession)
            note(event.what)
            hasFrames = hasFrames || Self.carries(event.what)
            if hasFrames { for raised in raiser.raise(event) { Self.add(raised.what, to: &inFrames) } }
            events.append(event)
            lines.append(line)
        }
        if openCommands.count > Self.maximumOpen { openCommands = [] }
        return events.isEmpty
            ? nil
            : Piece(trace: Trace(events), lines: lines, connections: first, open: openAtFirst, isCut: isCut)
    }

    private mutating func read() throws -> (event: TraceEvent, line: Int)? {
        guard rest > 0, let event = try reader.next() else { return nil }
        rest -= 1
        eventCount += 1
        return (event, reader.lineNumber)
    }

    private static func close(_ layer: TraceEvent.Layer, _ open: inout [TraceEvent.Layer: Int]) {
        guard let count = open[layer] else { return }
        open[layer] = count > 1 ? count - 1 : nil
    }

    private mutating func note(_ what: TraceEvent.What) {
        switch what {
        case .sent(.apdu, let bytes): openCommands.append(bytes)
        case .received(.apdu, _), .failed(.exchange(.apdu), _): _ = openCommands.popFirst()
        case .connected, .reset: openCommands = []
        default: break
        }
    }

    private static func add(_ what: TraceEvent.What, to succession: inout TraceMessage.Succession) {
        switch what {
        case .sent(.apdu, let bytes): _ = succession.add(try? CommandAPDU(bytes))
        case .received(.apdu, let bytes): _ = succession.add((try? ResponseAPDU(bytes))?.status)
        case .failed(.exchange(.apdu), _): succession.addFailure()
        case .connected, .reset: succession.end()
        default: break
        }
    }

    /// Returns true if nothing before belongs to a piece that begins with `what`.
    private func beginsAnew(_ what: TraceEvent.What, behind succession: TraceMessage.Succession) -> Bool {
        switch what {
        case .connected: return true
        case .sent(.apdu, let bytes):
            let command = try? CommandAPDU(bytes)
            return holdsTransactions ? Self.selectsDirectory(command) : !succession.continues(by: command)
        case .sent: return !holdsTransactions && !succession.mayGoOn
        default: return false
        }
    }

    private static func selectsDirectory(_ command: CommandAPDU?) -> Bool {
        guard let command, command.ins == 0xA4, command.p1 == 0x04 else { return false }
        return ["1PAY.SYS.DDF01", "2PAY.SYS.DDF01"].contains { command.data.elementsEqual($0.utf8) }
    }

    /// Returns true for an event of a layer below APDUs that may carry them.
    private static func carries(_ what: TraceEvent.What) -> Bool {
        switch what {
        case .sent(.apdu, let bytes), .sent(.escape, let bytes): LayeredMessages.isDirect(bytes)
        case .sent, .field: true
        default: false
        }
    }
}
