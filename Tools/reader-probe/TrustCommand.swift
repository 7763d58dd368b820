import ArgumentParser
import Foundation
import ToolSupport
import TravelDocument

struct TrustCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust",
        abstract: "Manages the authorities trusted for travel documents: import, list and remove authorities.",
        discussion: """
            The authorities that sign passports publish their certificates: as master lists, of which Germany and the \
            Netherlands have public ones, and in the ICAO Public Key Directory. No authorities are trusted before you \
            import one.
            """,
        subcommands: [Import.self, List.self, Remove.self])

    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Adds the authorities in these files to the trusted ones.",
            discussion: """
                Files with the name of an earlier import replace it. A master list whose signature does not hold is refused.
                """)

        @Argument(
            help: .init(
                "Certificates or revocation lists (DER or PEM), master lists, LDIF, or folders of such files.",
                valueName: "file|folder"))
        var files: [String]

        @OptionGroup var format: JSONOption

        func run() throws {
            var list = try TrustStore.user.read()
            var report = Report.TrustImport()
            let all = try files.flatMap { try TrustFile.all(in: $0) }
            let names = Set(all.map(\.source))
            guard names.count == all.count else {
                throw ToolError.usage("two files have one name", "A name stands for a source: rename one of them.")
            }
            for file in all { report.files.append(Report.TrustImport.File(file.source) { try file.renew(in: &list) }) }
            try TrustStore.user.write(list)
            if format.json { try Report.print(report) } else { Terminal.print(report.text) }
            if !report.files.allSatisfy(\.isImported) { throw ExitCode(2) }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the trusted authorities, by source and date of import.")

        @OptionGroup var format: JSONOption

        func run() throws {
            let report = Report.Trust(try TrustStore.user.read())
            if format.json { try Report.print(report) } else { Terminal.print(report.text) }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stops trusting the authorities from these sources.")

        @Argument(help: .init("The sources, as “reader-probe trust list” names them.", valueName: "source"))
        var sources: [String]

        func run() throws {
            var list = try TrustStore.user.read()
            for source in sources {
                guard list.entries.contains(where: { $0.origin.source == source }) else {
                    throw ToolError.usage(
                        "nothing was imported from \(source)", "“reader-probe trust list” names the sources.")
                }
                list.remove(source: source)
            }
            try TrustStore.user.write(list)
        }
    }
}

/// The trust list of this user, a file.
struct TrustStore {
    let file: URL

    /// Under XDG_DATA_HOME, else in ~/.local/share (XDG Base Directory Specification).
    static var user: TrustStore {
        let home = FileManager.default.homeDirectoryForCurrentUser.appending(path: ".local/share")
        let data = ProcessInfo.processInfo.environment["XDG_DATA_HOME"].flatMap {
            $0.hasPrefix("/") ? URL(filePath: $0) : nil
        }
        return TrustStore(file: (data ?? home).appending(path: "reader-probe/trust.json"))
    }

    /// Returns the list; an empty one if there is no file.
    func read() throws -> TrustList {
        guard FileManager.default.fileExists(atPath: file.path) else { return TrustList() }
        do { return try TrustList(contentsOf: file) } catch {
            throw ToolError.usage(
                "\(file.path) is no trust list that can be read", "Remove the file, and import the authorities again.")
        }
    }

    func write(_ list: TrustList) throws {
        do {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try list.write(to: file)
        } catch {
            throw ToolError.usage("\(file.path) cannot be written", "Check that its folder is yours, and has room.")
        }
    }
}

/// A file with authorities.
struct TrustFile {
    let path: String
    /// The name under which the list has what comes from it.
    var source: String { URL(filePath: path).lastPathComponent }

