import ArgumentParser
import SmartCardTrace
import ToolReaders
import ToolSupport

struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Shows two traces aligned, regardless of times.",
        discussion:
            "The exit status is 1 if they differ. Without --reveal, card data is masked but still compared.")

    @Argument(help: .init("The first trace.", valueName: "file"))
    var first: String

    @Argument(help: .init("The second trace.", valueName: "file"))
    var second: String

    @OptionGroup var output: OutputOptions

    /// The maximum number of events: the alignment takes time that grows with the square of the differences.
    private static let maximumEvents = 20_000

    private struct Line: Encodable {
        /// `=`, `-` (only in the first) or `+` (only in the second)
        let mark: String
        let text: String
    }

    private struct Difference: Encodable {
        let same: Bool
        let lines: [Line]
    }

    func run() throws {
        let (first, second) = (try Trace(named: first), try Trace(named: second))
        guard max(first.events.count, second.events.count) <= Self.maximumEvents else {
            throw ToolError.usage(
                "traces of more than \(Self.maximumEvents) events are not aligned", "Compare parts of them.")
        }
        let lines = lines(first, second)
        let same = lines.allSatisfy { $0.mark == "=" }
        if output.json {
            try Report.print(Difference(same: same, lines: lines))
        } else if !same {
            for line in lines {
                let text = "\(line.mark == "=" ? " " : line.mark) \(line.text)"
                Terminal.print(line.mark == "=" ? text : Terminal.styled(text, .bold))
            }
        }
        if !same { throw ExitCode(1) }
    }

    private func lines(_ first: Trace, _ second: Trace) -> [Line] {
        let texts = [first, second].map { EventText.all(of: $0, reveal: output.reveal).map(\.line) }
        let (removed, inserted) = difference(first, second)
        var lines: [Line] = []
        var next = 0
        func insertions() {
            while inserted.contains(next) {
                lines.append(Line(mark: "+", text: texts[1][next]))
                next += 1
            }
        }
        for index in first.events.indices {
            if removed.contains(index) {
                lines.append(Line(mark: "-", text: texts[0][index]))
            } else {
                insertions()
                lines.append(Line(mark: "=", text: texts[0][index]))
                next += 1
            }
        }
        insertions()
        return lines
    }

    /// Returns the events of the first trace missing from the second, and the reverse: as few as possible.
    private func difference(_ first: Trace, _ second: Trace) -> (removed: Set<Int>, inserted: Set<Int>) {
        // Numbers compare faster than the events that they stand for.
        var numbers: [TraceEvent.What: Int] = [:]
        let lists = [first, second].map { trace in
            trace.events.map { event in
                let number = numbers[event.what] ?? numbers.count
                numbers[event.what] = number
                return number
            }
        }
        var (removed, inserted): (Set<Int>, Set<Int>) = ([], [])
        for change in lists[1].difference(from: lists[0]) {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): inserted.insert(offset)
            }
        }
        return (removed, inserted)
    }
}
