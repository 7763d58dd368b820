import Foundation
import Glibc
import TestSupport
import Testing

@testable import CardReceipts

/// CUPS's own printer of software, as a test needs it.
private final class RunningPrinter: Sendable {
    static let isInstalled = ["ippeveprinter", "cc", "weasyprint"].allSatisfy(Program.isInstalled)

    /// A job that lasts until there is a file `go`, or no folder any more.
    static let untilGo = "while [ -e \"$0\" ] && [ ! -e go ]; do sleep 0.1; done"

    let uri: String
    private let folder: TemporaryFolder
    private let port: ReservedPort
    private let program: Program

    /// - Parameter script: run for each job, with its file as `$1`; what it writes as `STATE:` changes the printer's.
    init(formats: String = "application/pdf,image/pwg-raster,text/plain", script: String = "exit 0") async throws {
        folder = try TemporaryFolder()
        let library = folder.url.appending(path: "no_dns_sd.so").path
        let compiled = try await Program.run([
            "cc", "-shared", "-fPIC", "-o", library, Judge.folder.appending(path: "Judges/no_dns_sd.c").path,
        ])
        try #require(compiled.status == 0, "\(compiled)")
        let command = folder.url.appending(path: "job").path
        try await Program.write(
            script: "cd \(folder.url.path)\necho $CONTENT_TYPE >>types\ncp $1 document\n\(script)", to: command)
        port = try ReservedPort()
        uri = "ipp://localhost:\(port.number)/ipp/print"
        program = try Program(
            [
                "ippeveprinter", "-p", "\(port.number)", "-n", "localhost", "-r", "off", "-d", folder.url.path, "-k",
                "-f",
                formats, "-c", command, "Receipts",
            ], environment: ["LD_PRELOAD": library])
        try await wait(for: "printer") { [uri] in await IPPPrinter(uri)?.condition() != .absent }
    }

    deinit { program.signal(SIGKILL) }

    private func text(_ name: String) -> String {
        (try? String(contentsOf: folder.url.appending(path: name), encoding: .utf8)) ?? ""
    }

    /// The formats of the jobs that were printed.
    var types: [String] { text("types").split(separator: "\n").map(String.init) }

    /// The document of the last job.
    var document: URL { folder.url.appending(path: "document") }

    func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: folder.url.appending(path: name).path)
    }

    func create(_ name: String) throws { try Data().write(to: folder.url.appending(path: name)) }

    func service(printing: Duration = .seconds(300)) throws -> IPPPrinter {
        try #require(IPPPrinter(uri, limits: .init(answer: .seconds(90), printing: printing)))
    }
}

@Suite(.timeLimit(.minutes(10)), .enabled(if: RunningPrinter.isInstalled, "ippeveprinter is not installed"))
struct IPPPrinterTests {
    @Test("B8: a receipt is printed as PDF, and its job is waited for")
    func b8() async throws {
        let printer = try await RunningPrinter(script: "sleep 1; touch printed")
        #expect(try await printer.service().printReceipt(content: Sample.content()) == .success)
        #expect(printer.exists("printed") && printer.types == ["application/pdf"])
        let text = try await Program.run(["pdftotext", "-layout", printer.document.path, "-"])
        #expect(text.output.contains(/AMOUNT PAID +12.34 EUR/), "\(text)")
        #expect(try await printer.service().condition() == nil)
    }

    @Test("B8: a printer without PDF gets another format", arguments: ["image/pwg-raster", "text/plain"])
    func b8Formats(_ format: String) async throws {
        let printer = try await RunningPrinter(formats: format)
        #expect(try await printer.service().printReceipt(content: Sample.content()) == .success)
        #expect(printer.types == [format])
        if format == "text/plain" {
            let text = try String(contentsOf: printer.document, encoding: .utf8)
            #expect(text == TextRenderer(columns: 48).render(ReceiptDocument(try Sample.content())))
        } else {
            // PWG 5102.4, 4.3: the synchronization word, and the header's first field.
            let bytes = Array(try Data(contentsOf: printer.document).prefix(13))
            #expect(String(decoding: bytes, as: UTF8.self) == "RaS2PwgRaster")
        }
    }

