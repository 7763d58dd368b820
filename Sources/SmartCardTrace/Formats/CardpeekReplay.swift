import SmartCard

extension ForeignFormat {
    /// The file that cardpeek plays as a card (cardpeek, replay.c).
    static let cardpeek = ForeignFormat(
        "cardpeek", "a card that cardpeek replays", fileExtension: "cardpeek", exporter: { CardpeekReplayExporter($0) })
}

private struct CardpeekReplayExporter: FormatExporter {
    private let sink: TraceSink
    private var isBegun = false
    private var atr = ATR([])
    /// The commands that have no answer yet, the oldest first.
    private var commands: [[UInt8]] = []
    private(set) var omissions = Omissions()

    /// cardpeek reads a line into 1024 characters, line feed and the end of the string among them.
    private static let maximumLineLength = 1022
    private static let maximumOpenCommands = 64

    init(_ sink: @escaping TraceSink) { self.sink = sink }

    mutating func write(_ event: TraceEvent) throws {
        try begin()
        switch event.what {
        case .connected(let atr, _):
            self.atr = atr
            try writeATR()
        case .reset: try writeATR()
        case .sent(.apdu, let command):
            if commands.count == Self.maximumOpenCommands {
                commands.removeFirst()
                omissions.add("commands without answer")
            }
            commands.append(command)
        case .received(.apdu, let response):
            guard !commands.isEmpty else { return omissions.add("answers to no command") }
            let command = commands.removeFirst()
            guard response.count >= 2 else { return omissions.add("answers without status word") }
            try write("C:\(command.hex):\(response.suffix(2).hex):\(response.dropLast(2).hex)")
        case .failed(.exchange(.apdu), _):
            if !commands.isEmpty { commands.removeFirst() }
            omissions.add("exchanges that failed")
        default: omissions.add("events other than APDUs, ATRs and resets")
        }
        if event.time > .zero { omissions.add("times") }
    }

    mutating func finish() throws {
        try begin()
        omissions.add("commands without answer", count: commands.count)
        try sink(Array("# end\n".utf8))
    }

    private mutating func begin() throws {
        guard !isBegun else { return }
        isBegun = true
        try sink(Array("# cardpeek trace file\n# version 0\n".utf8))
    }

    private mutating func writeATR() throws {
        guard !atr.bytes.isEmpty else { return omissions.add("resets without ATR") }
        try write("R:\(atr.bytes.hex)")
    }

    private mutating func write(_ line: String) throws {
        guard line.utf8.count <= Self.maximumLineLength else {
            return omissions.add("exchanges that are longer than a line of 1024 characters")
        }
        try sink(Array("\(line)\n".utf8))
    }
}
