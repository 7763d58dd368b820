import SmartCard
import SmartCardTrace

/// What is fuzzed of traces: each target takes any input, and throws what it finds.  Fuzz/ has libFuzzer write the inputs;
/// the tests take those of Fuzz/corpora, and change them a little.
public enum TraceFuzzTargets {
    /// What must not be.
    public struct Finding: Error, CustomStringConvertible {
        public let description: String
    }

    /// A file that another program wrote: the name of a format, a line feed and the file, or the file alone, of which its
    /// beginning tells the format.  It is read to its end or refused with a place, however it comes in pieces, and what is
    /// read can be written as a trace.
    public static func imported(_ bytes: [UInt8]) throws(Finding) {
        let name = bytes.prefix { $0 != 0x0A }
        let named = ForeignFormat(named: String(decoding: name, as: UTF8.self)).flatMap { $0.canImport ? $0 : nil }
        let file = named == nil ? bytes : Array(bytes.dropFirst(name.count + 1))
        let whole = reading(file, count: max(file.count, 1)) {
            try TraceImport(named, source: $0)
        } next: {
            try $0.next()
        }
        let split = reading(file, count: 7) {
            try TraceImport(named, source: $0)
        } next: {
            try $0.next()
        }
        try expectSame(whole, split)
        try expectReadable(whole.events)
    }

    /// A trace.  It is read to its end or refused with the line, however it comes in pieces; it is read from what is
    /// written of it, and converted to every format, those that can be read among them.
    public static func trace(_ bytes: [UInt8]) throws(Finding) {
        let whole = reading(bytes, count: max(bytes.count, 1), TraceReader.init) { try $0.next() }
        let split = reading(bytes, count: 7, TraceReader.init) { try $0.next() }
        try expectSame(whole, split)
        guard whole.error == nil else { return }
        try expectReadable(whole.events)
        let pieces = reading(bytes, count: 7) {
            TracePieces(TraceReader($0))
        } next: {
            try $0.next()?.trace.events
        }
        guard pieces.events.flatMap({ $0 }) == whole.events else { throw Finding(description: "other in pieces") }
        for format in ForeignFormat.all where format.canExport {
            do {
                var file: [UInt8] = []
                var log = try TraceExport(format) { file += $0 }
                for event in whole.events { try log.write(event) }
                try log.finish()
                if format.canImport { _ = try Trace(reading: TraceImport(format, bytes: file)) }
            } catch { throw Finding(description: "\(format.name): \(error)") }
        }
    }

    /// A trace that is redacted: every event keeps its length, the result is a trace in which redaction finds nothing and
    /// changes nothing, and no account number that the data objects of the trace tell of is in it, in any form.
    public static func redaction(_ bytes: [UInt8]) throws(Finding) {
        let read = reading(bytes, count: max(bytes.count, 1), TraceReader.init) { try $0.next() }
        let trace = Trace(read.events)
        let redacted = TraceRedaction(key: [UInt8](0..<16)).redacted(trace)
        try expectReadable(redacted.events)
        guard TraceRedaction().findings(in: redacted).isEmpty, TraceRedaction().redacted(redacted) == redacted else {
            throw Finding(description: "something left")
        }
        let kept = redacted.events.filter { if case .redacted = $0.what { false } else { true } }
        let before = trace.events.filter { if case .redacted = $0.what { false } else { true } }
        guard kept.map(\.bytes.count) == before.map(\.bytes.count) else {
            throw Finding(description: "other lengths")
        }
        var known = TraceSecrets()
        known.learn(from: trace)
        // In bytes that are no message of CCID only numbers that are known count.
        for event in redacted.events {
            let frame = TraceEvent(at: .zero, .received(.ccid, [0] + event.bytes))
            guard TraceRedaction.eventsWithAccountNumbers(in: Trace([frame]), knowing: known).isEmpty else {
                throw Finding(description: "an account number at \(event.time)")
            }
        }
    }

    /// What `next` gives of a file that comes `count` bytes at a time, up to the end or the error.
    private static func reading<Reader, Event>(
        _ bytes: [UInt8], count: Int, _ open: (@escaping TraceSource) throws -> Reader,
        next: (inout Reader) throws -> Event?
    ) -> (events: [Event], error: (any Error)?) {
        var rest = bytes[...]
        var events: [Event] = []
        do {
            var reader = try open {
                defer { rest = rest.dropFirst(count) }
                return Array(rest.prefix(count))
            }
            while let event = try next(&reader) { events.append(event) }
            return (events, nil)
        } catch { return (events, error) }
    }

    private static func expectSame(
        _ whole: (events: [TraceEvent], error: (any Error)?), _ split: (events: [TraceEvent], error: (any Error)?)
    ) throws(Finding) {
        guard whole.events == split.events, whole.error as? TraceError == split.error as? TraceError else {
            throw Finding(description: "other in pieces")
        }
        switch whole.error {
        case nil: break
        case let error as TraceError where error.place != nil || error.reason == .unknownFormat: break
        case let error?: throw Finding(description: "an error without a place: \(error)")
        }
    }

    /// That `events` are a trace, which is read as it was written.
    private static func expectReadable(_ events: [TraceEvent]) throws(Finding) {
        do {
            guard try Trace(text: Trace(events).text()).events == events else {
                throw Finding(description: "other than was written")
            }
        } catch let error as Finding { throw error } catch { throw Finding(description: "\(error)") }
    }
}

extension TraceEvent {
    /// The bytes of a command, an answer, a frame or an ATR, and of a text.
    fileprivate var bytes: [UInt8] {
        switch what {
        case .sent(_, let bytes), .received(_, let bytes): bytes
        case .slot(.card(let atr, _)), .connected(let atr, _): atr.bytes
        case .note(let text), .meta(_, let text): Array(text.utf8)
        case .failed(_, let failure): Array((failure.detail ?? "").utf8)
        case .reader(let identity):
            [identity.name, identity.vendor, identity.serialNumber].flatMap { Array(($0 ?? "").utf8) + [0] }
        case .slot, .reset, .disconnected, .field, .redacted: []
        }
    }
}
