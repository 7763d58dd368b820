import Foundation
import Glibc
import TestSupport
import Testing

@testable import CardReaderAdapter

/// CUPS's own printer of software, as a test needs it.
private final class RunningPrinter: Sendable {
    static let isInstalled = ["ippeveprinter", "cc", "weasyprint"].allSatisfy(Program.isInstalled)

    /// A job that lasts until there is a file `go`, or no folder any more.
    static let untilGo = "while [ -e \"$0\" ] && [ ! -e go ]; do sleep 0.1; done"

    let uri: String
    private let folder: TemporaryFolder
    private let program: Program

    /// - Parameter script: run for each job, with its file as `$1`; what it writes as `STATE:` changes the printer's.
    init(formats: String = "application/pdf,image/pwg-raster,text/plain", script: String = "exit 0") async throws {
        folder = try TemporaryFolder()
        let library = folder.url.appending(path: "no_dns_sd.so").path
        let compiled = try await Program.run([
            "cc", "-shared", "-fPIC", "-o", library, Judge.folder.appending(path: "Judges/no_dns_sd.c").path,
        ])
        try #require(compiled.status == 0, "\(compiled)")
        let command = folder.url.appending(path: "job")
        try Data("#!/bin/sh\ncd \(folder.url.path)\necho $CONTENT_TYPE >>types\ncp $1 document\n\(script)\n".utf8)
            .write(to: command)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: command.path)
        let port = try Self.freePort()
        uri = "ipp://localhost:\(port)/ipp/print"
        program = try Program(
            [
                "ippeveprinter", "-p", "\(port)", "-n", "localhost", "-r", "off", "-d", folder.url.path, "-k", "-f",
                formats, "-c", command.path, "Receipts",
            ], environment: ["LD_PRELOAD": library])
        let end = ContinuousClock.now + .seconds(90)
        while await IPPPrinter(uri)?.condition() == .absent {
            try #require(ContinuousClock.now < end, "\(program.error)")
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    deinit { program.signal(SIGKILL) }

    private static func freePort() throws -> UInt16 {
        let printer = FakePrinter()
        // Taken and given back.
        return try FakePort(printer).number
    }

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
            // PWG 5102.4, 4.3: the synchronisation word, and the header's first field.
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
        let end = ContinuousClock.now + .seconds(90)
        while !printer.exists("begun") {
            try #require(ContinuousClock.now < end)
            try await Task.sleep(for: .milliseconds(20))
        }
        task.cancel()
        guard case .cancel(let progress) = await task.value else {
            Issue.record("not cancelled")
            return
        }
        #expect(progress.sent == progress.total && progress.total > 1000)
        try printer.create("go")
        // The job's number is 1: ipptool asks the printer what has become of it.
        var job: Program.Outcome
        repeat {
            try #require(ContinuousClock.now < end + .seconds(90))
            job = try await Program.run(["ipptool", "-tv", "\(printer.uri)/1", "get-job-attributes.test"])
        } while job.output.contains("job-state (enum) = processing")
        #expect(job.output.contains("job-state (enum) = canceled"), "\(job)")
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
        arguments: [("media-empty", PrinterCondition.paperOut), ("cover-open", .coverOpen), ("media-jam", .jam)])
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

@Suite(.timeLimit(.minutes(5))) struct IPPFaultTests {
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
        var port: FakePort? = try FakePort(FakePrinter())
        let number = try #require(port?.number)
        port = nil
        let service = try #require(IPPPrinter("ipp://127.0.0.1:\(number)/ipp/print"))
        #expect(await service.condition() == .absent)
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
