import ArgumentParser
import EMVContactless
import Foundation
import SmartCard
import ToolReaders
import ToolSupport

struct EMVCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "emv", abstract: "Reads every EMV application on the card.",
        discussion: """
            Finds the applications through PPSE, PSE or a list of known AIDs. From each it reads FCI, processing options, \
            records, counters and log, and requests an AAC if the processing options contain no cryptogram. The card \
            counts this as a declined transaction.
            """)

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let probe = try await Probe(readerOptions)
        try probe.show(output)
        try probe.check(needsApplications: true)
    }
}

/// A card read in full, for `emv` and for the bare command.
struct Probe {
    let reader: ReaderIdentity
    let card: CardSummary
    let inspection: CardInspection

    init(_ options: ReaderOptions, onlyDirectory: Bool = false) async throws {
        let inspector = CardInspector.withSystemValues
        await inspector.rehearse()
        (reader, card, inspection) = try await options.withCard { reader, connection, channel in
            Terminal.progress("reading the card")
            defer { Terminal.endProgress() }
            let summary = try await CardSummary(atr: connection.atr, channel: channel)
            guard summary.speaksAPDU else { return (reader.identity, summary, CardInspection()) }
            let inspection = try await inspector.inspect(channel, onlyDirectory: onlyDirectory) {
                Terminal.progress($0)
            }
            return (reader.identity, summary, inspection)
        }
    }

    func show(_ output: OutputOptions) throws {
        let redactor = output.reveal ? Redactor() : Redactor(hiding: inspection)
        if output.json {
            try Report.print(report(reveal: output.reveal), redactor: redactor)
        } else {
            Terminal.print(redactor.redacted(EMVText(report(reveal: output.reveal)).text))
        }
    }

    func report(reveal: Bool) -> Report.Probe<Report.Application> {
        Report.Probe(
            reader: .init(reader), card: .init(card), directory: inspection.directory?.rawValue,
            applications: inspection.applications.map { .init($0, reveal: reveal) }, findings: inspection.findings,
            interruption: inspection.interruption?.description)
    }

    /// - Throws: the error that interrupted reading, or an error if there was nothing to read.
    func check(needsApplications: Bool) throws {
        if let interruption = inspection.interruption { throw interruption }
        if needsApplications && inspection.applications.isEmpty {
            throw ToolError(
                status: 5, summary: "the card has no EMV application (\(card.technology))",
                hint: "Present a payment card; “reader-probe card” shows the kind of this card.")
        }
    }
}

extension CardSummary {
    /// True if the card accepts APDUs; storage cards have only the reader's commands.
    var speaksAPDU: Bool { type != "storage" && type != "none" }
}
