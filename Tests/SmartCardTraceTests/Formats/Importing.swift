import SmartCardTrace
import Testing

/// What is read from `text`, as the lines of a trace without the first, and what is left out.
func imported(_ text: String, as name: String, slot: Int = 0) throws -> (lines: [String], omissions: [String: Int]) {
    var log = try TraceImport(slot: slot, bytes: text.utf8)
    #expect(log.format.name == name)
    var trace = Trace()
    while let event = try log.next() { trace.events.append(event) }
    let lines = try trace.text().split(separator: "\n").dropFirst().map(String.init)
    return (lines, Dictionary(uniqueKeysWithValues: log.omissions.counts.map { ($0.what, $0.count) }))
}

/// What is written of the trace that `lines` are, without its first line, and what is left out.
func exported(_ lines: [String], to name: String) throws -> (text: String, omissions: [String: Int]) {
    let format = try #require(ForeignFormat(named: name))
    var bytes: [UInt8] = []
    var file = try TraceExport(format) { bytes += $0 }
    let text = (["apdu-trace 1"] + lines).map { "\($0)\n" }.joined()
    for event in try Trace(text: text).events { try file.write(event) }
    try file.finish()
    let omissions = Dictionary(uniqueKeysWithValues: file.omissions.counts.map { ($0.what, $0.count) })
    return (String(decoding: bytes, as: UTF8.self), omissions)
}