    @Test("B8: a printer that takes no format of ours")
    func b8NoFormat() async throws {
        let printer = try await RunningPrinter(formats: "image/jpeg")
        #expect(
            try await printer.service().printReceipt(content: Sample.content())
                == .failure(PrintingFailure(.formatUnsupported, PrintingProgress(sent: 0, total: 0))))
        #expect(printer.types.isEmpty)
    }

    @Test("B8: a task that is cancelled cancels the job")
    func b8Cancelled() async throws {
        let printer = try await RunningPrinter(
            script: "touch begun; \(RunningPrinter.untilGo); exit 0")
        let service = try printer.service(), content = try Sample.content()
        let task = Task { await service.printReceipt(content: content) }
        try await wait(for: "the job's beginning") { printer.exists("begun") }
        task.cancel()
        guard case .cancel(let progress) = await task.value else {
            Issue.record("not cancelled")
            return
        }
        #expect(progress.sent == progress.total && progress.total > 1000)
        try printer.create("go")
        // The job's number is 1: ipptool asks the printer what has become of it.
        var job = ""
        try await wait(for: "the job's end") {
            job = try await Program.run(["ipptool", "-tv", "\(printer.uri)/1", "get-job-attributes.test"]).description
            return !job.contains("job-state (enum) = processing")
        }
        #expect(job.contains("job-state (enum) = canceled"), "\(job)")
    }

    @Test("B8: a job that somebody cancels at the printer is told")
    func b8CancelledThere() async throws {
        let printer = try await RunningPrinter(script: "touch begun; \(RunningPrinter.untilGo); exit 0")
        let service = try printer.service(), content = try Sample.content()
        async let result = service.printReceipt(content: content)
        try await wait(for: "the job's beginning") { printer.exists("begun") }
        let cancelled = try await Program.run(["ipptool", "-tv", printer.uri, "cancel-current-job.test"])
        #expect(cancelled.status == 0, "\(cancelled)")
        try printer.create("go")
        guard case .failure(let failure) = await result else {
            Issue.record("\(await result)")
            return
        }
        #expect(failure.condition == .failed("the job was canceled at the printer"), "\(failure)")
        #expect(failure.progress.mayBePrinted)
    }

    @Test("B8: a job that fails is a failure, with what had gone out")
    func b8Aborted() async throws {
        let printer = try await RunningPrinter(script: "exit 1")
        guard case .failure(let failure) = try await printer.service().printReceipt(content: Sample.content()) else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == .failed("aborted-by-system"), "\(failure)")
        #expect(failure.progress.sent == failure.progress.total && failure.progress.mayBePrinted)
    }

    @Test(
        "B7: what an IPP printer says keeps it from printing",
        arguments: Tier.few(
            [("media-empty", PrinterCondition.paperOut), ("cover-open", .coverOpen), ("media-jam", .jam)], 1))
    func b7(_ reason: String, _ condition: PrinterCondition) async throws {
        let printer = try await RunningPrinter(
            script: "echo 'STATE: +\(reason)' >&2; \(RunningPrinter.untilGo); exit 0")
        guard case .failure(let failure) = try await printer.service().printReceipt(content: Sample.content()) else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == condition && failure.progress.mayBePrinted, "\(failure)")
        #expect(try await printer.service().condition() == condition)
        // The next one is told before anything goes out.
        guard case .failure(let next) = try await printer.service().printReceipt(content: Sample.content()) else {
            Issue.record("no failure")
            return
        }
        #expect(next == PrintingFailure(condition, PrintingProgress(sent: 0, total: 0)))
        try printer.create("go")
    }

    @Test("B7: a job that does not end is silent, in time")
    func b7Silent() async throws {
        let printer = try await RunningPrinter(script: "\(RunningPrinter.untilGo); exit 0")
        guard
            case .failure(let failure) = try await printer.service(printing: .seconds(1)).printReceipt(
                content: Sample.content())
        else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == .silent && failure.progress.mayBePrinted)
        try printer.create("go")
    }
}

