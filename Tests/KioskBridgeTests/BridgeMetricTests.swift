import ContactlessMetrics
import CoreMetrics
import Foundation
import TestSupport
import Testing

@testable import KioskBridge

/// The metrics of the bridge.
@MainActor @Suite struct BridgeMetricTests {
    private func samples(_ exposition: Exposition) -> [String] {
        exposition.text.split(separator: "\n").map(String.init).filter {
            !$0.hasPrefix("#") && !$0.contains(#/ 0(\.0)?$|_bucket\{|_sum/#)
        }
    }

    @Test("Each request is counted once, by its action and its status, whatever a page calls it")
    func requests() async throws {
        let exposition = Exposition()
        // A request is carried out in a task of its own, which has the backend of the one that made it.
        try await withMetricsFactory(exposition) { @MainActor in
            let host = BridgeHost(hostVersion: "1")
            host.registerCustomCapability("door.open", version: "1.0") { _, responder in
                responder.respond(status: .success)
                responder.respond(status: .error, error: .init(.busy, "again"))
            }
            host.registerCustomCapability("slow", version: "1.0") { _, responder in
                try? await waitUntilCanceled()
                responder.respond(status: .success)
            }
            #expect(exposition.text.contains("contactless_bridge_page_connected 0.0\n"))
            let page = try #require(Page(host))
            #expect(try await page.request("capability.query").status == "success")
            #expect(try await page.request("door.open").status == "success")
            #expect(try await page.request("bridge.hello").status == "error")
            // TEST: a published account number.
            #expect(try await page.request("card.x4761739001010010").status == "unsupported")
            let slow = await page.begin("slow")
            // The name of a request that is not answered.
            await page.send(
                #"{"v":1,"type":"request","correlationId":"\#(slow)","payload":{"action":"capability.query"}}"#)
            let counts = [
                #"contactless_bridge_refused_messages_total 1"#,
                #"contactless_bridge_requests_total{action="bridge.hello",status="error"} 1"#,
                #"contactless_bridge_requests_total{action="capability.query",status="success"} 1"#,
                #"contactless_bridge_requests_total{action="other",status="success"} 1"#,
                #"contactless_bridge_requests_total{action="other",status="unsupported"} 1"#,
                #"contactless_bridge_request_seconds_count{action="bridge.hello"} 1"#,
                #"contactless_bridge_request_seconds_count{action="capability.query"} 1"#,
                #"contactless_bridge_request_seconds_count{action="other"} 2"#,
            ]
            #expect(samples(exposition) == ["contactless_bridge_page_connected 1.0"] + counts)
            page.leave()
            #expect(
                Set(samples(exposition)).symmetricDifference(counts) == [
                    #"contactless_bridge_requests_total{action="other",status="abandoned"} 1"#,
                    #"contactless_bridge_request_seconds_count{action="other"} 2"#,
                    #"contactless_bridge_request_seconds_count{action="other"} 3"#,
                ])
        }
    }

    @Test("Each action of this package has a label of its own, and only the checkout's share one")
    func actions() throws {
        let host = BridgeHost(hostVersion: "1")
        var actions = [host.documentCapture.action, host.selfieCapture.action, "bridge.hello", "capability.query"]
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/KioskBridge")
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where path.hasSuffix(".swift") {
            let code = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            for list in code.matches(of: #/let actions = \[(.*)\]/#) {
                actions += list.1.matches(of: #/"(.*?)"/#).map { String($0.1) }
            }
        }
        #expect(actions.count > 10)
        for action in actions { #expect(MetricTable.Action(of: action).rawValue == action) }
        #expect(MetricTable.Action(of: "checkout.start") == .checkout && MetricTable.Action(of: "nfc.READ") == .other)
    }
}
