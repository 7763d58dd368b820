import Foundation
import Synchronization
import Waiting

/// An IPP printer: any IPP Everywhere or AirPrint printer, or a CUPS queue.
public struct IPPPrinter: ReceiptPrinterService {
    /// The time limits.
    public struct Limits: Hashable, Sendable {
        /// The limit for each step of a request.
        public var answer: Duration
        /// The limit for printing the receipt once the printer has it.
        public var printing: Duration

        public init(answer: Duration = .seconds(15), printing: Duration = .seconds(120)) {
            (self.answer, self.printing) = (answer, printing)
        }
    }

    private let client: CUPSClient
    private let language: ReceiptLanguage
    private let paper: HTMLRenderer.Paper
    private let limits: Limits

    /// Creates a printer.
    ///
    /// - Parameters:
    ///   - uri: `ipp://printer.local/ipp/print`, or `ipp://localhost/printers/NAME` for a CUPS queue; `ipps:` for
    ///     encryption.
    ///   - language: the language of the receipt.
    ///   - paper: the size of the paper.
    ///   - limits: the longest waits for the printer.
    /// - Returns: nil if the text is not such a URI.
    public init?(
        _ uri: String, language: ReceiptLanguage = .english, paper: HTMLRenderer.Paper = .roll,
        limits: Limits = Limits()
    ) {
        guard let client = CUPSClient(uri: uri) else { return nil }
        (self.client, self.language, self.paper, self.limits) = (client, language, paper, limits)
    }

    public func condition() async -> PrinterCondition? {
        do { return try await printer().condition } catch { return error }
    }

    public func printReceipt(content: ReceiptContent) async -> PrintingResult {
        let document = ReceiptDocument(content, language: language)
        let progress = SharedProgress()
        let condition: PrinterCondition?
        do {
            condition = try await print(document, name: content.parameters.orderID, progress)
        } catch {
            condition = error
        }
        let reached = progress.value.withLock { $0 }
        guard let condition else { return .success }
        return Task.isCancelled ? .cancel(reached) : .failure(PrintingFailure(condition, reached))
    }

    // MARK: The printer

    private struct Printer: Sendable {
        let condition: PrinterCondition?
        let formats: [Format]
        /// The resolution of PWG raster, in dots per inch.
        let resolution: Int
    }

    private func printer() async throws(PrinterCondition) -> Printer {
        let answer = try await client.perform(
            .getPrinterAttributes,
            [
                CUPSClient.Attribute(
                    "requested-attributes",
                    .keywords([
                        "printer-state", "printer-state-reasons", "printer-is-accepting-jobs",
                        "document-format-supported", "pwg-raster-document-resolution-supported",
                    ]))
            ], within: limits.answer)
        guard answer.status.isSuccess else { throw PrinterCondition(answer.status) }
        let supported = Set(answer.strings["document-format-supported"] ?? [])
        return Printer(
            condition: PrinterCondition(
                reasons: answer.strings["printer-state-reasons"] ?? [],
                isStopped: answer.integers["printer-state"]?.first == 5,
                isAccepting: answer.integers["printer-is-accepting-jobs"]?.first != 0),
            formats: Format.allCases.filter { supported.contains($0.rawValue) },
            resolution: answer.integers["pwg-raster-document-resolution-supported"]?.first ?? 300)
    }

    // MARK: Formats

    /// The formats in which a receipt can be sent, the best first.
    private enum Format: String, CaseIterable {
        case pdf = "application/pdf"
        case pwgRaster = "image/pwg-raster"
        case text = "text/plain"
    }

    private func render(
        _ document: ReceiptDocument, as format: Format, resolution: Int
    ) async throws(PrinterCondition) -> [UInt8] {
        do {
            switch format {
            case .text: return Array(TextRenderer(columns: 48).render(document).utf8)
            case .pdf: return Array(try await PDFRenderer(paper: paper).render(document))
            case .pwgRaster:
                let pdf = try await PDFRenderer(paper: paper).render(document)
                // Color space 18 is gray (PWG 5102.4, table 3).
                let ghostscript = ExternalProgram(
                    [
                        "gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pwgraster", "-r\(resolution)",
                        "-dcupsColorSpace=18", "-dcupsBitsPerColor=8", "-sOutputFile=%stdout", "-",
                    ], package: "ghostscript", limit: .seconds(120))
                return Array(try await ghostscript.output(of: pdf))
            }
        } catch let error as ExternalProgramError {
            throw .failed("\(error.description). \(error.hint)")
        } catch {
            throw .failed("\(type(of: error))")
        }
    }

    // MARK: Jobs

    private func print(
        _ document: ReceiptDocument, name: String?, _ progress: SharedProgress
    ) async throws(PrinterCondition) -> PrinterCondition? {
        let printer = try await printer()
        if let condition = printer.condition { return condition }
        for format in printer.formats {
            let bytes = try await render(document, as: format, resolution: printer.resolution)
            progress.value.withLock { $0 = PrintingProgress(sent: 0, total: bytes.count) }
            // The same result as that of any wait when the task is canceled.
            guard !Task.isCancelled else { return .silent }
            let answer = try await client.perform(
                .printJob,
                [
                    CUPSClient.Attribute("job-name", .name("Receipt" + (name.map { " " + $0.printable } ?? ""))),
                    CUPSClient.Attribute("document-format", .mimeType(format.rawValue)),
                ], document: bytes, within: limits.answer
            ) { count in
                progress.value.withLock { $0 = PrintingProgress(sent: count, total: bytes.count) }
            }
            if answer.status.isSuccess {
                guard let job = answer.integers["job-id"]?.first else { return .failed("it names no job") }
                return await finish(job)
            }
            // The printer refused the job, so it prints nothing.
            progress.value.withLock { $0 = PrintingProgress(sent: 0, total: bytes.count) }
            guard [.formatNotSupported, .attributesNotSupported].contains(answer.status) else {
                return PrinterCondition(answer.status)
            }
        }
        return .formatUnsupported
    }