/// A printer of IPP that does what a script says: Judges/ipp_printer.py.
private final class ScriptedPrinter: Sendable {
    private let program: Program
    let port: String

    init(_ script: [String: Any]) async throws {
        let text = String(decoding: try JSONSerialization.data(withJSONObject: script), as: UTF8.self)
        program = try Program(["/usr/bin/python3", Judge.folder.appending(path: "Judges/ipp_printer.py").path, text])
        try await program.wait(for: "port") { $0.output.contains("\n") }
        port = try #require(program.output.split(separator: "\n").first.map(String.init))
    }

    deinit { program.signal(SIGKILL) }

    /// What it was asked for, but for the printer's attributes and the job's.
    var requests: [String] {
        program.output.split(separator: "\n").dropFirst().filter { !$0.hasPrefix("Get-") }
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }

    func service(answer: Duration = .seconds(90), printing: Duration = .seconds(300)) throws -> IPPPrinter {
        try #require(
            IPPPrinter("ipp://127.0.0.1:\(port)/ipp/print", limits: .init(answer: answer, printing: printing)))
    }
}

@Suite(.timeLimit(.minutes(5))) struct IPPFaultTests {
    /// RFC 8011, 4.3.4: client-error-not-found and client-error-gone.
    @Test(
        "B8: a job that the printer has forgotten is printed, and is not asked for until the time is over",
        arguments: [0x0406, 0x0407])
    func b8Purged(_ status: Int) async throws {
        let printer = try await ScriptedPrinter(["jobs": [5, ["status": status]] as [Any]])
        #expect(try await printer.service().printReceipt(content: Sample.content()) == .success)
        #expect(printer.requests == ["Print-Job text/plain"])
    }

    @Test("B8: a job that was being cancelled when the printer forgot it is none that was printed")
    func b8PurgedCancelled() async throws {
        let jobs: [Any] = [[5, "processing-to-stop-point"] as [Any], ["status": 0x0406]]
        let printer = try await ScriptedPrinter(["jobs": jobs])
        let result = try await printer.service().printReceipt(content: Sample.content())
        #expect(Self.condition(result) == .failed("the job was canceled at the printer"), "\(result)")
    }

    private static func condition(_ result: PrintingResult) -> PrinterCondition? {
        guard case .failure(let failure) = result else { return nil }
        // All of it has gone out.
        #expect(failure.progress.mayBePrinted && failure.progress.sent == failure.progress.total, "\(failure)")
        return failure.condition
    }

    @Test(
        "B8: how a job ends that is not printed",
        arguments: [
            ("7", PrinterCondition.failed("the job was canceled at the printer")),
            ("[8, \"document-format-error\"]", .formatUnsupported),
            ("[8, \"aborted-by-system\"]", .failed("aborted-by-system")), ("{\"status\": 1025}", .permissionDenied),
        ])
    func b8Ends(_ job: String, _ condition: PrinterCondition) async throws {
        let job = try JSONSerialization.jsonObject(with: Data(job.utf8), options: .fragmentsAllowed)
        let printer = try await ScriptedPrinter(["jobs": [3, 5, job]])
        let result = try await printer.service().printReceipt(content: Sample.content())
        #expect(Self.condition(result) == condition, "\(result)")
    }

    @Test("B8: a job is waited for while the server is busy")
    func b8Busy() async throws {
        let printer = try await ScriptedPrinter(["jobs": [["status": 0x0507], ["status": 0x0505], 9] as [Any]])
        #expect(try await printer.service().printReceipt(content: Sample.content()) == .success)
    }

    @Test(
        "B8: a format that is refused is followed by the next, and nothing counts as sent",
        .enabled(if: Program.isInstalled("weasyprint"), "weasyprint is not installed"))
    func b8Refused() async throws {
        let formats = ["text/plain", "application/pdf"]
        let printer = try await ScriptedPrinter(["formats": formats, "refused": ["application/pdf"]])
        #expect(try await printer.service().printReceipt(content: Sample.content()) == .success)
        #expect(printer.requests == ["Print-Job application/pdf", "Print-Job text/plain"])

        let stubborn = try await ScriptedPrinter(["formats": formats, "refused": formats])
        guard case .failure(let failure) = try await stubborn.service().printReceipt(content: Sample.content()) else {
            Issue.record("no failure")
            return
        }
        #expect(failure.condition == .formatUnsupported && !failure.progress.mayBePrinted, "\(failure)")
        #expect(stubborn.requests.count == 2)
    }

    @Test("B9: a server that leaves while it prints is told, in time")
    func b9Lost() async throws {
        let printer = try await ScriptedPrinter(["jobs": [5, "leave"] as [Any]])
        // Asked for again for so long, and not for the 300 s that printing may take.
        let result = try await printer.service(answer: .seconds(8)).printReceipt(content: Sample.content())
        #expect(Self.condition(result) == .disconnected, "\(result)")
    }

    @Test("B9: a server that takes the connection and says nothing is silent")
    func b9() async throws {
        let silent = try FakePort(FakePrinter(.init(status: nil)))
        let service = try #require(
            IPPPrinter(
                "ipp://127.0.0.1:\(silent.number)/ipp/print", limits: .init(answer: .seconds(1), printing: .seconds(1)))
        )
        #expect(await service.condition() == .silent)
        #expect(
            await service.printReceipt(content: try Sample.content())
                == .failure(PrintingFailure(.silent, PrintingProgress(sent: 0, total: 0))))
    }

    @Test("B9: no server is no printer")
    func b9Absent() async throws {
        let port = try ReservedPort()
        let service = try #require(IPPPrinter("ipp://127.0.0.1:\(port.number)/ipp/print"))
        #expect(await service.condition() == .absent)
        withExtendedLifetime(port) {}
    }

    @Test(
        "what is no URI of IPP is none", arguments: ["", "http://h/", "ipp:", "/dev/usb/lp0", "tcp://h:9100", "ipp://"])
    func uris(_ text: String) { #expect(IPPPrinter(text) == nil) }

    /// RFC 8011, 5.4.12: the severity stands behind the keyword, and what is only reported keeps from nothing.
    private static let reasons:
        [(reasons: [String], isStopped: Bool, isAccepting: Bool, condition: PrinterCondition?)] = [
            (["none"], false, true, nil), (["media-low-warning", "toner-low-report"], false, true, nil),
            (["media-empty-error"], true, true, .paperOut), (["media-needed"], false, true, .paperOut),
            (["media-empty-warning", "cover-open-error"], true, true, .coverOpen),
            (["door-open-report"], false, true, nil),
            (["media-jam-error"], true, true, .jam), (["paused"], true, true, .offline),
            (["none"], true, true, .offline),
            (["fuser-over-temp-error"], true, true, .failed("fuser-over-temp")), (["none"], false, false, .busy),
            ([], false, true, nil),
        ]

    @Test("B7: printer-state-reasons", arguments: reasons.indices)
    func b7(_ index: Int) {
        let (reasons, isStopped, isAccepting, condition) = Self.reasons[index]
        #expect(PrinterCondition(reasons: reasons, isStopped: isStopped, isAccepting: isAccepting) == condition)
    }

    @Test("B7: what a server answers to a request")
    func b7Status() {
        for (status, condition) in [
            (0x0507, PrinterCondition.busy), (0x0506, .busy), (0x0406, .absent), (0x0401, .permissionDenied),
            (0x040A, .formatUnsupported), (0x0500, .failed("server-error-internal-error 500")),
        ] {
            #expect(PrinterCondition(IPPStatus(rawValue: status)) == condition)
        }
    }
}