    /// Returns the file, or all files of the folder.
    static func all(in path: String) throws -> [TrustFile] {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            return [TrustFile(path: path)]
        }
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            throw ToolError.usage("\(path) cannot be read", hint)
        }
        return names.sorted().map { TrustFile(path: path + "/" + $0) }.filter { file in
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder) && !isFolder.boolValue
        }
    }

    private static let hint = "Give certificates, a master list or LDIF."

    /// The reasons why a file is not imported.
    struct Refusal: Error {
        let reasons: [String]
    }

    /// Puts the file in the place of its earlier edition.
    ///
    /// - Throws: ``Refusal``; the list is then as it was.
    func renew(in list: inout TrustList) throws -> TrustList.Import {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Refusal(reasons: ["it cannot be read"])
        }
        let isKnown = list.entries.contains { $0.origin.source == source }
        // A new edition is held against what is trusted so far, the old edition included.
        var both = list
        let judged: TrustList.Import
        do { judged = try both.add(Array(data), source: source, at: .now) } catch {
            throw Refusal(reasons: ["\(error)"])
        }
        let findings = judged.masterLists.flatMap(\.findings)
        guard judged.masterLists.allSatisfy(\.isAdded) else {
            throw Refusal(reasons: findings.filter { $0.outcome != .passed }.map { "master list: \($0)" })
        }
        if isKnown, findings.contains(where: { $0.check == .path && $0.isFlagged }) {
            throw Refusal(reasons: [
                "nobody who is trusted signed this edition; remove the earlier one first, if you mean to trust it"
            ])
        }
        guard judged.authorities + judged.signers + judged.revocationLists + judged.known > 0 else {
            throw Refusal(reasons: ["it contains no certificate and no list"] + judged.faults.map { "left out: \($0)" })
        }
        var renewed = list
        renewed.remove(source: source)
        let result = try renewed.add(Array(data), source: source, at: .now)
        guard result.masterLists.allSatisfy(\.isAdded) else {
            throw Refusal(reasons: ["only its earlier edition vouches for it; import its authority first"])
        }
        list = renewed
        return result
    }

    @discardableResult func add(to list: inout TrustList) throws -> TrustList.Import {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ToolError.usage("\(path) cannot be read", Self.hint)
        }
        do throws(MalformedObject) { return try list.add(Array(data), source: source, at: .now) } catch {
            throw ToolError.usage("\(path): \(error)", Self.hint)
        }
    }
}

/// The keys are documented in reader-probe(1) and stable; absent values are null.
extension Report {
    /// The report of `trust list`.
    struct Trust: Encodable {
        struct Source: Encodable {
            let source: String
            /// The day of the import, in universal time: `2026-11-24`.
            let date: String
            let authorities: Int
            let signers: Int
            let revocationLists: Int
            /// The countries of the authorities, in alphabetical order.
            let countries: [String]
        }

        let sources: [Source]

        init(_ list: TrustList) {
            sources = Dictionary(grouping: list.entries, by: \.origin).map { origin, entries in
                let authorities = entries.compactMap {
                    if case .authority(let certificate) = $0.object { certificate } else { nil }
                }
                let signers = entries.count { if case .signer = $0.object { true } else { false } }
                return Source(
                    source: origin.source, date: String(origin.date.ISO8601Format().prefix(10)),
                    authorities: authorities.count, signers: signers,
                    revocationLists: entries.count - authorities.count - signers,
                    countries: Set(authorities.compactMap { $0.subject.country?.uppercased() }).sorted())
            }.sorted { ($0.date, $0.source) < ($1.date, $1.source) }
        }
    }
}

extension Report {
    /// The report of `trust import`.
    struct TrustImport: Encodable {
        struct File: Encodable {
            let source: String
            /// False for a master list whose signature does not hold; nothing of the file was taken then.
            let isImported: Bool
            let authorities: Int
            let signers: Int
            let revocationLists: Int
            /// Objects that were there already.
            let known: Int
            /// Findings about master lists, and objects that were left out.
            let remarks: [String]

            /// - Parameter renew: imports the file, or throws why not.
            init(_ source: String, _ renew: () throws -> TrustList.Import) {
                self.source = source
                do {
                    let result = try renew()
                    isImported = true
                    (authorities, signers) = (result.authorities, result.signers)
                    (revocationLists, known) = (result.revocationLists, result.known)
                    let findings = result.masterLists.flatMap(\.findings).filter { $0.outcome != .passed }
                    remarks = findings.map { "master list: \($0)" } + result.faults.map { "left out: \($0)" }
                } catch {
                    isImported = false
                    (authorities, signers, revocationLists, known) = (0, 0, 0, 0)
                    remarks = (error as? TrustFile.Refusal)?.reasons ?? ["\(error)"]
                }
            }
        }

        var files: [File] = []

        var text: String {
            files.flatMap { file in
                let contents = Trust.counts(file.authorities, file.signers, file.revocationLists)
                let known = file.known == 0 ? "" : ", \(file.known) known already"
                return ["\(file.source): \(file.isImported ? contents + known : "refused")"]
                    + file.remarks.map { "   " + Terminal.styled("! \($0.withoutControls)", .warning) }
            }.joined(separator: "\n")
        }
    }
}

extension Report.Trust {
    var text: String {
        guard !sources.isEmpty else { return "No authorities are trusted." }
        return sources.map { source in
            let contents = Self.counts(source.authorities, source.signers, source.revocationLists)
            return (["\(source.date)  \(source.source): \(contents)"] + [source.countries.joined(separator: " ")])
                .filter { !$0.isEmpty }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// `2 authorities, 1 revocation list`
    static func counts(_ authorities: Int, _ signers: Int, _ lists: Int) -> String {
        let all = [
            (authorities, "authority", "authorities"), (signers, "signer", "signers"),
            (lists, "revocation list", "revocation lists"),
        ]
        let there = all.filter { $0.0 > 0 }
        return (there.isEmpty ? [all[0]] : there).map { "\($0) \($0 == 1 ? $1 : $2)" }.joined(separator: ", ")
    }
}
