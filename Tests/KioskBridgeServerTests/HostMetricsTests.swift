import ContactlessMetrics
import Foundation
import TestSupport
import Testing

/// The metrics of `kiosk-host` from outside.
@Suite(.timeLimit(.minutes(5))) struct HostMetricsTests {
    private static let judges = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Judges").path

    /// Calls `body` with a folder of its own.
    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "metrics-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    /// The samples that are not 0, without those of times.
    private func samples(_ text: String) -> [String] {
        text.split(separator: "\n").map(String.init).filter {
            !$0.hasPrefix("#") && !$0.contains(#/ 0(\.0)?$|_bucket\{|_sum/#)
        }
    }

    private func host(_ arguments: String...) throws -> Program {
        try Program(
            [Program.built("kiosk-host"), "--virtual", "--port", "0"] + arguments,
            environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent", "STATE_DIRECTORY": ""])
    }

    @Test(
        "After a payment and a refusal, socket and file have their numbers, no digits of the card, and nothing of a page",
        .enabled(if: Promtool.isInstalled, "promtool is not installed"))
    func customers() async throws {
        try await withFolder { folder in
            let programs = URL(filePath: Program.built("kiosk-host")).deletingLastPathComponent().path
            let outcome = try await Program.run(
                ["/usr/bin/python3", "\(Self.judges)/host_metrics.py", programs, folder.path],
                environment: ["PYTHONDONTWRITEBYTECODE": "1"], timeout: .seconds(280))
            try #require(outcome.status == 0, "\(outcome)")
            let socket = try String(contentsOf: folder.appending(path: "socket.prom"), encoding: .utf8)
            let file = try String(contentsOf: folder.appending(path: "kiosk-host.prom"), encoding: .utf8)
            let counts = [
                #"contactless_reader_present 1.0"#,
                #"contactless_preparations_total{result="prepared"} 1"#,
                #"contactless_reads_total{request="payment_and_pass",result="completed"} 2"#,
                #"contactless_card_seconds_count 2"#,
                #"contactless_payments_total{kind="payment",result="approved"} 1"#,
                #"contactless_payments_total{kind="payment",result="declined"} 1"#,
                #"contactless_service_calls_total{call="token",result="answered"} 1"#,
                #"contactless_service_calls_total{call="payment",result="answered"} 2"#,
                #"contactless_service_call_seconds_count{call="token"} 1"#,
                #"contactless_service_call_seconds_count{call="payment"} 2"#,
                #"contactless_bridge_page_connected 1.0"#,
                #"contactless_bridge_refused_pages_total{reason="token"} 2"#,
                #"contactless_bridge_refused_messages_total 1"#,
                #"contactless_bridge_requests_total{action="order.get",status="success"} 2"#,
                #"contactless_bridge_requests_total{action="payment.start",status="success"} 2"#,
                #"contactless_bridge_requests_total{action="other",status="unsupported"} 1"#,
                #"contactless_bridge_request_seconds_count{action="order.get"} 2"#,
                #"contactless_bridge_request_seconds_count{action="payment.start"} 2"#,
                #"contactless_bridge_request_seconds_count{action="other"} 1"#,
            ]
            #expect(samples(socket) == counts)
            // The reader is given back, and the page has gone.
            #expect(Set(samples(file)).subtracting(counts).isEmpty)
            let table = Set(metrics.rows.flatMap(\.series).joined().map { "\($0.name) \($0.value)" })
            for text in [socket, file] {
                let verdict = try await Promtool.run("check", "metrics", input: text)
                #expect(verdict.status == 0 && (verdict.output + verdict.error).isEmpty, "\(verdict)")
                // TEST: the card's published number, in parts that no time has by chance.
                let number = Array("4761739001010010")
                for start in 0...number.count - 8 { #expect(!text.contains(String(number[start..<start + 8]))) }
                for label in text.matches(of: #/(\w+)="(.*?)"/#) where label.1 != "le" {
                    #expect(table.contains("\(label.1) \(label.2)"))
                }
            }
        }
    }

    @Test("A socket at which another program answers is not taken from it, and neither is one that cannot be made")
    func sockets() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "metrics.sock").path
            let first = try host("--metrics-socket", path)
            try await first.wait(for: "address") { $0.output.contains("\n") }
            let second = try await host("--metrics-socket", path).outcome()
            #expect(second.status == 2 && second.error.contains("\(path) is in use"), "\(second)")
            let scrape = ["curl", "-sf", "-m", "60", "--unix-socket", path, "http://localhost/metrics"]
            let outcome = try await Program.run(scrape)
            #expect(outcome.status == 0 && outcome.output.contains("contactless_reader_present 1.0\n"), "\(outcome)")
            first.signal(SIGTERM)
            _ = try await first.outcome()
            let missing = try await host("--metrics-socket", folder.appending(path: "none/metrics.sock").path).outcome()
            #expect(missing.status == 2 && missing.error.contains("no socket "), "\(missing)")
        }
    }

    @Test("A file that cannot be written is told once, and written when it can be; a reader sees it whole at any time")
    func files() async throws {
        try await withFolder { folder in
            let place = folder.appending(path: "later")
            let file = place.appending(path: "kiosk-host.prom")
            let kiosk = try host("--metrics-file", file.path, "--metrics-interval", "1")
            try await kiosk.wait(for: "remark") { $0.error.contains("no metrics in \(file.path): No such file") }
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
            try await kiosk.wait(for: "file") { _ in FileManager.default.fileExists(atPath: file.path) }
            #expect(kiosk.error.components(separatedBy: "no metrics in").count == 2, "\(kiosk.error)")
            @Sendable func number() throws -> Int? {
                try FileManager.default.attributesOfItem(atPath: file.path)[.systemFileNumber] as? Int
            }
            // The next one is another file: nobody writes to one that has the name.
            let before = try number()
            try await kiosk.wait(for: "next file") { _ in (try? number()) != before }
            #expect(try String(contentsOf: file, encoding: .utf8).hasSuffix("\n"))
            kiosk.signal(SIGTERM)
            _ = try await kiosk.outcome()
        }
    }

    @Test("Without the options there is neither, and an interval that makes no sense is refused")
    func none() async throws {
        let outcome = try await host("--metrics-file", "x.prom", "--metrics-interval", "0").outcome()
        #expect(outcome.status == 2 && outcome.error.contains("--metrics-interval takes 1 to 86400"), "\(outcome)")
    }
}