    /// Waits for the end of a job.  A job that does not end is canceled, so that it is not printed later.
    private func finish(_ job: Int) async -> PrinterCondition? {
        let end = Time.now + limits.printing
        var lastAnswer = Time.now
        var reasons: [String] = []
        while Time.now < end, !Task.isCancelled {
            do throws(PrinterCondition) {
                if case .ended(let condition) = try await state(of: job, &reasons) { return condition }
                lastAnswer = Time.now
            } catch {
                // A server that returns soon, such as CUPS after a restart, continues its jobs.
                guard Time.now - lastAnswer < limits.answer else {
                    return error == .absent ? .disconnected : error
                }
            }
            try? await Time.sleep(for: .milliseconds(250))
        }
        await cancel(job)
        return .silent
    }

    private enum JobState {
        case running
        case ended(PrinterCondition?)
    }

    /// Requests the state of a job.
    ///
    /// - Parameter reasons: the job's last known state reasons.
    private func state(of job: Int, _ reasons: inout [String]) async throws(PrinterCondition) -> JobState {
        let cancelled = PrinterCondition.failed("the job was canceled at the printer")
        let answer = try await client.perform(
            .getJobAttributes,
            [
                CUPSClient.Attribute("job-id", .integer(job)),
                CUPSClient.Attribute("requested-attributes", .keywords(["job-state", "job-state-reasons"])),
            ], within: limits.answer)
        switch answer.status {
        case .notFound, .gone:
            // A printer without a history has no record of an ended job.  A job that it was about to cancel is not
            // printed.
            if let condition = try await printer().condition { return .ended(condition) }
            let wasEnding = reasons.contains {
                $0 == "processing-to-stop-point" || $0.hasPrefix("job-canceled") || $0.hasPrefix("aborted")
            }
            return .ended(wasEnding ? cancelled : nil)
        case .temporaryError, .busy: return .running
        case let status where !status.isSuccess:
            await cancel(job)
            return .ended(PrinterCondition(status))
        default: break
        }
        reasons = answer.strings["job-state-reasons"] ?? []
        // RFC 8011, 5.3.7
        switch answer.integers["job-state"]?.first {
        case 9: return .ended(nil)
        case 7: return .ended(cancelled)
        case 8:
            if let condition = try await printer().condition { return .ended(condition) }
            let isFormat = reasons.contains("document-format-error") || reasons.contains("unsupported-document-format")
            return .ended(isFormat ? .formatUnsupported : .failed(reasons.joined(separator: ", ")))
        default:
            guard let condition = try await printer().condition else { return .running }
            await cancel(job)
            return .ended(condition)
        }
    }

    /// Cancels a job, even if the task itself is canceled.
    private func cancel(_ job: Int) async {
        _ = try? await client.perform(
            .cancelJob, [CUPSClient.Attribute("job-id", .integer(job))], within: limits.answer)
    }
}

/// The progress of sending, updated from another thread.
private final class SharedProgress: Sendable {
    let value = Mutex(PrintingProgress.nothing)
}

extension PrinterCondition {
    /// Maps a status with which a printer refuses a request.
    init(_ status: IPPStatus) {
        switch status {
        case .busy, .notAcceptingJobs, .temporaryError: self = .busy
        case .notFound: self = .absent
        case .formatNotSupported, .attributesNotSupported: self = .formatUnsupported
        case .forbidden, .notAuthenticated, .notAuthorized: self = .permissionDenied
        default: self = .failed("\(status)")
        }
    }

    /// Maps printer-state-reasons (RFC 8011, 5.4.12; PWG 5100.9): keywords followed by a severity.
    ///
    /// - Returns: nil if nothing keeps the printer from printing.
    init?(reasons: [String], isStopped: Bool, isAccepting: Bool) {
        // A report does not keep the printer from printing.
        let keywords = reasons.filter { !$0.hasSuffix("-report") }.map { reason in
            ["-error", "-warning"].first { reason.hasSuffix($0) }.map { String(reason.dropLast($0.count)) } ?? reason
        }
        if let known = Self.reasons.first(where: { keywords.contains($0.keyword) }) {
            self = known.condition
        } else if isStopped {
            let others = keywords.filter { $0 != "none" }
            self = others.isEmpty ? .offline : .failed(others.joined(separator: ", "))
        } else if !isAccepting {
            self = .busy
        } else {
            return nil
        }
    }

    private static let reasons: [(keyword: String, condition: PrinterCondition)] = [
        ("cover-open", .coverOpen), ("door-open", .coverOpen), ("interlock-open", .coverOpen),
        ("media-jam", .jam),
        ("media-empty", .paperOut), ("media-needed", .paperOut),
        ("paused", .offline), ("shutdown", .offline), ("offline", .offline), ("timed-out", .silent),
    ]
}
