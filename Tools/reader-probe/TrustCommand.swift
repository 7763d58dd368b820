import ArgumentParser
import Foundation
import ToolReaders
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
