import ArgumentParser
import SmartCard
import SmartCardTrace
import ToolSupport

struct PlotCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plot", abstract: "Draws the distribution of a transaction's time, as SVG or HTML.",
        discussion: """
            One bar for each exchange, colored by its purpose, and before it a thin line for the time that the \
            program took. Only names of commands, applications and records are shown, and status words. The drawing is HTML \
            where the file's name ends in .html; it is SVG where it ends in .svg or in nothing.
            """)

    @OptionGroup var trace: TraceArgument

    @OptionGroup var file: OutputFile

    @Option(help: .init("The connection of the trace, counted from 1.", valueName: "number"))
    var connection = 1

    func run() throws {
        let output = file.output
        let name = output.split(separator: "/").last ?? ""
        let end = name.dropFirst().lastIndex(of: ".").map { name[$0...] } ?? ""
        guard output == "-" || ["", ".svg", ".html"].contains(end) else {
            throw ToolError.usage("plot does not draw \(end)", "It draws .svg and .html.")
        }
        try NewFile.check(output, replacing: file.force)
        let trace = try trace.trace()
        let parts = Timeline.connections(of: trace)
        guard parts.indices.contains(connection - 1) else {
            throw ToolError.usage(
                parts.isEmpty
                    ? "there is no exchange in the trace" : "--connection takes 1 to \(parts.count) for this trace",
                "apdu-trace show prints its contents.")
        }
        let timeline = parts[connection - 1]
        guard timeline.rows.count <= Timeline.maximumRows else {
            throw ToolError.usage(
                "the connection has more than \(Timeline.maximumRows) exchanges", "Use apdu-trace stats.")
        }
        try NewFile.write(output.hasSuffix(".html") ? timeline.html : timeline.svg, to: output, replacing: file.force)
    }
}

/// The exchanges of one connection to a card, with their purposes.
struct Timeline {
    static let maximumRows = 2_000

    /// Times in milliseconds since the first command.
    struct Row {
        let phase: Phase
        let label: String
        let start: Double
        let duration: Double
        /// From the answer before to this command.
        let hostTime: Double
        let result: String
    }

    let reader: String
    let rows: [Row]
    let notes: [String]

    var total: Double { rows.map { $0.start + $0.duration }.max() ?? 0 }
    var cardTime: Double { rows.reduce(0) { $0 + $1.duration } }
    var hostTime: Double { rows.reduce(0) { $0 + $1.hostTime } }

    func time(of phase: Phase) -> Double { rows.filter { $0.phase == phase }.reduce(0) { $0 + $1.duration } }

    /// One for each time that a card was connected to and asked something.
    static func connections(of trace: Trace) -> [Timeline] {
        let hidden = Set(TraceRedaction.eventsWithAccountNumbers(in: trace))
        var exchanges = trace.exchanges().filter { $0.answer != nil }[...]
        var timelines: [Timeline] = []
        var reader = ""
        var notes: [String] = []
        /// Assigns the commands before `end` to the connection that ends there.
        func finish(before end: Int) {
            let part = exchanges.prefix { $0.commandIndex < end }
            exchanges = exchanges.dropFirst(part.count)
            defer { notes = [] }
            guard let first = part.first else { return }
            let zero = trace.events[first.commandIndex].time
            var last = 0.0
            var phase = Phase.other
            let rows = part.map { exchange in
                let start = (trace.events[exchange.commandIndex].time - zero) / .milliseconds(1)
                let duration = max(0, exchange.duration / .milliseconds(1))
                defer { last = max(last, start + duration) }
                phase = Phase(exchange.layer, exchange.command, behind: phase)
                return Row(
                    phase: phase, label: label(exchange, isHidden: hidden.contains(exchange.commandIndex)),
                    start: start, duration: duration, hostTime: max(0, start - last), result: result(exchange))
            }
            timelines.append(Timeline(reader: reader, rows: rows, notes: notes))
        }
        for (index, event) in trace.events.enumerated() {
            func words(_ text: String) -> String { hidden.contains(index) ? "(hidden)" : text }
            switch event.what {
            case .reader(let identity): reader = words(identity.name)
            case .connected: finish(before: index)
            case .note(let text): notes.append(words(text))
            default: break
            }
        }
        finish(before: trace.events.count)
        return timelines
    }

