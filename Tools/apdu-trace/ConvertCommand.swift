import ArgumentParser
import SmartCardTrace
import ToolSupport

struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Converts another program's log to a trace, or a trace to another program's format.",
        discussion: """
            Standard error counts the items that the new file cannot hold. Card data stay unchanged: see apdu-trace redact.

            FORMATS (r: can be read, w: can be written)
            \(formats)
            """)

    @Argument(help: .init("The file to read; - for standard input.", valueName: "file"))
    var input: String

    @OptionGroup var file: OutputFile

    @Option(help: .init("The format of the input file. By default it is detected.", valueName: "format"))
    var from: String?

    @Option(
        help: .init(
            "The format of the output file. Default: by the extension of its name; without one, a trace.",
            valueName: "format"))
    var to: String?

    @Option(help: "The slot to read, counted from 0 in the order in which the file mentions them.")
    var slot = 0

    enum Layer: String, ExpressibleByArgument, CaseIterable {
        case apdu
        case asRecorded = "as-recorded"
    }

    @Option(help: "apdu: extract APDUs from the CCID messages and frames that carry them.")
    var layer = Layer.asRecorded

    func run() throws {
        guard slot >= 0 else { throw ToolError.usage("--slot takes 0 or more", "For example: --slot 1") }
        let source = try from.map { try known($0, "--from", \.canImport) }
        let format = try outputFormat()
        guard file.output != "-" || !Terminal.outputIsTerminal || format.isText else {
            throw ToolError.usage("\(format.name) is not for a terminal", "Name a file: --output card.pcapng")
        }
        var log = try UnreadableTrace.naming(input) { try TraceImport(source, slot: slot, path: input) }
        // Half a file would be taken for a whole one.
        let file = try NewFile(self.file.output, replacing: self.file.force)
        var export = try TraceExport(format) { try file.write($0) }
        try convert(&log, to: &export)
        try file.finish()
    }

    private func convert(_ log: inout TraceImport, to file: inout TraceExport) throws {
        var raiser = LayerRaiser()
        var isEmpty = true
        while let event = try UnreadableTrace.naming(input, { try log.next() }) {
            isEmpty = false
            for event in layer == .apdu ? raiser.raise(event) : [event] { try file.write(event) }
        }
        raiser.finish()
        try file.finish()
        for (what, count) in [log.omissions, raiser.omissions, file.omissions].flatMap(\.counts) {
            Terminal.remark("left out: \(what) (\(count))")
        }
        if isEmpty {
            throw ToolError.usage(
                "\(input) has nothing of slot \(slot) as \(log.format.name)", "Try another --slot or --from.")
        }
    }

    /// Returns the format of `--to`, or of the name; a name without an extension is a trace's.
    private func outputFormat() throws -> ForeignFormat {
        if let to { return try known(to, "--to", \.canExport) }
        if let format = ForeignFormat(path: file.output) { return format }
        let name = file.output.split(separator: "/").last ?? ""
        guard let end = name.dropFirst().lastIndex(of: ".") else { return .apdu }
        let ends = ForeignFormat.all.filter(\.canExport).compactMap(\.fileExtension).map { ".\($0)" }
        throw ToolError.usage(
            "\(name[end...]) tells no format that can be written",
            "A name that ends in one of \(ends.joined(separator: ", ")) does; or say --to.")
    }

    private func known(
        _ name: String, _ option: String, _ isPossible: KeyPath<ForeignFormat, Bool>
    ) throws -> ForeignFormat {
        guard let format = ForeignFormat(named: name), format[keyPath: isPossible] else {
            let names = ForeignFormat.all.filter { $0[keyPath: isPossible] }.map(\.name)
            throw ToolError.usage("\(option) does not know \(name)", "One of: \(names.joined(separator: ", "))")
        }
        return format
    }

    private static var formats: String {
        ForeignFormat.all.map { format in
            let name = format.name + String(repeating: " ", count: max(1, 12 - format.name.count))
            let end = format.fileExtension.map { ", .\($0)" } ?? ""
            return "  \(format.canImport ? "r" : "-")\(format.canExport ? "w" : "-")  \(name)\(format.title)\(end)"
        }.joined(separator: "\n")
    }
}
