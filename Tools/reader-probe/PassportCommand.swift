import ArgumentParser
import Foundation
import SmartCard
import ToolReaders
import ToolSupport
import TravelDocument

struct PassportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passport", abstract: "Reads the chip of a passport or an identity card.",
        discussion: """
            The chip opens with the lines that are printed below the photo (machine readable zone), or with the card access \
            number on the front. They are read from --mrz-file, from --can, or from standard input: type or scan them there.

            The exit status is 0 if an authority of --trust stands behind the signature over all that was read, and the chip proves \
            that it is no copy where it can; else it is 7.

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
            Believe the country signing authorities in this file, or in all files of this folder: certificates, master lists, \
            LDIF, with revocation lists. Repeatable. Nobody is believed by default.
            """, valueName: "file|folder"))
    var trust: [String] = []

    @Option(
        help: .init(
            "Read the photo, too, and write it to this new file, as the chip has it: JPEG or JPEG 2000.",
            valueName: "file"))
    var photo: String?

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
        let (reader, document) = try await readerOptions.withCard { reader, connection, channel in
            Terminal.progress("opening the chip")
            defer { Terminal.endProgress() }
            let chip = TravelDocumentChip(over: channel, connection: connection)
            return (reader.identity, try await PassportReading(chip, key, allowDowngrade, readsPhoto: photo != nil))
        }
        if let photo, let face = document.faces?.faces.first {
            do {
                try Data(face.image.bytes).write(to: URL(filePath: photo), options: .withoutOverwriting)
            } catch {
                throw ToolError.usage("\(photo) cannot be written", "Check that its folder is there, and yours.")
            }
        }
        let authentication = document.authentication(trust)
        let report = Report.TravelDocument(document, authentication, reader: reader, isRevealed: reveal)
        if format.json { try Report.print(report) } else { Terminal.print(PassportText(report).text) }
        if !report.isBelieved { throw ExitCode(7) }
    }

    private func trustList() throws -> TrustList {
        var list = TrustList()
        for path in trust {
            var isFolder: ObjCBool = false
            let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            let names = isFolder.boolValue ? try? FileManager.default.contentsOfDirectory(atPath: path).sorted() : nil
            for file in names.map({ $0.map { path + "/" + $0 } }) ?? [path] {
                guard isThere, let data = FileManager.default.contents(atPath: file) else {
                    throw ToolError.usage("\(file) cannot be read", "Give certificates, a master list or LDIF.")
                }
                do { try list.add(Array(data), source: file, at: .now) } catch {
                    throw ToolError.usage("\(file): \(error)", "Give certificates, a master list or LDIF.")
                }
            }
        }
        return list
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
                "Give the lines of the machine readable zone as they are printed, < included.")
        }
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

/// The files of a document that were read, parsed.
struct PassportReading {
    /// A file, and the reason why it was not read.
    struct Failure {
        let file: ElementaryFile
        let reason: String
    }

    let access: ChipAccess
    private(set) var lengths: [(file: ElementaryFile, length: Int)] = []
    private(set) var failures: [Failure] = []
    private(set) var dataGroups: [ElementaryFile] = []
    private(set) var zone: MachineReadableZone?
    private(set) var faces: EncodedFaces?
    private var securityObject: SecurityObject?
    private var groups: [Int: [UInt8]] = [:]
    private(set) var chipAuthentication: ChipAuthentication.Verdict?
    private(set) var activeAuthentication: ActiveAuthentication.Verdict?

    /// Opens the chip and reads its files: the list of data groups, DG1, and DG2 last.
    ///
    /// - Throws: `ToolError` if the chip cannot be opened; `CardError`.
    init(
        _ chip: TravelDocumentChip, _ key: AccessKey, _ allowsDowngrade: Bool, readsPhoto: Bool
    ) async throws {
        do { access = try await chip.open(with: key, allowingDowngrade: allowsDowngrade) } catch let error
            as AccessError
        {
            throw ToolError(
                status: 5, summary: "the chip does not open: \(error)",
                hint: "Compare the \(key) with the document, and keep the document on the reader.")
        } catch let error as ChipError {
            throw ToolError(
                status: 5, summary: "\(error)", hint: "“reader-probe card” shows the kind of this card.")
        }
        try await read(.com, of: chip)
        try await read(.dataGroup(1), of: chip)
        try await read(.sod, of: chip)
        try await proveOriginality(of: chip)
        if readsPhoto { try await read(.dataGroup(2), of: chip) }
    }

    /// - Returns: nil for a document without a security object.
    func authentication(_ trust: TrustList) -> PassiveAuthentication? {
        securityObject.map { object in
            PassiveAuthentication.verify(
                object, files: groups, trust: trust, at: .now, documentType: zone?.documentCode,
                issuingState: zone?.issuingState)
        }
    }

    /// Has the chip prove that it is the original, where it has a key for that (DG14, DG15).
    private mutating func proveOriginality(of chip: TravelDocumentChip) async throws {
        let signed = securityObject.map { Set($0.dataGroupDigests.keys) } ?? []
        for number in [14, 15] where signed.contains(number) { try await read(.dataGroup(number), of: chip) }
        do {
            if let infos = groups[14] { chipAuthentication = try await chip.authenticateChip(securityInfos: infos) }
            if let key = groups[15] {
                activeAuthentication = try await chip.authenticateActively(publicKey: key, securityInfos: groups[14])
            }
        } catch let error as MalformedObject {
            failures.append(Failure(file: .dataGroup(15), reason: "\(error)"))
        }
    }

    private mutating func read(_ file: ElementaryFile, of chip: TravelDocumentChip) async throws {
        do {
            let bytes = try await chip.read(file) {
                Terminal.progress("reading \(file): \($0.bytes) of \($0.length) bytes")
            }
            lengths.append((file, bytes.count))
            if case .dataGroup(let number) = file { groups[number] = bytes }
            if file == .sod { securityObject = try SecurityObject(bytes) }
            switch try ParsedFile(parsing: bytes, of: file) {
            case .commonDataElements(let elements)?: dataGroups = elements.dataGroups
            case .machineReadableZone(let zone)?: self.zone = zone
            case .encodedFaces(let faces)?: self.faces = faces
            default: break
            }
        } catch let error as FileError {
            failures.append(Failure(file: file, reason: "\(error)"))
        } catch let error as TravelDocumentFormatError {
            failures.append(Failure(file: file, reason: "\(error)"))
        } catch let error as MalformedObject {
            failures.append(Failure(file: file, reason: "\(error)"))
        } catch let error as SecureMessagingError {
            throw ToolError(
                status: 5, summary: "\(file): \(error)", hint: "Keep the document on the reader, and begin again.")
        }
    }
}