    private static func label(_ exchange: Trace.Exchange, isHidden: Bool) -> String {
        guard exchange.layer == .apdu, let command = try? CommandAPDU(exchange.command) else {
            return exchange.layer.rawValue
        }
        let name = CommandName.name(command) ?? "\([command.cla, command.ins].hex)"
        switch (command.cla, command.ins) {
        case (0x00, 0xA4) where command.p1 == 0x04 && !isHidden && command.data.count <= 16:
            let isText =
                command.data.starts(with: Array("2PAY.".utf8)) || command.data.starts(with: Array("1PAY.".utf8))
            return "\(name) \(isText ? String(decoding: command.data, as: UTF8.self) : command.data.hex)"
        case (0x00, 0xB2): return "\(name) \(command.p2 >> 3).\(command.p1)"
        default: return name
        }
    }

    private static func result(_ exchange: Trace.Exchange) -> String {
        switch exchange.answer {
        case .bytes(let bytes)? where exchange.layer == .apdu && bytes.count >= 2: bytes.suffix(2).hex
        case .failure(let failure)?: failure.kind?.rawValue ?? "cancelled"
        default: ""
        }
    }
}

// MARK: Drawing

extension Timeline {
    private static let (left, width, right, rowHeight) = (330.0, 620.0, 150.0, 20.0)

    var html: String {
        """
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"><title>\(Self.escaped(title))</title>
        <style>body { margin: 0 } svg { display: block; max-width: 100%; height: auto }</style></head>
        <body>
        \(svg)</body></html>

        """
    }

    private var title: String { "Transaction, \(Self.text(total)) ms" }

