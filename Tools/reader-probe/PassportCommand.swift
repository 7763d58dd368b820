import ArgumentParser
import CardReaders
import Foundation
import SmartCard
import ToolReaders
import ToolSupport
import TravelDocument
import TravelDocumentImages

struct PassportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passport", abstract: "Reads the chip of a passport or an identity card.",
        discussion: """
            The chip opens with the lines that are printed below the photo (machine readable zone), or with the card access \
            number on the front. They are read from --mrz-file, from --can, or from standard input: type or scan them there.

            The exit status is 0 if a trusted authority issued the signer's certificate, the signature covers all that was read, \
            and the chip proves that it is no copy where it can; else it is 7. "reader-probe trust" manages the authorities.

            reader-probe passport --card passport --can 123456
            """)

    @Option(
        help: .init(
            "Open the chip with the machine readable zone in this file, two or three lines; - for standard input.",
            valueName: "file"))
    var mrzFile: String?

    @Option(help: .init("Open the chip with this card access number.", valueName: "digits"))
    var can: String?

    @Option(
        help: .init(
            """
            Also trust the country signing authorities in this file, or in all files of this folder, for this run only: \
            certificates, master lists, LDIF, with revocation lists. Repeatable.
            """, valueName: "file|folder"))
    var trust: [String] = []

    @Option(
        help: .init(
            "Read the photo, too, and write it to this new file, as stored on the chip: JPEG or JPEG 2000.",
            valueName: "file"))
    var photo: String?

    @Flag(help: "Read the photo, too, and show it, if the terminal shows pictures (kitty, sixel).")
    var showPhoto = false

    @Flag(help: "Read and show the further details of holder and document, too (DG11 and DG12).")
    var details = false

    @Flag(
        help: """
            Open the chip by Basic Access Control even if it offers PACE and that fails. Whoever listens can then find \
            out the key.
            """)
    var allowDowngrade = false

    @Flag(help: "Show names, numbers and dates. By default, they are masked.")
    var reveal = false

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var format: JSONOption

    func run() async throws {
        let key = try accessKey()
        let trust = try trustList()
        if let photo, FileManager.default.fileExists(atPath: photo) {
            throw ToolError.usage("\(photo) is there already", "Name a new file for the photo.")
        }
        let wanted = Set([1] + (details ? [11, 12] : []) + (photo == nil && !showPhoto ? [] : [2]))
        let (reader, reading) = try await documentReader.withCard { reader, connection, channel in
            Terminal.progress("opening the chip")
            defer { Terminal.endProgress() }
            let chip = TravelDocumentChip(
                over: channel, connection: connection, longestAPDU: Self.longestAPDU(of: reader))
            return (reader.identity, try await read(wanted, of: chip, with: key))
        }
        let face = reading.faces?.faces.first
        if face == nil, photo != nil || showPhoto { Terminal.remark("the document has no photo that can be read") }
        if let photo, let face {
            do {
                try Data(face.image.bytes).write(to: URL(filePath: photo), options: .withoutOverwriting)
            } catch {
                throw ToolError.usage("\(photo) cannot be written", "Check that its folder is there, and yours.")
            }
        }
        let picture = showPhoto && !format.json ? picture(of: face) : nil
        let report = Report.TravelDocument(
            reading, reading.belief(trust: trust, at: .now), reader: reader, isRevealed: reveal)
        if format.json { try Report.print(report) } else { Terminal.print(PassportText(report).text) }
        if let picture { Terminal.write(Array((picture + "\n").utf8)) }
        if !report.isBelieved { throw ExitCode(7) }
    }

    /// - Returns: nil, with a remark, if the terminal shows no pictures or the photo cannot be decoded.
    private func picture(of face: FaceImage?) -> String? {
        guard let face else { return nil }
        guard let form = Terminal.pictureProtocol else {
            Terminal.remark("this terminal shows no pictures; --photo writes the photo to a file")
            return nil
        }
        do throws(ImageError) {
            let image = try face.image.decoded().scaled(toFit: 240, by: 320)
            return TerminalPicture(width: image.width, height: image.height, pixels: image.pixels).text(form)
        } catch {
            Terminal.remark("the photo cannot be shown: \(error)")
            return nil
        }
    }

    /// An unknown reader passes on what all readers do: header, Lc, 255 bytes and Le.
    private static func longestAPDU(of reader: any CardReader) -> Int? {
        guard let model = reader.model else { return 261 }
        return model.longestCommand
    }

    private func read(
        _ dataGroups: Set<Int>, of chip: TravelDocumentChip, with key: AccessKey
    ) async throws -> DocumentReading {
        do {
            return try await chip.read(dataGroups: dataGroups, with: key, allowingDowngrade: allowDowngrade) { event in
                if case .progress(let file, let progress) = event {
                    Terminal.progress("reading \(file): \(progress.bytes) of \(progress.length) bytes")
                }
            }
        } catch let error as AccessError {
            throw ToolError(
                status: 5, summary: "the chip does not open: \(error)",
                hint: "Compare the \(key) with the document, and keep the document on the reader.")
        } catch let error as ChipError {
            throw ToolError(
                status: 5, summary: "\(error)", hint: "“reader-probe card” shows the kind of this card.")
        } catch let error as SecureMessagingError {
            throw ToolError(
                status: 5, summary: "\(error)", hint: "Keep the document on the reader, and begin again.")
        }
    }

    private func trustList() throws -> TrustList {
        var list = try TrustStore.user.read()
        for path in trust {
            for file in try TrustFile.all(in: path) {
                let result = try file.add(to: &list)
                for master in result.masterLists where !master.isAdded {
                    let reasons = master.findings.filter { $0.isFailure || $0.isOpen }.map { "\($0)" }
                    Terminal.remark("\(file.path) is not trusted: \(reasons.joined(separator: "; "))")
                }
            }
        }
        return list
    }

    /// The reader of the options; the card that lies on a software reader by default is a passport.
    private var documentReader: ReaderOptions {
        var options = readerOptions
        if options.virtual, options.card.isEmpty { options.card = ["passport"] }
        return options
    }

    /// The key from the options; else what standard input has.
    private func accessKey() throws -> AccessKey {
        if mrzFile != nil, can != nil {
            throw ToolError.usage("two keys", "Give the machine readable zone or the card access number.")
        }
        if let can { return try key(can, isNumber: true) }
        if let mrzFile, mrzFile != "-" {
            guard let text = try? String(contentsOfFile: mrzFile, encoding: .utf8) else {
                throw ToolError.usage("\(mrzFile) cannot be read", "Give a text file with two or three lines.")
            }
            return try key(text, isNumber: false)
        }
        let text = Self.typed()
        return try key(text, isNumber: mrzFile == nil && text.first?.isNumber == true && !text.contains("<"))
    }

    private func key(_ text: String, isNumber: Bool) throws -> AccessKey {
        do {
            guard isNumber else { return AccessKey(try MachineReadableZone(text)) }
            return try AccessKey(text.trimmingCharacters(in: .whitespacesAndNewlines), kind: .cardAccessNumber)
        } catch {
            throw ToolError.usage(
                "no key to the chip: \(error)",
                isNumber
                    ? "Give the digits that are printed on the document's front, six on most."
                    : Self.proposal(for: text) ?? Self.asPrinted)
        }
    }

    private static let asPrinted = "Give the lines of the machine readable zone as they are printed, < included."

    /// Names the characters to look at, for lines that a camera or a person misread.  The lines themselves are personal.
    private static func proposal(for text: String) -> String? {
        let lines = text.split(whereSeparator: \.isWhitespace)
        guard let first = lines.first, lines.allSatisfy({ $0.count == first.count }),
            let proposal = MachineReadableZone.proposals(for: text).first
        else { return nil }
        let places = proposal.changes.map { "character \($0 % first.count + 1) of line \($0 / first.count + 1)" }
        return "Compare \(places.joined(separator: " and ")) with the document, as O with 0: another one would fit."
    }

    /// The lines on standard input, up to an empty one or as long as the longest zone.
    private static func typed() -> String {
        if isatty(STDIN_FILENO) == 1 {
            Terminal.remark("the machine readable zone, line by line, or the card access number; an empty line ends it")
        }
        var text = ""
        while let line = readLine(), !line.allSatisfy(\.isWhitespace), text.utf8.count < 200 { text += line + "\n" }
        return text
    }
}
