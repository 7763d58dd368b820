import ArgumentParser
import EMVContactless
import Foundation
import SmartCard
import ToolReaders
import ToolSupport

struct DecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode", abstract: "Explains BER-TLV: names, values, bits.",
        discussion: "Reads hexadecimal digits from the command line or, without any, from standard input.")

    @Argument(help: "BER-TLV in hexadecimal.")
    var hex: [String] = []

    @Option(help: "Interpret ambiguous tags as this application does.")
    var aid: String?

    @OptionGroup var output: OutputOptions

    /// A limit above all card and terminal data, but small enough for memory.
    private static let maximumInput = 4 * 1024 * 1024

    private struct Decoded: Encodable {
        let elements: [Object]
    }

    private struct Object: Encodable {
        let element: Report.Element
        let objects: [Object]

        private enum Key: CodingKey { case objects }

        func encode(to encoder: any Encoder) throws {
            try element.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(objects, forKey: .objects)
        }
    }

    func run() throws {
        let scope: DataElement.Scope
        if let aid {
            guard let bytes = try? [UInt8](hex: aid), let aid = AID(bytes) else {
                throw ToolError.usage("“\(aid)” is no AID", "An AID is 5 to 16 bytes: --aid A0000000031010")
            }
            scope = .init(aid: aid)
        } else {
            scope = .common
        }
        let list = try read()
        let objects = list.map { object(Annotation($0, scope: scope)) }
        if output.json {
            try Report.print(Decoded(elements: objects))
        } else {
            Terminal.print(objects.flatMap { lines($0, indent: 0) }.joined(separator: "\n"))
        }
    }

    private func read() throws -> TLVList {
        var text = hex.joined(separator: " ")
        if text.isEmpty {
            if isatty(STDIN_FILENO) == 1 { Terminal.progress("Reading hexadecimal digits; Ctrl-D ends them.\n") }
            let data = (try? FileHandle.standardInput.read(upToCount: Self.maximumInput)) ?? Data()
            text = String(decoding: data, as: UTF8.self)
        }
        let bytes: [UInt8]
        do {
            bytes = try [UInt8](hex: text)
        } catch {
            throw ToolError.usage(
                "the input is not hexadecimal text: \(error)", "For a binary file: xxd -p FILE | reader-probe decode")
        }
        guard !bytes.isEmpty else {
            throw ToolError.usage(
                "no input", "Give BER-TLV as hexadecimal digits: reader-probe decode 9F0206000000001000")
        }
        // Objects such as FF8105 begin with a byte that cards use as padding, so FF padding is only tried second.
        if let list = try? TLVList(bytes, padding: .zeros) { return list }
        do {
            return try TLVList(bytes)
        } catch {
            throw ToolError.usage("\(error)", "The bytes before that offset are complete; check the following ones.")
        }
    }

    private func object(_ annotation: Annotation) -> Object {
        Object(element: .init(annotation, reveal: output.reveal), objects: annotation.children.map(object))
    }

    private func lines(_ object: Object, indent: Int) -> [String] {
        guard object.objects.isEmpty else {
            let heading = "\(String(repeating: " ", count: indent))\(object.element.tag.padding(to: 6))  "
            return [heading + Terminal.styled(object.element.name ?? "unknown", .bold)]
                + object.objects.flatMap { lines($0, indent: indent + 2) }
        }
        return ElementText.lines(object.element, indent: indent)
    }
}