    var svg: String {
        let (left, width, rowHeight) = (Self.left, Self.width, Self.rowHeight)
        let phases = Phase.allCases.filter { phase in rows.contains { $0.phase == phase } }
        let legend = 62.0
        let top = legend + 20 * Double(phases.count + 1) + 36
        let noteTop = top + rowHeight * Double(rows.count) + 24
        let height = noteTop + 18 * Double(min(notes.count, 50)) + 8
        let scale = width / max(total, 0.001)
        func x(_ time: Double) -> Double { left + time * scale }
        var lines = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(Self.text(left + width + Self.right)) \#(Self.text(height))" font-family="system-ui, sans-serif" font-size="12" role="img">"#,
            "<title>\(Self.escaped(title))</title>", "<style>\(Self.style)</style>",
            #"<rect class="paper" width="100%" height="100%"/>"#,
            Self.label(16, 26, title, "head"),
            Self.label(16, 46, reader, "dim"),
        ]
        // Where the time went.
        let sums =
            phases.map { ($0.rawValue, $0.name, self.time(of: $0)) } + [("host", "the program, between", hostTime)]
        for (index, sum) in sums.enumerated() {
            let y = legend + 20 * Double(index)
            lines.append(Self.bar(16, y, 12, 12, sum.0))
            lines.append(Self.label(36, y + 10, sum.1))
            lines.append(Self.label(left - 12, y + 10, "\(Self.text(sum.2)) ms", "end"))
            lines.append(Self.bar(left, y + 1, sum.2 * scale, 10, sum.0))
        }
        // The axis.
        let step = Self.step(total)
        var time = 0.0
        while time <= total {
            lines.append(Self.line(x(time), top - 8, noteTop - 20, "grid"))
            lines.append(Self.label(x(time), top - 12, Self.text(time), "middle dim"))
            time += step
        }
        if total >= 500 { lines.append(Self.line(x(500), top - 8, noteTop - 20, "limit")) }
        for (index, row) in rows.enumerated() {
            let y = top + rowHeight * Double(index)
            lines.append("<g><title>\(Self.escaped("\(row.label), \(Self.text(row.duration)) ms"))</title>")
            lines.append(Self.label(16, y + 13, row.label, clip: 42))
            if row.hostTime > 0 {
                lines.append(Self.bar(x(row.start - row.hostTime), y + 8, row.hostTime * scale, 3, "host"))
            }
            lines.append(Self.bar(x(row.start), y + 3, max(1, row.duration * scale), 13, row.phase.rawValue))
            lines.append(
                Self.label(left + width + 8, y + 13, "\(Self.text(row.duration)) ms  \(row.result)", "dim", clip: 24))
            lines.append("</g>")
        }
        for (index, note) in notes.prefix(50).enumerated() {
            lines.append(Self.label(16, noteTop + 18 * Double(index), note, "dim", clip: 140))
        }
        return (lines + ["</svg>", ""]).joined(separator: "\n")
    }

    private static let style = """
        .paper { fill: #fff } text { fill: #1c1c1e } .dim { fill: #5f5f66 } .head { font-size: 16px; font-weight: 600 }
        .end { text-anchor: end } .middle { text-anchor: middle }
        .grid { stroke: #8884; stroke-width: 1 } .limit { stroke: #c62828; stroke-width: 1.5; stroke-dasharray: 4 3 }
        .selection { fill: #2f6fd0 } .options { fill: #8a4fc7 } .records { fill: #1d8a63 } .authentication { fill: #c9611a } .cryptogram { fill: #b8326b }
        .reader { fill: #77828c } .other { fill: #a08a1e } .host { fill: #b4b8bd }
        @media (prefers-color-scheme: dark) {
          .paper { fill: #1c1c1e } text { fill: #f2f2f7 } .dim { fill: #aeaeb2 } .limit { stroke: #ff6b60 }
          .selection { fill: #6aa5ff } .options { fill: #c08cf5 } .records { fill: #4fcf9f } .authentication { fill: #ff9d54 } .cryptogram { fill: #ff7fb0 }
          .reader { fill: #a3adb7 } .other { fill: #d9c24a } .host { fill: #6b7076 }
        }
        """

    private static func label(_ x: Double, _ y: Double, _ words: String, _ style: String = "", clip: Int = 100)
        -> String
    {
        let shown = words.count > clip ? words.prefix(clip - 1) + "…" : words[...]
        return #"<text x="\#(text(x))" y="\#(text(y))" class="\#(style)">\#(escaped(String(shown)))</text>"#
    }

    private static func bar(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ style: String) -> String {
        #"<rect x="\#(text(x))" y="\#(text(y))" width="\#(text(width))" height="\#(text(height))" class="\#(style)"/>"#
    }

    private static func line(_ x: Double, _ top: Double, _ bottom: Double, _ style: String) -> String {
        #"<line x1="\#(text(x))" x2="\#(text(x))" y1="\#(text(top))" y2="\#(text(bottom))" class="\#(style)"/>"#
    }

    /// One decimal.
    static func text(_ number: Double) -> String {
        let tenths = Int((max(-1e12, min(number, 1e12)) * 10).rounded())
        return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
    }

    /// 1, 2 or 5 times a power of ten, ten of them at most.
    private static func step(_ total: Double) -> Double {
        var step = 0.1
        while step * 10 < total {
            for factor in [2, 2.5, 2] where step * 10 < total { step *= factor }
        }
        return step
    }

    /// Escapes text for XML and HTML; characters that they do not allow, such as control characters, are replaced.
    static func escaped(_ words: String) -> String {
        var out = ""
        for scalar in words.unicodeScalars {
            switch scalar {
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "&": out += "&amp;"
            case "\"": out += "&quot;"
            case "'": out += "&#39;"
            case "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}": out += "\u{FFFD}"
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || scalar.value & 0xFFFE == 0xFFFE:
                out += "\u{FFFD}"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}
